/* SPDX-License-Identifier: Apache-2.0
 *
 * A point as people read it: "resnet50:version=1.5 batch=8 threads=2", and whatever else differs
 * from the defaults. */
#ifndef HARNESS_SUITE_POINT_LABEL_H
#define HARNESS_SUITE_POINT_LABEL_H

#include "base/arena.h"
#include "results/query.h"

/* From a row with the columns of table point; NULL without memory. */
const char *point_label(struct arena *arena, const struct grid *grid, int64_t row);

#endif
