/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor cores by mma.sync, factors and sums in registers: eight independent sums per warp, 32
 * warps per multiprocessor. A type is one MMA_SUM; code for chips that lack it must not exist,
 * since it would be an empty loop: such a type has a file of its own and own architectures
 * (Makefile). */
#ifndef ENGINE_KERNELS_CUDA_LIB_ROOF_MMA_H
#define ENGINE_KERNELS_CUDA_LIB_ROOF_MMA_H

#include "engine/kernels/cuda/lib/roof.h"

enum { MMA_CHAINS = 8, MMA_STEPS = 16, MMA_ROWS = 16, MMA_COLUMNS = 8 };

/* One warp's shares: A 16 x K, B K x 8, C 16 x 8. */
struct mma_factors {
    unsigned a[4], b[2];
};

/* One mma.sync of a warp on sums in f32 or s32, which are other registers for the assembler. */
#define MMA_SUM(symbol, type, letter, depth, instruction)                                          \
    struct symbol {                                                                                \
        enum { operations = 2 * MMA_ROWS * MMA_COLUMNS * (depth) };                                \
        typedef type sum;                                                                          \
        static __device__ __forceinline__ void step(type *c, const struct mma_factors &f)          \
        {                                                                                          \
            PTX(c[0] += (type)(f.a[0] + f.b[0]),                                                   \
                "mma.sync.aligned." instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "  \
                "{%0, %1, %2, %3};"                                                                \
                : letter(c[0]), letter(c[1]), letter(c[2]), letter(c[3])                           \
                : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]));   \
        }                                                                                          \
    };

/* Bits of every kind but no exponent of all ones, which is infinity or NaN in each of the types. */
static __device__ __forceinline__ unsigned mma_bits(unsigned seed)
{
    return (seed * 2654435761u ^ seed * 40503u << 13) & 0xbfbfbfbfu;
}

template <class M>
__global__ void __launch_bounds__(BLOCK) mma_chains(const __grid_constant__ struct roof_args k)
{
    struct mma_factors f;
    typename M::sum c[MMA_CHAINS][4] = {}, all = 0;
    for (unsigned n = 0; n < 4; n++)
        f.a[n] = mma_bits(threadIdx.x * 4 + n);
    for (unsigned n = 0; n < 2; n++)
        f.b[n] = mma_bits(~(threadIdx.x * 2 + n));
#pragma unroll 1
    for (int r = 0; r < k.rounds; r++) {
#pragma unroll
        for (int s = 0; s < MMA_STEPS; s++) {
#pragma unroll
            for (int n = 0; n < MMA_CHAINS; n++)
                M::step(c[n], f);
        }
        KERNEL_COUNT((int)M::operations / WARP * MMA_STEPS * MMA_CHAINS);
    }
    for (int n = 0; n < MMA_CHAINS; n++)
        all += c[n][0] + c[n][1] + c[n][2] + c[n][3];
    if ((float)all > k.limit)
        *(typename M::sum *)k.sink = all;
}

/* ---- hooks ---- */

template <class M, int least> /* compute capability, as in sm_89 */
static enum status mma_prepare(const struct device_roof *roof, const struct device *device,
                               struct roof_work *work, struct roof_state **state, struct error *why)
{
    int have = device->properties.major * 10 + device->properties.minor;
    if (have < least)
        return REFUSE(why, "tensor cores of sm_%d do not know %s: from sm_%d on", have,
                      roof->precision, least);
    work->amount = (double)(int)M::operations * (double)(MMA_STEPS * MMA_CHAINS * (BLOCK / WARP)) *
                   roof_blocks(device);
    return roof_new_compute(device, state, why);
}

template <class M>
static enum status mma_run(const struct roof_state *state, int64_t rounds, void *stream,
                           struct error *err)
{
    struct roof_args k = roof_args_of(state, rounds);
    ROOF_LAUNCH_TRY(mma_chains<M>, cuda_size(roof_blocks(state->device)), cuda_size(BLOCK), 0, &k,
                    stream, err);
    return STATUS_OK;
}

#define MMA_ROOF(type, instruction, unit, least)                                                   \
    {                                                                                              \
        "mma " #type, "cuda", "", #type, "mma", "mma.sync." instruction, unit, ROOF_COMPUTE,       \
            mma_prepare<mma_##type, least>, mma_run<mma_##type>, roof_release                      \
    }

#endif
