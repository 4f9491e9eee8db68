/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements are addressed as base[i] + offset[k]: i walks the kept axes, k the reduced ones. The
 * elements of one result are gathered in row-major order, then folded.
 */
#include "engine/ops/lib/reduce.h"

#include <stdlib.h>
#include <string.h>

#include "engine/ops/lib/op_unary.h"

const char *const reduce_attrs[] = {"axes", "keepdims", "noop_with_empty_axes", NULL};

enum status reduce_axes(const struct node *node, const struct shape *x, int axis_count,
                        const int64_t *axes, bool reduced[RANK_MAX], struct error *err)
{
    int64_t own[RANK_MAX] = {0};
    if (!axes) {
        axis_count = node_ints(node, "axes", own, RANK_MAX);
        axes = own;
    }
    if (axis_count > RANK_MAX)
        return FAIL(err, STATUS_FAILED, "%s: %d axes of a tensor of rank %d", node->op->name,
                    axis_count, x->rank);
    bool all = axis_count == 0 && !node_int(node, "noop_with_empty_axes", 0);
    for (int k = 0; k < RANK_MAX; k++)
        reduced[k] = all;
    for (int k = 0; k < axis_count; k++) {
        int axis = shape_axis(x, axes[k]);
        if (axis < 0)
            return FAIL(err, STATUS_FAILED, "%s: axis %lld is outside a tensor of rank %d",
                        node->op->name, (long long)axes[k], x->rank);
        reduced[axis] = true;
    }
    return STATUS_OK;
}

enum status reduce_infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape;
    int64_t axes[RANK_MAX];
    bool reduced[RANK_MAX], given = infer_has(c, 1);
    int count = 0;
    if (given && shape_count(&c->in[1]->shape) > 0)
        TRY(infer_ints(c, 1, axes, RANK_MAX, &count, err));
    TRY(reduce_axes(c->node, x, count, given ? axes : NULL, reduced, err));
    bool keep = node_int(c->node, "keepdims", 1) != 0;
    struct shape y = {0};
    for (int k = 0; k < x->rank; k++)
        if (keep || !reduced[k])
            y.dim[y.rank++] = reduced[k] ? 1 : x->dim[k];
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

void reduce_cost(const struct infer *c, const struct reducer *reducer, struct cost *cost)
{
    double count = (double)shape_count(&c->in[0]->shape);
    cost->elementwise = reducer->elementwise * count;
    cost->transcendentals = reducer->transcendentals * count;
}

int64_t *reduce_offsets(const struct shape *x, const bool chosen[RANK_MAX], int64_t *count)
{
    int64_t total = 1, stride[RANK_MAX], step = 1;
    for (int k = x->rank - 1; k >= 0; k--) {
        stride[k] = step;
        step *= x->dim[k];
        total *= chosen[k] ? x->dim[k] : 1;
    }
    *count = total;
    int64_t *offsets = malloc((size_t)total * sizeof(*offsets) + 1);
    for (int64_t i = 0; offsets && i < total; i++) {
        int64_t rest = i;
        offsets[i] = 0;
        for (int k = x->rank - 1; k >= 0; k--) {
            if (!chosen[k])
                continue;
            offsets[i] += rest % x->dim[k] * stride[k];
            rest /= x->dim[k];
        }
    }
    return offsets;
}

struct gather {
    const int64_t *base, *offset;
    int64_t results, count;
    void *buffer; /* count elements, double or int64_t */
};

static void fold_floats(const struct ref_call *call, const struct reducer *reducer,
                        const struct gather *g)
{
    double *line = g->buffer;
    for (int64_t i = 0; i < g->results; i++) {
        for (int64_t k = 0; k < g->count; k++)
            line[k] = ref_get(call->in[0], g->base[i] + g->offset[k]);
        ref_set(call->out[0], i, reducer->fold(line, g->count));
    }
}

/* Of nothing: what the fold leaves unchanged, in the type's own range. */
static int64_t nothing(const struct reducer *reducer, enum dtype dtype)
{
    double value = reducer->fold(NULL, 0);
    return dtype == DTYPE_BOOL ? value > 0 : cast_to_integer(value, dtype);
}

static void fold_ints(const struct ref_call *call, const struct reducer *reducer,
                      const struct gather *g)
{
    int64_t *line = g->buffer;
    for (int64_t i = 0; i < g->results; i++) {
        for (int64_t k = 0; k < g->count; k++)
            line[k] = call->in[0]->i[g->base[i] + g->offset[k]];
        call->out[0]->i[i] =
            g->count ? reducer->fold_int(line, g->count) : nothing(reducer, call->out[0]->dtype);
    }
}

static void copy(const struct ref_tensor *from, const struct ref_tensor *to)
{
    for (int64_t k = 0; k < from->count; k++) {
        if (from->f)
            to->f[k] = from->f[k];
        else
            to->i[k] = from->i[k];
    }
}

enum status reduce_reference(const struct ref_call *call, const struct reducer *reducer,
                             struct error *err)
{
    const struct ref_tensor *x = call->in[0];
    const struct ref_tensor *axes = call->in_count > 1 ? call->in[1] : NULL;
    bool reduced[RANK_MAX], kept[RANK_MAX], any = false;
    TRY(reduce_axes(call->node, &x->shape, axes ? (int)axes->count : 0, axes ? axes->i : NULL,
                    reduced, err));
    for (int k = 0; k < RANK_MAX; k++) {
        kept[k] = !reduced[k];
        any = any || reduced[k];
    }
    if (!any) {
        copy(x, call->out[0]);
        return STATUS_OK;
    }
    struct gather g = {0};
    int64_t *base = reduce_offsets(&x->shape, kept, &g.results);
    int64_t *offset = reduce_offsets(&x->shape, reduced, &g.count);
    g.base = base;
    g.offset = offset;
    g.buffer = malloc((size_t)g.count * sizeof(double) + 1);
    bool fine = base && offset && g.buffer;
    if (fine && !x->f && reducer->fold_int)
        fold_ints(call, reducer, &g);
    else if (fine)
        fold_floats(call, reducer, &g);
    free(g.buffer);
    free(offset);
    free(base);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}
