/* SPDX-License-Identifier: Apache-2.0
 * Dropout drops as many elements as it says, others in each step and layer, the same on the way
 * back, and keeps the mean. */
#include <math.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/graph/op.h"
#include "engine/ops/lib/dropout.h"
#include "engine/reference/reference.h"
#include "engine/train/train.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { COUNT = 1 << 16, PART_TIME = 7, PART_SAMPLES = 9, PART_WIDTH = 150, PART_RANKS = 3 };

static const double ratio = 0.3;

/* Two layers of dropout of the same ones. */
static struct graph *two_layers(bool training)
{
    struct graph *g = graph_new("dropout");
    g->training = training;
    int x =
        graph_input(g, "x", DTYPE_F32, shape_of(COUNT), (struct fill){.kind = FILL_CONST, .a = 1});
    graph_output(g, dropout(g, x, "first", ratio));
    graph_output(g, dropout(g, x, "second", ratio));
    return g;
}

static struct exe *compiled_for(const struct graph *g, enum isa isa, int threads)
{
    return compiled(g, &(struct exe_options){.threads = threads, .no_tune = true, .isa = isa});
}

static void set_step(struct exe *exe, const struct graph *g, int64_t step)
{
    for (int k = 0; k < g->input_count; k++)
        if (g->values[g->inputs[k]].dtype == DTYPE_I64)
            *(int64_t *)exe_input(exe, k) = step;
}

/* How many of the elements are kept in both, as a share. */
static double both(const float *a, const float *b)
{
    double count = 0;
    for (int k = 0; k < COUNT; k++)
        count += a[k] != 0 && b[k] != 0;
    return count / COUNT;
}

TEST(it_keeps_the_mean_and_masks_are_independent)
{
    struct graph *g = two_layers(true);
    struct exe *exe = compiled_for(g, ISA_SCALAR, 1);
    static float earlier[COUNT];
    double keep = 1 - ratio, deviation = sqrt(keep * ratio / COUNT);
    for (int64_t step = 0; step < 3; step++) {
        set_step(exe, g, step);
        exe_run(exe);
        const float *first = exe_output(exe, 0), *second = exe_output(exe, 1);
        double sum = 0, squares = 0;
        for (int k = 0; k < COUNT; k++) {
            sum += (double)first[k] / COUNT;
            squares += (double)first[k] * (double)first[k] / COUNT;
        }
        assert_true(fabs(sum - 1) < 5 * deviation / keep);
        assert_true(fabs(squares - 1 / keep) < 5 * deviation / keep / keep);
        assert_true(fabs(both(first, second) - keep * keep) < 5 * deviation);
        if (step > 0)
            assert_true(fabs(both(first, earlier) - keep * keep) < 5 * deviation);
        memcpy(earlier, first, sizeof(earlier));
    }
    exe_graph_free(exe, g);
}

TEST(masks_are_the_same_everywhere)
{
    struct graph *g = two_layers(true);
    static float want[COUNT];
    for (int isa = ISA_SCALAR; isa <= (int)isa_detect(); isa++) {
        for (int threads = 1; threads <= 2; threads++) {
            struct exe *exe = compiled_for(g, (enum isa)isa, threads);
            set_step(exe, g, 41);
            exe_run(exe);
            if (isa == ISA_SCALAR && threads == 1)
                memcpy(want, exe_output(exe, 0), sizeof(want));
            assert_memory_equal(exe_output(exe, 0), want, sizeof(want));
            exe_free(exe);
        }
    }
    graph_free(g);
}

