/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HARNESS_SCALE_SCALE_REPRODUCE_H
#define HARNESS_SCALE_SCALE_REPRODUCE_H

#include "base/arena.h"
#include "harness/scale/scale_print.h"

/* The command line that measures, or simulates, one of the points again: the same id. NULL: no
 * memory. */
const char *scaling_reproduce(const struct scaling *scaling, const struct scale_result *point,
                              struct arena *arena);

#endif
