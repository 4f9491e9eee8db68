/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/conv_shape.h"

#include <string.h>

#include "engine/graph/op.h"

/* Strides of the spatial dimensions, the last of them last; missing ones are 0. */
static void spatial_strides(const struct desc *desc, int rank, int64_t *to)
{
    for (int k = 0; k < SPATIAL_MAX; k++)
        to[k] = k < SPATIAL_MAX - rank ? 0 : desc->stride[2 + k - (SPATIAL_MAX - rank)];
}

/* In either layout of weights their taps follow each other at one distance. */
static enum status read_taps(const struct desc *w, int rank, struct conv_shape *s,
                             struct error *why)
{
    int64_t at[SPATIAL_MAX], expected = 0;
    spatial_strides(w, rank, at);
    s->w_tap = 0;
    for (int k = SPATIAL_MAX - 1; k >= 0; k--) {
        if (s->window.kernel[k] == 1)
            continue;
        if (!s->w_tap)
            s->w_tap = at[k];
        else if (at[k] != expected)
            return UNSUPPORTED(why, "taps of the weights are not evenly spaced");
        expected = at[k] * s->window.kernel[k];
    }
    return STATUS_OK;
}

static bool is_transposed(const struct node *node)
{
    return strcmp(node->op->name, "ConvTranspose") == 0;
}

/* Of the equal convolution. */
static enum status read_window(const struct kernel_query *q, struct window *w, struct error *why)
{
    const struct shape *x = &q->in[0].shape;
    const int64_t *kernel = q->in[1].shape.dim + 2;
    if (!is_transposed(q->node))
        return window_from_node(q->node, x, kernel, w, why);
    TRY(window_transposed_from_node(q->node, x, kernel, w, why));
    if (w->group > 1)
        return UNSUPPORTED(why, "a transposed convolution in groups");
    for (int k = 0; k < w->rank; k++) {
        int64_t reach = (w->kernel[k] - 1) * w->dilation[k];
        if (w->stride[k] != 1)
            return UNSUPPORTED(why, "a transposed convolution with a stride");
        w->pad_begin[k] = reach - w->pad_begin[k];
        w->pad_end[k] = w->out[k] - w->in[k] + reach - w->pad_begin[k];
    }
    return STATUS_OK;
}

static void turn_weights(struct conv_shape *s)
{
    int64_t out = s->w_in;
    s->w_in = s->w_out;
    s->w_out = out;
    s->w_first = (window_taps(&s->window) - 1) * s->w_tap;
    s->w_tap = -s->w_tap;
}

/* Planes that do not see each other are images of their own: a kernel of 1 x 3 x 3 is one of
 * 3 x 3. Operands of posts that differ from image to image would have to follow. */
static void planes_to_images(const struct kernel_query *q, struct conv_shape *s)
{
    struct window *w = &s->window;
    int64_t planes = w->in[0];
    bool apart = w->kernel[0] == 1 && w->stride[0] == 1 && w->pad_begin[0] == 0 &&
                 w->pad_end[0] == 0 && planes > 1;
    bool even =
        s->images == 1 || (s->x_image == planes * s->x_at[0] && s->y_image == planes * s->y_at[0] &&
                           q->in_count == q->node->op_inputs);
    if (!apart || !even)
        return;
    s->planes = true;
    s->images *= planes;
    s->x_image = s->x_at[0];
    s->y_image = s->y_at[0];
    s->x_at[0] = s->y_at[0] = 0;
    w->in[0] = w->out[0] = 1;
    s->pixels = window_out_count(w);
}

static enum status read_memory(const struct kernel_query *q, bool planes, struct conv_shape *s,
                               struct error *why)
{
    const struct desc *x = &q->in[0], *w = &q->in[1], *y = &q->out[0];
    int rank = x->shape.rank - 2;
    s->x_image = x->stride[0];
    s->x_channel = x->shape.dim[1] == 1 ? 1 : x->stride[1];
    spatial_strides(x, rank, s->x_at);
    s->y_image = y->stride[0];
    spatial_strides(y, rank, s->y_at);
    s->w_out = w->stride[0];
    s->w_in = w->stride[1];
    if (s->x_channel != 1 && !planes)
        return UNSUPPORTED(why, "channels of the input are not dense");
    if (y->stride[1] != 1 && y->shape.dim[1] > 1)
        return UNSUPPORTED(why, "channels of the result are not dense");
    planes_to_images(q, s);
    int64_t expected = 0;
    s->y_pixel = 0;
    for (int k = SPATIAL_MAX - 1; k >= 0; k--) {
        if (s->window.out[k] == 1)
            continue;
        if (!s->y_pixel)
            s->y_pixel = s->y_at[k];
        else if (s->y_at[k] != expected)
            return UNSUPPORTED(why, "pixels of the result are not evenly spaced");
        expected = s->y_at[k] * s->window.out[k];
    }
    if (!s->y_pixel)
        s->y_pixel = s->out_channels;
    TRY(read_taps(w, rank, s, why));
    if (is_transposed(q->node))
        turn_weights(s);
    return STATUS_OK;
}

