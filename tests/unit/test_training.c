/* SPDX-License-Identifier: Apache-2.0
 * States, gradients and updates: what a training step is made of. */

#include <math.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/graph/op.h"
#include "engine/ops/family/gradient.h"
#include "engine/reference/reference.h"
#include "engine/train/train.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { WIDTH = 37 };

static const struct recipe plain = {.optimiser = "sgd",
                                    .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.125}};

static struct fill uniform(double low, double high)
{
    return (struct fill){.kind = FILL_UNIFORM, .a = low, .b = high};
}

/* The loss is x w: its gradient by w is x, whatever w is. */
static struct graph *linear_loss(void)
{
    struct graph *g = graph_new("linear");
    int x = graph_input(g, "x", DTYPE_F32, shape_of(1, WIDTH), uniform(-1, 1));
    int w = graph_param(g, "w", DTYPE_F32, shape_of(WIDTH, 1), uniform(-1, 1));
    graph_output(g, make_mat_mul(g, x, w));
    return g;
}

TEST(a_state_keeps_what_an_execution_left)
{
    struct exe *exe;
    struct exe_options options = {.threads = 1, .no_tune = true};
    struct graph *g = linear_loss();
    MUST(train_step, g, &plain, NULL);
    assert_int_equal(g->state_count, 2);
    MUST(exe_new, g, &options, &exe);
    const float *w = exe_input_named(exe, "w"), *x = exe_input_named(exe, "x");
    const int64_t *step = (const void *)exe_input_named(exe, "step");
    float first[WIDTH];
    memcpy(first, w, sizeof(first));
    for (int k = 1; k <= 5; k++) {
        exe_run(exe);
        assert_int_equal(*step, k);
        for (int i = 0; i < WIDTH; i++)
            assert_true(fabsf(w[i] - (first[i] - 0.125f * (float)k * x[i])) < 1e-5f);
    }
    exe_reset(exe);
    assert_int_equal(*step, 0);
    assert_memory_equal(w, first, sizeof(first));
    exe_graph_free(exe, g);
}

/* Without passes the backward pass begins with another shape of a constant. */
TEST(a_step_runs_as_it_was_built)
{
    struct exe *exe;
    struct exe_options options = {.threads = 1, .no_tune = true, .no_fuse = true};
    struct graph *g = linear_loss();
    MUST(train_step, g, &plain, NULL);
    MUST(exe_new, g, &options, &exe);
    const float *w = exe_input_named(exe, "w"), *x = exe_input_named(exe, "x");
    float first[WIDTH];
    memcpy(first, w, sizeof(first));
    exe_run(exe);
    for (int i = 0; i < WIDTH; i++)
        assert_true(fabsf(w[i] - (first[i] - 0.125f * x[i])) < 1e-6f);
    exe_graph_free(exe, g);
}

/* The weights are updated where they lie; the counter, whose operator cannot, is copied. */
TEST(updates_happen_in_place)
{
    struct exe *exe;
    struct exe_options options = {.threads = 1, .no_tune = true};
    struct graph *g = linear_loss();
    MUST(train_step, g, &plain, NULL);
    MUST(exe_new, g, &options, &exe);
    const struct graph *compiled = exe_graph(exe);
    for (int s = 0; s < compiled->state_count; s++) {
        const struct state *pair = &compiled->states[s];
        int in = 0, out = 0;
        while (compiled->inputs[in] != pair->before)
            in++;
        while (compiled->outputs[out] != pair->after)
            out++;
        bool same = exe_input(exe, in) == exe_output(exe, out);
        assert_int_equal(same, strcmp(compiled->values[pair->before].name, "w") == 0);
    }
    exe_graph_free(exe, g);
}

TEST(the_reference_carries_states_on)
{
    struct graph *g = linear_loss();
    MUST(train_step, g, &plain, NULL);
    struct ref_tensor inputs[8], outputs[8];
    assert_true(g->input_count <= 8 && g->output_count <= 8);
    MUST(reference_inputs, g, inputs, NULL);
    double x = inputs[0].f[3], w = 0;
    for (int k = 0; k < g->input_count; k++)
        if (strcmp(g->values[g->inputs[k]].name, "w") == 0)
            w = inputs[k].f[3];
    for (int step = 0; step < 4; step++) {
        MUST(reference_run, g, inputs, outputs, NULL);
        reference_carry(g, inputs, outputs);
        for (int k = 0; k < g->output_count; k++)
            ref_release(&outputs[k]);
    }
    for (int k = 0; k < g->input_count; k++) {
        if (strcmp(g->values[g->inputs[k]].name, "w") == 0)
            assert_true(fabs(inputs[k].f[3] - (w - 4 * 0.125 * x)) < 1e-12);
        ref_release(&inputs[k]);
    }
    graph_free(g);
}

