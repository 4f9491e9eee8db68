/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_KERNELS_CUBLASLT_LIB_GEMM_ROOF_H
#define ENGINE_KERNELS_CUBLASLT_LIB_GEMM_ROOF_H

#include "engine/run/plugin.h"

extern const struct roof_group cublaslt_gemm_roofs; /* gemm f16, bf16, tf32, i8, f8 */

#endif
