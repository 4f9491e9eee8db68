/* SPDX-License-Identifier: Apache-2.0
 *
 * Concat: one strided copy per input (lib/copy_plan.h). Where all inputs write parts of the same
 * rows, as along the channels of channels-last images, a tile does all of them, so that every line
 * of the result is complete before it leaves the cache.
 */
#include "engine/kernels/lib/copy_plan.h"

REGISTER_KERNEL(concat_copy) = {
    NATIVE(concat_copy),
    .ops = OPS("Concat"),
    COPY_HOOKS,
};
