/* SPDX-License-Identifier: Apache-2.0
 * A batch taken in parts moves the weights as one that is taken whole. */

#include <math.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/reference/reference.h"
#include "engine/train/train.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"

enum { ROWS = 6, PARTS = 3, IN = 5, OUT = 4, STEPS = 3, VALUES = 16 };

/* Clipped, so that the norm must be that of the mean; the biases do not decay. */
static const struct recipe recipe = {.optimiser = "adam",
                                     .decay = 0.01,
                                     .clip_norm = 0.25,
                                     .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.0625}};

/* The mean of (x w + b)^2 over `rows` rows. */
static struct graph *network(int64_t rows, int parts)
{
    struct train_options options = {.micro_batches = parts};
    struct graph *g = graph_new("layer");
    int x = noise_input(g, "x", shape_of(rows, IN));
    int w = noise_param(g, "w", shape_of(IN, OUT));
    int b = noise_param(g, "b", shape_of(OUT));
    int y = make_add(g, make_mat_mul(g, x, w), b);
    struct attr whole = attr_int("keepdims", 0);
    int squares = make_mul(g, y, y);
    graph_output(g, graph_node(g, op_reduce_mean.name, "loss", INPUTS(squares), ATTRS(whole)));
    MUST(train_step, g, &recipe, &options);
    return g;
}

/* Row `row` of all that are ever seen. */
static double sample(int64_t row, int64_t k)
{
    return sin(0.3 + 0.7 * (double)(row * IN + k));
}

/* Runs STEPS steps of `parts` executions each in float64, and copies what the weights become. */
static void reference_weights(int parts, double *w, double *b)
{
    int64_t rows = ROWS / parts;
    struct graph *g = network(rows, parts);
    struct ref_tensor inputs[VALUES], outputs[VALUES];
    assert_true(g->input_count <= VALUES && g->output_count <= VALUES);
    MUST(reference_inputs, g, inputs, NULL);
    struct ref_tensor *x = &inputs[input_named(g, "x")];
    for (int run = 0; run < STEPS * parts; run++) {
        for (int64_t e = 0; e < x->count; e++)
            x->f[e] = sample(run * rows + e / IN, e % IN);
        MUST(reference_run, g, inputs, outputs, NULL);
        reference_carry(g, inputs, outputs);
        for (int k = 0; k < g->output_count; k++)
            ref_release(&outputs[k]);
    }
    memcpy(w, inputs[input_named(g, "w")].f, IN * OUT * sizeof(*w));
    memcpy(b, inputs[input_named(g, "b")].f, OUT * sizeof(*b));
    for (int k = 0; k < g->input_count; k++)
        ref_release(&inputs[k]);
    graph_free(g);
}

TEST(parts_of_a_batch_make_the_step_of_the_whole)
{
    double whole[IN * OUT + OUT], parts[IN * OUT + OUT];
    reference_weights(1, whole, whole + IN * OUT);
    reference_weights(PARTS, parts, parts + IN * OUT);
    for (int k = 0; k < IN * OUT + OUT; k++)
        if (!(fabs(whole[k] - parts[k]) < 1e-9))
            fail_msg("weight %d: %.12g in parts, %.12g whole", k, parts[k], whole[k]);
}

/* In f32: weights and moments keep every bit until the last part has come. */
TEST(nothing_moves_before_the_last_part)
{
    struct exe *exe;
    struct exe_options options = {.threads = 1, .no_tune = true};
    double w[IN * OUT], b[OUT];
    struct graph *g = network(ROWS / PARTS, PARTS);
    reference_weights(PARTS, w, b);
    MUST(exe_new, g, &options, &exe);
    const struct graph *compiled = exe_graph(exe);
    float *x = exe_input(exe, input_named(compiled, "x"));
    float *weights = exe_input(exe, input_named(compiled, "w"));
    float *moment = exe_input(exe, input_named(compiled, "w.adam0"));
    const void *states[2] = {weights, moment};
    unsigned char before[2][sizeof(float) * IN * OUT];
    for (int run = 0; run < STEPS * PARTS; run++) {
        memcpy(before[0], weights, sizeof(before[0]));
        memcpy(before[1], moment, sizeof(before[1]));
        for (int64_t e = 0; e < ROWS / PARTS * IN; e++)
            x[e] = (float)sample(run * (ROWS / PARTS) + e / IN, e % IN);
        exe_run(exe);
        bool same = memcmp(before[0], states[0], sizeof(before[0])) == 0 &&
                    memcmp(before[1], states[1], sizeof(before[1])) == 0;
        assert_int_equal(same, run % PARTS != PARTS - 1);
    }
    for (int k = 0; k < IN * OUT; k++)
        assert_true(fabs((double)weights[k] - w[k]) < 1e-5);
    exe_graph_free(exe, g);
}
