/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of f8, with bias, residual and activation. A fixed right operand is stored by columns
 * when it is prepared. Tensor cores of Hopper sum such products with 14 bits or so (DeepSeek-V3,
 * arXiv 2412.19437, 3.3.2); the library moves these sums to f32 now and then, since it is not asked
 * for fast accumulation. */
#include "engine/kernels/cublaslt/lib/hooks.h"

CUBLASLT_KERNEL(matmul_f8, .ops = OPS("MatMulF8"), .packs = 1u << 1, .rel_error = 2e-3);
