/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine itself can do right now, read in a few milliseconds before and after the samples
 * of a visit, on the threads of that visit. Where a level moved as a point did, the machine moved.
 *
 *   hand_over     s       a region handed to all threads and back: the median of many
 *   cache_read    B/s     all threads read again what lies in their share of the caches
 *   dram_read     B/s     all threads read memory that no cache holds
 *   multiply_add  FLOP/s  all threads multiply and add in registers, in the point's precision
 */
#ifndef HARNESS_ROOFS_LEVELS_H
#define HARNESS_ROOFS_LEVELS_H

#include "base/error.h"
#include "base/system/pool.h"
#include "engine/graph/precision.h"
#include "results/level.h"

struct levels;

/* One reading of all. */
struct levels_now {
    double value[LEVEL_COUNT]; /* NAN: not known, because of ... */
    const char *reason[LEVEL_COUNT];
};

/* memory_bytes: that the buffer for DRAM may take; a smaller one than it needs is not made, and the
 * level says so. */
enum status levels_open(int64_t memory_bytes, struct levels **out, struct error *err);
void levels_close(struct levels *levels);

/* pool may be NULL: one thread. Nothing else may use it meanwhile. */
void levels_read(struct levels *levels, struct pool *pool, enum precision precision,
                 struct levels_now *out);
/* Of a device that has none of them. */
void levels_none(const char *reason, struct levels_now *out);
/* The mean of both readings in logarithms. A level that one of them lacks is not known. */
void levels_join(const struct levels_now *before, const struct levels_now *after,
                 struct visit_record *visit);

#endif
