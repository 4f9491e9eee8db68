/* SPDX-License-Identifier: Apache-2.0
 * Losses against their formulas, and the slopes of what they are made of against differences. */

#include <math.h>

#include "engine/reference/reference.h"
#include "engine/train/autodiff.h"
#include "tests/lib/unit.h"
#include "workloads/lib/losses.h"

enum { ROWS = 6, CLASSES = 5, COUNT = ROWS * CLASSES };

static const int64_t labels[ROWS] = {0, 4, 2, 2, 1, 3};
static const double STEP = 0x1p-16;

static struct graph *start(int *x, double low, double high)
{
    struct graph *g = graph_new("loss");
    *x = graph_input(g, "x", DTYPE_F32, shape_of(ROWS, CLASSES),
                     (struct fill){.kind = FILL_UNIFORM, .a = low, .b = high});
    return g;
}

static int targets_of(struct graph *g, double low, double high)
{
    return graph_input(g, "targets", DTYPE_F32, shape_of(ROWS, CLASSES),
                       (struct fill){.kind = FILL_UNIFORM, .a = low, .b = high});
}

static double run(const struct graph *g, const struct ref_tensor *inputs, struct ref_tensor *out)
{
    MUST(reference_run, g, inputs, out, NULL);
    double loss = out[0].f[0];
    ref_release(&out[0]);
    return loss;
}

/* The loss becomes output 0; its gradient by x is compared element by element. in: what was drawn;
 * to be released. */
static double check_slope(struct graph *g, int x, int loss, struct ref_tensor *in)
{
    int dx;
    graph_output(g, loss);
    MUST(graph_check, g);
    MUST(reference_inputs, g, in, NULL);
    struct graph *dg = graph_copy(g);
    MUST(autodiff, dg, loss, NONE, 1, &x, &dx);
    graph_output(dg, dx);
    struct ref_tensor out[2];
    double value = run(dg, in, out);
    for (int k = 0; k < COUNT; k++) {
        struct ref_tensor aside;
        double here = in[0].f[k];
        in[0].f[k] = here + STEP;
        double above = run(g, in, &aside);
        in[0].f[k] = here - STEP;
        double below = run(g, in, &aside);
        in[0].f[k] = here;
        assert_true(fabs((above - below) / (2 * STEP) - out[1].f[k]) < 1e-7);
    }
    ref_release(&out[1]);
    graph_free(dg);
    return value;
}

static void finish(struct graph *g, struct ref_tensor *in)
{
    for (int k = 0; k < g->input_count; k++)
        ref_release(&in[k]);
    graph_free(g);
}

/* Minus the log softmax of one row. */
static void losses_of_row(const double *x, double *loss)
{
    double sum = 0;
    for (int k = 0; k < CLASSES; k++)
        sum += exp(x[k]);
    for (int k = 0; k < CLASSES; k++)
        loss[k] = log(sum) - x[k];
}

static void check_cross_entropy(double smoothing, int64_t ignored)
{
    int x;
    struct ref_tensor in[2];
    struct graph *g = start(&x, -4, 4);
    int ids = graph_const(g, "labels", DTYPE_I64, shape_of(2, ROWS / 2), labels);
    struct shape apart = shape_of(2, ROWS / 2, CLASSES);
    int logits =
        graph_node(g, "Reshape", NULL, INPUTS(x, graph_const_i64(g, 3, apart.dim)), NO_ATTRS);
    double loss = check_slope(g, x, cross_entropy(g, logits, ids, smoothing, ignored), in);
    double want = 0;
    int counted = 0;
    for (int row = 0; row < ROWS; row++) {
        double each[CLASSES], mean = 0;
        losses_of_row(in[0].f + row * CLASSES, each);
        for (int k = 0; k < CLASSES; k++)
            mean += each[k] / CLASSES;
        if (labels[row] == ignored)
            continue;
        counted++;
        want += (1 - smoothing) * each[labels[row]] + smoothing * mean;
    }
    assert_true(fabs(loss - want / counted) < 1e-7);
    finish(g, in);
}

TEST(cross_entropy_is_the_logarithm_of_a_probability)
{
    check_cross_entropy(0, COUNT_ALL);
}

TEST(a_smoothed_target_has_a_share_of_all_classes)
{
    check_cross_entropy(0.1, COUNT_ALL);
}

TEST(ignored_positions_do_not_count)
{
    check_cross_entropy(0, 2);
    check_cross_entropy(0.25, 2);
}

TEST(binary_cross_entropy_of_logits_does_not_overflow)
{
    int x;
    struct ref_tensor in[2];
    struct graph *g = start(&x, -900, 900);
    int targets = targets_of(g, 0, 1);
    double loss = check_slope(g, x, binary_cross_entropy_with_logits(g, x, targets), in), want = 0;
    for (int k = 0; k < COUNT; k++) {
        double a = in[0].f[k], t = in[1].f[k];
        want += (a > 0 ? a : 0) + log1p(exp(-fabs(a))) - a * t;
    }
    assert_true(isfinite(loss) && fabs(loss - want / COUNT) < 1e-9);
    finish(g, in);
}

TEST(squared_errors)
{
    int x;
    struct ref_tensor in[2];
    struct graph *g = start(&x, -2, 2);
    int targets = targets_of(g, -2, 2);
    double loss = check_slope(g, x, mean_squared_error(g, x, targets), in), want = 0;
    for (int k = 0; k < COUNT; k++)
        want += (in[0].f[k] - in[1].f[k]) * (in[0].f[k] - in[1].f[k]);
    assert_true(fabs(loss - want / COUNT) < 1e-12);
    finish(g, in);
}

TEST(smooth_l1_is_a_parabola_near_zero_and_a_line_beyond)
{
    static const float weights[ROWS] = {1, 0, 1, 1, 0, 1};
    int x;
    struct ref_tensor in[2];
    struct graph *g = start(&x, -2, 2);
    int each = smooth_l1_of_each(g, x, targets_of(g, -1, 1), 0.5);
    int rows = graph_const(g, "weights", DTYPE_F32, shape_of(ROWS, 1), weights);
    double loss = check_slope(g, x, weighted_mean_of(g, each, rows), in), want = 0;
    for (int k = 0; k < COUNT; k++) {
        double d = fabs(in[0].f[k] - in[1].f[k]);
        want += (double)weights[k / CLASSES] * (d < 0.5 ? d * d : d - 0.25);
    }
    assert_true(fabs(loss - want / 4) < 1e-12);
    finish(g, in);
}
