/* SPDX-License-Identifier: Apache-2.0
 * ConvTranspose: the gradient of Conv with respect to its input. Inputs x, weights [C, M / group,
 * kernel], bias. */
#include "engine/graph/op.h"
#include "engine/ops/compute/ref_conv.h"
#include "engine/ops/family/conv_gradient.h"

static const char *const attrs[] = {"auto_pad",     "dilations",      "group",
                                    "kernel_shape", "output_padding", "output_shape",
                                    "pads",         "strides",        NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape, *weights = &c->in[1]->shape;
    struct window w;
    char text_x[96], text_w[96];
    if (x->rank != weights->rank || x->rank < 3 || x->dim[1] != weights->dim[0])
        return FAIL(err, STATUS_FAILED, "ConvTranspose: input %s, weights %s do not go together",
                    shape_text(x, text_x), shape_text(weights, text_w));
    TRY(window_transposed_from_node(c->node, x, weights->dim + 2, &w, err));
    if (x->dim[1] % w.group != 0)
        return FAIL(err, STATUS_FAILED, "ConvTranspose: %lld channels in %lld groups",
                    (long long)x->dim[1], (long long)w.group);
    struct shape y = {.rank = x->rank, .dim = {x->dim[0], weights->dim[1] * w.group}};
    if (infer_has(c, 2) && shape_count(&c->in[2]->shape) != y.dim[1])
        return FAIL(err, STATUS_FAILED, "ConvTranspose: bias has %lld elements for %lld channels",
                    (long long)shape_count(&c->in[2]->shape), (long long)y.dim[1]);
    for (int k = 0; k < w.rank; k++)
        y.dim[2 + k] = w.out[k];
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

/* Every input element meets every tap; what pads cut off counts too. */
static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *x = &c->in[0]->shape, *weights = &c->in[1]->shape;
    cost->macs = (double)shape_count(x) * (double)shape_span(weights, 1, weights->rank);
    cost->elementwise = infer_has(c, 2) ? (double)shape_count(&c->out[0]->shape) : 0;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0], *weights = call->in[1];
    bool bias = call->in_count > 2 && call->in[2];
    struct window w;
    TRY(window_transposed_from_node(call->node, &x->shape, weights->shape.dim + 2, &w, err));
    struct ref_conv conv = {.window = window_to_3d(&w),
                            .images = x->shape.dim[0],
                            .in_channels = x->shape.dim[1],
                            .out_channels = call->out[0]->shape.dim[1],
                            .x = x->f,
                            .weights = weights->f,
                            .y = call->out[0]->f,
                            .transposed = true};
    ref_conv_bias(&conv, bias ? call->in[2]->f : NULL);
    return ref_conv_run(&conv, call->pool, err);
}

/* The window of the convolution from y to x. What y has beyond the last element that x reaches (an
 * output_padding or an output_shape may ask for any size) holds the bias alone; less than a stride
 * of it fits a window all the same. Padding at the end that output_padding took back is none. */
