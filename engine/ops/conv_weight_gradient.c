/* SPDX-License-Identifier: Apache-2.0
 * ConvWeightGradient: the gradient of a loss by the weights of Conv. Inputs x [N, C, spatial] of
 * that Conv, and dy, the gradient by its result [N, M, spatial]; result [M, C / group, kernel]:
 * for each weight the sum over all places that it was used at. Attributes are those of Conv, with
 * kernel_shape. */
#include <stdlib.h>

#include "engine/graph/op.h"
#include "engine/ops/compute/ref_gemm.h"
#include "engine/ops/lib/window.h"

static const char *const attrs[] = {"auto_pad", "dilations", "group", "kernel_shape",
                                    "pads",     "strides",   NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape, *dy = &c->in[1]->shape;
    char text_x[96], text_dy[96];
    struct window w;
    TRY(window_from_node(c->node, x, NULL, &w, err));
    struct shape y = {.rank = x->rank, .dim = {x->dim[0], dy->dim[1]}};
    struct shape weights = {.rank = x->rank, .dim = {dy->dim[1], x->dim[1] / w.group}};
    for (int k = 0; k < w.rank; k++) {
        y.dim[2 + k] = w.out[k];
        weights.dim[2 + k] = w.kernel[k];
    }
    if (!shape_equal(dy, &y) || x->dim[1] % w.group || y.dim[1] % w.group)
        return FAIL(
            err, STATUS_FAILED,
            "ConvWeightGradient: input %s and gradient %s in %lld groups do not go together",
            shape_text(x, text_x), shape_text(dy, text_dy), (long long)w.group);
    infer_set(c, 0, c->in[0]->dtype, &weights);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *weights = &c->out[0]->shape;
    cost->macs =
        (double)shape_count(&c->in[1]->shape) * (double)shape_span(weights, 1, weights->rank);
}

/* One group of one image: dy [M, positions] times the places that each weight saw
 * [positions, C taps], which are gathered on the fly. */
struct source {
    const double *x;
    const int64_t *offsets;
    int64_t positions, taps, plane;
};

static void pack_places(const struct ref_gemm *g, int64_t k0, int64_t count_k, int64_t n0,
                        int64_t count_n, double *panel)
{
    const struct source *s = g->source;
    for (int64_t p = 0; p < count_k; p++)
        for (int64_t j = 0; j < count_n; j++) {
            int64_t channel = (n0 + j) / s->taps, tap = (n0 + j) % s->taps;
            int64_t at = s->offsets[tap * s->positions + k0 + p];
            panel[p * REF_GEMM_COLUMNS + j] = at < 0 ? 0 : s->x[channel * s->plane + at];
        }
}

