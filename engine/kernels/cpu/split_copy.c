/* SPDX-License-Identifier: Apache-2.0
 * Split: one strided copy per output (lib/copy_plan.h). */
#include "engine/kernels/lib/copy_plan.h"

REGISTER_KERNEL(split_copy) = {
    NATIVE(split_copy),
    .ops = OPS("Split"),
    COPY_HOOKS,
};
