/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparisons of f32, i32 and i64, logic of bool, and which f32 are infinite or no numbers.
 * Floats go through vector masks, the others are loops that the compiler makes vectors of.
 */
#include <math.h>
#include <string.h>

#include "engine/graph/op.h"
#include "engine/kernels/lib/row_loop.h"

#define LOOP(name, type, expression)                                                               \
    SIMD_INLINE void name##_loop(const struct row *row, int64_t a_step, int64_t b_step)            \
    {                                                                                              \
        uint8_t *restrict y = (uint8_t *)row->at[0];                                               \
        const type *left = (const type *)(const void *)row->at[1];                                 \
        const type *right = (const type *)(const void *)row->at[2];                                \
        for (int64_t i = 0; i < row->count; i++) {                                                 \
            type a = left[i * a_step], b = right[i * b_step];                                      \
            y[i] = (expression) ? 1 : 0;                                                           \
        }                                                                                          \
    }                                                                                              \
    static void name(const struct row *row)                                                        \
    {                                                                                              \
        ROW_STEPS_BINARY(name##_loop, row);                                                        \
    }

/* mask: of vectors u and v; expression: the same of the elements a and b. */
#define LOOP_F32(name, mask, expression)                                                           \
    SIMD_INLINE void name##_loop(const struct row *row, int64_t a_step, int64_t b_step)            \
    {                                                                                              \
        uint8_t *restrict y = (uint8_t *)row->at[0];                                               \
        const float *left = (const float *)(const void *)row->at[1];                               \
        const float *right = (const float *)(const void *)row->at[2];                              \
        int64_t i = 0;                                                                             \
        bool vectors = a_step <= 1 && b_step <= 1;                                                 \
        for (; vectors && i + VL <= row->count; i += VL) {                                         \
            vf u = a_step ? vf_load(left + i) : vf_set1(*left);                                    \
            vf v = b_step ? vf_load(right + i) : vf_set1(*right);                                  \
            vm_store_bool(y + i, mask);                                                            \
        }                                                                                          \
        for (; i < row->count; i++) {                                                              \
            float a = left[i * a_step], b = right[i * b_step];                                     \
            y[i] = (expression) ? 1 : 0;                                                           \
        }                                                                                          \
    }                                                                                              \
    static void name(const struct row *row)                                                        \
    {                                                                                              \
        ROW_STEPS_BINARY(name##_loop, row);                                                        \
    }

/* mask: of a vector u; expression: the same of the element a. */
#define LOOP_UNARY(name, mask, expression)                                                         \
    static void name(const struct row *row)                                                        \
    {                                                                                              \
        uint8_t *restrict y = (uint8_t *)row->at[0];                                               \
        const float *x = (const float *)(const void *)row->at[1];                                  \
        int64_t i = 0;                                                                             \
        for (; row->step[1] == 1 && i + VL <= row->count; i += VL) {                               \
            vf u = vf_load(x + i);                                                                 \
            vm_store_bool(y + i, mask);                                                            \
        }                                                                                          \
        for (; i < row->count; i++) {                                                              \
            float a = x[i * row->step[1]];                                                         \
            y[i] = (expression) ? 1 : 0;                                                           \
        }                                                                                          \
    }

#define COMPARISONS(suffix, type)                                                                  \
    LOOP(equal_##suffix, type, a == b)                                                             \
    LOOP(greater_##suffix, type, a > b)                                                            \
    LOOP(greater_or_equal_##suffix, type, a >= b)                                                  \
    LOOP(less_##suffix, type, a < b)                                                               \
    LOOP(less_or_equal_##suffix, type, a <= b)

LOOP_F32(equal_f32, vf_eq(u, v), a == b)
LOOP_F32(greater_f32, vf_lt(v, u), a > b)
LOOP_F32(greater_or_equal_f32, vf_le(v, u), a >= b)
LOOP_F32(less_f32, vf_lt(u, v), a < b)
LOOP_F32(less_or_equal_f32, vf_le(u, v), a <= b)
COMPARISONS(i32, int32_t)
COMPARISONS(i64, int64_t)
LOOP(equal_bool, uint8_t, !a == !b)
LOOP(and_bool, uint8_t, (a != 0) & (b != 0))
LOOP(or_bool, uint8_t, (a != 0) | (b != 0))
LOOP(xor_bool, uint8_t, !a != !b)

LOOP_UNARY(is_nan, vf_is_nan(u), a != a)
LOOP_UNARY(is_infinite, vf_eq(vf_abs(u), vf_set1(INFINITY)), a == INFINITY || a == -INFINITY)
LOOP_UNARY(is_positive_infinity, vf_eq(u, vf_set1(INFINITY)), a == INFINITY)
LOOP_UNARY(is_negative_infinity, vf_eq(u, vf_set1(-INFINITY)), a == -INFINITY)

static void is_nothing(const struct row *row)
{
    memset(row->at[0], 0, (size_t)row->count);
}

static void not_bool(const struct row *row)
{
    const uint8_t *x = (const uint8_t *)row->at[1];
    uint8_t *y = (uint8_t *)row->at[0];
    for (int64_t i = 0; i < row->count; i++)
        y[i] = !x[i * row->step[1]];
}

static const struct {
    const char *op;
    enum dtype dtype;
    row_fn *run;
} rows[] = {
    {"And", DTYPE_BOOL, and_bool},
    {"Equal", DTYPE_BOOL, equal_bool},
    {"Equal", DTYPE_F32, equal_f32},
    {"Equal", DTYPE_I32, equal_i32},
    {"Equal", DTYPE_I64, equal_i64},
    {"Greater", DTYPE_F32, greater_f32},
    {"Greater", DTYPE_I32, greater_i32},
    {"Greater", DTYPE_I64, greater_i64},
    {"GreaterOrEqual", DTYPE_F32, greater_or_equal_f32},
    {"GreaterOrEqual", DTYPE_I32, greater_or_equal_i32},
    {"GreaterOrEqual", DTYPE_I64, greater_or_equal_i64},
    {"IsInf", DTYPE_F32, is_infinite},
    {"IsNaN", DTYPE_F32, is_nan},
    {"Less", DTYPE_F32, less_f32},
    {"Less", DTYPE_I32, less_i32},
    {"Less", DTYPE_I64, less_i64},
    {"LessOrEqual", DTYPE_F32, less_or_equal_f32},
    {"LessOrEqual", DTYPE_I32, less_or_equal_i32},
    {"LessOrEqual", DTYPE_I64, less_or_equal_i64},
    {"Not", DTYPE_BOOL, not_bool},
    {"Or", DTYPE_BOOL, or_bool},
    {"Xor", DTYPE_BOOL, xor_bool},
};

/* IsInf may be asked for one of the two alone. */
static row_fn *as_asked(const struct node *node, row_fn *run)
{
    bool negative = node_int(node, "detect_negative", 1) != 0;
    bool positive = node_int(node, "detect_positive", 1) != 0;
    if (run != is_infinite || (negative && positive))
        return run;
    return negative ? is_negative_infinity : positive ? is_positive_infinity : is_nothing;
}

static row_fn *find(const struct kernel_query *q)
{
    for (int k = 0; k < ARRAY_COUNT(rows); k++)
        if (rows[k].dtype == q->in[0].dtype && strcmp(rows[k].op, q->node->op->name) == 0)
            return as_asked(q->node, rows[k].run);
    return NULL;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    row_fn *run = find(q);
    if (!run)
        return UNSUPPORTED(why, "%s of %s", q->node->op->name, dtype_name(q->in[0].dtype));
    return row_loop_plan(q, run, s, why);
}

REGISTER_KERNEL(compare_rows) = {
    NATIVE(compare_rows),
    .ops = OPS("And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual",
               "Not", "Or", "Xor"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = row_loop_launch,
};
