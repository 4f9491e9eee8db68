/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HARNESS_ROOFS_PEAK_H
#define HARNESS_ROOFS_PEAK_H

#include "base/system/pool.h"
#include "engine/graph/kernel.h"
#include "engine/graph/precision.h"
#include "results/record.h"

/* What is measured as the peak of a precision: "f32 multiply-adds". NULL: this CPU, or the
 * instruction set, has no instruction for it that ridge knows. */
const char *peak_name(enum isa isa, enum precision precision);
enum { PEAK_BURSTS = 7 }; /* enough to be sure of the rate */

/* Their rate on all threads of the pool together, operations per second (a multiply-add is two):
 * best of so many bursts of two milliseconds; NAN when there is no name. */
double peak_rate(struct pool *pool, enum isa isa, enum precision precision, int bursts);

struct ceiling_list {
    const struct ceiling_record *records;
    int count;
};

/* What the rate of a point is a fraction of: the highest rate of arithmetic that was measured on
 * its device in its precision, with as many threads where they are the CPU's. NAN with the reason
 * when there is none. clock_hz: at which it was measured; 0: not known. */
double peak_of(const struct point_record *point, const struct ceiling_list *ceilings,
               double *clock_hz, const char **reason);

#endif
