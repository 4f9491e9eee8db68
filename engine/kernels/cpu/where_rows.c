/* SPDX-License-Identifier: Apache-2.0
 *
 * Where of any element type: only the size of an element matters.
 */
#include "engine/kernels/lib/row_loop.h"

#define SELECT(name, type)                                                                         \
    SIMD_INLINE void name##_loop(const struct row *row, int64_t yes, int64_t no)                   \
    {                                                                                              \
        type *y = (type *)(void *)row->at[0];                                                      \
        const uint8_t *condition = (const uint8_t *)row->at[1];                                    \
        const type *a = (const type *)(const void *)row->at[2];                                    \
        const type *b = (const type *)(const void *)row->at[3];                                    \
        for (int64_t i = 0; i < row->count; i++) {                                                 \
            type u = a[i * yes], v = b[i * no];                                                    \
            y[i] = condition[i] ? u : v;                                                           \
        }                                                                                          \
    }                                                                                              \
    static void name(const struct row *row)                                                        \
    {                                                                                              \
        type *y = (type *)(void *)row->at[0];                                                      \
        const type *a = (const type *)(const void *)row->at[2];                                    \
        const type *b = (const type *)(const void *)row->at[3];                                    \
        int64_t yes = row->step[2], no = row->step[3];                                             \
        if (row->step[1] == 1 && yes == 1 && no == 1)                                              \
            name##_loop(row, 1, 1);                                                                \
        else if (row->step[1] == 1 && yes == 1 && no == 0)                                         \
            name##_loop(row, 1, 0);                                                                \
        else if (row->step[1] == 1 && yes == 0 && no == 1)                                         \
            name##_loop(row, 0, 1);                                                                \
        else                                                                                       \
            for (int64_t i = 0; i < row->count; i++)                                               \
                y[i] = row->at[1][i * row->step[1]] ? a[i * yes] : b[i * no];                      \
    }

SELECT(select_1, uint8_t)
SELECT(select_4, uint32_t)
SELECT(select_8, uint64_t)

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    size_t size = dtype_size(q->out[0].dtype);
    if (size != 1 && size != 4 && size != 8)
        return UNSUPPORTED(why, "elements of %zu bytes", size);
    return row_loop_plan(q, size == 1 ? select_1 : size == 4 ? select_4 : select_8, s, why);
}

REGISTER_KERNEL(where_rows) = {
    NATIVE(where_rows), .ops = OPS("Where"),       .state_size = sizeof(struct kernel_state),
    .plan = plan,       .launch = row_loop_launch,
};
