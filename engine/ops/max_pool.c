/* SPDX-License-Identifier: Apache-2.0
 * MaxPool, with dilation and the indices of the maxima. The first of equal elements wins. NaN is
 * the largest, and of several the last one, as in PyTorch; ONNX does not say, and ONNX Runtime
 * passes over NaN. */
#include <math.h>
#include <stdlib.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/pooling.h"

static const char *const attrs[] = {"auto_pad", "ceil_mode",     "dilations", "kernel_shape",
                                    "pads",     "storage_order", "strides",   NULL};

/* storage_order 1 numbers the elements of a channel with the first spatial dimension fastest. */
static int64_t column_major(const struct window *w, int64_t offset)
{
    int64_t index = 0;
    for (int k = w->rank - 1; k >= 0; k--) {
        index = index * w->in[k] + offset % w->in[k];
        offset /= w->in[k];
    }
    return index;
}

struct search {
    const struct ref_tensor *x, *y, *indices; /* indices: NULL if not asked for */
    struct window window;
    const int64_t *offsets; /* window_offsets */
    int64_t positions, plane, taps;
    bool columns;
};

/* Offset of the largest element that the position sees; -1: it sees padding only. */
static int64_t largest(const struct search *s, int64_t base, int64_t position)
{
    const int64_t *offset = s->offsets + position;
    const double *floats = s->x->f ? s->x->f + base : NULL;
    int64_t best = -1;
    for (int64_t t = 0; t < s->taps; t++) {
        int64_t at = offset[t * s->positions];
        if (at < 0)
            continue;
        if (best < 0 || (floats ? floats[at] > floats[best] || isnan(floats[at])
                                : ref_get(s->x, base + at) > ref_get(s->x, base + best)))
            best = at;
    }
    return best;
}

static void search_channel(void *context, int64_t channel, int thread)
{
    (void)thread;
    const struct search *s = context;
    int64_t base = channel * s->plane;
    for (int64_t position = 0; position < s->positions; position++) {
        int64_t best = largest(s, base, position), i = channel * s->positions + position;
        if (best < 0 && s->y->f)
            s->y->f[i] = (double)-INFINITY;
        if (best < 0)
            continue;
        ref_set(s->y, i, ref_get(s->x, base + best));
        if (s->indices)
            s->indices->i[i] = base + (s->columns ? column_major(&s->window, best) : best);
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct search s = {.x = call->in[0], .y = call->out[0]};
    TRY(window_from_node(call->node, &s.x->shape, NULL, &s.window, err));
    int64_t *offsets = window_offsets(&s.window, false);
    if (!offsets)
        return FAIL_NO_MEMORY(err);
    s.indices = call->out_count > 1 ? call->out[1] : NULL;
    s.offsets = offsets;
    s.positions = window_out_count(&s.window);
    s.plane = window_in_count(&s.window);
    s.taps = window_taps(&s.window);
    s.columns = node_int(call->node, "storage_order", 0) != 0;
    pool_run(call->pool, s.x->shape.dim[0] * s.x->shape.dim[1], search_channel, &s);
    free(offsets);
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    const struct node *node = gradient_node(c);
    c->dx[0] = graph_node(c->g, op_max_pool_gradient.name, NULL,
                          INPUTS(gradient_in(c, 0), c->dy[0]), node->attr_count, node->attrs);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    POOL_CASES,
    {.name = "3x3_stride_2_pads",
     .inputs = "f32[1,37,15,14]",
     .attrs = "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"},
    {.name = "3x3_stride_1_negative_inputs",
     .inputs = "f32[1,16,7,7]{-3:-1}",
     .attrs = "kernel_shape=[3,3] pads=[1,1,1,1]"},
    {.name = "rows_of_five_taps",
     .inputs = "f32[2,24,9,14]",
     .attrs = "kernel_shape=[2,5] strides=[1,2] dilations=[1,2] pads=[0,4,1,3]"},
    {.name = "ceil_last_window_dropped",
     .inputs = "f32[1,4,6,9]",
     .attrs = "kernel_shape=[2,3] strides=[3,2] pads=[1,0,1,0] ceil_mode=1"},
    {.name = "ceil_window_larger_than_the_input",
     .inputs = "f32[1,4,2,3]",
     .attrs = "kernel_shape=[3,3] strides=[3,1] ceil_mode=1"},
    {.name = "indices",
     .inputs = "f32[2,3,7,8]",
     .attrs = "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]",
     .outputs = 2},
    {.name = "indices_column_major",
     .inputs = "f32[2,3,7,8]",
     .attrs = "kernel_shape=[3,3] strides=[2,2] storage_order=1",
     .outputs = 2},
    {.name = "bytes", .inputs = "u8[1,3,8,8]{0:255}", .attrs = "kernel_shape=[2,2] strides=[2,2]"},
};

REGISTER(op, max_pool) = {
    .name = "MaxPool",
    .narrow = NARROW_MATH,
    .inputs_min = 1,
    .outputs_max = 2,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .window = true,
    .infer = pooling_infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
