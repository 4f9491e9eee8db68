/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor cores by mma.sync on 8-bit floats, from sm_89 on. Hopper and Blackwell compute it by
 * conversion to f16; theirs are wgmma and what cuBLASLt uses. */
#include "engine/kernels/cuda/lib/roof_mma.h"

MMA_SUM(mma_f8, float, "+f", 32, "m16n8k32.row.col.f32.e4m3.e4m3.f32")

static const struct device_roof roofs[] = {
    MMA_ROOF(f8, "m16n8k32.f32.e4m3.e4m3.f32", "FLOP/s", 89),
};

ROOF_GROUP(mma_f8) = ROOFS(roofs);
