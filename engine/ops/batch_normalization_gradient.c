/* SPDX-License-Identifier: Apache-2.0
 * BatchNormalizationGradient (ridge): dy, x, scale, and the mean and 1 / deviation that x was
 * normalised by, per channel -> dx, d scale, d bias. With z = (x - mean) inverse and n elements in
 * a channel (Ioffe and Szegedy 2015):
 *     d bias = sum dy, d scale = sum dy z
 *     dx = scale inverse (dy - d bias / n - z d scale / n)
 * training_mode 0: mean and deviation do not depend on x, so that dx = scale inverse dy.
 * With a sixth input, the bias, a ReLU follows the normalisation: dy is the gradient of its
 * result, and counts where scale z + bias > 0. */
#include "engine/graph/op.h"

static const char *const attrs[] = {"training_mode", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[1]->shape;
    int64_t channels = x->rank > 1 ? x->dim[1] : 1;
    char text[96], text_x[96];
    if (x->rank < 1 || !shape_equal(&c->in[0]->shape, x))
        return FAIL(err, STATUS_FAILED, "BatchNormalizationGradient: dy of shape %s, x of shape %s",
                    shape_text(&c->in[0]->shape, text), shape_text(x, text_x));
    for (int k = 2; k < (infer_has(c, 5) ? 6 : 5); k++)
        if (shape_count(&c->in[k]->shape) != channels)
            return FAIL(err, STATUS_FAILED,
                        "BatchNormalizationGradient: input %d has shape %s, x has %lld channels", k,
                        shape_text(&c->in[k]->shape, text), (long long)channels);
    infer_set(c, 0, c->in[1]->dtype, x);
    infer_set(c, 1, c->in[2]->dtype, &c->in[2]->shape);
    infer_set(c, 2, c->in[2]->dtype, &c->in[2]->shape);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    bool training = node_int(c->node, "training_mode", 0) != 0;
    int each = (training ? 8 : 5) + infer_has(c, 5); /* as ReLU's own gradient counts */
    cost->elementwise = each * (double)shape_count(&c->in[1]->shape);
}

struct channels {
    int64_t images, count, plane;
};

static int64_t place(const struct channels *c, int64_t channel, int64_t i)
{
    return (i / c->plane * c->count + channel) * c->plane + i % c->plane;
}

/* The gradient by the result of the normalisation. */
static double dy_of(const struct ref_call *call, int64_t at, int64_t channel, double z)
{
    bool relu = call->in_count > 5 && call->in[5];
    bool counts = !relu || call->in[2]->f[channel] * z + call->in[5]->f[channel] > 0;
    return counts ? call->in[0]->f[at] : 0;
}

static void put(const struct ref_call *call, int output, int64_t k, double value)
{
    if (output < call->out_count && call->out[output])
        call->out[output]->f[k] = value;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct shape *shape = &call->in[1]->shape;
    const double *x = call->in[1]->f;
    struct channels c = {.images = shape->dim[0],
                         .count = shape->rank > 1 ? shape->dim[1] : 1,
                         .plane = shape->rank > 2 ? shape_span(shape, 2, shape->rank) : 1};
    int64_t n = c.images * c.plane;
    bool training = node_int(call->node, "training_mode", 0) != 0;
    (void)err;
    for (int64_t channel = 0; channel < c.count; channel++) {
        double mean = call->in[3]->f[channel], inverse = call->in[4]->f[channel];
        double scale = call->in[2]->f[channel], bias_sum = 0, scale_sum = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = place(&c, channel, i);
            double z = (x[at] - mean) * inverse;
            double dy = dy_of(call, at, channel, z);
            bias_sum += dy;
            scale_sum += dy * z;
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t at = place(&c, channel, i);
            double z = (x[at] - mean) * inverse;
            double dy = dy_of(call, at, channel, z);
            double shared = training ? (bias_sum + z * scale_sum) / (double)n : 0;
            put(call, 0, at, scale * inverse * (dy - shared));
        }
        put(call, 1, channel, scale_sum);
        put(call, 2, channel, bias_sum);
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "image",
     .inputs = "f32[2,37,7,6] f32[2,37,7,6] f32[37] f32[37]{-0.1:0.1} f32[37]{1.6:1.8}",
     .attrs = "training_mode=1",
     .outputs = 3},
    {.name = "frozen",
     .inputs = "f32[2,24,4,6] f32[2,24,4,6] f32[24] f32[24]{-0.1:0.1} f32[24]{1.6:1.8}",
     .outputs = 3},
    {.name = "off_centre",
     .inputs = "f32[2,16,33,35] f32[2,16,33,35]{99:101} f32[16] f32[16]{99.9:100.1} "
               "f32[16]{1.6:1.8}",
     .attrs = "training_mode=1",
     .outputs = 3},
    {.name = "relu",
     .inputs = "f32[2,37,7,6] f32[2,37,7,6] f32[37] f32[37]{-0.1:0.1} f32[37]{1.6:1.8} f32[37]",
     .attrs = "training_mode=1",
     .outputs = 3},
    {.name = "frozen_relu",
     .inputs = "f32[2,24,4,6] f32[2,24,4,6] f32[24] f32[24]{-0.1:0.1} f32[24]{1.6:1.8} f32[24]",
     .outputs = 3},
    {.name = "one_output",
     .inputs = "f32[3,6,5,3] f32[3,6,5,3] f32[6] f32[6]{-0.1:0.1} f32[6]{1.6:1.8}",
     .attrs = "training_mode=1"},
    {.name = "rank_2",
     .inputs = "f32[90,21] f32[90,21] f32[21] f32[21]{-0.1:0.1} f32[21]{1.6:1.8}",
     .attrs = "training_mode=1",
     .outputs = 3},
    {.name = "rank_1",
     .inputs = "f32[50] f32[50] f32[1] f32[1]{-0.1:0.1} f32[1]{1.6:1.8}",
     .attrs = "training_mode=1",
     .outputs = 3},
    {.name = "rank_5",
     .inputs = "f32[3,6,2,3,4] f32[3,6,2,3,4] f32[6] f32[6]{-0.1:0.1} f32[6]{1.6:1.8}",
     .attrs = "training_mode=1",
     .outputs = 3},
};

REGISTER(op, batch_normalization_gradient) = {
    .name = "BatchNormalizationGradient",
    .domain = "ridge",
    .inputs_min = 5,
    .inputs_max = 6,
    .outputs_max = 3,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
