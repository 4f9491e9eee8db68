/* SPDX-License-Identifier: Apache-2.0
 *
 * Cast between tensors that lie alike, as one long row. Floats that an integer type cannot hold
 * give its nearest bound and NaN gives 0, as in the reference; integers wrap.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"

enum { TILE_ELEMENTS = 16384 };

typedef void cast_fn(const void *from, void *to, int64_t n);

#define CAST(from_name, from_type, to_name, to_type, expression)                                   \
    static void from_name##_to_##to_name(const void *from, void *to, int64_t n)                    \
    {                                                                                              \
        const from_type *restrict a = from;                                                        \
        to_type *restrict y = to;                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            from_type x = a[i];                                                                    \
            y[i] = (to_type)(expression);                                                          \
        }                                                                                          \
    }

/* Without branches: x is brought into [least, top], top being the largest float that the type
 * holds, and what was at or beyond `end` = 2^k becomes the type's maximum afterwards. */
#define TO_BOUNDED(from_name, from_type, to_name, to_type, least, top, end, largest)               \
    SIMD_INLINE to_type from_name##_bounded_##to_name(from_type x)                                 \
    {                                                                                              \
        from_type inside = x < (from_type)(least) ? (from_type)(least) : x;                        \
        inside = inside > (from_type)(top) ? (from_type)(top) : inside;                            \
        inside = inside == inside ? inside : 0;                                                    \
        to_type y = (to_type)inside;                                                               \
        return x >= (from_type)(end) ? (largest) : y;                                              \
    }                                                                                              \
    CAST(from_name, from_type, to_name, to_type, from_name##_bounded_##to_name(x))

TO_BOUNDED(f32, float, i32, int32_t, -0x1p31, 0x1.fffffep30, 0x1p31, INT32_MAX)
TO_BOUNDED(f32, float, i64, int64_t, -0x1p63, 0x1.fffffep62, 0x1p63, INT64_MAX)
TO_BOUNDED(f32, float, i8, int8_t, -0x1p7, 127, 0x1p7, INT8_MAX)
TO_BOUNDED(f32, float, u8, uint8_t, 0, 255, 0x1p8, UINT8_MAX)
CAST(f32, float, bool, uint8_t, x != 0)
TO_BOUNDED(f64, double, i32, int32_t, -0x1p31, 2147483647, 0x1p31, INT32_MAX)
TO_BOUNDED(f64, double, i64, int64_t, -0x1p63, 0x1.fffffffffffffp62, 0x1p63, INT64_MAX)
TO_BOUNDED(f64, double, i8, int8_t, -0x1p7, 127, 0x1p7, INT8_MAX)
TO_BOUNDED(f64, double, u8, uint8_t, 0, 255, 0x1p8, UINT8_MAX)
CAST(f64, double, bool, uint8_t, x != 0)

#define FROM_INTEGER(name, type)                                                                   \
    CAST(name, type, f32, float, x)                                                                \
    CAST(name, type, f64, double, x)                                                               \
    CAST(name, type, i32, int32_t, x)                                                              \
    CAST(name, type, i64, int64_t, x)                                                              \
    CAST(name, type, i8, int8_t, x)                                                                \
    CAST(name, type, u8, uint8_t, x)                                                               \
    CAST(name, type, bool, uint8_t, x != 0)

FROM_INTEGER(i32, int32_t)
FROM_INTEGER(i64, int64_t)
FROM_INTEGER(i8, int8_t)
FROM_INTEGER(u8, uint8_t)
CAST(f32, float, f32, float, x)
CAST(f32, float, f64, double, x)
CAST(f64, double, f32, float, x)
CAST(f64, double, f64, double, x)

/* To nearest even; a NaN must not round to infinity. */
static void f32_to_bf16(const void *from, void *to, int64_t n)
{
    const float *a = from;
    uint16_t *y = to;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &a[i], sizeof(bits));
        uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
        y[i] = (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
    }
}

static void bf16_to_f32(const void *from, void *to, int64_t n)
{
    const uint16_t *a = from;
    uint32_t *y = to; /* the bits of the floats */
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint32_t)a[i] << 16;
}

static void f32_to_f16(const void *from, void *to, int64_t n)
{
    const float *a = from;
    uint16_t *y = to;
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        vf_store_half(y + i, vf_load(a + i));
    for (; i < n; i++)
        y[i] = half_from_float(a[i]);
}

