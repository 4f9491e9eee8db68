/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_COMPILE_PASSES_CANCEL_TRANSPOSE_H
#define ENGINE_COMPILE_PASSES_CANCEL_TRANSPOSE_H

#include "engine/graph/op.h"

/* Whether a Transpose of a value would vanish by pass_cancel_transpose. */
bool transpose_cancels(const struct graph *g, int value, int rank, const int64_t *perm);

#endif
