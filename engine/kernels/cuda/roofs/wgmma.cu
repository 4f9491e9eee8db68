/* SPDX-License-Identifier: Apache-2.0
 *
 * Hopper's tensor cores by wgmma, the only instruction that uses them fully: 64 x 256 sums of a
 * warp group in registers, both factors in shared memory, laid out as the instruction reads them
 * without conflicts (128-byte swizzle, along K). Two warp groups per multiprocessor, so that one
 * computes while the other waits for its sums. Compiled for sm_90a and nothing else (Makefile): no
 * other chip has the instruction, and prepare says so. PTX ISA 8.0, "Asynchronous Warpgroup Level
 * Matrix". */
#include "engine/kernels/cuda/lib/roof.h"

enum {
    GROUP = 128,   /* threads that issue one wgmma */
    GROUPS = 2,    /* per block, one block per multiprocessor */
    ROWS = 64,     /* of A and the sums */
    COLUMNS = 256, /* of B and the sums */
    SUMS = ROWS * COLUMNS / GROUP,
    LINE = 128,     /* bytes along K of both tiles: four steps of 32 */
    STEPS_LINE = 4, /* wgmmas along a line */
    LINES = 8,      /* times over the tiles between two waits */
    SWIZZLE_ROWS = 8,
    TILE_BYTES = (ROWS + COLUMNS) * LINE,
    TILE_ALIGN = 1024,
};

/* Where a tile begins (16-byte units in 14 bits), 1024 bytes between groups of eight rows, 128-byte
 * swizzle. */
static __device__ __forceinline__ uint64_t descriptor_of(const unsigned char *tile)
{
    uint64_t at = (uint64_t)__cvta_generic_to_shared(tile);
    return (at & 0x3ffff) >> 4 | (uint64_t)1 << 16 | (uint64_t)(SWIZZLE_ROWS * LINE >> 4) << 32 |
           (uint64_t)1 << 62;
}

#define SUM_1(letter, n) letter(d[n])
#define SUM_4(letter, n)                                                                           \
    SUM_1(letter, n), SUM_1(letter, n + 1), SUM_1(letter, n + 2), SUM_1(letter, n + 3)
#define SUM_16(letter, n)                                                                          \
    SUM_4(letter, n), SUM_4(letter, n + 4), SUM_4(letter, n + 8), SUM_4(letter, n + 12)
#define SUM_64(letter, n)                                                                          \
    SUM_16(letter, n), SUM_16(letter, n + 16), SUM_16(letter, n + 32), SUM_16(letter, n + 48)
#define ARG_10(t)                                                                                  \
    "%" t "0, %" t "1, %" t "2, %" t "3, %" t "4, %" t "5, %" t "6, %" t "7, %" t "8, %" t "9, "
#define ARG_40(a, b, c, d) ARG_10(a) ARG_10(b) ARG_10(c) ARG_10(d)
#define ARGS_128                                                                                   \
    ARG_40("", "1", "2", "3")                                                                      \
    ARG_40("4", "5", "6", "7")                                                                     \
    ARG_40("8", "9", "10", "11") "%120, %121, %122, %123, %124, %125, %126, %127"

/* d += A B, without waiting. more: what the type wants after the predicate that keeps d. */
#define WGMMA(symbol, type, letter, depth, instruction, more)                                      \
    struct symbol {                                                                                \
        enum { operations = 2 * ROWS * COLUMNS * (depth) };                                        \
        typedef type sum;                                                                          \
        static __device__ __forceinline__ void step(type *d, uint64_t a, uint64_t b)               \
        {                                                                                          \
            PTX(d[0] += (type)(a != b), "{ .reg .pred p; setp.ne.b32 p, %130, 0; "                 \
                                        "wgmma.mma_async.sync.aligned." instruction " {" ARGS_128  \
                                        "}, %128, %129, p" more "; }"                              \
                : SUM_64(letter, 0), SUM_64(letter, 64)                                            \
                : "l"(a), "l"(b), "r"(1));                                                         \
        }                                                                                          \
    };

