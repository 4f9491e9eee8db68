/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in files that others read and write too: numpy's .npy, and .pb (a serialised TensorProto,
 * as in the test sets of ONNX; only read). */
#ifndef HARNESS_CLI_TENSOR_FILE_H
#define HARNESS_CLI_TENSOR_FILE_H

#include "base/error.h"
#include "engine/graph/tensor.h"

/* desc is plain. free(*data). */
enum status tensor_load(const char *path, struct desc *desc, void **data, struct error *err);
/* Row-major data as .npy. */
enum status tensor_save(const char *path, enum dtype dtype, const struct shape *shape,
                        const void *data, struct error *err);
/* FOLDER/NAME.npy with what no file name should have replaced by "_"; makes the folder. */
enum status tensor_save_in(const char *folder, const char *name, enum dtype dtype,
                           const struct shape *shape, const void *data, struct error *err);

#endif
