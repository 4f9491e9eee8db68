/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/gemm_body.h"

FEW(BF16)
gemm_tiles gemm_tiles_bf16 = GEMM_FEW(BF16);

#if defined(__AVX512F__)
TILES(BF16_DOT)
gemm_tiles gemm_tiles_bf16_dot = GEMM_TILES(BF16_DOT);
#endif
