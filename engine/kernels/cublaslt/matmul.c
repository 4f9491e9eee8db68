/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm of f32, f16 and bf16 with bias, residual and activation. */
#include "engine/kernels/cublaslt/lib/hooks.h"

CUBLASLT_KERNEL(matmul, .ops = OPS("MatMul", "Gemm"));
