/* SPDX-License-Identifier: Apache-2.0
 *
 * A sum of convolutions of one input with one stride is a convolution whose weights are their sum:
 * a smaller kernel lies inside the larger one, and a BatchNormalization of the input itself is a
 * kernel of one tap. Networks are trained with such branches (RepVGG, MobileOne) and exported with
 * them. Summed in double, rounded once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/lib/window.h"

/* One summand; weights NONE: a norm of the input. */
struct branch {
    const struct node *node;
    int x, weights;
    struct window window;
};

static bool fixed_floats(const struct graph *g, const struct node *node, int from, int count)
{
    for (int k = from; k < count; k++)
        if (node->inputs[k] != NONE && (!value_is_fixed(&g->values[node->inputs[k]]) ||
                                        g->values[node->inputs[k]].dtype != DTYPE_F32))
            return false;
    return true;
}

static bool read_branch(const struct graph *g, int value, struct branch *b)
{
    const struct node *node = rewrite_producer(g, value, &op_conv);
    struct error ignored;
    if (!node)
        node = rewrite_producer(g, value, &op_batch_normalization);
    if (!node || node->post_count || rewrite_only_user(g, value) == NONE ||
        !fixed_floats(g, node, 1, node->op_inputs))
        return false;
    *b = (struct branch){.node = node, .x = node->inputs[0], .weights = NONE};
    if (node->op == &op_batch_normalization)
        return node->output_count == 1 && !node_int(node, "training_mode", 0);
    b->weights = node->inputs[1];
    const struct shape *w = &g->values[b->weights].shape;
    return shape_count(w) > 0 && window_from_node(node, &g->values[b->x].shape, w->dim + 2,
                                                  &b->window, &ignored) == STATUS_OK;
}

/* A norm as a convolution beside `like`: its window, with one tap where it sees its own place. */
static bool norm_window(const struct graph *g, const struct branch *like, struct branch *norm)
{
    struct window *w = &norm->window;
    *w = like->window;
    if (g->values[like->weights].shape.dim[0] != g->values[like->x].shape.dim[1])
        return false;
    for (int k = 0; k < w->rank; k++) {
        if (w->stride[k] != 1)
            return false;
        w->kernel[k] = 1;
        w->pad_begin[k] = w->pad_end[k] = 0;
    }
    return true;
}

/* Whether the taps of `small` are some of those of `large`. */
static bool lies_inside(const struct branch *small, const struct branch *large)
{
    const struct window *s = &small->window, *l = &large->window;
    if (s->rank != l->rank || s->group != l->group)
        return false;
    for (int k = 0; k < l->rank; k++) {
        int64_t at = l->pad_begin[k] - s->pad_begin[k];
        if (s->stride[k] != l->stride[k] || s->dilation[k] != 1 || l->dilation[k] != 1 || at < 0 ||
            at + s->kernel[k] > l->kernel[k])
            return false;
    }
    return true;
}

/* Finds which of a sum's two is the larger, with which the other is joined. */
static bool find_branches(const struct graph *g, const struct node *sum, struct branch *large,
                          struct branch *small)
{
    if (sum->dead || sum->op != &op_add || sum->post_count ||
        !read_branch(g, sum->inputs[0], large) || !read_branch(g, sum->inputs[1], small) ||
        large->x != small->x)
        return false;
    for (int k = 0; k < 2; k++) {
        struct branch swapped = *large;
        bool fits = large->weights != NONE &&
                    (small->weights != NONE || norm_window(g, large, small)) &&
                    lies_inside(small, large);
        if (fits)
            return shape_equal(&g->values[sum->inputs[0]].shape, &g->values[sum->inputs[1]].shape);
        *large = *small;
        *small = swapped;
    }
    return false;
}

/* Contents of a vector or weights; NULL: out of memory. */
static float *contents(const struct graph *g, int value)
{
    float *data = malloc(value_size(&g->values[value]) + 1);
    if (data)
        value_materialise(&g->values[value], data);
    return data;
}

/* Where the small kernel's taps lie, one after the other, in the large one. */
static int64_t place(const struct branch *small, const struct branch *large, int64_t tap)
{
    int64_t at = 0, scale = 1;
    for (int k = large->window.rank - 1; k >= 0; k--) {
        int64_t own = tap % small->window.kernel[k];
        tap /= small->window.kernel[k];
        at += (own + large->window.pad_begin[k] - small->window.pad_begin[k]) * scale;
        scale *= large->window.kernel[k];
    }
    return at;
}

