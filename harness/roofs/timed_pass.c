/* SPDX-License-Identifier: Apache-2.0
 *
 * A region of as many tiles as threads, whose tiles wait for each other: then each thread of the
 * pool has exactly one, and the time that waking it cost is over before the clock starts. */
#define _GNU_SOURCE
#include "harness/roofs/timed_pass.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/system/clock.h"

enum { SPINS_BEFORE_YIELD = 1000, CALIBRATE_LAPS = 3 };

struct stopwatch {
    const struct timed_pass *pass;
    int64_t rounds;
    int tiles;
    _Atomic int arrived;
    uint64_t begin[TIMED_PASS_THREADS_MAX], end[TIMED_PASS_THREADS_MAX];
};

static void wait_for_all(struct stopwatch *watch)
{
    atomic_fetch_add(&watch->arrived, 1);
    for (int spins = 0; atomic_load(&watch->arrived) < watch->tiles; spins++)
        if (spins >= SPINS_BEFORE_YIELD) /* more threads than CPUs */
            sched_yield();
}

static void run_tile(void *context, int64_t tile, int thread)
{
    struct stopwatch *watch = context;
    (void)tile;
    wait_for_all(watch);
    if (thread >= watch->pass->threads)
        return;
    watch->begin[thread] = clock_now_ns();
    watch->pass->work(watch->pass->context, thread, watch->rounds);
    watch->end[thread] = clock_now_ns();
}

static void run(const struct timed_pass *pass, int64_t rounds, struct stopwatch *watch)
{
    watch->pass = pass;
    watch->rounds = rounds;
    watch->tiles = pass->threads > 1 ? pool_threads(pass->pool) : 1;
    atomic_init(&watch->arrived, 0);
    if (pass->threads > 1) {
        pool_run(pass->pool, watch->tiles, run_tile, watch);
    } else {
        pool_park(pass->pool); /* spinning threads take power and, with SMT, units */
        run_tile(watch, 0, 0);
    }
}

uint64_t timed_pass_run(const struct timed_pass *pass, int64_t rounds)
{
    struct stopwatch watch;
    run(pass, rounds, &watch);
    uint64_t first = watch.begin[0], last = watch.end[0];
    for (int k = 1; k < pass->threads; k++) {
        first = watch.begin[k] < first ? watch.begin[k] : first;
        last = watch.end[k] > last ? watch.end[k] : last;
    }
    return last > first ? last - first : 1;
}

/* The shortest time of any thread in a few passes: it only gets longer when another program takes
 * the CPU. */
static uint64_t shortest(const struct timed_pass *pass, int64_t rounds)
{
    struct stopwatch watch;
    uint64_t least = UINT64_MAX;
    for (int k = 0; k < CALIBRATE_LAPS; k++) {
        run(pass, rounds, &watch);
        for (int t = 0; t < pass->threads; t++) {
            uint64_t ns = watch.end[t] - watch.begin[t];
            least = ns < least ? ns : least;
        }
    }
    return least > 0 ? least : 1;
}

int64_t timed_pass_calibrate(const struct timed_pass *pass, uint64_t target_ns)
{
    int64_t rounds = 1;
    for (;;) {
        double factor = (double)target_ns / (double)shortest(pass, rounds);
        if (factor <= 2) /* long enough to be believed */
            return (double)rounds * factor < 1 ? 1 : (int64_t)((double)rounds * factor + 0.5);
        rounds = (int64_t)((double)rounds * (factor > 16 ? 16 : factor));
    }
}
