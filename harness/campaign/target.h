/* SPDX-License-Identifier: Apache-2.0
 *
 * What a point is measured on: its graph, compiled for its device, as a subject with the clock that
 * belongs to it.
 *
 *   cpu   the executable runs; time is the monotonic clock
 *
 *   cuda  the same on a GPU (cuda:1: the second). Inputs are uploaded before, outputs stay there; a
 *         sample ends when the device is idle again
 *
 *   null  everything up to the launch happens, nothing is computed; time comes from a script:
 *         RIDGE_NULL_SCRIPT names a file with one execution's nanoseconds per line, read in a
 *         circle; without it every execution takes a millisecond. Makes the whole harness testable
 *         without hardware and without waiting.
 */
#ifndef HARNESS_CAMPAIGN_TARGET_H
#define HARNESS_CAMPAIGN_TARGET_H

#include "engine/run/exe.h"
#include "harness/measure/measure.h"
#include "harness/measure/surroundings.h"
#include "harness/model/model_options.h"

struct target {
    struct graph *graph;
    struct exe *exe;   /* NULL on the null device */
    struct pool *pool; /* of the CPUs that compute: NULL on all other devices */
    struct subject subject;
    struct time_source time;
    struct real_time real;
    uint64_t null_now_ns;  /* the null device's clock ... */
    uint64_t *null_script; /* ... and script, owned */
    int64_t null_count, null_next;
    char *evict; /* streamed through to empty the caches */
    size_t evict_bytes;
};

/* Those with which a point is compiled; base: options of a command line for all points (instruction
 * set, tuner's cache ...). */
struct model_options target_options(const struct point *point, const struct model_options *base);
/* target stays
 * where it is until target_close: the subject points into it. */
enum status target_open(const struct point *point, const struct model_options *base,
                        struct target *target, struct error *err);
/* What so many threads write to empty their caches: four times the last-level caches that they can
 * have together, at least 64 MiB; where that is more than 1 GiB, twice the caches or 1 GiB. */
size_t target_evict_bytes(int threads);
/* Between two visits: without threads, and without what only a measurement needs. */
void target_rest(struct target *target);
/* Fresh threads. */
enum status target_wake(struct target *target, const struct point *point, struct error *err);
void target_close(struct target *target);

#endif