static enum status add_conv(const struct graph *g, const struct branch *b,
                            const struct branch *large, double *weights, double *bias,
                            struct error *err)
{
    int bias_value = b->node->op_inputs > 2 ? b->node->inputs[2] : NONE;
    float *w = contents(g, b->weights),
          *offset = bias_value == NONE ? NULL : contents(g, bias_value);
    const struct shape *shape = &g->values[b->weights].shape;
    int64_t taps = window_taps(&b->window), whole = window_taps(&large->window);
    bool made = w && (offset || bias_value == NONE);
    for (int64_t i = 0; made && i < shape_count(shape); i++)
        weights[i / taps * whole + place(b, large, i % taps)] += (double)w[i];
    for (int64_t c = 0; made && offset && c < shape->dim[0]; c++)
        bias[c] += (double)offset[c];
    free(w);
    free(offset);
    return made ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status add_norm(const struct graph *g, const struct branch *b,
                            const struct branch *large, double *weights, double *bias,
                            struct error *err)
{
    float *of[4] = {NULL}; /* scale, shift, mean, variance */
    const struct shape *shape = &g->values[large->weights].shape;
    int64_t whole = window_taps(&large->window), per_group = shape->dim[1];
    double eps = node_float(b->node, "epsilon", 1e-5);
    bool made = true;
    for (int k = 0; k < 4; k++)
        made = (of[k] = contents(g, b->node->inputs[1 + k])) != NULL && made;
    for (int64_t c = 0; made && c < shape->dim[0]; c++) {
        double factor = (double)of[0][c] / sqrt((double)of[3][c] + eps);
        weights[(c * per_group + c % per_group) * whole + place(b, large, 0)] += factor;
        bias[c] += (double)of[1][c] - (double)of[2][c] * factor;
    }
    for (int k = 0; k < 4; k++)
        free(of[k]);
    return made ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* Doubles as a new weight; NONE: out of memory. */
static int rounded(struct graph *g, const char *name, struct shape shape, const double *from)
{
    int64_t count = shape_count(&shape);
    float *to = malloc((size_t)count * sizeof(*to));
    for (int64_t i = 0; to && i < count; i++)
        to[i] = (float)from[i];
    return to ? rewrite_weight(g, name, shape, to) : NONE;
}

static enum status merge(struct graph *g, int n, const struct branch *large,
                         const struct branch *small, struct error *err)
{
    struct shape shape = g->values[large->weights].shape;
    double *weights = calloc((size_t)shape_count(&shape), sizeof(*weights));
    double *bias = calloc((size_t)shape.dim[0], sizeof(*bias));
    enum status status = weights && bias ? STATUS_OK : FAIL_NO_MEMORY(err);
    char name[2][256];
    int made[2] = {NONE, NONE};
    if (status == STATUS_OK)
        status = add_conv(g, large, large, weights, bias, err);
    if (status == STATUS_OK)
        status =
            (small->weights == NONE ? add_norm : add_conv)(g, small, large, weights, bias, err);
    snprintf(name[0], sizeof(name[0]), "%.200s.merged_weight", g->nodes[n].name);
    snprintf(name[1], sizeof(name[1]), "%.200s.merged_bias", g->nodes[n].name);
    if (status == STATUS_OK) {
        made[0] = rounded(g, name[0], shape, weights);
        made[1] = rounded(g, name[1], shape_of(shape.dim[0]), bias);
        if (made[0] == NONE || made[1] == NONE)
            status = FAIL_NO_MEMORY(err);
    }
    free(weights);
    free(bias);
    TRY(status);
    int *inputs = arena_array(&g->arena, 3, sizeof(*inputs));
    if (!inputs)
        return FAIL_NO_MEMORY(err);
    struct node *conv = &g->nodes[large->node - g->nodes];
    memcpy(inputs, (int[]){large->x, made[0], made[1]}, 3 * sizeof(*inputs));
    conv->inputs = inputs;
    conv->input_count = conv->op_inputs = 3;
    rewrite_replace(g, g->nodes[n].outputs[0], conv->outputs[0]);
    return STATUS_OK;
}

enum status pass_merge_branches(struct graph *g, struct error *err)
{
    for (int n = 0; n < g->node_count; n++) {
        struct branch large, small;
        if (!find_branches(g, &g->nodes[n], &large, &small))
            continue;
        TRY(merge(g, n, &large, &small, err));
        g->nodes[n].dead = true; /* its result is the convolution's, which others may join */
    }
    return STATUS_OK;
}
