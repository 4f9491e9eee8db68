/* SPDX-License-Identifier: Apache-2.0
 *
 * PTX(instead, ...) is inline assembly; a compiler that has none does `instead`. */
#ifndef ENGINE_KERNELS_CUDA_LIB_PTX_H
#define ENGINE_KERNELS_CUDA_LIB_PTX_H

#ifndef PTX
#define PTX(instead, ...) asm volatile(__VA_ARGS__)
#endif

#endif