/* Images one after the other, since all add to the same sums. */
static void add_images(const struct ref_call *call, const struct window *w, const int64_t *offsets,
                       struct source *sources, struct ref_gemm *items)
{
    const int64_t *x = call->in[0]->shape.dim, *dy = call->in[1]->shape.dim;
    int64_t taps = window_taps(w), positions = window_out_count(w), plane = window_in_count(w);
    int64_t in = x[1] / w->group, out = dy[1] / w->group;
    for (int64_t n = 0; n < x[0]; n++) {
        for (int64_t k = 0; k < w->group; k++) {
            int64_t group = n * w->group + k;
            sources[k] = (struct source){.x = call->in[0]->f + group * in * plane,
                                         .offsets = offsets,
                                         .positions = positions,
                                         .taps = taps,
                                         .plane = plane};
            items[k] = (struct ref_gemm){.m = out,
                                         .n = in * taps,
                                         .k = positions,
                                         .a = call->in[1]->f + group * out * positions,
                                         .a_row = positions,
                                         .a_col = 1,
                                         .c = call->out[0]->f + k * out * in * taps,
                                         .c_row = in * taps,
                                         .pack = pack_places,
                                         .source = &sources[k]};
        }
        ref_gemm_run(call->pool, items, w->group);
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct window w;
    TRY(window_from_node(call->node, &call->in[0]->shape, NULL, &w, err));
    int64_t *offsets = window_offsets(&w, false);
    struct source *sources = calloc((size_t)w.group, sizeof(*sources));
    struct ref_gemm *items = calloc((size_t)w.group, sizeof(*items));
    bool fine = offsets && sources && items;
    if (fine)
        add_images(call, &w, offsets, sources, items);
    free(items);
    free(sources);
    free(offsets);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static const struct op_case cases[] = {
    {.name = "3d_padded_plane",
     .inputs = "f32[2,3,1,5,6] f32[2,16,3,5,6]",
     .attrs = "kernel_shape=[1,3,3] pads=[2,1,1,0,1,1]"},
    {.name = "3d_padded_plane_of_many_channels",
     .inputs = "f32[2,9,1,6,6] f32[2,20,3,6,6]",
     .attrs = "kernel_shape=[1,3,3] pads=[1,1,1,1,1,1]"},
    {.name = "3x3_same",
     .inputs = "f32[1,16,14,14] f32[1,32,14,14]",
     .attrs = "kernel_shape=[3,3] pads=[1,1,1,1]"},
    {.name = "3x3_stride_2",
     .inputs = "f32[2,8,13,15] f32[2,24,6,7]",
     .attrs = "kernel_shape=[3,3] strides=[2,2]"},
    {.name = "3x3_stride_4_unseen_ends",
     .inputs = "f32[1,3,10,10] f32[1,4,2,2]",
     .attrs = "kernel_shape=[3,3] strides=[4,4]"},
    {.name = "3x3_many_images",
     .inputs = "f32[9,24,6,6] f32[9,40,6,6]",
     .attrs = "kernel_shape=[3,3] pads=[1,1,1,1]"},
    {.name = "1x1", .inputs = "f32[1,40,9,7] f32[1,17,9,7]", .attrs = "kernel_shape=[1,1]"},
    {.name = "1x1_stride_2",
     .inputs = "f32[2,16,8,8] f32[2,33,4,4]",
     .attrs = "kernel_shape=[1,1] strides=[2,2]"},
    {.name = "1x1_long_sums",
     .inputs = "f32[4,70,20,20] f32[4,130,20,20]",
     .attrs = "kernel_shape=[1,1]"},
    {.name = "1x1_longer_sums",
     .inputs = "f32[3,16,60,57] f32[3,20,60,57]",
     .attrs = "kernel_shape=[1,1]"},
    {.name = "1x1_wide", .inputs = "f32[2,320,6,7] f32[2,70,6,7]", .attrs = "kernel_shape=[1,1]"},
    {.name = "3x3_uneven_pads",
     .inputs = "f32[1,9,10,11] f32[1,10,11,10]",
     .attrs = "kernel_shape=[3,3] pads=[0,1,3,0]"},
    {.name = "3x3_long_sums",
     .inputs = "f32[2,72,30,29] f32[2,24,30,29]",
     .attrs = "kernel_shape=[3,3] pads=[1,1,1,1]"},
    {.name = "1x1_stride_2_wide",
     .inputs = "f32[2,160,9,11] f32[2,34,5,6]",
     .attrs = "kernel_shape=[1,1] strides=[2,2]"},
    {.name = "5x5_stride_2_4_channels",
     .inputs = "f32[2,4,9,141] f32[2,80,5,69]",
     .attrs = "kernel_shape=[5,5] pads=[2,1,2,0] strides=[2,2]"},
    {.name = "3x3_1_channel_stride_2_1",
     .inputs = "f32[2,1,12,14] f32[2,32,6,14]",
     .attrs = "kernel_shape=[3,3] pads=[1,1,1,1] strides=[2,1]"},
    {.name = "1x1_group_2",
     .inputs = "f32[2,64,5,6] f32[2,34,5,6]",
     .attrs = "kernel_shape=[1,1] group=2"},
    {.name = "7x7_stride_2_3_channels",
     .inputs = "f32[1,3,32,30] f32[1,64,16,15]",
     .attrs = "kernel_shape=[7,7] pads=[3,3,3,3] strides=[2,2]"},
    {.name = "many_channels",
     .inputs = "f32[1,256,7,7] f32[1,128,7,7]",
     .attrs = "kernel_shape=[3,3] pads=[1,1,1,1]"},
    {.name = "one_input_channel",
     .inputs = "f32[1,1,28,28] f32[1,6,28,28]",
     .attrs = "kernel_shape=[5,5] pads=[2,2,2,2]"},
    {.name = "one_output_channel",
     .inputs = "f32[1,19,6,5] f32[1,1,4,3]",
     .attrs = "kernel_shape=[3,3]"},
    {.name = "group_2",
     .inputs = "f32[1,8,9,9] f32[1,6,7,7]",
     .attrs = "kernel_shape=[3,3] group=2"},
    {.name = "group_32",
     .inputs = "f32[1,128,7,7] f32[1,128,7,7]",
     .attrs = "kernel_shape=[3,3] group=32 pads=[1,1,1,1]"},
    {.name = "depthwise",
     .inputs = "f32[2,35,12,11] f32[2,35,12,11]",
     .attrs = "kernel_shape=[3,3] group=35 pads=[1,1,1,1]"},
    {.name = "depthwise_5x5_stride_2",
     .inputs = "f32[1,16,15,15] f32[1,16,8,8]",
     .attrs = "kernel_shape=[5,5] group=16 pads=[2,2,2,2] strides=[2,2]"},
    {.name = "depthwise_multiplier_3",
     .inputs = "f32[1,5,8,8] f32[1,15,6,6]",
     .attrs = "kernel_shape=[3,3] group=5"},
    {.name = "dilation_6",
     .inputs = "f32[1,16,19,19] f32[1,16,19,19]",
     .attrs = "kernel_shape=[3,3] dilations=[6,6] pads=[6,6,6,6]"},
    {.name = "dilation_1_2_stride_2_1",
     .inputs = "f32[1,4,10,12] f32[1,8,5,12]",
     .attrs = "kernel_shape=[3,2] dilations=[1,2] strides=[2,1] pads=[0,1,2,1]"},
    {.name = "asymmetric_pads",
     .inputs = "f32[1,3,10,10] f32[1,8,5,5]",
     .attrs = "kernel_shape=[3,3] pads=[0,1,1,0] strides=[2,2]"},
    {.name = "same_upper",
     .inputs = "f32[1,3,15,10] f32[1,8,8,4]",
     .attrs = "kernel_shape=[4,4] auto_pad=\"SAME_UPPER\" strides=[2,3]"},
    {.name = "kernel_wider_than_the_input",
     .inputs = "f32[1,2,2,2] f32[1,3,2,2]",
     .attrs = "kernel_shape=[5,5] pads=[2,2,2,2]"},
    {.name = "1xk",
     .inputs = "f32[1,12,9,17] f32[1,20,9,17]",
     .attrs = "kernel_shape=[1,7] pads=[0,3,0,3]"},
    {.name = "1d",
     .inputs = "f32[2,6,33] f32[2,10,17]",
     .attrs = "kernel_shape=[5] pads=[2,2] strides=[2]"},
    {.name = "1d_dilated",
     .inputs = "f32[1,3,40] f32[1,4,32]",
     .attrs = "kernel_shape=[3] dilations=[4]"},
    {.name = "3d",
     .inputs = "f32[1,3,6,7,8] f32[1,5,6,4,8]",
     .attrs = "kernel_shape=[3,2,3] pads=[1,0,1,1,1,1] strides=[1,2,1]"},
    {.name = "3d_group",
     .inputs = "f32[1,4,5,5,5] f32[1,6,4,4,4]",
     .attrs = "kernel_shape=[2,2,2] group=2"},
};

REGISTER(op, conv_weight_gradient) = {
    .name = "ConvWeightGradient",
    .domain = "ridge",
    .inputs_min = 2,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_READ,
    .window = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
