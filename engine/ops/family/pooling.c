/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/pooling.h"

#include <stdlib.h>

static struct shape shape_of_result(const struct shape *x, const struct window *w)
{
    struct shape y = {.rank = x->rank, .dim = {x->dim[0], x->dim[1]}};
    for (int k = 0; k < w->rank; k++)
        y.dim[2 + k] = w->out[k];
    return y;
}

enum status pooling_infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape;
    struct window w;
    TRY(window_from_node(c->node, x, NULL, &w, err));
    struct shape y = shape_of_result(x, &w);
    infer_set(c, 0, c->in[0]->dtype, &y);
    infer_set(c, 1, DTYPE_I64, &y);
    return STATUS_OK;
}

enum status pooling_infer_global(const struct infer *c, struct error *err)
{
    struct shape y = c->in[0]->shape;
    char text[96];
    if (y.rank < 3 || shape_span(&y, 2, y.rank) == 0)
        return FAIL(err, STATUS_FAILED, "%s: input %s has no spatial elements", c->node->op->name,
                    shape_text(&y, text));
    for (int k = 2; k < y.rank; k++)
        y.dim[k] = 1;
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

enum status pooling_check_gradient(const struct infer *c, const struct shape *x,
                                   const struct shape *dy, struct error *err)
{
    char text_x[96], text_dy[96];
    struct window w;
    TRY(window_from_node(c->node, x, NULL, &w, err));
    struct shape y = shape_of_result(x, &w);
    if (!shape_equal(&y, dy))
        return FAIL(err, STATUS_FAILED, "%s: input %s and gradient %s do not go together",
                    c->node->op->name, shape_text(x, text_x), shape_text(dy, text_dy));
    return STATUS_OK;
}

int64_t pooling_padded_taps(const struct window *w, int64_t position)
{
    int64_t count = 1;
    for (int k = w->rank - 1; k >= 0; k--) {
        int64_t start = position % w->out[k] * w->stride[k], inside = 0;
        position /= w->out[k];
        for (int64_t t = 0; t < w->kernel[k]; t++)
            if (start + t * w->dilation[k] < w->pad_begin[k] + w->in[k] + w->pad_end[k])
                inside++;
        count *= inside;
    }
    return count;
}

void pooling_cost(const struct infer *c, double per_tap, struct cost *cost)
{
    struct window w;
    if (window_from_node(c->node, &c->in[0]->shape, NULL, &w, NULL) != STATUS_OK)
        return;
    cost->elementwise = per_tap * (double)window_taps(&w) * (double)shape_count(&c->out[0]->shape);
}

void pooling_cost_global(const struct infer *c, double per_element, struct cost *cost)
{
    cost->elementwise = per_element * (double)shape_count(&c->in[0]->shape);
}

struct walk {
    const struct pooling *pooling;
    pooling_value *value;
    const double *x;
    double *y;
    int64_t plane;
};

static void walk_channel(void *context, int64_t channel, int thread)
{
    (void)thread;
    const struct walk *walk = context;
    int64_t positions = walk->pooling->positions;
    for (int64_t i = 0; i < positions; i++)
        walk->y[channel * positions + i] =
            walk->value(walk->pooling, walk->x + channel * walk->plane, i);
}

enum status pooling_reference(const struct ref_call *call, pooling_value *value, struct error *err)
{
    const struct ref_tensor *x = call->in[0];
    struct window w;
    TRY(window_from_node(call->node, &x->shape, NULL, &w, err));
    struct pooling pooling = {.node = call->node, .window = window_to_3d(&w)};
    int64_t *offsets = window_offsets(&w, false);
    if (!offsets)
        return FAIL_NO_MEMORY(err);
    pooling.offsets = offsets;
    pooling.positions = window_out_count(&w);
    pooling.taps = window_taps(&w);
    struct walk walk = {.pooling = &pooling,
                        .value = value,
                        .x = x->f,
                        .y = call->out[0]->f,
                        .plane = window_in_count(&w)};
    pool_run(call->pool, x->shape.dim[0] * x->shape.dim[1], walk_channel, &walk);
    free(offsets);
    return STATUS_OK;
}

void pooling_reference_global(const struct ref_call *call,
                              double (*value)(const double *x, int64_t count,
                                              const struct node *node))
{
    const struct shape *x = &call->in[0]->shape;
    int64_t plane = shape_span(x, 2, x->rank);
    for (int64_t k = 0; k < x->dim[0] * x->dim[1]; k++)
        call->out[0]->f[k] = value(call->in[0]->f + k * plane, plane, call->node);
}
