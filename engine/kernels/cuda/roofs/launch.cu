/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel that does nothing: what a launch costs. */
#include "engine/kernels/cuda/lib/roof.h"

__global__ void __launch_bounds__(1) nothing(const __grid_constant__ struct roof_args k)
{
    (void)k;
    KERNEL_COUNT(1);
}

static enum status prepare(const struct device_roof *roof, const struct device *device,
                           struct roof_work *work, struct roof_state **state, struct error *why)
{
    (void)roof;
    work->amount = 1;
    return roof_new(device, 0, state, why);
}

static enum status run(const struct roof_state *state, int64_t rounds, void *stream,
                       struct error *err)
{
    struct roof_args k = roof_args_of(state, 1);
    for (int64_t r = 0; r < rounds; r++)
        ROOF_LAUNCH_TRY(nothing, cuda_size(1), cuda_size(1), 0, &k, stream, err);
    return STATUS_OK;
}

static const struct device_roof roofs[] = {
    {"launch", "cuda", "", "", "launch", "empty kernel of one thread", "s", ROOF_LAUNCH, prepare,
     run, roof_release},
};

ROOF_GROUP(launch) = ROOFS(roofs);
