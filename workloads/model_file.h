/* SPDX-License-Identifier: Apache-2.0
 *
 * A model file where a workload's name may stand: PATH.onnx, or PATH.onnx:sequence=128,images=2
 * with sizes of the dimensions that the file leaves open. These are the parameters of a file.
 */
#ifndef WORKLOADS_MODEL_FILE_H
#define WORKLOADS_MODEL_FILE_H

#include "base/arena.h"
#include "workloads/onnx/onnx.h"
#include "workloads/workload.h"

/* How many characters of the word are the path; 0: it names no file. */
size_t model_file_path(const char *spec);

/* The sizes in the word come after those in `options`. */
enum status model_file_open(const char *spec, const struct onnx_import_options *options,
                            struct graph **out, struct error *err);

/* The batch that it has when nobody asks for one; 0: the file does not say. */
int64_t model_file_batch(const char *spec);

/* The open dimensions of the file, up to PARAM_MAX, as a list that ends in NULL. The batch is none
 * of them, where it is one: *batch (may be NULL) is its name then, or "". NULL: no memory. */
const struct param *model_file_params(const char *path, struct arena *arena, const char **batch);

#endif
