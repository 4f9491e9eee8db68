/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/gemm_body.h"

FEW(BYTES)
gemm_tiles gemm_tiles_bytes = GEMM_FEW(BYTES);

#if defined(__AVX2__)
TILES(BYTES_DOT)
gemm_tiles gemm_tiles_bytes_dot = GEMM_TILES(BYTES_DOT);
#endif
