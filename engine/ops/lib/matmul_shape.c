/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/matmul_shape.h"

#include <string.h>

static bool is_gemm(const struct node *node)
{
    return strcmp(node->op->name, "Gemm") == 0;
}

static enum status mismatch(const struct node *node, const struct shape *a, const struct shape *b,
                            struct error *err)
{
    char text_a[96], text_b[96];
    return FAIL(err, STATUS_FAILED, "%s: cannot multiply %s by %s", node->op->name,
                shape_text(a, text_a), shape_text(b, text_b));
}

static bool turns(const struct node *node, const char *name)
{
    return node_int(node, name, 0) != 0;
}

enum status matmul_infer(const struct node *node, const struct shape *a, const struct shape *b,
                         struct shape *c, struct error *err)
{
    bool turn_a = turns(node, "transA"), turn_b = turns(node, "transB");
    bool matrices =
        is_gemm(node) ? a->rank == 2 && b->rank == 2 : a->rank > turn_a && b->rank > turn_b;
    if (!matrices)
        return mismatch(node, a, b, err);
    int batch_a = a->rank > 2 ? a->rank - 2 : 0, batch_b = b->rank > 2 ? b->rank - 2 : 0;
    int64_t depth_a = a->dim[a->rank - 1 - turn_a];
    int64_t depth_b = b->dim[b->rank == 1 || turn_b ? b->rank - 1 : b->rank - 2];
    struct shape lead_a = shape_from(batch_a, a->dim), lead_b = shape_from(batch_b, b->dim);
    if (depth_a != depth_b || !shape_broadcast(&lead_a, &lead_b, c))
        return mismatch(node, a, b, err);
    if (a->rank > 1)
        c->dim[c->rank++] = a->dim[turn_a ? a->rank - 1 : a->rank - 2];
    if (b->rank > 1)
        c->dim[c->rank++] = b->dim[turn_b ? b->rank - 2 : b->rank - 1];
    return STATUS_OK;
}

/* Strides of the batch dimensions of one operand whose matrix takes its last `used` dimensions. */
static void batch_strides(const struct desc *desc, int used, const struct matmul_shape *s,
                          int64_t *stride)
{
    int rank = desc->shape.rank - used;
    for (int k = 0; k < s->batch_rank; k++) {
        int at = k - (s->batch_rank - rank);
        stride[k] = at < 0 || desc->shape.dim[at] == 1 ? 0 : desc->stride[at];
    }
}

/* Takes the last batch dimension into m while B does not depend on it. */
static void fold_batches(struct matmul_shape *s)
{
    while (s->batch_rank > 0) {
        int last = s->batch_rank - 1;
        int64_t count = s->batch_dim[last];
        bool goes_on = s->a_batch[last] == s->m * s->a_row && s->c_batch[last] == s->m * s->c_row;
        if (count != 1 && (s->b_batch[last] != 0 || !goes_on))
            return;
        if (count == 0)
            return;
        s->m *= count;
        s->batch /= count;
        s->batch_rank--;
    }
}

struct matmul_shape matmul_shape_from(const struct node *node, const struct desc *a,
                                      const struct desc *b, const struct desc *c)
{
    struct matmul_shape s = {.batch = 1};
    int ra = a->shape.rank, rb = b->shape.rank, rc = c->shape.rank;
    int used_a = ra == 1 ? 1 : 2, used_b = rb == 1 ? 1 : 2, used_c = (ra > 1) + (rb > 1);
    s.k = a->shape.dim[ra - 1];
    s.a_col = a->stride[ra - 1];
    s.m = ra > 1 ? a->shape.dim[ra - 2] : 1;
    s.a_row = ra > 1 ? a->stride[ra - 2] : 0;
    s.b_row = b->stride[rb - used_b];
    s.n = rb > 1 ? b->shape.dim[rb - 1] : 1;
    s.b_col = rb > 1 ? b->stride[rb - 1] : 0;
    s.c_col = rb > 1 ? c->stride[rc - 1] : 0;
    s.c_row = ra > 1 ? c->stride[rc - used_c] : 0;
    if (turns(node, "transA")) {
        int64_t stride = s.a_row;
        s.k = a->shape.dim[ra - 2];
        s.m = a->shape.dim[ra - 1];
        s.a_row = s.a_col;
        s.a_col = stride;
    }
    if (turns(node, "transB")) {
        int64_t stride = s.b_row;
        s.n = b->shape.dim[rb - 2];
        s.b_row = s.b_col;
        s.b_col = stride;
    }
    s.batch_rank = rc - used_c;
    for (int k = 0; k < s.batch_rank; k++)
        s.batch *= s.batch_dim[k] = c->shape.dim[k];
    batch_strides(a, used_a, &s, s.a_batch);
    batch_strides(b, used_b, &s, s.b_batch);
    batch_strides(c, used_c, &s, s.c_batch);
    fold_batches(&s);
    return s;
}

struct matmul_offset matmul_offset_of(const struct matmul_shape *shape, int64_t index)
{
    struct matmul_offset offset = {0, 0, 0};
    for (int k = shape->batch_rank - 1; k >= 0; k--) {
        int64_t at = index % shape->batch_dim[k];
        index /= shape->batch_dim[k];
        offset.a += at * shape->a_batch[k];
        offset.b += at * shape->b_batch[k];
        offset.c += at * shape->c_batch[k];
    }
    return offset;
}

void matmul_cost(const struct infer *c, struct cost *cost)
{
    const struct shape *a = &c->in[0]->shape;
    int64_t depth = a->dim[a->rank - 1 - turns(c->node, "transA")];
    cost->macs = (double)shape_count(&c->out[0]->shape) * (double)depth;
}
