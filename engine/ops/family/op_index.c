/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/op_index.h"

#include <string.h>

#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

enum status index_wrap(const struct node *node, int64_t index, int64_t size, int64_t *at,
                       struct error *err)
{
    *at = index < 0 ? index + size : index;
    if (*at < 0 || *at >= size)
        return FAIL(err, STATUS_FAILED, "index %lld of %s is outside an axis of size %lld",
                    (long long)index, node->op->name, (long long)size);
    return STATUS_OK;
}

/* ---- indices as a whole ---- */

static enum status check_all(const struct node *node, const struct shape *data,
                             const struct ref_tensor *index, struct error *err)
{
    int rank = index->shape.rank;
    bool rows = node->op->indices == INDICES_ROWS;
    bool negative = node->op->indices != INDICES_FROM_START;
    int64_t depth = rows && rank ? index->shape.dim[rank - 1] : 1;
    int64_t first = node_int(node, rows ? "batch_dims" : "axis", 0);
    first += first < 0 ? data->rank : 0;
    for (int64_t k = 0; k < index->count; k++) {
        int64_t axis = first + k % depth, at = index->i[k];
        int64_t size = axis < data->rank ? data->dim[axis] : 0;
        if (at < size && at >= (negative ? -size : 0))
            continue;
        return FAIL(err, STATUS_FAILED,
                    "index %lld (element %lld of input 1) is outside axis %lld of the data, which "
                    "has size %lld",
                    (long long)at, (long long)k, (long long)axis, (long long)size);
    }
    return STATUS_OK;
}

enum status index_check(const struct node *node, const struct shape *data,
                        const struct desc *indices, const void *contents, struct error *err)
{
    struct ref_tensor tensor;
    if (node->op->indices == INDICES_NONE || dtype_is_float(indices->dtype) ||
        !desc_is_plain(indices))
        return STATUS_OK;
    TRY(ref_from_data(&tensor, indices->dtype, &indices->shape, contents, err));
    enum status status = check_all(node, data, &tensor, err);
    ref_release(&tensor);
    return status;
}

int64_t index_along(const struct shape *x, const struct shape *y, int64_t k, int axis, int64_t at)
{
    int64_t place = 0, stride = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        place += (d == axis ? at : k % y->dim[d]) * stride;
        stride *= x->dim[d];
        k /= y->dim[d];
    }
    return place;
}

enum status reduction_of(const struct node *node, enum reduction *reduction, struct error *err)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char *wanted = node_string(node, "reduction", "none");
    for (int k = 0; k < ARRAY_COUNT(names); k++) {
        if (strcmp(names[k], wanted) == 0) {
            *reduction = (enum reduction)k;
            return STATUS_OK;
        }
    }
    return UNSUPPORTED(err, "reduction \"%s\" of %s", wanted, node->op->name);
}

void scatter_cost(const struct infer *c, struct cost *cost)
{
    enum reduction reduction = REDUCE_NONE;
    if (reduction_of(c->node, &reduction, NULL) == STATUS_OK && reduction != REDUCE_NONE &&
        dtype_is_float(c->in[2]->dtype))
        cost->elementwise += (double)shape_count(&c->in[2]->shape);
}

enum status scatter_gradient(const struct gradient_call *c, const struct op *scatter,
                             const struct op *gather, struct error *err)
{
    struct graph *g = c->g;
    int index = gradient_in(c, 1), updates = gradient_in(c, 2);
    enum reduction reduction;
    struct shape shape = gradient_shape(g, updates);
    struct attr axis = attr_int("axis", node_int(gradient_node(c), "axis", 0));
    int attrs = node_attr(gradient_node(c), "axis") ? 1 : 0;
    TRY(reduction_of(gradient_node(c), &reduction, err));
    if (reduction != REDUCE_NONE && reduction != REDUCE_ADD)
        return UNSUPPORTED(err, "%s with reduction \"%s\" has no gradient: only none and add have",
                           gradient_node(c)->op->name,
                           node_string(gradient_node(c), "reduction", "none"));
    c->dx[0] = c->dy[0];
    if (c->wanted[0] && reduction == REDUCE_NONE) {
        int zeros = make_zeros(g, g->values[updates].dtype, &shape);
        c->dx[0] = graph_node(g, scatter->name, NULL, INPUTS(c->dy[0], index, zeros), attrs, &axis);
    }
    if (c->wanted[2])
        c->dx[2] = make_reshaped(
            g, graph_node(g, gather->name, NULL, INPUTS(c->dy[0], index), attrs, &axis), &shape);
    return STATUS_OK;
}

static double reduce_float(double a, double b, enum reduction reduction)
{
    switch (reduction) {
    case REDUCE_NONE:
        return b;
    case REDUCE_ADD:
        return a + b;
    case REDUCE_MUL:
        return a * b;
    case REDUCE_MAX:
        return b > a ? b : a;
    case REDUCE_MIN:
        return b < a ? b : a;
    }
    return b;
}

static int64_t reduce_int(int64_t a, int64_t b, enum reduction reduction, bool is_unsigned)
{
    bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
    switch (reduction) {
    case REDUCE_NONE:
        return b;
    case REDUCE_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case REDUCE_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case REDUCE_MAX:
        return less ? b : a;
    case REDUCE_MIN:
        return less ? a : b;
    }
    return b;
}

void reduce_into(const struct ref_tensor *y, int64_t to, const struct ref_tensor *x, int64_t from,
                 enum reduction reduction)
{
    if (y->f)
        y->f[to] = reduce_float(y->f[to], x->f[from], reduction);
    else
        y->i[to] = reduce_int(y->i[to], x->i[from], reduction, dtype_is_unsigned(y->dtype));
}

void ref_copy_all(const struct ref_tensor *y, const struct ref_tensor *x)
{
    for (int64_t k = 0; k < x->count; k++)
        ref_copy(y, k, x, k);
}

enum status scatter_elements_infer(const struct infer *c, struct error *err)
{
    enum reduction reduction;
    int axis;
    struct op_args args = args_of_infer(c);
    const struct shape *x = &c->in[0]->shape, *at = &c->in[1]->shape;
    TRY(reduction_of(c->node, &reduction, err));
    TRY(args_axis(&args, x, 0, &axis, err));
    char a[96], b[96];
    if (!shape_equal(at, &c->in[2]->shape) || at->rank != x->rank)
        return FAIL(err, STATUS_FAILED,
                    "indices %s and updates %s of %s differ or have another "
                    "rank than the data",
                    shape_text(at, a), shape_text(&c->in[2]->shape, b), c->node->op->name);
    for (int k = 0; k < x->rank; k++)
        if (k != axis && at->dim[k] > x->dim[k])
            return FAIL(err, STATUS_FAILED, "indices %s of %s reach beyond data %s",
                        shape_text(at, a), c->node->op->name, shape_text(x, b));
    return infer_same(c, err);
}

enum status scatter_elements_reference(const struct ref_call *call, struct error *err)
{
    enum reduction reduction;
    int axis;
    struct op_args args = args_of_ref(call);
    const struct ref_tensor *x = call->in[0], *index = call->in[1], *y = call->out[0];
    TRY(reduction_of(call->node, &reduction, err));
    TRY(args_axis(&args, &x->shape, 0, &axis, err));
    ref_copy_all(y, x);
    for (int64_t k = 0; k < index->count; k++) {
        int64_t at;
        TRY(index_wrap(call->node, index->i[k], x->shape.dim[axis], &at, err));
        reduce_into(y, index_along(&x->shape, &index->shape, k, axis, at), call->in[2], k,
                    reduction);
    }
    return STATUS_OK;
}
