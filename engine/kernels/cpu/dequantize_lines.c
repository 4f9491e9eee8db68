/* SPDX-License-Identifier: Apache-2.0
 *
 * DequantizeLinear of integers of 8, 16 and 32 bits to f32. Differences of the small ones are exact
 * in f32; those of i32 are made in double, as in the reference.
 */
#include "engine/kernels/lib/quantize_lines.h"

struct kernel_state {
    struct quantize_lines lines;
};

#define LINE(name, type, wide)                                                                     \
    static void name##_line(const void *from, const float *restrict scales, const void *zero_data, \
                            void *to, int64_t n, bool each)                                        \
    {                                                                                              \
        const type *restrict x = from;                                                             \
        const type *restrict zeros = zero_data;                                                    \
        float *restrict y = to;                                                                    \
        wide zero = zeros ? (wide)zeros[0] : 0, scale = scales[0];                                 \
        if (!each)                                                                                 \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (float)(((wide)x[i] - zero) * scale);                                       \
        else if (zeros)                                                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (float)(((wide)x[i] - (wide)zeros[i]) * (wide)scales[i]);                   \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (float)((wide)x[i] * (wide)scales[i]);                                      \
    }

LINE(i8, int8_t, float)
LINE(u8, uint8_t, float)
LINE(i16, int16_t, float)
LINE(u16, uint16_t, float)
LINE(i32, int32_t, double)

static quantize_line_fn *const lines[DTYPE_COUNT] = {
    [DTYPE_I8] = i8_line,   [DTYPE_U8] = u8_line,   [DTYPE_I16] = i16_line,
    [DTYPE_U16] = u16_line, [DTYPE_I32] = i32_line,
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    quantize_line_fn *line = q->out[0].dtype == DTYPE_F32 ? lines[q->in[0].dtype] : NULL;
    if (query_in(q, 2) && q->in[2].dtype != q->in[0].dtype)
        return UNSUPPORTED(why, "zero points of another type than the input");
    return quantize_lines_plan(q, line, &s->lines, why);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    quantize_lines_run(&s->lines, args);
}

REGISTER_KERNEL(dequantize_lines) = {
    NATIVE(dequantize_lines),
    .ops = OPS("DequantizeLinear"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