WGMMA(wgmma_f16, float, "+f", 16, "m64n256k16.f32.f16.f16", ", 1, 1, 0, 0")
WGMMA(wgmma_bf16, float, "+f", 16, "m64n256k16.f32.bf16.bf16", ", 1, 1, 0, 0")
WGMMA(wgmma_tf32, float, "+f", 8, "m64n256k8.f32.tf32.tf32", ", 1, 1")
WGMMA(wgmma_i8, int, "+r", 32, "m64n256k32.s32.s8.s8", "")
WGMMA(wgmma_f8, float, "+f", 32, "m64n256k32.f32.e4m3.e4m3", ", 1, 1")

/* Bits of every kind but no exponent of all ones. Shared memory is written by threads and read by
 * the tensor cores past them: the fence orders that. */
static __device__ __forceinline__ void fill_tiles(unsigned char *tiles)
{
    unsigned *words = (unsigned *)tiles;
    for (unsigned n = threadIdx.x; n < TILE_BYTES / sizeof(unsigned); n += blockDim.x)
        words[n] = (n * 2654435761u ^ n * 40503u << 13) & 0xbfbfbfbfu;
    PTX((void)0, "fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
}

template <class M>
__global__ void __launch_bounds__(GROUP *GROUPS)
    wgmma_chains(const __grid_constant__ struct roof_args k)
{
    SHARED_MEMORY(unsigned char, raw);
    unsigned char *tiles = raw + (TILE_ALIGN - (size_t)__cvta_generic_to_shared(raw) % TILE_ALIGN);
    typename M::sum d[SUMS] = {}, all = 0;
    fill_tiles(tiles);
    uint64_t a = descriptor_of(tiles), b = descriptor_of(tiles + ROWS * LINE);
#pragma unroll 1
    for (int r = 0; r < k.rounds; r++) {
        PTX((void)0, "wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int s = 0; s < LINES * STEPS_LINE; s++)
            M::step(d, a + s % STEPS_LINE * 2, b + s % STEPS_LINE * 2);
        PTX((void)0, "wgmma.commit_group.sync.aligned;" ::: "memory");
        PTX((void)0, "wgmma.wait_group.sync.aligned 0;" ::: "memory");
        KERNEL_COUNT((int)M::operations / GROUP * LINES * STEPS_LINE);
    }
#pragma unroll
    for (int n = 0; n < SUMS; n++)
        all += d[n];
    if ((float)all > k.limit)
        *(typename M::sum *)k.sink = all;
}

/* ---- hooks ---- */

template <class M>
static enum status prepare(const struct device_roof *roof, const struct device *device,
                           struct roof_work *work, struct roof_state **state, struct error *why)
{
    const struct device_properties *p = &device->properties;
    (void)roof;
    if (p->major != 9)
        return REFUSE(why, "wgmma is an instruction of sm_90 alone; this is sm_%d%d", p->major,
                      p->minor);
    work->amount = (double)(int)M::operations * (double)(LINES * STEPS_LINE * GROUPS) * p->units;
    return roof_new_compute(device, state, why);
}

template <class M>
static enum status run(const struct roof_state *state, int64_t rounds, void *stream,
                       struct error *err)
{
    struct roof_args k = roof_args_of(state, rounds);
    unsigned units = (unsigned)state->device->properties.units;
    ROOF_LAUNCH_TRY(wgmma_chains<M>, cuda_size(units), cuda_size(GROUP * GROUPS),
                    TILE_BYTES + TILE_ALIGN, &k, stream, err);
    return STATUS_OK;
}

#define WGMMA_ROOF(type, instruction, unit)                                                        \
    {                                                                                              \
        "wgmma " #type, "cuda", "", #type, "wgmma", "wgmma.mma_async." instruction, unit,          \
            ROOF_COMPUTE, prepare<wgmma_##type>, run<wgmma_##type>, roof_release                   \
    }

static const struct device_roof roofs[] = {
    WGMMA_ROOF(f16, "m64n256k16.f32.f16.f16", "FLOP/s"),
    WGMMA_ROOF(bf16, "m64n256k16.f32.bf16.bf16", "FLOP/s"),
    WGMMA_ROOF(tf32, "m64n256k8.f32.tf32.tf32", "FLOP/s"),
    WGMMA_ROOF(i8, "m64n256k32.s32.s8.s8", "OP/s"),
    WGMMA_ROOF(f8, "m64n256k32.f32.e4m3.e4m3", "FLOP/s"),
};

ROOF_GROUP(wgmma) = ROOFS(roofs);
