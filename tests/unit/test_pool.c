/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/system/pool.h"
#include "tests/lib/unit.h"

enum { TILES = 1000, THREADS = 4 };

struct job {
    _Atomic int done[TILES];
    _Atomic int per_thread[THREADS];
    _Atomic int outside; /* calls with a thread or tile that cannot be */
    int threads;
    int64_t tiles;
};

static void count(void *context, int64_t tile, int thread)
{
    struct job *job = context;
    if (tile < 0 || tile >= job->tiles || thread < 0 || thread >= job->threads) {
        atomic_fetch_add(&job->outside, 1);
        return;
    }
    atomic_fetch_add(&job->done[tile], 1);
    atomic_fetch_add(&job->per_thread[thread], 1);
}

static struct pool *pool_of(int threads)
{
    struct pool *pool;
    MUST(pool_new, threads, &pool);
    return pool;
}

static void run_once(struct pool *pool, struct job *job, int64_t tiles)
{
    memset(job, 0, sizeof(*job));
    job->threads = pool_threads(pool);
    job->tiles = tiles;
    pool_run(pool, tiles, count, job);
    assert_int_equal(atomic_load(&job->outside), 0);
    for (int64_t k = 0; k < tiles; k++)
        assert_int_equal(atomic_load(&job->done[k]), 1);
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

TEST(every_tile_once)
{
    static struct job job;
    for (int threads = 1; threads <= THREADS; threads++) {
        struct pool *pool = pool_of(threads);
        assert_int_equal(pool_threads(pool), threads);
        for (int round = 0; round < 300; round++)
            run_once(pool, &job, round % 3 ? round : TILES);
        pool_free(pool);
    }
}

TEST(without_a_pool_the_caller_works)
{
    static struct job job;
    assert_int_equal(pool_threads(NULL), 1);
    run_once(NULL, &job, 17);
    assert_int_equal(atomic_load(&job.per_thread[0]), 17);
    pool_park(NULL);
    pool_free(NULL);
}

TEST(parked_and_sleeping_workers_wake)
{
    static struct job job;
    struct pool *pool = pool_of(THREADS);
    for (int round = 0; round < 20; round++) {
        run_once(pool, &job, TILES);
        if (round % 2)
            pool_park(pool);
        else
            sleep_ms(1); /* longer than workers spin: they go to sleep by themselves */
    }
    pool_park(pool);
    pool_park(pool); /* twice is harmless */
    pool_free(pool); /* also while they sleep */
}

/* ---- a caller that waits ---- */

static _Atomic bool neighbour_ends;

static void *neighbour(void *cpus)
{
    pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), cpus);
    while (!atomic_load(&neighbour_ends))
        ;
    return NULL;
}

static double cpu_seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void late(void *context, int64_t tile, int thread)
{
    (void)context;
    (void)tile;
    if (thread != 0)
        sleep_ms(400);
    else
        sleep_ms(20); /* the worker gets a tile as well */
}

/* While a worker is late the caller's CPU belongs to who wants it: spinning, it would take half. */
TEST(a_caller_that_waits_leaves_its_cpu)
{
    cpu_set_t cpus;
    pthread_t thread;
    clockid_t clock;
    struct pool *pool = pool_of(2); /* its caller is on one CPU from now on */
    sched_getaffinity(0, sizeof(cpus), &cpus);
    assert_int_equal(CPU_COUNT(&cpus), 1);
    assert_int_equal(pthread_create(&thread, NULL, neighbour, &cpus), 0);
    assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
    double mine = cpu_seconds(CLOCK_THREAD_CPUTIME_ID), others = cpu_seconds(clock);
    pool_run(pool, 2, late, NULL);
    mine = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - mine;
    others = cpu_seconds(clock) - others;
    atomic_store(&neighbour_ends, true);
    pthread_join(thread, NULL);
    pool_free(pool);
    printf("caller %.3f s, neighbour %.3f s\n", mine, others);
    assert_true(mine < others / 3);
}

struct meeting {
    _Atomic int arrived;
};

static void wait_for_all(void *context, int64_t tile, int thread)
{
    struct meeting *meeting = context;
    (void)tile;
    (void)thread;
    atomic_fetch_add(&meeting->arrived, 1);
    for (int spins = 0; atomic_load(&meeting->arrived) < THREADS && spins < 5000; spins++)
        sleep_ms(1);
}

/* Each tile waits until all have begun: one thread alone would never get there. */
TEST(tiles_run_at_the_same_time)
{
    struct meeting meeting = {.arrived = 0};
    struct pool *pool = pool_of(THREADS);
    pool_run(pool, THREADS, wait_for_all, &meeting);
    assert_int_equal(atomic_load(&meeting.arrived), THREADS);
    pool_free(pool);
}

TEST(one_thread_per_cpu_by_default)
{
    struct pool *pool = pool_of(0);
    assert_true(pool_threads(pool) >= 1);
    assert_true(pool_threads(pool) <= sysconf(_SC_NPROCESSORS_CONF));
    pool_free(pool);
}

TEST(pools_come_and_go)
{
    static struct job job;
    for (int round = 0; round < 100; round++) {
        struct pool *pool = pool_of(2 + round % 3);
        if (round % 2)
            run_once(pool, &job, 8);
        pool_free(pool);
    }
}

static int cpus_of_caller(void)
{
    cpu_set_t mask;
    assert_int_equal(sched_getaffinity(0, sizeof(mask), &mask), 0);
    return CPU_COUNT(&mask);
}

TEST(stopped_it_is_serial_and_started_it_is_whole)
{
    static struct job job;
    int cpus = cpus_of_caller();
    struct pool *pool = pool_of(THREADS);
    for (int round = 0; round < 50; round++) {
        pool_stop(pool);
        pool_stop(pool); /* nothing is left to stop */
        pool_park(pool);
        assert_int_equal(cpus_of_caller(), cpus);
        assert_int_equal(pool_threads(pool), THREADS);
        run_once(pool, &job, TILES);
        assert_int_equal(atomic_load(&job.per_thread[0]), TILES);
        MUST(pool_start, pool);
        MUST(pool_start, pool);
        run_once(pool, &job, TILES);
        if (round % 2)
            pool_park(pool);
    }
    pool_stop(pool);
    pool_free(pool);
    assert_int_equal(cpus_of_caller(), cpus);
}

static void note_cpu(void *context, int64_t tile, int thread)
{
    _Atomic int *arrived = context;
    (void)tile;
    (void)thread;
    atomic_fetch_or(arrived, 1 << (sched_getcpu() % 30));
    sleep_ms(2);
}

/* Of two that take turns each has all CPUs: the one that waits does not hold the caller on its own.
 */
TEST(pools_in_turns_spread_over_all_cpus)
{
    _Atomic int first, then;
    struct pool *a = pool_of(2), *b;
    pool_run(a, 8, note_cpu, (atomic_init(&first, 0), &first));
    pool_stop(a);
    b = pool_of(2);
    pool_stop(b);
    MUST(pool_start, a);
    pool_run(a, 8, note_cpu, (atomic_init(&then, 0), &then));
    assert_int_equal(atomic_load(&then), atomic_load(&first));
    pool_free(a);
    pool_free(b);
}
