/* SPDX-License-Identifier: Apache-2.0
 * A training goes on from its checkpoint as if it had never stopped; no damage goes unseen. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/compile/compile.h"
#include "engine/ops/family/gradient.h"
#include "engine/train/checkpoint.h"
#include "engine/train/checkpoint_compare.h"
#include "engine/train/train.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"

enum { WIDTH = 37, BEFORE = 3, AFTER = 4 };

static const struct recipe adam = {.optimiser = "adam",
                                   .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.125}};
static const struct recipe sgd = {.optimiser = "sgd",
                                  .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.125}};
static const struct checkpoint_about about = {
    .workload = "linear:width=37", .recipe = "adam", .step = BEFORE, .seed = UINT64_MAX - 1};

struct training {
    struct graph *g; /* its constants are the executable's */
    struct exe *exe;
};

/* Its loss is x a b: the gradient by each weight depends on the other. */
static struct training training_new(const struct recipe *recipe, int64_t width)
{
    struct training t;
    struct exe_options options = {.threads = 1, .no_tune = true};
    struct graph *g = graph_new("linear");
    int x = noise_input(g, "x", shape_of(1, width));
    int a = noise_param(g, "a", shape_of(width, 5));
    int b = noise_param(g, "b", shape_of(5, 1));
    graph_output(g, make_mat_mul(g, make_mat_mul(g, x, a), b));
    MUST(train_step, g, recipe, NULL);
    MUST(exe_new, g, &options, &t.exe);
    t.g = g;
    return t;
}

static void training_free(struct training *t)
{
    exe_free(t->exe);
    graph_free(t->g);
}

static void run(const struct training *t, int steps)
{
    for (int k = 0; k < steps; k++)
        exe_run(t->exe);
}

static void *state_memory(struct exe *exe, int s)
{
    const struct graph *g = exe_graph(exe);
    int k = 0;
    while (g->inputs[k] != g->states[s].before)
        k++;
    return exe_input(exe, k);
}

static void assert_same_states(const struct training *one, const struct training *two)
{
    const struct graph *g = exe_graph(one->exe);
    assert_int_equal(g->state_count, 7); /* two weights with two moments each, and the step */
    for (int s = 0; s < g->state_count; s++) {
        const struct value *value = &g->values[g->states[s].before];
        size_t bytes = value_size(value);
        assert_memory_equal(state_memory(one->exe, s), state_memory(two->exe, s), bytes);
    }
}

struct place {
    char folder[64], file[128];
};

