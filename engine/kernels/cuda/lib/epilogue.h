/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done to an element of a product before it is stored: bias, residual, activation. The
 * operands lie like the result, along its columns or rows, or are one number. */
#ifndef ENGINE_KERNELS_CUDA_LIB_EPILOGUE_H
#define ENGINE_KERNELS_CUDA_LIB_EPILOGUE_H

#include "engine/kernels/cuda/lib/math.h"

enum { EPILOGUE_MAX = POST_MAX + 1 };

enum operand_form { OPERAND_FULL, OPERAND_COLUMN, OPERAND_ROW, OPERAND_SCALAR };

struct epilogue_op {
    int kind, act, form; /* enum post_kind, act, operand_form */
    int input;           /* of the node */
    float a, b;          /* of the activation; a: what an added operand is multiplied by */
    const void *operand; /* of the result's type */
};

struct epilogue {
    int count, type; /* of the result and the operands */
    struct epilogue_op ops[EPILOGUE_MAX];
};

/* at: the element's place in the result's memory. Out of line: results must stay in registers, so
 * the loops over a thread's results are unrolled, and this is in each round. */
static __device__ OUT_OF_LINE float epilogue_value(const struct epilogue &e, float x, size_t at,
                                                   unsigned row, unsigned column)
{
#pragma unroll 1
    for (int k = 0; k < e.count; k++) {
        const struct epilogue_op &op = e.ops[k];
        if (op.kind == POST_ACT) {
            x = vf_act(x, (enum function)op.act, op.a, op.b);
            continue;
        }
        size_t from = op.form == OPERAND_FULL     ? at
                      : op.form == OPERAND_COLUMN ? column
                      : op.form == OPERAND_ROW    ? row
                                                  : 0;
        float y = group_as<1>(e.type, op.operand, from).v[0];
        x = op.kind == POST_ADD ? x + op.a * y : x * y;
    }
    return x;
}

/* ---- eight neighbours of a row at once ---- */

enum { EPILOGUE_GROUP = 8 };

/* Where they lie: `at` is the first one's place in the result's memory, `step` from one to the
 * next. together: all are there, one after the other, and begin at a multiple of 16 bytes, as do
 * the operands; else there are `count`. */
struct epilogue_place {
    size_t at, step;
    unsigned row, column, count;
    bool together;
};

template <class element>
static __device__ __forceinline__ struct group<EPILOGUE_GROUP>
epilogue_operands(const struct epilogue_op &op, const struct epilogue_place &to) {
    const element *y = (const element *)op.operand;
    bool full = op.form == OPERAND_FULL, column = op.form == OPERAND_COLUMN;
    size_t from = full ? to.at : column ? to.column : op.form == OPERAND_ROW ? to.row : 0;
    size_t step = full ? to.step : column ? 1 : 0;
    if (to.together && (full || column))
        return group_at(y + from, group<EPILOGUE_GROUP>{});
    struct group<EPILOGUE_GROUP> r;
#pragma unroll
    for (unsigned i = 0; i < EPILOGUE_GROUP; i++)
        r.v[i] = i < to.count ? to_float(y[from + i * step]) : 0.0f;
    return r;
}

/* e must be a kernel's parameter itself, or its fields come from memory one after the other. */
template <class element>
static __device__ __forceinline__ void epilogue_group(const struct epilogue &e,
                                                      struct group<EPILOGUE_GROUP> &x,
                                                      const struct epilogue_place &to)
{
#pragma unroll 1
    for (int k = 0; k < e.count; k++) {
        const struct epilogue_op &op = e.ops[k];
        if (op.kind == POST_ACT) {
            activate_group(x, op.act, op.a, op.b);
            continue;
        }
        struct group<EPILOGUE_GROUP> y = epilogue_operands<element>(op, to);
#pragma unroll
        for (int i = 0; i < EPILOGUE_GROUP; i++)
            x.v[i] = op.kind == POST_ADD ? x.v[i] + op.a * y.v[i] : x.v[i] * y.v[i];
    }
}

template <class element>
static __device__ __forceinline__ void
epilogue_store(element *y, const struct group<EPILOGUE_GROUP> &x, const struct epilogue_place &to)
{
    if (to.together) {
        group_store(y + to.at, x);
        return;
    }
#pragma unroll
    for (unsigned i = 0; i < EPILOGUE_GROUP; i++)
        if (i < to.count)
            float_put(y + to.at + i * to.step, x.v[i]);
}

/* ---- host ---- */

/* column: the dimension of the result that columns count (channels of an image, the last of a
 * matrix); row: that of rows, NONE where an operand along rows cannot be. */
static inline enum status operand_form_of(const struct desc *operand, const struct desc *out,
                                          int column, int row, int *form, struct error *why)
{
    int lead = out->shape.rank - operand->shape.rank, only = NONE, wide = 0;
    if (operand->dtype != out->dtype)
        return REFUSE(why, "operand of the epilogue has another type than the result");
    for (int d = 0; d < operand->shape.rank; d++) {
        if (operand->shape.dim[d] == 1)
            continue;
        only = d + lead;
        wide++;
    }
    *form = wide == 0 ? OPERAND_SCALAR : only == column ? OPERAND_COLUMN : OPERAND_ROW;
    if (wide == 0 || (wide == 1 && (only == column || only == row)))
        return STATUS_OK; /* one dimension: its stride is 1 in any dense memory */
    if (!cuda_host->desc_same_memory(operand, out))
        return REFUSE(why, "operand of the epilogue is broadcast in part or lies otherwise");
    *form = OPERAND_FULL;
    return STATUS_OK;
}

static inline enum status epilogue_add(const struct kernel_query *q, const struct epilogue_op &op,
                                       int column, int row, struct epilogue *e, struct error *why)
{
    struct epilogue_op *to = &e->ops[e->count++];
    *to = op;
    if (op.kind == POST_ACT)
        return STATUS_OK;
    const struct desc *operand = &q->in[op.input];
    int64_t same = shape_count(&operand->shape);
    if (column < 0 || (same > 1 && operand->shape.rank > q->out[0].shape.rank))
        return REFUSE(why, "operand of the epilogue has more dimensions than the result");
    return operand_form_of(operand, &q->out[0], column, row, &to->form, why);
}

static inline enum status epilogue_add_posts(const struct kernel_query *q, int column,
                                             struct epilogue *e, struct error *why)
{
    e->type = q->out[0].dtype;
    for (int k = 0; k < q->node->post_count; k++) {
        const struct post *post = &q->node->posts[k];
        struct epilogue_op op = {(int)post->kind, (int)post->act, 0,   post->input,
                                 post->a,         post->b,        NULL};
        if (post->kind != POST_ACT)
            op.a = 1;
        TRY(epilogue_add(q, op, column, NONE, e, why));
    }
    return STATUS_OK;
}

static inline void epilogue_resolve(struct epilogue *e, const struct kernel_args *args)
{
    for (int k = 0; k < e->count; k++)
        if (e->ops[k].kind != POST_ACT)
            e->ops[k].operand = args->in[e->ops[k].input];
}

/* All operands begin at a multiple of 16 bytes. */
static inline bool epilogue_is_aligned(const struct epilogue *e)
{
    for (int k = 0; k < e->count; k++)
        if (e->ops[k].kind != POST_ACT && (uintptr_t)e->ops[k].operand % 16 != 0)
            return false;
    return true;
}

#endif
