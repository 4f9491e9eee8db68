/* SPDX-License-Identifier: Apache-2.0
 * A stable sort of indices by what they stand for. */
#ifndef ENGINE_OPS_COMPUTE_SORT_H
#define ENGINE_OPS_COMPUTE_SORT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether what index a stands for comes strictly before what b stands for. */
typedef bool sort_before(const void *context, int64_t a, int64_t b);

/* Sorts index[0 .. count); scratch has room for as many. Equal ones keep their order. */
void sort_indices(int64_t *index, int64_t count, int64_t *scratch, sort_before *before,
                  const void *context);

#endif
