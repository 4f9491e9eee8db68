/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph/ref_tensor.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

void ref_place(struct ref_tensor *tensor, void *memory)
{
    bool floats = dtype_is_float(tensor->dtype);
    tensor->f = floats ? memory : NULL;
    tensor->i = floats ? NULL : memory;
}

enum status ref_alloc(struct ref_tensor *t, enum dtype dtype, const struct shape *shape,
                      struct error *err)
{
    *t = (struct ref_tensor){.dtype = dtype, .shape = *shape, .count = shape_count(shape)};
    void *memory = calloc((size_t)t->count + 1, 8);
    if (!memory)
        return FAIL_NO_MEMORY(err);
    memory_advise(memory, (size_t)t->count * 8);
    ref_place(t, memory);
    return STATUS_OK;
}

void ref_release(struct ref_tensor *tensor)
{
    free(tensor->f);
    free(tensor->i);
    tensor->f = NULL;
    tensor->i = NULL;
}

double ref_get(const struct ref_tensor *tensor, int64_t i)
{
    if (dtype_is_float(tensor->dtype))
        return tensor->f[i];
    if (tensor->dtype == DTYPE_U64)
        return (double)(uint64_t)tensor->i[i];
    return (double)tensor->i[i];
}

void ref_set(const struct ref_tensor *tensor, int64_t i, double value)
{
    if (dtype_is_float(tensor->dtype))
        tensor->f[i] = value;
    else
        tensor->i[i] = (int64_t)value;
}

int64_t ref_broadcast_index(const struct shape *of, int64_t i, const struct shape *from)
{
    int64_t index = 0, stride = 1;
    for (int k = of->rank - 1, f = from->rank - 1; k >= 0 && f >= 0; k--, f--) {
        int64_t at = i % of->dim[k];
        i /= of->dim[k];
        if (from->dim[f] != 1)
            index += at * stride;
        stride *= from->dim[f];
    }
    return index;
}

/* ---- native memory ---- */

/* X(type, element in memory, what the reference makes of it, what it stores) for every type. */
#define EACH_DTYPE(X)                                                                              \
    X(F32, float, (double)m, f, (float)v)                                                          \
    X(F64, double, m, f, v)                                                                        \
    X(F16, uint16_t, (double)half_to_float(m), f, half_from_float((float)v))                       \
    X(BF16, uint16_t, (double)bfloat_to_float(m), f, bfloat_from_float((float)v))                  \
    X(F8E4M3, uint8_t, (double)f8_to_float(m), f, f8_from_float((float)v))                         \
    X(I8, int8_t, m, i, (int8_t)v)                                                                 \
    X(U8, uint8_t, m, i, (uint8_t)v)                                                               \
    X(I16, int16_t, m, i, (int16_t)v)                                                              \
    X(U16, uint16_t, m, i, (uint16_t)v)                                                            \
    X(I32, int32_t, m, i, (int32_t)v)                                                              \
    X(U32, uint32_t, m, i, (uint32_t)v)                                                            \
    X(I64, int64_t, m, i, v)                                                                       \
    X(U64, int64_t, m, i, v)                                                                       \
    X(BOOL, uint8_t, m != 0, i, v != 0)

/* count elements from k on lie `stride` apart from data[at] on. */
static void load_row(const struct ref_tensor *t, int64_t k, int64_t count, const void *data,
                     int64_t at, int64_t stride)
{
#define LOAD(name, type, from, field, to)                                                          \
    case DTYPE_##name:                                                                             \
        for (int64_t j = 0; t->field && j < count; j++) {                                          \
            type m = ((const type *)data)[at + j * stride];                                        \
            t->field[k + j] = from;                                                                \
        }                                                                                          \
        break;
    switch (t->dtype) {
        EACH_DTYPE(LOAD)
    case DTYPE_NONE:
    case DTYPE_COUNT:
        break;
    }
#undef LOAD
}

