/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of i32 and i64, the types of indices and shapes: loops that the compiler makes vectors
 * of, divisions aside. Overflow wraps, hence the unsigned types; x / 0 is 0, as in the reference.
 */
#include <string.h>

#include "engine/graph/op.h"
#include "engine/kernels/lib/row_loop.h"

#define LOOP(name, type, expression)                                                               \
    SIMD_INLINE void name##_loop(const struct row *row, int64_t a_step, int64_t b_step)            \
    {                                                                                              \
        type *y = (type *)(void *)row->at[0];                                                      \
        const type *left = (const type *)(const void *)row->at[1];                                 \
        const type *right = (const type *)(const void *)row->at[2];                                \
        for (int64_t i = 0; i < row->count; i++) {                                                 \
            type a = left[i * a_step], b = right[i * b_step];                                      \
            y[i] = expression;                                                                     \
        }                                                                                          \
    }                                                                                              \
    static void name(const struct row *row)                                                        \
    {                                                                                              \
        ROW_STEPS_BINARY(name##_loop, row);                                                        \
    }

#define ARITHMETIC(suffix, type, wrapping)                                                         \
    LOOP(add_##suffix, wrapping, a + b)                                                            \
    LOOP(div_##suffix, type, b == 0 ? 0 : b == -1 ? (type)(0 - (wrapping)a) : a / b)               \
    LOOP(max_##suffix, type, a < b ? b : a)                                                        \
    LOOP(min_##suffix, type, a < b ? a : b)                                                        \
    LOOP(mul_##suffix, wrapping, a *b)                                                             \
    LOOP(sub_##suffix, wrapping, a - b)

ARITHMETIC(i32, int32_t, uint32_t)
ARITHMETIC(i64, int64_t, uint64_t)

static const struct {
    const char *op;
    row_fn *i32, *i64;
} rows[] = {
    {"Add", add_i32, add_i64}, {"Div", div_i32, div_i64}, {"Max", max_i32, max_i64},
    {"Min", min_i32, min_i64}, {"Mul", mul_i32, mul_i64}, {"Sub", sub_i32, sub_i64},
};

static row_fn *find(const struct kernel_query *q)
{
    for (int k = 0; k < ARRAY_COUNT(rows); k++)
        if (strcmp(rows[k].op, q->node->op->name) == 0)
            return q->out[0].dtype == DTYPE_I64 ? rows[k].i64 : rows[k].i32;
    return NULL;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (!query_all_dtype(q, DTYPE_I32) && !query_all_dtype(q, DTYPE_I64))
        return UNSUPPORTED(why, "only i32 and i64");
    if (q->in_count != 2)
        return UNSUPPORTED(why, "%d inputs, not 2", q->in_count);
    return row_loop_plan(q, find(q), s, why);
}

REGISTER_KERNEL(integer_rows) = {
    NATIVE(integer_rows),
    .ops = OPS("Add", "Div", "Max", "Min", "Mul", "Sub"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = row_loop_launch,
};
