/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HARNESS_PEAK_H
#define HARNESS_PEAK_H

#include "base/pool.h"
#include "engine/kernel.h"
#include "results/record.h"

/* FP32 FMA rate of all threads of the pool together, FLOP/s: best of several short bursts. */
double peak_fma_f32(struct pool *pool, enum isa isa);

struct ceiling_list {
    const struct ceiling_record *records;
    int count;
};

/* What the rate of a point is a fraction of: the highest rate of arithmetic that was measured on
 * its device in its precision, with as many threads where they are the CPU's. NAN with the reason
 * when there is none. */
double peak_of(const struct point_record *point, const struct ceiling_list *ceilings,
               const char **reason);

#endif
