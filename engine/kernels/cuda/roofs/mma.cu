/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor cores by mma.sync in the types that all chips know. It is the whole of an A100's and an
 * RTX's tensor cores; Hopper's are faster by wgmma (wgmma.cu), Blackwell's by tcgen05, which the
 * large products of cuBLASLt tell. */
#include "engine/kernels/cuda/lib/roof_mma.h"

MMA_SUM(mma_f16, float, "+f", 16, "m16n8k16.row.col.f32.f16.f16.f32")
MMA_SUM(mma_bf16, float, "+f", 16, "m16n8k16.row.col.f32.bf16.bf16.f32")
MMA_SUM(mma_tf32, float, "+f", 8, "m16n8k8.row.col.f32.tf32.tf32.f32")
MMA_SUM(mma_i8, int, "+r", 32, "m16n8k32.row.col.s32.s8.s8.s32")

static const struct device_roof roofs[] = {
    MMA_ROOF(f16, "m16n8k16.f32.f16.f16.f32", "FLOP/s", 80),
    MMA_ROOF(bf16, "m16n8k16.f32.bf16.bf16.f32", "FLOP/s", 80),
    MMA_ROOF(tf32, "m16n8k8.f32.tf32.tf32.f32", "FLOP/s", 80),
    MMA_ROOF(i8, "m16n8k32.s32.s8.s8.s32", "OP/s", 80),
};

ROOF_GROUP(mma) = ROOFS(roofs);
