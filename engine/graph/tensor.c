/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph/tensor.h"

#include <stdio.h>
#include <string.h>

#include "base/registry.h"

struct dtype_info {
    const char *name;
    size_t size;
    bool is_float, is_unsigned;
};

static const struct dtype_info infos[DTYPE_COUNT] = {
    [DTYPE_NONE] = {"none", 0, false, false},    [DTYPE_F32] = {"f32", 4, true, false},
    [DTYPE_F64] = {"f64", 8, true, false},       [DTYPE_F16] = {"f16", 2, true, false},
    [DTYPE_BF16] = {"bf16", 2, true, false},     [DTYPE_I8] = {"i8", 1, false, false},
    [DTYPE_U8] = {"u8", 1, false, true},         [DTYPE_I16] = {"i16", 2, false, false},
    [DTYPE_U16] = {"u16", 2, false, true},       [DTYPE_I32] = {"i32", 4, false, false},
    [DTYPE_U32] = {"u32", 4, false, true},       [DTYPE_I64] = {"i64", 8, false, false},
    [DTYPE_U64] = {"u64", 8, false, true},       [DTYPE_BOOL] = {"bool", 1, false, true},
    [DTYPE_F8E4M3] = {"f8e4m3", 1, true, false},
};

const char *dtype_name(enum dtype dtype)
{
    return infos[dtype].name;
}

enum dtype dtype_from_name(const char *name)
{
    for (int k = 1; k < DTYPE_COUNT; k++)
        if (strcmp(infos[k].name, name) == 0)
            return (enum dtype)k;
    return DTYPE_NONE;
}

size_t dtype_size(enum dtype dtype)
{
    return infos[dtype].size;
}

bool dtype_is_float(enum dtype dtype)
{
    return infos[dtype].is_float;
}

bool dtype_is_unsigned(enum dtype dtype)
{
    return infos[dtype].is_unsigned;
}

struct shape shape_from(int rank, const int64_t *dim)
{
    struct shape shape = {.rank = rank > RANK_MAX ? RANK_MAX : rank};
    for (int k = 0; k < shape.rank; k++)
        shape.dim[k] = dim[k];
    return shape;
}

int64_t shape_span(const struct shape *shape, int first, int last)
{
    int64_t product = 1;
    for (int k = first; k < last; k++)
        product *= shape->dim[k];
    return product;
}

const char *shape_text(const struct shape *shape, char text[96])
{
    int used = snprintf(text, 96, "[");
    for (int k = 0; k < shape->rank && used > 0 && used < 94; k++)
        used += snprintf(text + used, (size_t)(96 - used), "%s%lld", k ? "," : "",
                         (long long)shape->dim[k]);
    if (used > 0 && used < 95)
        snprintf(text + used, (size_t)(96 - used), "]");
    return text;
}

bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *out)
{
    struct shape result = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int k = 0; k < result.rank; k++) {
        int ka = k - (result.rank - a->rank), kb = k - (result.rank - b->rank);
        int64_t da = ka < 0 ? 1 : a->dim[ka], db = kb < 0 ? 1 : b->dim[kb];
        if (da != db && da != 1 && db != 1)
            return false;
        result.dim[k] = da == 1 ? db : da;
    }
    *out = result;
    return true;
}

int shape_axis(const struct shape *shape, int64_t axis)
{
    if (axis < -shape->rank || axis >= shape->rank)
        return -1;
    return (int)(axis < 0 ? axis + shape->rank : axis);
}

struct desc desc_dense(enum dtype dtype, const struct shape *shape, enum layout layout)
{
    struct desc desc = {.dtype = dtype, .layout = layout, .shape = *shape};
    int rank = shape->rank;
    if (layout == LAYOUT_NHWC && rank < 3)
        desc.layout = LAYOUT_PLAIN;
    int64_t stride = 1;
    if (desc.layout == LAYOUT_NHWC) {
        desc.stride[1] = 1;
        stride = shape->dim[1];
        for (int k = rank - 1; k >= 0; k--) {
            if (k == 1)
                continue;
            desc.stride[k] = stride;
            stride *= shape->dim[k];
        }
        return desc;
    }
    for (int k = rank - 1; k >= 0; k--) {
        desc.stride[k] = stride;
        stride *= shape->dim[k];
    }
    return desc;
}

bool desc_same_memory(const struct desc *a, const struct desc *b)
{
    if (!shape_equal(&a->shape, &b->shape))
        return false;
    for (int k = 0; k < a->shape.rank; k++)
        if (a->shape.dim[k] != 1 && a->stride[k] != b->stride[k])
            return false;
    return true;
}

bool desc_is_plain(const struct desc *desc)
{
    struct desc plain = desc_dense(desc->dtype, &desc->shape, LAYOUT_PLAIN);
    return desc_same_memory(desc, &plain);
}

