/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plug-in's files share; plain C, also read by .cu files (lib/kernel.h). */
#ifndef ENGINE_KERNELS_CUDA_LIB_CUDA_H
#define ENGINE_KERNELS_CUDA_LIB_CUDA_H

#include "engine/kernels/cuda/lib/api.h"
#include "engine/ops/lib/attention.h"
#include "engine/ops/lib/axis.h"
#include "engine/ops/lib/chain.h"
#include "engine/ops/lib/matmul_shape.h"
#include "engine/ops/lib/move.h"
#include "engine/ops/lib/reduce.h"
#include "engine/ops/lib/resize.h"
#include "engine/ops/lib/strided.h"
#include "engine/ops/lib/window.h"
#include "engine/run/plugin.h"

/* Set once, at the entry. */
extern const struct plugin_host *cuda_host;

extern const struct device_kind cuda_device;

/* OK, or an error that says what was tried and what the runtime answered. */
enum status cuda_check(int error, const char *what, struct error *err);

/* Lets blocks of the kernel ask for all the shared memory that there is. Never for less: the limit
 * is the kernel's, whichever node sets it. */
enum status cuda_allow_shared(const struct device *device, const void *kernel, struct error *err);

/* Puts a launch into args->stream, if its grid has blocks; a refusal goes to args->err, unless an
 * earlier one is there. */
void cuda_launch(const struct cuda_launch *launch, const struct kernel_args *args);

/* The device's activate; elementwise.cu. */
enum status cuda_activate(const struct device *device, const struct post *post, enum dtype type,
                          void *y, int64_t count, void *stream, struct error *err);

/* The device's pad_channels; pad.cu. */
enum status cuda_pad_channels(const struct device *device, const struct device_channels *channels,
                              void *stream, struct error *err);

/* The device's softmax; attention.cu. */
enum status cuda_softmax(const struct device *device, const struct device_softmax *softmax,
                         void *stream, struct error *err);

#endif
