/* SPDX-License-Identifier: Apache-2.0
 *
 * Multiply-adds of the CUDA cores in registers: 16 independent chains per thread, 32 warps per
 * multiprocessor, which is several times what hides the latency of 4 cycles (8 of f64 on some
 * chips). 512 of them between two jumps, so that the loop itself costs less than a percent. */
#include "engine/kernels/cuda/lib/roof.h"

enum { CHAINS = 16, STEPS = 32 };

template <class T>
__global__ void __launch_bounds__(BLOCK) fma_chains(const __grid_constant__ struct roof_args k)
{
    T x[CHAINS], sum = 0, addend = (T)1e-3f;
    T factor = (T)(1.0f - 1.0f / (float)(blockDim.x + threadIdx.x));
    for (int c = 0; c < CHAINS; c++)
        x[c] = (T)(threadIdx.x + (unsigned)c);
    for (int r = 0; r < k.rounds; r++) {
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
#pragma unroll
            for (int c = 0; c < CHAINS; c++)
                x[c] = fma(x[c], factor, addend);
        }
        KERNEL_COUNT(2 * STEPS * CHAINS);
    }
    for (int c = 0; c < CHAINS; c++)
        sum += x[c];
    if (sum > (T)k.limit)
        *(T *)k.sink = sum;
}

static enum status prepare(const struct device_roof *roof, const struct device *device,
                           struct roof_work *work, struct roof_state **state, struct error *why)
{
    (void)roof;
    work->amount = 2.0 * (double)(STEPS * CHAINS * BLOCK) * roof_blocks(device);
    return roof_new_compute(device, state, why);
}

template <class T>
static enum status run(const struct roof_state *state, int64_t rounds, void *stream,
                       struct error *err)
{
    struct roof_args k = roof_args_of(state, rounds);
    ROOF_LAUNCH_TRY(fma_chains<T>, cuda_size(roof_blocks(state->device)), cuda_size(BLOCK), 0, &k,
                    stream, err);
    return STATUS_OK;
}

static const struct device_roof roofs[] = {
    {"fma f32", "cuda", "", "f32", "fma", "fma.rn.f32", "FLOP/s", ROOF_COMPUTE, prepare, run<float>,
     roof_release},
    {"fma f64", "cuda", "", "f64", "fma", "fma.rn.f64", "FLOP/s", ROOF_COMPUTE, prepare,
     run<double>, roof_release},
};

ROOF_GROUP(fma) = ROOFS(roofs);
