/* SPDX-License-Identifier: Apache-2.0
 *
 * Some threads of the pool start together, work, and are timed from the first start to the last
 * end. The thread that is number k in one pass is number k, on the same CPU, in every pass: memory
 * that it touched first is its own.
 */
#ifndef HARNESS_ROOFS_TIMED_PASS_H
#define HARNESS_ROOFS_TIMED_PASS_H

#include <stdint.h>

#include "base/system/cpus.h"
#include "base/system/pool.h"

enum { TIMED_PASS_THREADS_MAX = CPUS_MAX };

typedef void timed_pass_work(void *context, int thread, int64_t rounds);

struct timed_pass {
    struct pool *pool; /* NULL: one thread */
    int threads;       /* how many work; at most those of the pool and TIMED_PASS_THREADS_MAX */
    timed_pass_work *work;
    void *context;
};

/* Every thread does `rounds` rounds; nanoseconds. */
uint64_t timed_pass_run(const struct timed_pass *pass, int64_t rounds);
/* How many rounds take `target_ns`; warms up on the way. At least 1. */
int64_t timed_pass_calibrate(const struct timed_pass *pass, uint64_t target_ns);

#endif
