/* SPDX-License-Identifier: Apache-2.0
 * Einsum: sums of products over named dimensions, as numpy.einsum; ellipses included. */
#include "engine/ops/lib/einsum.h"

static const char *const attrs[] = {"equation", NULL};

static enum status resolve(const struct infer *c, struct einsum *e, struct error *err)
{
    const struct shape *shapes[EINSUM_OPERANDS_MAX];
    for (int k = 0; k < c->in_count; k++)
        shapes[k] = &c->in[k]->shape;
    return einsum_from(c->node, shapes, c->in_count, e, err);
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct einsum e;
    for (int k = 0; k < c->in_count; k++)
        if (!c->in[k])
            return FAIL(err, STATUS_FAILED, "Einsum: input %d is absent", k);
    TRY(resolve(c, &e, err));
    struct shape y = shape_from(e.out_labels, e.size);
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    struct einsum e;
    if (resolve(c, &e, NULL) != STATUS_OK)
        return;
    double terms = (double)einsum_span(&e, 0, e.labels);
    bool sums = e.labels > e.out_labels;
    if (sums && e.operands > 1)
        cost->macs = terms;
    else
        cost->elementwise = terms * (sums ? 1 : e.operands - 1);
}

struct cursor {
    int64_t index[EINSUM_LABELS_MAX], at[EINSUM_OPERANDS_MAX];
};

/* Moves to the next combination of the labels [first, last); false after the last one, when the
 * cursor is back at its start. */
static bool advance(const struct einsum *e, struct cursor *cursor, int first, int last)
{
    for (int label = last - 1; label >= first; label--) {
        for (int k = 0; k < e->operands; k++)
            cursor->at[k] += e->stride[k][label];
        if (++cursor->index[label] < e->size[label])
            return true;
        for (int k = 0; k < e->operands; k++)
            cursor->at[k] -= e->stride[k][label] * e->size[label];
        cursor->index[label] = 0;
    }
    return false;
}

static void sum_floats(const struct ref_call *call, const struct einsum *e, struct cursor *cursor,
                       double *sum)
{
    do {
        double product = call->in[0]->f[cursor->at[0]];
        for (int k = 1; k < e->operands; k++)
            product *= call->in[k]->f[cursor->at[k]];
        *sum += product;
    } while (advance(e, cursor, e->out_labels, e->labels));
}

static void sum_ints(const struct ref_call *call, const struct einsum *e, struct cursor *cursor,
                     int64_t *sum)
{
    uint64_t total = 0; /* overflow wraps */
    do {
        uint64_t product = (uint64_t)call->in[0]->i[cursor->at[0]];
        for (int k = 1; k < e->operands; k++)
            product *= (uint64_t)call->in[k]->i[cursor->at[k]];
        total += product;
    } while (advance(e, cursor, e->out_labels, e->labels));
    *sum = (int64_t)total;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct shape *shapes[EINSUM_OPERANDS_MAX];
    struct einsum e;
    struct cursor cursor = {{0}, {0}};
    for (int k = 0; k < call->in_count; k++)
        shapes[k] = &call->in[k]->shape;
    TRY(einsum_from(call->node, shapes, call->in_count, &e, err));
    const struct ref_tensor *y = call->out[0];
    if (einsum_span(&e, 0, e.labels) == 0)
        return STATUS_OK;
    for (int64_t i = 0; i < y->count; i++) {
        if (y->f)
            sum_floats(call, &e, &cursor, &y->f[i]);
        else
            sum_ints(call, &e, &cursor, &y->i[i]);
        advance(&e, &cursor, 0, e.out_labels);
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "matmul", .inputs = "f32[9,17] f32[17,12]", .attrs = "equation=\"ij,jk->ik\""},
    {.name = "batch_matmul",
     .inputs = "f32[3,4,5] f32[3,5,6]",
     .attrs = "equation=\"bij,bjk->bik\""},
    {.name = "matmul_transposed",
     .inputs = "f32[9,17] f32[12,17]",
     .attrs = "equation=\"ij,kj->ik\""},
    {.name = "heads",
     .inputs = "f32[2,7,3,8] f32[2,9,3,8]",
     .attrs = "equation=\"bqhd,bkhd->bhqk\""},
    {.name = "outer_product", .inputs = "f32[7] f32[9]", .attrs = "equation=\"i,j->ij\""},
    {.name = "transpose", .inputs = "f32[3,4,5]", .attrs = "equation=\"abc->cab\""},
    {.name = "sum", .inputs = "f32[6,7]", .attrs = "equation=\"ij->i\""},
    {.name = "trace", .inputs = "f32[6,6]", .attrs = "equation=\"ii->\""},
    {.name = "diagonal", .inputs = "f32[4,6,6]", .attrs = "equation=\"...ii->...i\""},
    {.name = "implicit", .inputs = "f32[4,5] f32[5,6]", .attrs = "equation=\"ij,jk\""},
    {.name = "ellipsis",
     .inputs = "f32[2,3,4,5] f32[3,5,6]",
     .attrs = "equation=\"...ij,...jk->...ik\""},
    {.name = "three_operands",
     .inputs = "f32[3,4] f32[4,5] f32[5,2]",
     .attrs = "equation=\"ij,jk,kl->il\""},
    {.name = "integers", .inputs = "i64[3,4] i64[4]", .attrs = "equation=\"ij,j->i\""},
};

REGISTER(op, einsum) = {
    .name = "Einsum",
    .inputs_min = 1,
    .inputs_max = EINSUM_OPERANDS_MAX,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
