/* SPDX-License-Identifier: Apache-2.0
 *
 * Precisions that a point can ask for. A workload that builds its graph in one (struct workload,
 * precisions) gets tensors of that type from the start; any other graph is built in f32, and the
 * compiler turns it into the precision where the device has kernels for it.
 */
#ifndef ENGINE_GRAPH_PRECISION_H
#define ENGINE_GRAPH_PRECISION_H

#include "base/error.h"
#include "engine/graph/tensor.h"

enum precision {
    PRECISION_F32 = 0,
    PRECISION_TF32, /* f32, but products may round their factors to 10 bits of mantissa */
    PRECISION_BF16,
    PRECISION_F16,
    PRECISION_I8,
    PRECISION_F8,
    PRECISION_COUNT
};

const char *precision_name(enum precision precision); /* "f32" */
/* NULL is f32. */
enum status precision_from_name(const char *name, enum precision *out, struct error *err);
/* The type that floats of a graph built in f32 get: bf16, f16, or f32 for all others. */
enum dtype precision_floats(enum precision precision);

#endif
