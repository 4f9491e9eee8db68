/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in files that others read and write too: numpy's .npy, and .pb (a serialised TensorProto,
 * as in the test sets of ONNX; only read). */
#ifndef HARNESS_CLI_TENSOR_FILE_H
#define HARNESS_CLI_TENSOR_FILE_H

#include "base/arena.h"
#include "base/error.h"
#include "engine/graph/tensor.h"

/* desc is plain. free(*data). */
enum status tensor_load(const char *path, struct desc *desc, void **data, struct error *err);
/* Row-major data as .npy. */
enum status tensor_save(const char *path, enum dtype dtype, const struct shape *shape,
                        const void *data, struct error *err);
/* Names of files, without folder and ".npy", for tensors of these names, each another one: what no
 * file name should have is replaced by "_", and "_2", "_3" ... keep apart what would be the same. A
 * name that needs no change keeps it. They lie in the arena. */
enum status tensor_file_names(const char *const *names, int count, struct arena *arena,
                              const char *const **files, struct error *err);
/* FOLDER/FILE.npy, of such a name; makes the folder. */
enum status tensor_save_in(const char *folder, const char *file, enum dtype dtype,
                           const struct shape *shape, const void *data, struct error *err);

#endif
