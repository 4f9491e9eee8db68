/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that move the elements of one tensor to other places, in any layout on both sides:
 * merged loops round runs, register transposes or single elements (lib/copy_plan.h).
 */
#include "engine/kernels/lib/copy_plan.h"

REGISTER_KERNEL(copy_strided) = {
    NATIVE(copy_strided),
    .ops = OPS("Reorder", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout",
               "Transpose", "Expand", "Slice", "Tile", "DepthToSpace", "SpaceToDepth"),
    COPY_HOOKS,
};
