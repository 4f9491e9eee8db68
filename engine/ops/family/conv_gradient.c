/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/conv_gradient.h"

#include "engine/graph/op_list.h"

/* All that a window says, as attributes that point into it. */
struct window_attrs {
    int64_t pads[2 * SPATIAL_MAX];
    struct attr list[6];
    int count;
};

static void attrs_of(const struct window *w, struct window_attrs *a)
{
    for (int k = 0; k < w->rank; k++) {
        a->pads[k] = w->pad_begin[k];
        a->pads[w->rank + k] = w->pad_end[k];
    }
    a->list[0] = attr_ints("kernel_shape", w->rank, w->kernel);
    a->list[1] = attr_ints("strides", w->rank, w->stride);
    a->list[2] = attr_ints("dilations", w->rank, w->dilation);
    a->list[3] = attr_ints("pads", 2 * w->rank, a->pads);
    a->list[4] = attr_int("group", w->group);
    a->count = 5;
}

int make_conv(struct graph *g, int x, int weights, const struct window *w)
{
    struct window_attrs a;
    attrs_of(w, &a);
    return graph_node(g, op_conv.name, NULL, INPUTS(x, weights), a.count, a.list);
}

/* A single window that is the image, as of a layer that is fully connected: a matrix product. */
static bool sees_all_at_once(const struct window *w)
{
    bool all = w->group == 1 && window_taps(w) > 1;
    for (int k = 0; k < w->rank; k++)
        all = all && w->out[k] == 1 && w->kernel[k] == w->in[k] && w->dilation[k] == 1 &&
              !w->pad_begin[k];
    return all;
}

static int make_product(struct graph *g, int y, int weights)
{
    struct shape image = gradient_shape(g, weights), rows = gradient_shape(g, y), columns = image;
    image.dim[0] = rows.dim[0];
    rows.rank = columns.rank = 2;
    columns.dim[1] = shape_span(&image, 1, image.rank);
    int product = make_mat_mul(g, make_reshaped(g, y, &rows), make_reshaped(g, weights, &columns));
    return make_reshaped(g, product, &image);
}

int make_conv_transpose(struct graph *g, int y, int weights, const struct window *w)
{
    if (sees_all_at_once(w))
        return make_product(g, y, weights);
    struct window_attrs a;
    int64_t unseen[SPATIAL_MAX];
    attrs_of(w, &a);
    for (int k = 0; k < w->rank; k++) {
        int64_t reach = (w->kernel[k] - 1) * w->dilation[k] + 1;
        int64_t seen = (w->out[k] - 1) * w->stride[k] + reach;
        unseen[k] = w->in[k] + w->pad_begin[k] + w->pad_end[k] - seen;
    }
    a.list[a.count++] = attr_ints("output_padding", w->rank, unseen);
    return graph_node(g, op_conv_transpose.name, NULL, INPUTS(y, weights), a.count, a.list);
}

int make_conv_weight_gradient(struct graph *g, int x, int dy, const struct window *w)
{
    struct window_attrs a;
    attrs_of(w, &a);
    return graph_node(g, op_conv_weight_gradient.name, NULL, INPUTS(x, dy), a.count, a.list);
}

int make_bias_gradient(struct graph *g, int dy, int bias)
{
    int64_t axes[RANK_MAX] = {0};
    int rank = gradient_shape(g, dy).rank;
    for (int k = 2; k < rank; k++)
        axes[k - 1] = k;
    /* Of the same rank, so that it is summed in the layout that it has. */
    return make_reshaped_as(g, make_sum(g, dy, rank - 1, axes, true), bias);
}
