/* SPDX-License-Identifier: Apache-2.0
 * BatchNormalization: x, scale, bias, mean, variance. In training mode the statistics come from x
 * and the running ones are outputs 1 and 2: running = momentum old + (1 - momentum) new. Beyond
 * ONNX, outputs 3 and 4 are x's mean and 1 / deviation, for the gradient. */
#include <math.h>
#include <stdlib.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

static const char *const attrs[] = {"epsilon", "momentum", "spatial", "training_mode", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape;
    int64_t channels = x->rank > 1 ? x->dim[1] : 1;
    if (x->rank < 1)
        return FAIL(err, STATUS_FAILED, "BatchNormalization: the input is a scalar");
    if (!node_int(c->node, "spatial", 1))
        return UNSUPPORTED(err, "BatchNormalization: spatial=0 (statistics per element)");
    for (int k = 1; k < 5; k++)
        if (shape_count(&c->in[k]->shape) != channels)
            return FAIL(
                err, STATUS_FAILED,
                "BatchNormalization: input %d has %lld elements, the input has %lld channels", k,
                (long long)shape_count(&c->in[k]->shape), (long long)channels);
    if (c->out_count > 1 && !node_int(c->node, "training_mode", 0))
        return FAIL(err, STATUS_FAILED,
                    "BatchNormalization: %d outputs are wanted but training_mode is 0",
                    c->out_count);
    infer_set(c, 0, c->in[0]->dtype, x);
    infer_set(c, 1, c->in[3]->dtype, &c->in[3]->shape);
    infer_set(c, 2, c->in[4]->dtype, &c->in[4]->shape);
    infer_set(c, 3, c->in[3]->dtype, &c->in[3]->shape);
    infer_set(c, 4, c->in[4]->dtype, &c->in[4]->shape);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    bool training = node_int(c->node, "training_mode", 0) != 0;
    cost->elementwise = (training ? 7 : 2) * (double)shape_count(&c->in[0]->shape);
    cost->transcendentals = training ? (double)shape_count(&c->in[1]->shape) : 0;
}

struct channels {
    const double *x;
    int64_t images, count, plane;
};

/* Mean of x, or of (x - centre)^2, over one channel. */
static double moment(const struct channels *c, int64_t channel, const double *centre)
{
    double sum = 0;
    for (int64_t n = 0; n < c->images; n++)
        for (int64_t k = 0; k < c->plane; k++) {
            double x = c->x[(n * c->count + channel) * c->plane + k];
            sum += centre ? (x - *centre) * (x - *centre) : x;
        }
    return sum / (double)(c->images * c->plane);
}

static void keep(const struct ref_call *call, int output, int64_t channel, double value)
{
    if (call->out_count > output && call->out[output])
        call->out[output]->f[channel] = value;
}

static double running(const struct ref_call *call, int input, int64_t channel, double value)
{
    double momentum = node_float(call->node, "momentum", 0.9);
    return momentum * call->in[input]->f[channel] + (1 - momentum) * value;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct shape *shape = &call->in[0]->shape;
    struct channels c = {.x = call->in[0]->f,
                         .images = shape->dim[0],
                         .count = shape->rank > 1 ? shape->dim[1] : 1,
                         .plane = shape->rank > 2 ? shape_span(shape, 2, shape->rank) : 1};
    bool training = node_int(call->node, "training_mode", 0) != 0;
    double epsilon = node_float(call->node, "epsilon", 1e-5);
    for (int64_t channel = 0; channel < c.count; channel++) {
        double mean = training ? moment(&c, channel, NULL) : call->in[3]->f[channel];
        double variance = training ? moment(&c, channel, &mean) : call->in[4]->f[channel];
        if (training) {
            keep(call, 1, channel, running(call, 3, channel, mean));
            keep(call, 2, channel, running(call, 4, channel, variance));
            keep(call, 3, channel, mean);
            keep(call, 4, channel, 1 / sqrt(variance + epsilon));
        }
        double factor = call->in[1]->f[channel] / sqrt(variance + epsilon);
        for (int64_t i = 0; i < c.images * c.plane; i++) {
            int64_t at = (i / c.plane * c.count + channel) * c.plane + i % c.plane;
            call->out[0]->f[at] = (c.x[at] - mean) * factor + call->in[2]->f[channel];
        }
    }
    return STATUS_OK;
}

