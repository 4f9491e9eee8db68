/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor cores from sm_80 on: mma.sync with factors that come from shared memory, and copies into
 * it that run beside the arithmetic. PTX ISA, "Matrix multiply-accumulate operation using mma
 * instruction" and "cp.async"; what each does without a GPU is in tests/gpu/host/cuda_tensor.h.
 *
 * A step multiplies 32 bytes of depth, 16 elements of 16 bits or 8 of tf32: in bytes the shares of
 * the lanes are the same for all types. Lane l holds of the left factor (16 rows) bytes 4 (l % 4)
 * of rows l / 4 and l / 4 + 8, then the same 16 bytes on; of the right factor (8 columns) those of
 * column l / 4; of the sums columns 2 (l % 4) and the next of rows l / 4 and l / 4 + 8. */
#ifndef ENGINE_KERNELS_CUDA_LIB_MMA_H
#define ENGINE_KERNELS_CUDA_LIB_MMA_H

#include "engine/kernels/cuda/lib/kernel.h"
#include "engine/kernels/cuda/lib/ptx.h"

enum { MMA_ROWS = 16, MMA_COLUMNS = 8, MMA_CHUNK = 16 /* bytes: a row of an 8 x 8 matrix */ };

/* ---- copies ---- */

/* `size` bytes, 4, 8 or 16, from global to shared memory, some time before the end of copies_wait;
 * those from `bytes` on become 0. Both addresses are multiples of `size`. */
template <int size>
static __device__ __forceinline__ void copy_later_to(shared_place to, const void *from,
                                                     unsigned bytes)
{
    if (size == MMA_CHUNK)
        PTX(host_copy_later(to, from, bytes, size),
            "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
            : "memory");
    else
        PTX(host_copy_later(to, from, bytes, size),
            "cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(bytes),
            "n"(size)
            : "memory");
}

template <int size>
static __device__ __forceinline__ void copy_later(void *to, const void *from, unsigned bytes)
{
    copy_later_to<size>(shared_place_of(to), from, bytes);
}

/* What the thread has begun since the last call is a group, be it empty. */
static __device__ __forceinline__ void copies_end_group(void)
{
    PTX(host_copies_end_group(), "cp.async.commit_group;" ::: "memory");
}

/* All of the thread's groups but the last `pending` are in shared memory then. */
template <int pending> static __device__ __forceinline__ void copies_wait(void)
{
    PTX(host_copies_wait(pending), "cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/* ---- factors ---- */

/* Four 8 x 8 matrices of 16 bits, whose rows lanes 0 to 7, 8 to 15 and so on point to. Lane l gets
 * of each the 4 bytes at 4 (l % 4) of row l / 4. */
static __device__ __forceinline__ void matrices_load_from(shared_place row, unsigned r[4])
{
    PTX(host_matrices_load(row, r, false),
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
        : "r"(row));
}

/* The same of the transposed matrices. */
static __device__ __forceinline__ void matrices_load_turned_from(shared_place row, unsigned r[4])
{
    PTX(host_matrices_load(row, r, true),
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
        : "r"(row));
}

static __device__ __forceinline__ void matrices_load(const uint4 *row, unsigned r[4])
{
    matrices_load_from(shared_place_of(row), r);
}

static __device__ __forceinline__ void matrices_load_turned(const uint4 *row, unsigned r[4])
{
    matrices_load_turned_from(shared_place_of(row), r);
}

/* As the type's tensor cores want it: f32 is rounded to 10 bits of mantissa, to nearest. */
template <class element> static __device__ __forceinline__ void mma_round(unsigned *bits)
{
    if (sizeof(element) == sizeof(float))
        PTX(*bits = host_tf32(*bits), "cvt.rna.tf32.f32 %0, %1;"
            : "=r"(*bits)
            : "f"(__int_as_float((int)*bits)));
}

/* ---- products ---- */

#define MMA_STEP(type, kind, instruction)                                                          \
    static __device__ __forceinline__ void mma_step(type, float c[4], const unsigned a[4],         \
                                                    const unsigned b[2])                           \
    {                                                                                              \
        PTX(host_mma(kind, c, a, b),                                                               \
            "mma.sync.aligned." instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "      \
            "{%0, %1, %2, %3};"                                                                    \
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                       \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                   \
    }

/* c += a b, all lanes together; the first argument only names the type. */
MMA_STEP(struct half, HOST_MMA_F16, "m16n8k16.row.col.f32.f16.f16.f32")
MMA_STEP(struct bfloat, HOST_MMA_BF16, "m16n8k16.row.col.f32.bf16.bf16.f32")
MMA_STEP(float, HOST_MMA_TF32, "m16n8k8.row.col.f32.tf32.tf32.f32")

#undef MMA_STEP

/* A warp's sums of 16 rows and `count` times 8 columns to memory, whose rows are `line` apart. */
template <int count>
static __device__ __forceinline__ void mma_put_sums(const float (&sums)[count][4], float *to,
                                                    unsigned line)
{
    float *lane_to = to + threadIdx.x % WARP / 4 * line + threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < count; j++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(float2 *)(lane_to + h * 8 * line + j * MMA_COLUMNS) =
                make_float2(sums[j][h * 2], sums[j][h * 2 + 1]);
}

#endif
