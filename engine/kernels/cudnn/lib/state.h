/* SPDX-License-Identifier: Apache-2.0
 *
 * What a prepared kernel keeps: its plan, where its tensors are, its constants on the device. */
#ifndef ENGINE_KERNELS_CUDNN_LIB_STATE_H
#define ENGINE_KERNELS_CUDNN_LIB_STATE_H

#include "engine/kernels/cudnn/lib/plans.h"
#include "engine/kernels/cudnn/lib/work.h"

/* Takes the plan when this is OK. */
enum status state_new(const struct kernel_query *q, const struct work *work, struct plan *plan,
                      struct kernel_state **state, size_t *state_bytes, struct error *err);

#endif