static struct window turned(const struct window *w)
{
    struct window turned = *w;
    for (int k = 0; k < w->rank; k++) {
        int64_t reach = (w->kernel[k] - 1) * w->dilation[k] + 1;
        int64_t limit = w->stride[k] * w->in[k] - 1 + reach - w->pad_begin[k];
        int64_t room = w->out[k] < limit ? limit - w->out[k] : 0;
        turned.in[k] = w->out[k] < limit ? w->out[k] : limit;
        turned.pad_end[k] = w->pad_end[k] < room ? w->pad_end[k] : room;
        turned.out[k] = w->in[k];
    }
    return turned;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    static const int64_t start[RANK_MAX];
    struct graph *g = c->g;
    int x = gradient_in(c, 0), weights = gradient_in(c, 1), bias = gradient_in(c, 2);
    struct shape in = gradient_shape(g, x), kernel = gradient_shape(g, weights);
    struct shape out = gradient_shape(g, c->dy[0]);
    struct window forward;
    TRY(window_transposed_from_node(gradient_node(c), &in, kernel.dim + 2, &forward, err));
    struct window w = turned(&forward);
    for (int k = 0; k < w.rank; k++)
        out.dim[2 + k] = w.in[k];
    int dy = make_slice(g, c->dy[0], start, &out);
    if (c->wanted[0])
        c->dx[0] = make_conv(g, dy, weights, &w);
    if (c->wanted[1])
        c->dx[1] = make_conv_weight_gradient(g, dy, x, &w);
    if (bias != NONE && c->wanted[2])
        c->dx[2] = make_bias_gradient(g, c->dy[0], bias);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "3x3", .inputs = "f32[1,5,6,7] f32[5,9,3,3]! f32[9]!"},
    {.name = "3x3_same",
     .inputs = "f32[2,24,9,10] f32[24,40,3,3]! f32[40]!",
     .attrs = "pads=[1,1,1,1]"},
    {.name = "3x3_same_run_time_weights",
     .inputs = "f32[1,16,7,9] f32[16,33,3,3]",
     .attrs = "pads=[1,1,1,1]"},
    {.name = "3x3_cut_off", .inputs = "f32[1,16,8,9] f32[16,17,3,3]!", .attrs = "pads=[3,0,1,4]"},
    {.name = "2x2_stride_2",
     .inputs = "f32[2,16,7,7] f32[16,24,2,2]! f32[24]!",
     .attrs = "strides=[2,2]"},
    {.name = "tiles_2x3", .inputs = "f32[2,33,5,13] f32[33,20,2,3]!", .attrs = "strides=[2,3]"},
    {.name = "4x4_stride_2_pads",
     .inputs = "f32[1,8,5,6] f32[8,6,4,4]!",
     .attrs = "strides=[2,2] pads=[1,1,1,1]"},
    {.name = "output_padding",
     .inputs = "f32[1,3,5,4] f32[3,4,3,3]!",
     .attrs = "strides=[3,2] output_padding=[1,1]"},
    {.name = "output_padding_takes_back_padding",
     .inputs = "f32[1,3,2,3] f32[3,4,2,3]!",
     .attrs = "dilations=[1,2] pads=[0,0,1,1] output_padding=[0,1]"},
    {.name = "output_padding_beyond_all",
     .inputs = "f32[1,3,2,3] f32[3,4,1,2]! f32[4]!",
     .attrs = "dilations=[3,4] pads=[0,1,1,0] output_padding=[2,3]"},
    {.name = "output_shape",
     .inputs = "f32[1,3,4,5] f32[3,4,3,3]!",
     .attrs = "strides=[2,2] output_shape=[8,10]"},
    {.name = "same_upper",
     .inputs = "f32[1,3,4,5] f32[3,4,3,3]!",
     .attrs = "strides=[2,2] auto_pad=\"SAME_UPPER\""},
    {.name = "same_lower",
     .inputs = "f32[1,3,4,5] f32[3,4,3,3]!",
     .attrs = "strides=[2,2] auto_pad=\"SAME_LOWER\""},
    {.name = "asymmetric_pads",
     .inputs = "f32[1,3,4,5] f32[3,4,3,3]!",
     .attrs = "strides=[2,1] pads=[0,1,1,2]"},
    {.name = "dilation",
     .inputs = "f32[1,3,5,5] f32[3,4,2,3]!",
     .attrs = "dilations=[2,3] strides=[2,1]"},
    {.name = "3x3_stride_2_deep",
     .inputs = "f32[2,160,5,7] f32[160,72,3,3] f32[72]",
     .attrs = "strides=[2,2] pads=[1,1,1,1] output_padding=[1,1]"},
    {.name = "4x4_stride_2_deep",
     .inputs = "f32[1,272,3,4] f32[272,20,4,4]!",
     .attrs = "strides=[2,2] pads=[1,1,1,1]"},
    {.name = "group_2", .inputs = "f32[1,6,5,5] f32[6,4,3,3]! f32[8]!", .attrs = "group=2"},
    {.name = "depthwise",
     .inputs = "f32[1,9,5,5] f32[9,1,4,4]!",
     .attrs = "group=9 strides=[2,2] pads=[1,1,1,1]"},
    {.name = "1d", .inputs = "f32[2,4,9] f32[4,6,5]! f32[6]!", .attrs = "strides=[3]"},
    {.name = "3d",
     .inputs = "f32[1,3,3,4,3] f32[3,4,2,3,2]!",
     .attrs = "strides=[2,1,2] pads=[0,1,0,0,1,0]"},
    {.name = "run_time_weights", .inputs = "f32[1,4,5,5] f32[4,3,3,3] f32[3]"},
};

REGISTER(op, conv_transpose) = {
    .name = "ConvTranspose",
    .narrow = NARROW_WORK,
    .inputs_min = 2,
    .inputs_max = 3,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .plain_inputs = 1u << 1,
    .packs = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
