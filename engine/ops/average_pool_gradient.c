/* SPDX-License-Identifier: Apache-2.0
 * AveragePoolGradient: the gradient of a loss by the input of AveragePool, of that by its result,
 * dy: each element of dy is shared out evenly to what its window counted. Attributes are those of
 * AveragePool, and output_shape: the sizes of the pool's input. */
#include <stdlib.h>

#include "engine/ops/family/pooling.h"

static const char *const attrs[] = {"auto_pad",     "ceil_mode",    "count_include_pad",
                                    "dilations",    "kernel_shape", "pads",
                                    "output_shape", "strides",      NULL};

/* Shape of the pool's input: the batch and channels of dy, sizes as the attribute says. */
static enum status input_shape(const struct node *node, const struct shape *dy, struct shape *x,
                               struct error *err)
{
    char text[96];
    *x = *dy;
    if (dy->rank < 3 || node_ints(node, "output_shape", x->dim + 2, dy->rank - 2) != dy->rank - 2)
        return FAIL(err, STATUS_FAILED,
                    "AveragePoolGradient: output_shape must have a size for each spatial dimension "
                    "of the gradient %s",
                    shape_text(dy, text));
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape x;
    TRY(input_shape(c->node, &c->in[0]->shape, &x, err));
    TRY(pooling_check_gradient(c, &x, &c->in[0]->shape, err));
    infer_set(c, 0, c->in[0]->dtype, &x);
    return STATUS_OK;
}

struct share {
    const double *dy;
    double *dx;
    const int64_t *offsets; /* window_offsets */
    struct window window;
    int64_t positions, plane, taps;
    bool count_pads;
};

static void share_position(const struct share *s, double dy, int64_t position, double *dx)
{
    int64_t count = 0;
    for (int64_t t = 0; t < s->taps; t++)
        count += s->offsets[t * s->positions + position] >= 0;
    if (s->count_pads)
        count = pooling_padded_taps(&s->window, position);
    for (int64_t t = 0; t < s->taps; t++) {
        int64_t at = s->offsets[t * s->positions + position];
        if (at >= 0)
            dx[at] += dy / (double)count;
    }
}

static void share_channel(void *context, int64_t channel, int thread)
{
    (void)thread;
    const struct share *s = context;
    for (int64_t position = 0; position < s->positions; position++)
        share_position(s, s->dy[channel * s->positions + position], position,
                       s->dx + channel * s->plane);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct shape *x = &call->out[0]->shape;
    struct window w;
    TRY(window_from_node(call->node, x, NULL, &w, err));
    int64_t *offsets = window_offsets(&w, false);
    if (!offsets)
        return FAIL_NO_MEMORY(err);
    struct share s = {.dy = call->in[0]->f,
                      .dx = call->out[0]->f,
                      .offsets = offsets,
                      .window = w,
                      .positions = window_out_count(&w),
                      .plane = window_in_count(&w),
                      .taps = window_taps(&w),
                      .count_pads = node_int(call->node, "count_include_pad", 0) != 0};
    pool_run(call->pool, x->dim[0] * x->dim[1], share_channel, &s);
    free(offsets);
    return STATUS_OK;
}

/* An addition for each element of each window. */
static void cost(const struct infer *c, struct cost *cost)
{
    struct window w;
    if (window_from_node(c->node, &c->out[0]->shape, NULL, &w, NULL) == STATUS_OK)
        cost->elementwise = (double)window_taps(&w) * (double)shape_count(&c->in[0]->shape);
}

static const struct op_case cases[] = {
    {.name = "2x2_stride_2",
     .inputs = "f32[2,5,4,5]",
     .attrs = "kernel_shape=[2,2] strides=[2,2] output_shape=[8,10]"},
    {.name = "2x2_stride_2_unseen_ends",
     .inputs = "f32[2,18,4,5]",
     .attrs = "kernel_shape=[2,2] strides=[2,2] output_shape=[9,11]"},
    {.name = "3x3_pads_not_counted",
     .inputs = "f32[1,35,9,10]",
     .attrs = "kernel_shape=[3,3] pads=[1,1,1,1] output_shape=[9,10]"},
    {.name = "3x3_pads_counted",
     .inputs = "f32[1,16,9,10]",
     .attrs = "kernel_shape=[3,3] pads=[1,1,1,1] count_include_pad=1 output_shape=[9,10]"},
    {.name = "many_channels",
     .inputs = "f32[2,150,3,4]",
     .attrs = "kernel_shape=[3,2] strides=[2,1] pads=[1,0,0,1] output_shape=[6,4]"},
    {.name = "ceil_at_one_end",
     .inputs = "f32[1,3,6,6]",
     .attrs = "kernel_shape=[3,3] strides=[2,2] ceil_mode=1 output_shape=[13,12]"},
    {.name = "ceil_pads_counted",
     .inputs = "f32[1,3,7,7]",
     .attrs = "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] ceil_mode=1 count_include_pad=1 "
              "output_shape=[12,12]"},
    {.name = "same_lower_pads_counted",
     .inputs = "f32[1,3,6,3]",
     .attrs = "kernel_shape=[3,2] strides=[2,3] auto_pad=\"SAME_LOWER\" count_include_pad=1 "
              "output_shape=[11,8]"},
    {.name = "dilation",
     .inputs = "f32[1,3,8,10]",
     .attrs = "kernel_shape=[3,2] dilations=[2,3] output_shape=[12,13]"},
    {.name = "7x7_to_one",
     .inputs = "f32[2,20,1,1]",
     .attrs = "kernel_shape=[7,7] output_shape=[7,7]"},
    {.name = "1d",
     .inputs = "f32[2,4,7]",
     .attrs = "kernel_shape=[5] strides=[3] pads=[2,2] output_shape=[21]"},
    {.name = "3d",
     .inputs = "f32[1,3,3,7,4]",
     .attrs = "kernel_shape=[2,3,2] strides=[2,1,2] pads=[0,1,0,0,1,0] output_shape=[6,7,8]"},
};

REGISTER(op, average_pool_gradient) = {
    .name = "AveragePoolGradient",
    .domain = "ridge",
    .inputs_min = 1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
