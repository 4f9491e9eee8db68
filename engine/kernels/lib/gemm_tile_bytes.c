/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/gemm_body.h"

TILES(BYTES)
gemm_tiles gemm_tiles_bytes = GEMM_TILES(BYTES);

#if defined(__AVX2__)
TILES(BYTES_DOT)
gemm_tiles gemm_tiles_bytes_dot = GEMM_TILES(BYTES_DOT);
#endif
