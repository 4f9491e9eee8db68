/* SPDX-License-Identifier: Apache-2.0
 *
 * GPUs that are not here, described well enough for cuDNN to choose engines for them. */
#ifndef TESTS_GPU_CHIPS_H
#define TESTS_GPU_CHIPS_H

#include "engine/run/device.h"

enum { CHIP_A100, CHIP_H200, CHIP_B200, CHIP_COUNT };

/* What their alloc says. */
#define NO_MEMORY_HERE "a device that is only described has no memory"

/* Devices 0, 1, 2 of kind "cuda": sm_80, sm_90 and sm_100. chips[k].state is NULL. */
void chips_describe(struct device chips[CHIP_COUNT]);
const char *chip_name(int index); /* "sm_90" */
/* Properties in cuDNN's JSON form. */
void chip_json(int index, char *text, size_t size);

#endif
