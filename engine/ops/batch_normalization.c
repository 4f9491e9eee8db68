/* SPDX-License-Identifier: Apache-2.0
 * BatchNormalization: x, scale, bias, mean, variance. In training mode the statistics come from x
 * and the running ones are outputs 1 and 2: running = momentum old + (1 - momentum) new. */
#include <math.h>
#include <stdlib.h>

#include "engine/graph/op.h"

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

static void update(const struct ref_call *call, int output, int64_t channel, double value)
{
    double momentum = node_float(call->node, "momentum", 0.9);
    if (call->out_count > output && call->out[output])
        call->out[output]->f[channel] =
            momentum * call->in[output + 2]->f[channel] + (1 - momentum) * value;
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
            update(call, 1, channel, mean);
            update(call, 2, channel, variance);
        }
        double factor = call->in[1]->f[channel] / sqrt(variance + epsilon);
        for (int64_t i = 0; i < c.images * c.plane; i++) {
            int64_t at = (i / c.plane * c.count + channel) * c.plane + i % c.plane;
            call->out[0]->f[at] = (c.x[at] - mean) * factor + call->in[2]->f[channel];
        }
    }
    return STATUS_OK;
}

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
};

REGISTER(op, batch_normalization) = {
    .name = "BatchNormalization",
    .narrow = NARROW_MATH,
    .narrow_inputs = 1u << 0,
    .per_element = true,
    .buffers = 1u << 3 | 1u << 4,
    .inputs_min = 5,
    .inputs_max = 5,
    .outputs_min = 1,
    .outputs_max = 3,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .epilogue_act = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    OP_CASES(cases),
};