static void f16_to_f32(const void *from, void *to, int64_t n)
{
    const uint16_t *a = from;
    float *y = to;
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        vf_store(y + i, vf_load_half(a + i));
    for (; i < n; i++)
        y[i] = half_to_float(a[i]);
}

static void f32_to_f8(const void *from, void *to, int64_t n)
{
    const float *a = from;
    uint8_t *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = f8_from_float(a[i]);
}

/* The bits of the float: see f8_to_float. */
SIMD_INLINE uint32_t f8_word(uint8_t code)
{
    uint32_t size = code & 0x7fu, word = size == 0x7fu ? 0x7fc00000u : size << 20;
    float value;
    memcpy(&value, &word, sizeof(value));
    value *= 0x1p120f;
    memcpy(&word, &value, sizeof(word));
    return word | (code & 0x80u) << 24;
}

static void f8_to_f32(const void *from, void *to, int64_t n)
{
    const uint8_t *a = from;
    uint32_t *y = to; /* the bits of the floats */
    for (int64_t i = 0; i < n; i++)
        y[i] = f8_word(a[i]);
}

static void f8_to_bf16(const void *from, void *to, int64_t n)
{
    const uint8_t *a = from;
    uint16_t *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint16_t)(f8_word(a[i]) >> 16); /* exact */
}

#define TO_ALL(name)                                                                               \
    {                                                                                              \
        [DTYPE_F32] = name##_to_f32, [DTYPE_F64] = name##_to_f64, [DTYPE_I32] = name##_to_i32,     \
        [DTYPE_I64] = name##_to_i64, [DTYPE_I8] = name##_to_i8, [DTYPE_U8] = name##_to_u8,         \
        [DTYPE_BOOL] = name##_to_bool                                                              \
    }

static cast_fn *const casts[DTYPE_COUNT][DTYPE_COUNT] = {
    [DTYPE_F32] = {[DTYPE_F32] = f32_to_f32,
                   [DTYPE_F64] = f32_to_f64,
                   [DTYPE_I32] = f32_to_i32,
                   [DTYPE_I64] = f32_to_i64,
                   [DTYPE_I8] = f32_to_i8,
                   [DTYPE_U8] = f32_to_u8,
                   [DTYPE_BOOL] = f32_to_bool,
                   [DTYPE_F16] = f32_to_f16,
                   [DTYPE_BF16] = f32_to_bf16,
                   [DTYPE_F8E4M3] = f32_to_f8},
    [DTYPE_F64] = TO_ALL(f64),
    [DTYPE_I32] = TO_ALL(i32),
    [DTYPE_I64] = TO_ALL(i64),
    [DTYPE_I8] = TO_ALL(i8),
    [DTYPE_U8] = TO_ALL(u8),
    [DTYPE_BOOL] = TO_ALL(u8), /* 0 and 1 */
    [DTYPE_F16] = {[DTYPE_F32] = f16_to_f32},
    [DTYPE_BF16] = {[DTYPE_F32] = bf16_to_f32},
    [DTYPE_F8E4M3] = {[DTYPE_F32] = f8_to_f32, [DTYPE_BF16] = f8_to_bf16},
};

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const char *from;
    char *to;
    int64_t count;
    size_t from_size, to_size;
    cast_fn *cast;
};

/* The second input of CastLike lends its type only. */
static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const struct desc *in = &q->in[0], *out = &q->out[0];
    if (!casts[in->dtype][out->dtype])
        return UNSUPPORTED(why, "%s to %s", dtype_name(in->dtype), dtype_name(out->dtype));
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_dense(in) || !desc_is_dense(out) || !desc_same_memory(in, out))
        return UNSUPPORTED(why, "input and output lie differently");
    s->count = shape_count(&out->shape);
    s->from_size = dtype_size(in->dtype);
    s->to_size = dtype_size(out->dtype);
    s->cast = casts[in->dtype][out->dtype];
    return STATUS_OK;
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t first = tile * TILE_ELEMENTS, left = job->count - first;
    job->cast(job->from + first * (int64_t)job->from_size, job->to + first * (int64_t)job->to_size,
              left < TILE_ELEMENTS ? left : TILE_ELEMENTS);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.from = args->in[0];
    job.to = args->out[0];
    pool_run(args->pool, divide_up(job.count, TILE_ELEMENTS), run_tile, &job);
}

REGISTER_KERNEL(cast_flat) = {
    NATIVE(cast_flat),
    .ops = OPS("Cast", "CastLike"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
