/* SPDX-License-Identifier: Apache-2.0
 * MaxPoolGradient: the gradient of a loss by the input x of MaxPool, of that by its result, dy.
 * Each window's part goes to its largest element, to the first of equal ones, to the last NaN if
 * there is one, as in PyTorch.
 * Attributes are those of MaxPool. */
#include <math.h>
#include <stdlib.h>

#include "engine/ops/family/pooling.h"

static const char *const attrs[] = {"auto_pad", "ceil_mode",     "dilations", "kernel_shape",
                                    "pads",     "storage_order", "strides",   NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    TRY(pooling_check_gradient(c, &c->in[0]->shape, &c->in[1]->shape, err));
    infer_set(c, 0, c->in[0]->dtype, &c->in[0]->shape);
    return STATUS_OK;
}

struct scatter {
    const double *x, *dy;
    double *dx;
    const int64_t *offsets; /* window_offsets */
    int64_t positions, plane, taps;
};

static void scatter_channel(void *context, int64_t channel, int thread)
{
    (void)thread;
    const struct scatter *s = context;
    const double *x = s->x + channel * s->plane;
    for (int64_t position = 0; position < s->positions; position++) {
        int64_t best = -1;
        for (int64_t t = 0; t < s->taps; t++) {
            int64_t at = s->offsets[t * s->positions + position];
            if (at >= 0 && (best < 0 || x[at] > x[best] || isnan(x[at])))
                best = at;
        }
        if (best >= 0)
            s->dx[channel * s->plane + best] += s->dy[channel * s->positions + position];
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct shape *x = &call->in[0]->shape;
    struct window w;
    TRY(window_from_node(call->node, x, NULL, &w, err));
    int64_t *offsets = window_offsets(&w, false);
    if (!offsets)
        return FAIL_NO_MEMORY(err);
    struct scatter s = {.x = call->in[0]->f,
                        .dy = call->in[1]->f,
                        .dx = call->out[0]->f,
                        .offsets = offsets,
                        .positions = window_out_count(&w),
                        .plane = window_in_count(&w),
                        .taps = window_taps(&w)};
    pool_run(call->pool, x->dim[0] * x->dim[1], scatter_channel, &s);
    free(offsets);
    return STATUS_OK;
}

/* An addition for each element of dy. */
static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise = (double)shape_count(&c->in[1]->shape);
}

static const struct op_case cases[] = {
    {.name = "2x2_stride_2",
     .inputs = "f32[2,5,8,10] f32[2,5,4,5]",
     .attrs = "kernel_shape=[2,2] strides=[2,2]"},
    {.name = "3x3_stride_2_pads",
     .inputs = "f32[1,37,15,14] f32[1,37,8,7]",
     .attrs = "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"},
    {.name = "3x3_stride_1_negative_inputs",
     .inputs = "f32[1,16,7,7]{-3:-1} f32[1,16,7,7]",
     .attrs = "kernel_shape=[3,3] pads=[1,1,1,1]"},
    {.name = "first_of_equal_ones",
     .inputs = "f32[2,18,9,8]=0.5 f32[2,18,4,3]",
     .attrs = "kernel_shape=[3,3] strides=[2,2]"},
    {.name = "last_nan",
     .inputs = "f32[1,1,4,6]=nan,1,2,nan,4,5,2,3,1,0,nan,6,7,8,-3,inf,1,nan,9,nan,nan,1,nan,4 "
               "f32[1,1,2,3]",
     .attrs = "kernel_shape=[2,2] strides=[2,2]"},
    {.name = "many_channels",
     .inputs = "f32[2,150,6,7] f32[2,150,3,3]",
     .attrs = "kernel_shape=[3,3] strides=[2,2] pads=[0,0,1,0]"},
    {.name = "ceil",
     .inputs = "f32[1,3,13,13] f32[1,3,6,6]",
     .attrs = "kernel_shape=[3,3] strides=[2,2] ceil_mode=1"},
    {.name = "ceil_last_window_dropped",
     .inputs = "f32[1,4,6,9] f32[1,4,3,4]",
     .attrs = "kernel_shape=[2,3] strides=[3,2] pads=[1,0,1,0] ceil_mode=1"},
    {.name = "same_lower",
     .inputs = "f32[1,3,11,8] f32[1,3,6,3]",
     .attrs = "kernel_shape=[3,2] strides=[2,3] auto_pad=\"SAME_LOWER\""},
    {.name = "dilation",
     .inputs = "f32[1,3,12,13] f32[1,3,8,10]",
     .attrs = "kernel_shape=[3,2] dilations=[2,3]"},
    {.name = "whole_image", .inputs = "f32[2,20,7,5] f32[2,20,1,1]", .attrs = "kernel_shape=[7,5]"},
    {.name = "1d",
     .inputs = "f32[2,4,21] f32[2,4,7]",
     .attrs = "kernel_shape=[5] strides=[3] pads=[2,2]"},
    {.name = "3d",
     .inputs = "f32[1,3,6,7,8] f32[1,3,3,7,4]",
     .attrs = "kernel_shape=[2,3,2] strides=[2,1,2] pads=[0,1,0,0,1,0]"},
};

REGISTER(op, max_pool_gradient) = {
    .name = "MaxPoolGradient",
    .domain = "ridge",
    .inputs_min = 2,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .window = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