/* ---- gradient ---- */

static int inverse_deviation(struct graph *g, int variance, double epsilon)
{
    int deviation = make_unary(g, &op_sqrt, make_plus(g, variance, epsilon));
    return make_unary(g, &op_reciprocal, deviation);
}

/* The mean and 1 / deviation that x was normalised by. */
static void find_moments(const struct gradient_call *c, bool training, int *mean, int *inverse)
{
    struct graph *g = c->g;
    int x = gradient_in(c, 0);
    double epsilon = node_float(gradient_node(c), "epsilon", 1e-5);
    int given_mean = gradient_in(c, 3), given_variance = gradient_in(c, 4);
    *mean = gradient_out(c, 3);
    *inverse = gradient_out(c, 4);
    if (*mean != NONE && *inverse != NONE)
        return;
    *mean = given_mean;
    if (!training) {
        *inverse = inverse_deviation(g, given_variance, epsilon);
        return;
    }
    *mean = make_channel_mean(g, x, given_mean);
    int off = make_sub(g, x, make_per_channel(g, *mean, x));
    *inverse =
        inverse_deviation(g, make_channel_mean(g, make_mul(g, off, off), given_mean), epsilon);
}

static int sum_of(struct graph *g, int a, int b)
{
    return a == NONE ? b : b == NONE ? a : make_add(g, a, b);
}

static int scaled_dy(const struct gradient_call *c, int output, double factor)
{
    int outputs = gradient_node(c)->output_count;
    return output < outputs && c->dy[output] != NONE ? make_scaled(c->g, c->dy[output], factor)
                                                     : NONE;
}

/* What the statistics that the node gives add to x's gradient: d mean = 1 / n, d variance =
 * 2 (x - mean) / n, d inverse = -inverse^3 / 2 d variance. NONE: nothing depends on them. */
static int by_statistics(const struct gradient_call *c, int mean, int inverse)
{
    struct graph *g = c->g;
    double momentum = node_float(gradient_node(c), "momentum", 0.9);
    int x = gradient_in(c, 0), by_mean = scaled_dy(c, 1, 1 - momentum);
    int by_variance = scaled_dy(c, 2, 1 - momentum), by_inverse = scaled_dy(c, 4, -0.5);
    by_mean = sum_of(g, by_mean, scaled_dy(c, 3, 1));
    if (by_inverse != NONE) {
        int cube = make_mul(g, inverse, make_mul(g, inverse, inverse));
        by_variance = sum_of(g, by_variance, make_mul(g, by_inverse, cube));
    }
    struct shape shape = gradient_shape(g, x);
    double share = (double)gradient_shape(g, mean).dim[0] / (double)shape_count(&shape);
    int dx = NONE;
    if (by_variance != NONE) {
        int off = make_sub(g, x, make_per_channel(g, mean, x));
        dx = make_mul(g, off, make_per_channel(g, make_scaled(g, by_variance, 2 * share), x));
    }
    if (by_mean == NONE)
        return dx;
    by_mean = make_per_channel(g, make_scaled(g, by_mean, share), x);
    return dx == NONE ? make_expanded(g, by_mean, &shape) : make_add(g, dx, by_mean);
}

/* Given statistics are inputs like others: d mean = -scale inverse d bias, d variance =
 * -scale inverse^2 / 2 d scale. */
static void by_given(const struct gradient_call *c, int inverse, const int *gradient)
{
    struct graph *g = c->g;
    int scale = gradient_in(c, 1);
    if (c->wanted[3])
        c->dx[3] = make_neg(g, make_mul(g, make_mul(g, scale, inverse), gradient[2]));
    if (c->wanted[4]) {
        int slope = make_mul(g, scale, make_mul(g, inverse, inverse));
        c->dx[4] = make_mul(g, make_scaled(g, slope, -0.5), gradient[1]);
    }
}

