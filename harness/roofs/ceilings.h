/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/roofs: what the machine can do at most. Ceilings are measured once a run and are the
 * roofs of the roofline; levels are quick readings of the same kind beside every visit, which show
 * when the machine itself changed.
 *
 * What this machine can do at most: operations per second in registers, bytes per second from each
 * level of memory. The roofs of the roofline; docs/method.md says how they are obtained.
 *
 * Names: "fma f32 avx512", "fma f64 avx2", "dot i8 avx512_vnni", "dot bf16 avx512_bf16"; "read L1",
 * "copy L2", "triad L3", "copy_nt DRAM". Each for one thread and for all threads of the pool.
 */
#ifndef HARNESS_ROOFS_CEILINGS_H
#define HARNESS_ROOFS_CEILINGS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/system/pool.h"
#include "engine/graph/kernel.h"
#include "results/record.h"

struct ceiling_options {
    enum isa isa;         /* arithmetic with every instruction set up to it, bandwidth with it */
    bool quick;           /* shorter: for use inside of a run */
    bool every_count;     /* 1, 2, 3 ... threads, not only one and all */
    int64_t memory_bytes; /* at most, for the DRAM working set; 0: a quarter of what is free */
    const char *only;     /* those whose name contains this; NULL: all */
};

/* What cannot be measured is in the list as well, with value NAN and a reason. Records and their
 * text live in the arena. pool may be NULL: one thread. Takes about 1.5 s with `quick`, 4 s
 * without, more with every_count; nothing else may use the pool meanwhile. */
/* Whether the options ask for a ceiling of this name. */
bool ceiling_is_wanted(const struct ceiling_options *options, const char *name);
enum status ceilings_measure(struct pool *pool, const struct ceiling_options *options,
                             struct arena *arena, const struct ceiling_record **out, int *count,
                             struct error *err);

/* Whether so many threads did more multiply-adds in f32 than their ceiling says that they can, by
 * more than a tenth: then the machine was slower while it was measured. */
bool ceilings_are_low(const struct ceiling_record *list, int count, int threads, double flop_rate);
/* Of two measurements of the same list the higher values, in `list`. */
void ceilings_take_higher(struct ceiling_record *list, const struct ceiling_record *other,
                          int count);

#endif
