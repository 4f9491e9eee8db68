/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizeLinear of f32 to integers of 8 and 16 bits: bit for bit the reference's results, whose
 * quotients are rounded to f32 too. The time is that of the divisions where data are in caches,
 * else of the memory.
 */
#include "engine/kernels/lib/quantize_lines.h"

struct kernel_state {
    struct quantize_lines lines;
};

/* How at most QUANTIZE_BLOCK elements are quantised. */
struct rule {
    float low, high, zero;
    const float *scales, *zeros; /* zeros NULL: all are `zero` */
    bool each;                   /* element has a scale of its own */
};

static void block(const struct rule *r, const float *x, int64_t n, int32_t *words)
{
    vf low = vf_set1(r->low), high = vf_set1(r->high), zero = vf_set1(r->zero);
    vf scale = vf_set1(r->scales[0]);
    for (int64_t i = 0; i < n; i += VL) {
        vm m = vm_first(n - i);
        if (r->each)
            scale = vf_load_m(r->scales + i, m);
        if (r->zeros)
            zero = vf_load_m(r->zeros + i, m);
        vi_store(words + i, quantize_vector(vf_load_m(x + i, m), scale, zero, low, high));
    }
}

#define LINE(name, type, least, most)                                                              \
    static void name##_line(const void *from, const float *scales, const void *zero_data,          \
                            void *to, int64_t n, bool each)                                        \
    {                                                                                              \
        const float *x = from;                                                                     \
        const type *zeros = zero_data;                                                             \
        struct rule rule = {least, most, zeros ? zeros[0] : 0, scales, NULL, each};                \
        for (int64_t at = 0; at < n; at += QUANTIZE_BLOCK) {                                       \
            int32_t words[QUANTIZE_BLOCK];                                                         \
            float floats[QUANTIZE_BLOCK];                                                          \
            type *y = (type *)to + at;                                                             \
            int64_t count = smaller(n - at, QUANTIZE_BLOCK);                                       \
            rule.scales = scales + (each ? at : 0);                                                \
            rule.zeros = each && zeros ? floats : NULL;                                            \
            for (int64_t i = 0; rule.zeros && i < count; i++)                                      \
                floats[i] = zeros[at + i];                                                         \
            block(&rule, x + at, count, words);                                                    \
            for (int64_t i = 0; i < count; i++)                                                    \
                y[i] = (type)words[i];                                                             \
        }                                                                                          \
    }

LINE(i8, int8_t, INT8_MIN, INT8_MAX)
LINE(u8, uint8_t, 0, UINT8_MAX)
LINE(i16, int16_t, INT16_MIN, INT16_MAX)
LINE(u16, uint16_t, 0, UINT16_MAX)

static quantize_line_fn *const lines[DTYPE_COUNT] = {
    [DTYPE_I8] = i8_line,
    [DTYPE_U8] = u8_line,
    [DTYPE_I16] = i16_line,
    [DTYPE_U16] = u16_line,
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    quantize_line_fn *line = q->in[0].dtype == DTYPE_F32 ? lines[q->out[0].dtype] : NULL;
    return quantize_lines_plan(q, line, &s->lines, why);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    quantize_lines_run(&s->lines, args);
}

REGISTER_KERNEL(quantize_lines) = {
    NATIVE(quantize_lines),
    .ops = OPS("QuantizeLinear"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
