/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulInteger of signed bytes without zero points, exact. A fixed right operand is stored by
 * columns when it is prepared. */
#include "engine/kernels/cublaslt/lib/hooks.h"

CUBLASLT_KERNEL(matmul_bytes, .ops = OPS("MatMulInteger"), .packs = 1u << 1);