/* Old running statistics reach the new ones alone. */
static void by_old(const struct gradient_call *c)
{
    double momentum = node_float(gradient_node(c), "momentum", 0.9);
    for (int k = 3; k < 5; k++)
        if (c->wanted[k])
            c->dx[k] = scaled_dy(c, k - 2, momentum);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    bool training = node_int(gradient_node(c), "training_mode", 0) != 0;
    int x = gradient_in(c, 0), scale = gradient_in(c, 1), mean, inverse;
    int result[3] = {NONE, NONE, NONE};
    (void)err;
    find_moments(c, training, &mean, &inverse);
    if (c->dy[0] != NONE)
        graph_node_many(g, op_batch_normalization_gradient.name, NULL,
                        INPUTS(c->dy[0], x, scale, mean, inverse),
                        ATTRS(attr_int("training_mode", training)), 3, result);
    if (training)
        by_old(c);
    else
        by_given(c, inverse, result);
    if (training && c->wanted[0])
        result[0] = sum_of(g, result[0], by_statistics(c, mean, inverse));
    for (int k = 0; k < 3; k++)
        if (c->wanted[k])
            c->dx[k] = result[k];
    return STATUS_OK;
}

/* ---- cases ---- */

static const struct op_case cases[] = {
    {.name = "image", .inputs = "f32[2,37,7,6] f32[37]! f32[37]! f32[37]! f32[37]{0.1:2}!"},
    {.name = "groups", .inputs = "f32[2,24,4,6] f32[24]! f32[24]! f32[24]! f32[24]{0.1:2}!"},
    {.name = "fours", .inputs = "f32[2,12,2,6] f32[12]! f32[12]! f32[12]! f32[12]{0.1:2}!"},
    {.name = "epsilon",
     .inputs = "f32[1,16,5,5] f32[16]! f32[16]! f32[16]! f32[16]{0.0:0.1}!",
     .attrs = "epsilon=0.01"},
    {.name = "parameters_at_run_time", .inputs = "f32[2,5,3,4] f32[5] f32[5] f32[5] f32[5]{0.1:2}"},
    {.name = "rank_2", .inputs = "f32[9,33] f32[33]! f32[33]! f32[33]! f32[33]{0.1:2}!"},
    {.name = "rank_3", .inputs = "f32[2,6,11] f32[6]! f32[6]! f32[6]! f32[6]{0.1:2}!"},
    {.name = "rank_5", .inputs = "f32[1,6,2,3,4] f32[6]! f32[6]! f32[6]! f32[6]{0.1:2}!"},
    {.name = "training",
     .inputs = "f32[3,8,6,5] f32[8] f32[8] f32[8] f32[8]{0.1:2}",
     .attrs = "training_mode=1 momentum=0.8",
     .outputs = 3},
    {.name = "training_one_output",
     .inputs = "f32[4,6,5,3] f32[6] f32[6] f32[6] f32[6]{0.1:2}",
     .attrs = "training_mode=1"},
    {.name = "training_keeps_moments",
     .inputs = "f32[2,37,9,7] f32[37] f32[37] f32[37] f32[37]{0.1:2}",
     .attrs = "training_mode=1",
     .outputs = 5},
    {.name = "training_off_centre",
     .inputs = "f32[2,16,33,35]{99:101} f32[16] f32[16] f32[16] f32[16]{0.1:2}",
     .attrs = "training_mode=1",
     .outputs = 5,
     .tolerance = 1e-4},
    {.name = "training_rank_2",
     .inputs = "f32[70,21] f32[21] f32[21] f32[21] f32[21]{0.1:2}",
     .attrs = "training_mode=1",
     .outputs = 5},
    {.name = "training_rank_1",
     .inputs = "f32[50]{0.5:2} f32[1] f32[1] f32[1] f32[1]{0.1:2}",
     .attrs = "training_mode=1",
     .outputs = 5},
    {.name = "training_rank_5",
     .inputs = "f32[3,6,2,3,4] f32[6] f32[6] f32[6] f32[6]{0.1:2}",
     .attrs = "training_mode=1",
     .outputs = 5},
    {.name = "training_one_element",
     .inputs = "f32[1,20,1,1] f32[20] f32[20] f32[20] f32[20]{0.1:2}",
     .attrs = "training_mode=1 epsilon=0.1",
     .outputs = 5},
};

REGISTER(op, batch_normalization) = {
    .name = "BatchNormalization",
    .narrow = NARROW_MATH,
    .narrow_inputs = 1u << 0,
    .per_element = true,
    .buffers = 1u << 3 | 1u << 4,
    .inputs_min = 5,
    .outputs_max = 5,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .epilogue_act = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    .in_place = 1u << 1 | 1u << 2,
    OP_CASES(cases),
};