TEST(nodes_know_their_phase)
{
    struct graph *g = linear_loss();
    int count[PHASE_COUNT] = {0};
    MUST(train_step, g, &plain, NULL);
    for (int n = 0; n < g->node_count; n++)
        count[g->nodes[n].phase]++;
    assert_int_equal(count[PHASE_FORWARD], 1);
    assert_true(count[PHASE_BACKWARD] >= 1);
    assert_int_equal(count[PHASE_UPDATE], 2);
    graph_free(g);
}

/* A value of which a state is to become must be a result of its type and shape. */
TEST(a_state_becomes_a_result_of_its_shape)
{
    struct graph *g = graph_new("wrong");
    int a = graph_state(g, "a", DTYPE_F32, shape_of(3), uniform(0, 1));
    int b = graph_input(g, "b", DTYPE_F32, shape_of(3), uniform(0, 1));
    graph_state_after(g, a, b);
    FAILS(STATUS_FAILED, "\"a\"", graph_failed, g);
    graph_free(g);
}

enum { LAYERS = 36, ROWS = 256, COLUMNS = 16 };

/* v X W1 W2 ... u: every layer's input is needed for the gradient by its weights. */
static struct graph *deep_loss(void)
{
    struct graph *g = graph_new("deep");
    struct shape square = shape_of(COLUMNS, COLUMNS);
    int x = graph_input(g, "x", DTYPE_F32, shape_of(ROWS, COLUMNS), uniform(-1, 1));
    for (int k = 0; k < LAYERS; k++)
        x = make_mat_mul(g, x, graph_param(g, NULL, DTYPE_F32, square, uniform(-0.4, 0.4)));
    x = make_mat_mul(g, graph_input(g, "v", DTYPE_F32, shape_of(1, ROWS), uniform(-1, 1)), x);
    int u = graph_param(g, "u", DTYPE_F32, shape_of(COLUMNS, 1), uniform(-1, 1));
    graph_output(g, make_mat_mul(g, x, u));
    return g;
}

/* One step, in double: every output, and what the plan of an executable needs for activations. */
static size_t step_of(const struct train_options *options, struct ref_tensor *outputs, int *count)
{
    struct exe *exe;
    struct exe_options no_tune = {.threads = 1, .no_tune = true};
    struct graph *g = deep_loss();
    MUST(train_step, g, &plain, options);
    *count = g->output_count;
    MUST(reference_run, g, NULL, outputs, NULL);
    MUST(exe_new, g, &no_tune, &exe);
    size_t bytes = exe_memory(exe).arena_bytes;
    exe_graph_free(exe, g);
    return bytes;
}

TEST(recomputation_changes_memory_and_no_number)
{
    struct ref_tensor kept[64], again[64];
    int count, other;
    size_t all = step_of(NULL, kept, &count);
    size_t few = step_of(&(struct train_options){.recompute = true}, again, &other);
    assert_int_equal(count, other);
    for (int k = 0; k < count; k++) {
        const void *a = kept[k].f ? (void *)kept[k].f : kept[k].i;
        const void *b = again[k].f ? (void *)again[k].f : again[k].i;
        assert_memory_equal(a, b, (size_t)kept[k].count * 8);
        ref_release(&kept[k]);
        ref_release(&again[k]);
    }
    if (few * 2 > all)
        fail_msg("%zu bytes are planned with recomputation, %zu without", few, all);
}

/* A layer that is applied twice changes its statistics twice. */
TEST(running_statistics_are_states)
{
    struct graph *g = graph_new("norms");
    g->training = true;
    int x = graph_input(g, "x", DTYPE_F32, shape_of(8, 3), uniform(1, 2));
    int y = batch_norm(g, batch_norm(g, x, "norm", 1e-5, 1), "norm", 1e-5, 1);
    int w = graph_param(g, "w", DTYPE_F32, shape_of(3, 1), uniform(-1, 1));
    int part = graph_input(g, "part", DTYPE_F32, shape_of(1, 8), uniform(-1, 1));
    graph_output(g, make_mat_mul(g, part, make_mat_mul(g, y, w)));
    assert_int_equal(g->outputs[0], g->value_count - 1);
    MUST(train_step, g, &plain, NULL);
    struct ref_tensor inputs[16], outputs[16];
    assert_true(g->input_count <= 16 && g->output_count <= 16);
    MUST(reference_inputs, g, inputs, NULL);
    MUST(reference_run, g, inputs, outputs, NULL);
    double mean = 0;
    for (int k = 0; k < 8; k++)
        mean += inputs[0].f[k * 3] / 8;
    int mean_state = graph_state_of(g, graph_find_value(g, "norm.running_mean"));
    for (int k = 0; k < g->output_count; k++) {
        /* The second time the mean is 0. */
        if (g->outputs[k] == g->states[mean_state].after)
            assert_true(fabs(outputs[k].f[0] - 0.9 * 0.1 * mean) < 1e-9);
        ref_release(&outputs[k]);
    }
    for (int k = 0; k < g->input_count; k++)
        ref_release(&inputs[k]);
    graph_free(g);
}