static void store_row(const struct ref_tensor *t, int64_t k, int64_t count, void *data, int64_t at,
                      int64_t stride)
{
#define STORE(name, type, from, field, to)                                                         \
    case DTYPE_##name:                                                                             \
        for (int64_t j = 0; j < count; j++) {                                                      \
            __typeof__(t->field[0]) v = t->field[k + j];                                           \
            ((type *)data)[at + j * stride] = to;                                                  \
        }                                                                                          \
        break;
    switch (t->dtype) {
        EACH_DTYPE(STORE)
    case DTYPE_NONE:
    case DTYPE_COUNT:
        break;
    }
#undef STORE
}

/* Place in memory of the row that follows; index counts rows. */
static int64_t next_row(const struct desc *desc, int64_t index[RANK_MAX], int64_t at)
{
    for (int d = desc->shape.rank - 2; d >= 0; d--) {
        at += desc->stride[d];
        if (++index[d] < desc->shape.dim[d])
            break;
        at -= desc->stride[d] * desc->shape.dim[d];
        index[d] = 0;
    }
    return at;
}

void ref_load(const struct ref_tensor *tensor, const struct desc *desc, const void *data)
{
    int rank = desc->shape.rank;
    int64_t index[RANK_MAX] = {0}, count = shape_count(&desc->shape);
    int64_t row = rank ? desc->shape.dim[rank - 1] : 1, stride = rank ? desc->stride[rank - 1] : 1;
    for (int64_t k = 0, at = 0; k < count; k += row, at = next_row(desc, index, at))
        load_row(tensor, k, row, data, at, stride);
}

void ref_store(const struct ref_tensor *tensor, const struct desc *desc, void *data)
{
    int rank = desc->shape.rank;
    int64_t index[RANK_MAX] = {0}, count = shape_count(&desc->shape);
    int64_t row = rank ? desc->shape.dim[rank - 1] : 1, stride = rank ? desc->stride[rank - 1] : 1;
    for (int64_t k = 0, at = 0; k < count; k += row, at = next_row(desc, index, at))
        store_row(tensor, k, row, data, at, stride);
}

void ref_load_part(const struct ref_tensor *tensor, int64_t first, int64_t count, const void *data)
{
    load_row(tensor, first, count, data, 0, 1);
}

enum status ref_from_data(struct ref_tensor *tensor, enum dtype dtype, const struct shape *shape,
                          const void *data, struct error *err)
{
    TRY(ref_alloc(tensor, dtype, shape, err));
    ref_load_part(tensor, 0, tensor->count, data);
    return STATUS_OK;
}

void ref_to_data(const struct ref_tensor *tensor, void *data)
{
    store_row(tensor, 0, tensor->count, data, 0, 1);
}

int64_t cast_to_integer(double x, enum dtype dtype)
{
    int bits = (int)dtype_size(dtype) * 8;
    bool is_unsigned = dtype_is_unsigned(dtype);
    if (dtype == DTYPE_BOOL)
        return x != 0;
    if (isnan(x))
        return 0;
    double end = ldexp(1, is_unsigned ? bits : bits - 1); /* the first value too large */
    if (x >= end)
        return (int64_t)(is_unsigned ? UINT64_MAX >> (64 - bits) : UINT64_MAX >> (65 - bits));
    if (is_unsigned)
        return x <= 0 ? 0 : (int64_t)(uint64_t)x;
    return x <= -end ? (int64_t)(~UINT64_C(0) << (bits - 1)) : (int64_t)x;
}

void ref_wrap(const struct ref_tensor *t)
{
    int bits = (int)dtype_size(t->dtype) * 8;
    if (!t->i || bits == 64)
        return;
    for (int64_t k = 0; k < t->count; k++) {
        uint64_t low = (uint64_t)t->i[k] & ((UINT64_C(1) << bits) - 1);
        bool negative = !dtype_is_unsigned(t->dtype) && low >> (bits - 1);
        t->i[k] = negative ? (int64_t)(low | ~UINT64_C(0) << bits) : (int64_t)low;
        if (t->dtype == DTYPE_BOOL)
            t->i[k] = low != 0;
    }
}