/* [time, samples, width] or [samples, width], dropped by `rank` of `ranks`. */
static struct exe *dropped(int samples, bool in_time, int ranks, int rank, struct graph **out)
{
    struct error err = {0};
    struct fill ones = {.kind = FILL_CONST, .a = 1};
    struct graph *g = *out = graph_new("dropout");
    struct shape shape = in_time ? shape_of(PART_TIME, samples, PART_WIDTH)
                                 : shape_of(samples, PART_TIME, PART_WIDTH);
    g->training = true;
    int x = graph_input(g, "x", DTYPE_F32, shape, ones);
    graph_output(g, in_time ? dropout_in_time(g, x, "part", ratio) : dropout(g, x, "part", ratio));
    assert_int_equal(train_draw_as_rank(g, ranks, rank, &err), STATUS_OK);
    struct exe *exe = compiled_for(g, isa_detect(), 1);
    set_step(exe, g, 5);
    exe_run(exe);
    return exe;
}

/* The masks of ranks are those of their samples in the whole batch, wherever samples lie. */
TEST(ranks_drop_what_one_rank_would)
{
    for (int in_time = 0; in_time < 2; in_time++) {
        struct graph *g, *part;
        struct exe *whole = dropped(PART_RANKS * PART_SAMPLES, in_time, 1, 0, &g);
        int runs = in_time ? PART_TIME : 1;
        size_t run = (size_t)PART_SAMPLES * PART_WIDTH * (in_time ? 1 : PART_TIME);
        for (int rank = 0; rank < PART_RANKS; rank++) {
            struct exe *exe = dropped(PART_SAMPLES, in_time, PART_RANKS, rank, &part);
            const float *got = exe_output(exe, 0), *want = exe_output(whole, 0);
            for (int k = 0; k < runs; k++)
                assert_memory_equal(got + (size_t)k * run,
                                    want + ((size_t)k * PART_RANKS + (size_t)rank) * run,
                                    run * sizeof(*got));
            exe_free(exe);
            graph_free(part);
        }
        exe_free(whole);
        graph_free(g);
    }
}

TEST(nothing_is_dropped_where_nothing_learns)
{
    struct graph *g = two_layers(false);
    assert_int_equal(g->node_count, 0);
    assert_int_equal(g->state_count, 0);
    graph_free(g);
}

/* x w with dropped x: the gradient by w is the dropped x, and the next step drops others. */
TEST(steps_of_training_drop_by_their_number)
{
    enum { WIDTH = 64 };
    static const struct recipe plain = {.optimiser = "sgd",
                                        .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 1}};
    struct train_options options = {.gradients_as_outputs = true};
    struct graph *g = graph_new("linear");
    g->training = true;
    int x = graph_param(g, "x", DTYPE_F32, shape_of(1, WIDTH),
                        (struct fill){.kind = FILL_CONST, .a = 1});
    int w = graph_input(g, "w", DTYPE_F32, shape_of(WIDTH, 1),
                        (struct fill){.kind = FILL_CONST, .a = 1});
    graph_output(g,
                 graph_node(g, "MatMul", NULL, INPUTS(dropout(g, x, "drop", ratio), w), NO_ATTRS));
    MUST(train_step, g, &plain, &options);
    assert_int_equal(g->state_count, 2);
    struct exe *exe = compiled_for(g, ISA_SCALAR, 1);
    int loss = 0, slope = 0;
    for (int k = 0; k < g->output_count; k++)
        if (strcmp(g->values[g->outputs[k]].name, "gradient.x") == 0)
            slope = k;
    float first[WIDTH];
    for (int step = 0; step < 2; step++) {
        float before[WIDTH];
        memcpy(before, exe_input_named(exe, "x"), sizeof(before));
        exe_run(exe);
        const float *dx = exe_output(exe, slope);
        double sum = 0;
        for (int k = 0; k < WIDTH; k++) {
            assert_true(dx[k] == 0 || fabs((double)dx[k] - 1 / (1 - ratio)) < 1e-6);
            sum += (double)before[k] * (double)dx[k];
        }
        assert_true(fabs(sum - (double)*(const float *)exe_output(exe, loss)) < 1e-4);
        if (step == 0)
            memcpy(first, dx, sizeof(first));
        else
            assert_memory_not_equal(first, dx, sizeof(first));
    }
    exe_graph_free(exe, g);
}