bool desc_is_nhwc(const struct desc *desc)
{
    if (desc->shape.rank < 3)
        return false;
    struct desc nhwc = desc_dense(desc->dtype, &desc->shape, LAYOUT_NHWC);
    return desc_same_memory(desc, &nhwc);
}

bool desc_is_dense(const struct desc *desc)
{
    struct desc dense = desc_dense(desc->dtype, &desc->shape, desc->layout);
    return desc_same_memory(desc, &dense);
}

size_t desc_bytes(const struct desc *desc)
{
    int64_t last = 0;
    for (int k = 0; k < desc->shape.rank; k++) {
        if (desc->shape.dim[k] == 0)
            return 0;
        last += (desc->shape.dim[k] - 1) * desc->stride[k];
    }
    return (size_t)(last + 1) * dtype_size(desc->dtype);
}

float bfloat_to_float(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof(value));
    return value;
}

/* Without a branch, so that many become vectors: networks have billions of weights. */
static inline uint16_t round_bfloat(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof(word));
    uint32_t rounded = (word + 0x7fffu + (word >> 16 & 1u)) >> 16;
    uint32_t nan = word >> 16 | 0x40u; /* stays one */
    return (uint16_t)((word & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

uint16_t bfloat_from_float(float value)
{
    return round_bfloat(value);
}

float half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 0x1fu, mantissa = half & 0x3ffu;
    float value;
    if (exponent == 0) { /* zero or subnormal: mantissa * 2^-24 */
        value = (float)mantissa * 0x1p-24f;
        return sign ? -value : value;
    }
    uint32_t word = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | mantissa << 13;
    memcpy(&value, &word, sizeof(value));
    return value;
}

uint16_t half_from_float(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof(word));
    uint16_t sign = (uint16_t)(word >> 16 & 0x8000u);
    uint32_t size = word & 0x7fffffffu;
    if (size > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (size >= 0x477ff000u) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00u);
    if (size < 0x38800000u) { /* subnormal: let the float unit round to a multiple of 2^-24 */
        float magnitude;
        memcpy(&magnitude, &size, sizeof(magnitude));
        float shifted = magnitude + 0.5f;
        memcpy(&word, &shifted, sizeof(word));
        return (uint16_t)(sign | (word & 0x7ffu));
    }
    size += 0xfffu + (size >> 13 & 1u);
    return (uint16_t)(sign | (size - 0x38000000u) >> 13);
}

/* The bits of a float with the code's exponent and mantissa are the number times 2^-120, also when
 * both are below the normal range. */
float f8_to_float(uint8_t code)
{
    uint32_t size = code & 0x7fu, word = size == 0x7fu ? 0x7fc00000u : size << 20;
    float value;
    memcpy(&value, &word, sizeof(value));
    value *= 0x1p120f;
    return code & 0x80u ? -value : value;
}

uint8_t f8_from_float(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof(word));
    uint8_t sign = (uint8_t)(word >> 24 & 0x80u);
    uint32_t size = word & 0x7fffffffu;
    if (size > 0x7f800000u)
        return (uint8_t)(sign | 0x7fu);
    if (size >= 0x43e00000u) /* 448 */
        return (uint8_t)(sign | 0x7eu);
    if (size < 0x3c800000u) { /* subnormal: let the float unit round to a multiple of 2^-9 */
        float magnitude;
        memcpy(&magnitude, &size, sizeof(magnitude));
        float shifted = magnitude + 0x1p14f;
        memcpy(&word, &shifted, sizeof(word));
        return (uint8_t)(sign | (word & 0xfu));
    }
    size += 0x7ffffu + (size >> 20 & 1u);
    return (uint8_t)(sign | (size - 0x3c000000u) >> 20);
}

static inline float float_at(enum dtype dtype, const void *from, int64_t k)
{
    return dtype == DTYPE_F16    ? half_to_float(((const uint16_t *)from)[k])
           : dtype == DTYPE_BF16 ? bfloat_to_float(((const uint16_t *)from)[k])
                                 : f8_to_float(((const uint8_t *)from)[k]);
}

void floats_load(enum dtype dtype, const void *from, float *to, int64_t count)
{
    if (dtype == DTYPE_F32)
        memcpy(to, from, (size_t)count * sizeof(*to));
    if (dtype != DTYPE_F32)
        for (int64_t k = 0; k < count; k++)
            to[k] = float_at(dtype, from, k);
}

void floats_store(enum dtype dtype, const float *from, void *to, int64_t count)
{
    uint16_t *bits = to;
    uint8_t *codes = to;
    if (dtype == DTYPE_F32)
        memcpy(to, from, (size_t)count * sizeof(*from));
    if (dtype == DTYPE_F8E4M3)
        for (int64_t k = 0; k < count; k++)
            codes[k] = f8_from_float(from[k]);
    for (int64_t k = 0; dtype == DTYPE_F16 && k < count; k++)
        bits[k] = half_from_float(from[k]);
    for (int64_t k = 0; dtype == DTYPE_BF16 && k < count; k++)
        bits[k] = round_bfloat(from[k]);
}
