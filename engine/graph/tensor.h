/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types, shapes and memory layouts of tensors.
 *
 * A shape is always the logical one of ONNX (images are N, C, H, W). How the elements lie in memory
 * is said by a desc: strides per logical dimension, in elements. Dense row-major is LAYOUT_PLAIN;
 * images inside the network are LAYOUT_NHWC (channels last), which only the strides reveal.
 */
#ifndef ENGINE_GRAPH_TENSOR_H
#define ENGINE_GRAPH_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANK_MAX = 8 };

enum dtype {
    DTYPE_NONE = 0,
    DTYPE_F32,
    DTYPE_F64,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_I8,
    DTYPE_U8,
    DTYPE_I16,
    DTYPE_U16,
    DTYPE_I32,
    DTYPE_U32,
    DTYPE_I64,
    DTYPE_U64,
    DTYPE_BOOL,
    DTYPE_F8E4M3, /* OCP e4m3fn: no infinities, largest 448, NaN 0x7f and 0xff */
    DTYPE_COUNT
};

enum layout { LAYOUT_PLAIN = 0, LAYOUT_NHWC };

struct shape {
    int rank; /* 0: a scalar */
    int64_t dim[RANK_MAX];
};

/* A tensor in memory, without its address. */
struct desc {
    enum dtype dtype;
    enum layout layout;
    struct shape shape;       /* logical */
    int64_t stride[RANK_MAX]; /* elements, per logical dimension */
};

const char *dtype_name(enum dtype dtype); /* "f32", "i64", "bool" */
enum dtype dtype_from_name(const char *name);
size_t dtype_size(enum dtype dtype);
bool dtype_is_float(enum dtype dtype);
bool dtype_is_unsigned(enum dtype dtype); /* u8 .. u64 and bool */

/* shape_of(2, 3, 4): a shape from its dimensions, outermost first. */
struct shape shape_from(int rank, const int64_t *dim);
#define shape_of(...)                                                                              \
    shape_from((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
#define shape_scalar() ((struct shape){0})

/* Number of elements; scalar: 1. */
static inline int64_t shape_count(const struct shape *shape)
{
    int64_t count = 1;
    for (int k = 0; k < shape->rank; k++)
        count *= shape->dim[k];
    return count;
}
static inline bool shape_equal(const struct shape *a, const struct shape *b)
{
    bool equal = a->rank == b->rank;
    for (int k = 0; equal && k < a->rank; k++)
        equal = a->dim[k] == b->dim[k];
    return equal;
}
/* "[2,3,4]" into text; returns text. */
const char *shape_text(const struct shape *shape, char text[96]);
/* Numpy broadcasting; false when the shapes do not go together. */
bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *out);
/* axis in [-rank, rank) -> [0, rank); -1 when it is outside. */
int shape_axis(const struct shape *shape, int64_t axis);
/* Product of dim[first] .. dim[last - 1]. */
int64_t shape_span(const struct shape *shape, int first, int last);

/* Dense desc of a shape in a layout (NHWC needs rank >= 3: N, C, spatial ...). */
struct desc desc_dense(enum dtype dtype, const struct shape *shape, enum layout layout);
bool desc_is_dense(const struct desc *desc); /* dense in its layout: no gaps */
/* Dense row-major in logical order; strides of dimensions of size 1 do not matter. */
bool desc_is_plain(const struct desc *desc);
/* Channels last, dense. A tensor may be plain and NHWC at once (C = 1 or H = W = 1). */
bool desc_is_nhwc(const struct desc *desc);
/* Same elements at the same places: equal shapes and equal strides where dim > 1. */
bool desc_same_memory(const struct desc *a, const struct desc *b);
size_t desc_bytes(const struct desc *desc); /* from first to last element */

/* Element conversions used by the reference and by importers; all round to nearest even. What f8
 * cannot hold, infinities too, becomes its largest number, as ONNX's Cast saturates. */
float half_to_float(uint16_t half);
uint16_t half_from_float(float value);
float bfloat_to_float(uint16_t bits);
uint16_t bfloat_from_float(float value);
float f8_to_float(uint8_t code);
uint8_t f8_from_float(float value);
/* Elements of f32, f16, bf16 or f8, from and to f32. */
void floats_load(enum dtype dtype, const void *from, float *to, int64_t count);
void floats_store(enum dtype dtype, const float *from, void *to, int64_t count);

#endif