static void place_make(struct place *place)
{
    snprintf(place->folder, sizeof(place->folder), "/tmp/ridge_checkpoint_XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    snprintf(place->file, sizeof(place->file), "%s/saved", place->folder);
}

static void place_clear(struct place *place)
{
    unlink(place->file);
    assert_int_equal(rmdir(place->folder), 0);
}

static void save(const struct training *t, const struct place *place)
{
    MUST(checkpoint_save, place->file, t->exe, NULL, &about);
}

TEST(a_training_goes_on_bit_by_bit)
{
    struct checkpoint c;
    struct place place;
    place_make(&place);
    struct training stopped = training_new(&adam, WIDTH), whole = training_new(&adam, WIDTH);
    run(&stopped, BEFORE);
    save(&stopped, &place);
    training_free(&stopped);
    run(&whole, BEFORE + AFTER);
    struct training resumed = training_new(&adam, WIDTH);
    MUST(checkpoint_open, place.file, &c);
    MUST(checkpoint_restore, &c, resumed.exe, NULL);
    assert_int_equal(c.step, BEFORE);
    assert_true(c.seed == UINT64_MAX - 1);
    assert_string_equal(c.workload, "linear:width=37");
    assert_string_equal(c.recipe, "adam");
    checkpoint_close(&c);
    run(&resumed, AFTER);
    assert_same_states(&resumed, &whole);
    training_free(&resumed);
    training_free(&whole);
    place_clear(&place);
}

TEST(notes_of_the_writer_are_kept)
{
    struct checkpoint c;
    struct place place;
    struct safetensors_note more[] = {{"batch", "32"}, {"rate", "0.125"}};
    struct checkpoint_about with = about;
    with.more = more;
    with.more_count = 2;
    place_make(&place);
    struct training t = training_new(&adam, WIDTH);
    MUST(checkpoint_save, place.file, t.exe, NULL, &with);
    MUST(checkpoint_open, place.file, &c);
    assert_string_equal(safetensors_note(&c.contents, "batch"), "32");
    assert_string_equal(safetensors_note(&c.contents, "rate"), "0.125");
    checkpoint_close(&c);
    training_free(&t);
    place_clear(&place);
}

/* Each bit of a file, flipped, is found by the header's form or by the checksum. */
TEST(no_damage_goes_unseen)
{
    struct error err = {0};
    struct file file;
    struct place place;
    struct checkpoint c;
    place_make(&place);
    struct training t = training_new(&adam, WIDTH);
    save(&t, &place);
    MUST(file_map, place.file, &file);
    unsigned char *bytes = malloc(file.size);
    assert_non_null(bytes);
    memcpy(bytes, file.data, file.size);
    MUST(checkpoint_parse, bytes, file.size, "test", &c);
    checkpoint_close(&c);
    for (size_t bit = 0; bit < 8 * file.size; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (checkpoint_parse(bytes, file.size, "test", &c, &err) == STATUS_OK)
            fail_msg("bit %zu of %zu goes unseen", bit, 8 * file.size);
        checkpoint_close(&c);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free(bytes);
    file_unmap(&file);
    training_free(&t);
    place_clear(&place);
}

static void assert_refused(const struct checkpoint *c, struct training t, const char *message)
{
    struct error err = {0};
    assert_int_equal(checkpoint_restore(c, t.exe, NULL, &err), STATUS_FAILED);
    if (!strstr(err.message, message))
        fail_msg("\"%s\" lacks \"%s\"", err.message, message);
    training_free(&t);
}

TEST(a_file_of_another_model_changes_nothing)
{
    struct error err = {0};
    struct checkpoint c;
    struct place place;
    place_make(&place);
    struct training saved = training_new(&adam, WIDTH), other = training_new(&adam, WIDTH - 1);
    struct training untouched = training_new(&adam, WIDTH - 1);
    run(&saved, BEFORE);
    run(&other, 1);
    run(&untouched, 1);
    save(&saved, &place);
    MUST(checkpoint_open, place.file, &c);
    assert_int_equal(checkpoint_restore(&c, other.exe, NULL, &err), STATUS_FAILED);
    assert_same_states(&other, &untouched);
    assert_refused(&c, other, "another type or shape");
    assert_refused(&c, training_new(&sgd, WIDTH), "it has 7 states, and 3 are wanted");
    checkpoint_close(&c);
    training_free(&saved);
    struct training plain = training_new(&sgd, WIDTH);
    save(&plain, &place);
    MUST(checkpoint_open, place.file, &c);
    assert_refused(&c, training_new(&adam, WIDTH), "it lacks \"");
    checkpoint_close(&c);
    training_free(&plain);
    training_free(&untouched);
    place_clear(&place);
}

static struct tensor_difference compared(const float *a, const float *b, int count)
{
    struct tensor_difference d;
    size_t bytes = (size_t)count * sizeof(float);
    struct safetensor left = {
        .name = "a", .type = "F32", .rank = 1, .dim = {count}, .data = a, .bytes = bytes};
    struct safetensor right = left;
    right.data = b;
    assert_true(tensors_are_alike(&left, &right));
    MUST(tensor_compare, &left, &right, &d);
    return d;
}

TEST(differences_are_relative_to_the_largest_element_and_to_the_norm)
{
    static const float a[] = {1, 2, -8, 0}, b[] = {1, 2.5f, -8, -0.0f};
    static const float odd[] = {1, 2, -8, (float)NAN}, zero[] = {0, 0, 0, 0};
    struct tensor_difference d = compared(a, b, 4);
    assert_int_equal(d.different, 2); /* -0 is another zero, at no distance */
    assert_float_equal(d.largest, 0.5, 0);
    assert_float_equal(d.relative, 0.5 / 8, 0);
    assert_true(fabs(d.off - 0.5) < 1e-15 && fabs(d.norm - sqrt(1 + 2.5 * 2.5 + 64)) < 1e-14);
    assert_int_equal(compared(a, a, 4).different, 0);
    assert_float_equal(compared(odd, odd, 4).relative, 0, 0);
    assert_float_equal(compared(odd, odd, 4).off, 0, 0);
    assert_true(isinf(compared(odd, a, 4).off));
    assert_true(isinf(compared(a, odd, 4).off));
    assert_float_equal(compared(a, zero, 4).norm, 0, 0);
    assert_true(isinf(compared(odd, a, 4).relative));
    assert_true(isinf(compared(a, odd, 4).relative));
    assert_true(isinf(compared(a, zero, 4).relative));
}
