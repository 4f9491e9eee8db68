/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch of a model file of which nobody says it: known when it is planned, and the one that it
 * is imported with. */
#include <stdio.h>
#include <unistd.h>

#include "engine/graph/cost.h"
#include "harness/suite/plan.h"
#include "tests/lib/onnx_build.h"
#include "tests/lib/unit.h"
#include "workloads/onnx/onnx.h"
#include "workloads/onnx/wire.h"

/* What the import makes of the file with this batch. */
static int64_t imported_batch(const struct builder *b, int64_t batch)
{
    const struct onnx_import_options options = {.batch = batch};
    struct graph *g;
    struct graph_cost cost;
    MUST(onnx_import_memory, b->bytes, b->size, NULL, "test.onnx", &options, &g);
    graph_cost(g, &cost);
    graph_free(g);
    return cost.batch;
}

static void batch_is(const char *text, int64_t batch)
{
    struct builder b = {0};
    build_file(&b, text);
    assert_int_equal(wire_batch(b.bytes, b.size), batch);
    assert_int_equal(imported_batch(&b, 0), batch);
    assert_int_equal(imported_batch(&b, batch), batch);
    build_release(&b);
}

TEST(the_batch_of_a_file_is_what_it_is_imported_with)
{
    (void)state;
    batch_is("in x f32[6,3]; y = Relu(x); out y f32[6,3]", 6);
    batch_is("in x f32[N,3]; y = Relu(x); out y f32[N,3]", 1);
    batch_is("in x f32[0,3]; y = Relu(x); out y f32[N,3]", 1);
    batch_is("in x f32[]; y = Relu(x); out y f32[]", 1);
    batch_is("const w f32[3]=1; y = Relu(w); out y f32[3]", 1);
    /* Before IR 4 weights were inputs, too. */
    batch_is("in w f32[7,3]; const w f32[7,3]=1; in x f32[5,3]; y = Relu(x); out y f32[5,3]", 5);
}

TEST(bytes_that_are_no_model_have_no_batch)
{
    static const unsigned char cut[] = {0x3a, 0x7f, 0x5a}, number[] = {0x38, 0x05};
    (void)state;
    assert_int_equal(wire_batch("", 0), 0);
    assert_int_equal(wire_batch("no model at all", 15), 0);
    assert_int_equal(wire_batch(cut, sizeof(cut)), 0);
    assert_int_equal(wire_batch(number, sizeof(number)), 0);
    for (int k = 0; k < hostile_count(); k++) { /* none may crash */
        struct builder b = {0};
        hostile_build(k, &b);
        wire_batch(b.bytes, b.size);
        build_release(&b);
    }
}

/* Bug: of 600 inputs each looked at all fields of an initialiser without a name, and nobody counted
 * them: with more of both a plan took hours. */
TEST(a_file_of_too_many_fields_has_no_batch)
{
    struct builder b = {0};
    (void)state;
    build_model(&b, 17);
    build_open(&b, 5);
    for (int k = 0; k < 400000; k++)
        build_number(&b, 2, 1);
    build_close(&b);
    for (int k = 0; k < 600; k++)
        build_input(&b, "x", 1, "2,3");
    build_end(&b);
    assert_int_equal(wire_batch(b.bytes, b.size), 0);
    build_release(&b);
}

TEST(a_file_without_a_given_batch_has_the_id_of_its_own)
{
    char path[64];
    struct builder b = {0};
    struct plan plain, given;
    struct plan_overrides o = {.cpus = 4}, two = {.cpus = 4, .batch = "2"};
    (void)state;
    snprintf(path, sizeof(path), "/tmp/ridge-batch-%ld.onnx", (long)getpid());
    char *words[] = {path};
    build_file(&b, "in x f32[2,3]; y = Relu(x); out y f32[2,3]");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(b.bytes, 1, b.size, file), b.size);
    fclose(file);
    build_release(&b);
    MUST(plan_from_words, words, 1, &o, &plain);
    MUST(plan_from_words, words, 1, &two, &given);
    unlink(path);
    assert_int_equal(plain.points[0].batch, 2);
    assert_string_equal(plain.points[0].id, given.points[0].id);
    plan_release(&plain);
    plan_release(&given);
}
