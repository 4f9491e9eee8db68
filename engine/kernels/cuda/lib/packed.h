/* SPDX-License-Identifier: Apache-2.0
 *
 * Constants that a kernel keeps on the device in a form of its own, in the type of the node. */
#ifndef ENGINE_KERNELS_CUDA_LIB_PACKED_H
#define ENGINE_KERNELS_CUDA_LIB_PACKED_H

#include "engine/kernels/cuda/lib/query.h"

/* packed: malloc'd, NULL where there was no memory for it; freed in any case. */
static inline enum status upload_packed(const struct device *device, void *packed, size_t bytes,
                                        void **memory, struct error *err)
{
    enum status status = packed ? device_upload(device, packed, bytes, memory, err)
                                : cuda_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    free(packed);
    return status;
}

#endif