static enum status read_posts(const struct kernel_query *q, bool folded, struct conv_shape *s,
                              struct error *why)
{
    struct gemm_axes axes = {.column = 1};
    if (folded)
        axes.row[axes.row_count++] = 0;
    else
        axes.batch[axes.batch_count++] = s->planes ? 2 : 0;
    for (int d = s->planes && !folded ? 3 : 2; d < q->out[0].shape.rank; d++)
        axes.row[axes.row_count++] = d;
    s->axes = axes;
    s->folded = folded;
    return gemm_post_from(q, &axes, &s->post, why);
}

/* The bias is a vector [M]; as an epilogue operand it would broadcast along the last dimension. */
static void prepend_bias(struct conv_shape *s, bool bf16)
{
    struct gemm_step step = {.kind = GEMM_ADD, .a = 1.0f, .input = 2, .bf16 = bf16, .column = 1};
    memmove(s->post.steps + 1, s->post.steps, (size_t)s->post.count * sizeof(step));
    s->post.steps[0] = step;
    s->post.count++;
    s->post.light++;
}

enum status conv_shape_from(const struct kernel_query *q, unsigned wishes, struct conv_shape *s,
                            struct error *why)
{
    *s = (struct conv_shape){0};
    enum dtype floats = wishes & CONV_BF16 ? DTYPE_BF16 : DTYPE_F32;
    if (!(wishes & CONV_BYTES) && !query_all_dtype(q, floats))
        return UNSUPPORTED(why, "only %s", dtype_name(floats));
    const struct shape *x = &q->in[0].shape;
    struct window window;
    TRY(read_window(q, &window, why));
    s->window = window_to_3d(&window);
    s->images = x->dim[0];
    s->channels = x->dim[1];
    s->out_channels = q->out[0].shape.dim[1];
    s->group_in = s->channels / window.group;
    s->group_out = s->out_channels / window.group;
    s->pixels = window_out_count(&s->window);
    if (shape_count(x) == 0 || shape_count(&q->out[0].shape) == 0)
        return UNSUPPORTED(why, "an empty tensor");
    TRY(read_memory(q, wishes & CONV_PLANES, s, why));
    bool even = s->images == 1 || s->y_image == s->pixels * s->y_pixel;
    if (!even || wishes & CONV_BY_IMAGE || read_posts(q, true, s, why) != STATUS_OK)
        TRY(read_posts(q, false, s, why));
    s->bias = !(wishes & CONV_BYTES) && q->node->op_inputs > 2 && query_in(q, 2);
    if (s->bias)
        prepend_bias(s, floats == DTYPE_BF16);
    return STATUS_OK;
}

void conv_pack(const struct conv_shape *s, const struct gemm_plan *plan, const float *weights,
               struct pool *pool, float *packed)
{
    struct gemm_plan order = *plan; /* a tap of the plan may be a line of taps */
    struct gemm_source_b from = {.b = weights + s->w_first,
                                 .tap = s->w_tap,
                                 .row = s->w_in,
                                 .column = s->w_out,
                                 .scale = 1.0f};
    order.size.taps = window_taps(&s->window);
    order.size.k = s->channels;
    gemm_pack(&order, &from, pool, packed);
}

int64_t conv_merged_groups(const struct conv_shape *s)
{
    int64_t merged = 1, groups = s->window.group;
    while (merged * s->group_out < VL && merged < groups)
        do
            merged++;
        while (groups % merged);
    return merged;
}

int64_t conv_batches(const struct conv_shape *s)
{
    return s->folded ? 1 : s->images;
}

int64_t conv_rows(const struct conv_shape *s)
{
    return s->folded ? s->images * s->pixels : s->pixels;
}
