/* SPDX-License-Identifier: Apache-2.0
 * Tables of which only rows are read: the step that touches these rows alone gives what the step
 * over whole gradients gives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/reference/reference.h"
#include "engine/train/train.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { ROWS = 3000, WIDTH = 24, BATCH = 200, STEPS = 4, INPUTS_MAX = 16, OUTPUTS_MAX = 16 };

/* The loss is a sum of rows of two tables; the second one is read twice. */
static struct graph *lookups(const struct recipe *recipe)
{
    struct graph *g = graph_new("lookups");
    struct fill index = {.kind = FILL_ZIPF, .a = 0, .b = ROWS};
    g->training = true;
    int ids = graph_input(g, "ids", DTYPE_I64, shape_of(BATCH), index);
    int more = graph_input(g, "more", DTYPE_I64, shape_of(BATCH), index);
    int part = noise_input(g, "part", shape_of(1, BATCH));
    int first = embedding(g, ids, "first", ROWS, WIDTH);
    int second = embedding(g, ids, "second", ROWS, WIDTH);
    int third = embedding(g, more, "second", ROWS, WIDTH);
    int top = noise_param(g, "top", shape_of(WIDTH, 1));
    int loss = NONE, tables[] = {first, second, third};
    for (int k = 0; k < 3; k++) {
        int term = make_mat_mul(g, part, make_mat_mul(g, tables[k], top));
        loss = k ? add(g, loss, term) : term;
    }
    graph_output(g, loss);
    MUST(train_step, g, recipe, NULL);
    return g;
}

static int count_nodes(const struct graph *g, const struct op *op)
{
    int count = 0;
    for (int n = 0; n < g->node_count; n++)
        count += !g->nodes[n].dead && g->nodes[n].op == op;
    return count;
}

/* After some steps. */
static struct exe *trained(const struct graph *g, int threads)
{
    struct exe *exe = NULL;
    struct exe_options options = {.threads = threads, .no_tune = true};
    MUST(exe_new, g, &options, &exe);
    for (int k = 0; k < STEPS; k++)
        exe_run(exe);
    return exe;
}

/* Its inputs after the same steps over whole gradients in float64. */
static void reference_steps(const struct graph *g, struct ref_tensor *inputs)
{
    struct ref_tensor outputs[OUTPUTS_MAX];
    assert_true(g->input_count <= INPUTS_MAX && g->output_count <= OUTPUTS_MAX);
    MUST(reference_inputs, g, inputs, NULL);
    for (int step = 0; step < STEPS; step++) {
        MUST(reference_run, g, inputs, outputs, NULL);
        reference_carry(g, inputs, outputs);
        for (int k = 0; k < g->output_count; k++)
            ref_release(&outputs[k]);
    }
}

/* The largest difference of a state, and how far it has come from where it began. */
static void compare_state(const struct graph *g, struct exe *exe, int input,
                          const struct ref_tensor *want)
{
    const struct value *value = &g->values[g->inputs[input]];
    const float *got = exe_input_named(exe, value->name);
    double largest = 0, moved = 0;
    float *first = malloc((size_t)want->count * sizeof(float));
    assert_non_null(first);
    value_materialise(value, first);
    for (int64_t k = 0; k < want->count; k++) {
        largest = fmax(largest, fabs((double)got[k] - want->f[k]));
        moved = fmax(moved, fabs((double)first[k] - want->f[k]));
    }
    free(first);
    assert_true(moved > 1e-3);
    assert_true(largest < 1e-4 * moved);
}

/* Else every step copies the whole table. */
static void assert_in_place(struct exe *exe)
{
    const struct graph *g = exe_graph(exe);
    for (int s = 0; s < g->state_count; s++) {
        int in = 0, out = 0;
        while (g->inputs[in] != g->states[s].before)
            in++;
        while (g->outputs[out] != g->states[s].after)
            out++;
        if (shape_count(&g->values[g->states[s].before].shape) == (int64_t)ROWS * WIDTH)
            assert_ptr_equal(exe_input(exe, in), exe_output(exe, out));
    }
}

static void compare(const struct recipe *recipe)
{
    struct graph *g = lookups(recipe);
    struct ref_tensor inputs[INPUTS_MAX];
    reference_steps(g, inputs);
    for (int threads = 1; threads <= 2; threads++) {
        struct exe *exe = trained(g, threads);
        assert_int_equal(count_nodes(exe_graph(exe), &op_update_rows), 2);
        assert_int_equal(count_nodes(exe_graph(exe), &op_gather_gradient), 0);
        assert_in_place(exe);
        for (int k = 0; k < g->input_count; k++)
            if (inputs[k].count == (int64_t)ROWS * WIDTH)
                compare_state(g, exe, k, &inputs[k]);
        exe_free(exe);
    }
    for (int k = 0; k < g->input_count; k++)
        ref_release(&inputs[k]);
    graph_free(g);
}

TEST(rows_of_sgd_are_those_of_whole_gradients)
{
    static const struct recipe recipe = {.optimiser = "sgd",
                                         .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.01}};
    compare(&recipe);
}

TEST(rows_of_adagrad_are_those_of_whole_gradients)
{
    static const struct recipe recipe = {
        .optimiser = "adagrad",
        .attrs = {{.name = "initial", .kind = ATTR_FLOAT, .f = 0.1}},
        .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.05}};
    compare(&recipe);
}

/* A table of fewer rows than indices is read whole. */
TEST(small_tables_are_updated_whole)
{
    static const struct recipe recipe = {.optimiser = "sgd",
                                         .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.01}};
    struct graph *g = graph_new("small");
    g->training = true;
    int ids = graph_input(g, "ids", DTYPE_I64, shape_of(BATCH),
                          (struct fill){.kind = FILL_INDEX, .a = 0, .b = 100});
    int rows = embedding(g, ids, "table", 100, 1);
    int part = graph_input(g, "part", DTYPE_F32, shape_of(1, BATCH), (struct fill){0});
    graph_output(g, make_mat_mul(g, part, rows));
    MUST(train_step, g, &recipe, NULL);
    struct exe *exe = trained(g, 1);
    assert_int_equal(count_nodes(exe_graph(exe), &op_update_rows), 0);
    assert_int_equal(count_nodes(exe_graph(exe), &op_gather_gradient), 1);
    exe_graph_free(exe, g);
}

/* Adam moves rows that have no gradient; decay does, too; and an output must be whole. */
TEST(whole_gradients_stay_where_they_are_needed)
{
    static const struct recipe adam = {.optimiser = "adam",
                                       .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.01}};
    static const struct recipe decay = {
        .optimiser = "sgd", .decay = 0.1, .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.01}};
    static const struct recipe clipped = {
        .optimiser = "sgd", .clip_norm = 1, .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.01}};
    static const struct recipe *const recipes[] = {&adam, &decay, &clipped};
    for (int k = 0; k < 3; k++) {
        struct graph *g = lookups(recipes[k]);
        struct exe *exe = trained(g, 1);
        assert_int_equal(count_nodes(exe_graph(exe), &op_update_rows), 0);
        exe_graph_free(exe, g);
    }
}
