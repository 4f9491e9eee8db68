/* SPDX-License-Identifier: Apache-2.0
 *
 * How GridSample reads an image, a C header, for the one .cu file that asks. */
#ifndef ENGINE_KERNELS_CUDA_LIB_SAMPLER_H
#define ENGINE_KERNELS_CUDA_LIB_SAMPLER_H

extern "C" {
#include "engine/ops/lib/grid_sampler.h"
}

#endif
