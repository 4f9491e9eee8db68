/* SPDX-License-Identifier: Apache-2.0
 *
 * All kernels: those built in, then those of loaded plug-ins; the reference last. */
#ifndef ENGINE_RUN_KERNELS_H
#define ENGINE_RUN_KERNELS_H

#include "engine/graph/kernel.h"

int kernel_count(void);
const struct kernel *kernel_at(int index);
/* The reference, which computes every operator; kernel->general is something else. */
static inline bool kernel_is_reference(const struct kernel *kernel)
{
    return !kernel->ops && !kernel->elementwise;
}

#endif
