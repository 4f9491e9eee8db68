/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor of the reference: row-major, logical shape. Floats of all widths are held as double in
 * f, integers and bool as int64_t in i (u64: same bits). The caller rounds results. */
#ifndef ENGINE_GRAPH_REF_TENSOR_H
#define ENGINE_GRAPH_REF_TENSOR_H

#include "base/error.h"
#include "engine/graph/tensor.h"

struct ref_tensor {
    enum dtype dtype;
    struct shape shape;
    int64_t count;
    double *f;
    int64_t *i;
};

/* Storage for `tensor` (dtype, shape and count set) inside memory of count * 8 bytes. */
void ref_place(struct ref_tensor *tensor, void *memory);
/* Storage of its own, all zero; free it with ref_release. */
enum status ref_alloc(struct ref_tensor *tensor, enum dtype dtype, const struct shape *shape,
                      struct error *err);
void ref_release(struct ref_tensor *tensor);

/* Element i as a double whatever the type. */
double ref_get(const struct ref_tensor *tensor, int64_t i);
void ref_set(const struct ref_tensor *tensor, int64_t i, double value);
/* Index into `from` for element i of a tensor of shape `of` under broadcasting. */
int64_t ref_broadcast_index(const struct shape *of, int64_t i, const struct shape *from);

/* Native memory of any layout into a tensor with storage, and back (rounded to the type). */
void ref_load(const struct ref_tensor *tensor, const struct desc *desc, const void *data);
void ref_store(const struct ref_tensor *tensor, const struct desc *desc, void *data);
/* `count` elements from element `first` on, of native row-major data that begin there. */
void ref_load_part(const struct ref_tensor *tensor, int64_t first, int64_t count, const void *data);
/* A tensor with storage of its own from native row-major data, and back. */
enum status ref_from_data(struct ref_tensor *tensor, enum dtype dtype, const struct shape *shape,
                          const void *data, struct error *err);
void ref_to_data(const struct ref_tensor *tensor, void *data);
/* A number as an integer of the type, towards zero. What the type cannot hold is open in ONNX: here
 * the nearest bound; NaN gives 0. */
int64_t cast_to_integer(double x, enum dtype dtype);
/* Integers wrap to the width of their type, as the hardware would. */
void ref_wrap(const struct ref_tensor *tensor);

#endif
