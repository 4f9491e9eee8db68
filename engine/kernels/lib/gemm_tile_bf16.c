/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/gemm_body.h"

TILES(BF16)
gemm_tiles gemm_tiles_bf16 = GEMM_TILES(BF16);

#if defined(__AVX512F__)
TILES(BF16_DOT)
gemm_tiles gemm_tiles_bf16_dot = GEMM_TILES(BF16_DOT);
#endif
