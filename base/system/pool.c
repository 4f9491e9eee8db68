/* SPDX-License-Identifier: Apache-2.0
 *
 * A region is published by raising `epoch`; workers that spin on it join, take tiles until the
 * counter runs out, and say so in `done`. A worker that has spun SPIN_NS without a region sleeps
 * on the epoch's futex. Waking costs 35-50 us in a virtual machine, a spinning hand-over 0.1 us.
 */
#define _GNU_SOURCE
#include "base/system/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/cpus.h"
#include "base/system/relax.h"

enum { SPIN_NS = 200 * 1000, CACHE_LINE = 64 };

struct worker {
    struct pool *pool;
    pthread_t thread;
    int index, cpu;
    uint32_t seen; /* the epoch when it was started */
};

struct pool {
    _Alignas(CACHE_LINE) _Atomic uint32_t epoch; /* counts regions */
    _Alignas(CACHE_LINE) _Atomic int64_t next;   /* tile to hand out */
    _Alignas(CACHE_LINE) _Atomic int done;       /* workers finished with this region */
    _Alignas(CACHE_LINE) _Atomic int sleeping;
    _Atomic bool stop, park;
    int64_t tiles;
    pool_work *work;
    void *context;
    int threads;
    int started;            /* workers that run: threads - 1, or 0 */
    struct worker *workers; /* threads - 1 */
    struct cpus caller_cpus;
};

static void futex_wait(_Atomic uint32_t *word, uint32_t expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

/* A worker whose CPU another program has comes when it gets it, which may take milliseconds: after
 * SPIN_NS who waits for it lets others have its own CPU. Where nobody wants that it goes on at
 * once. */
static void wait_for_workers(const struct pool *pool, const _Atomic int *count)
{
    uint64_t until = 0;
    for (unsigned spins = 1; atomic_load_explicit(count, memory_order_acquire) != pool->started;
         spins++) {
        relax();
        if (spins % 256 != 0)
            continue;
        uint64_t time = clock_now_ns();
        if (!until)
            until = time + SPIN_NS;
        if (time >= until)
            sched_yield();
    }
}

static void take_tiles(struct pool *pool, int thread)
{
    int64_t tiles = pool->tiles;
    for (;;) {
        int64_t tile = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (tile >= tiles)
            return;
        pool->work(pool->context, tile, thread);
    }
}

/* Returns the first epoch that differs from `seen`. */
static uint32_t wait_for_region(struct pool *pool, uint32_t seen)
{
    uint64_t until = 0;
    for (unsigned spins = 0;; spins++) {
        uint32_t now = atomic_load_explicit(&pool->epoch, memory_order_acquire);
        if (now != seen)
            return now;
        relax();
        if (spins % 256 != 0 && !atomic_load_explicit(&pool->park, memory_order_relaxed))
            continue;
        uint64_t time = clock_now_ns();
        if (!until)
            until = time + SPIN_NS;
        if (time < until && !atomic_load_explicit(&pool->park, memory_order_relaxed))
            continue;
        atomic_fetch_add(&pool->sleeping, 1);
        while (atomic_load(&pool->epoch) == seen)
            futex_wait(&pool->epoch, seen);
        atomic_fetch_sub(&pool->sleeping, 1);
    }
}

static void *worker_main(void *argument)
{
    struct worker *self = argument;
    struct pool *pool = self->pool;
    uint32_t seen = self->seen;
    for (;;) {
        seen = wait_for_region(pool, seen);
        if (atomic_load(&pool->stop))
            return NULL;
        take_tiles(pool, self->index);
        atomic_fetch_add_explicit(&pool->done, 1, memory_order_release);
    }
}

static void publish(struct pool *pool)
{
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->park, false, memory_order_relaxed);
    atomic_fetch_add(&pool->epoch, 1); /* sequentially consistent: pairs with `sleeping` */
    if (atomic_load(&pool->sleeping) > 0)
        futex_wake_all(&pool->epoch);
}

void pool_run(struct pool *pool, int64_t tiles, pool_work *work, void *context)
{
    if (!pool || pool->started == 0 || tiles <= 1) {
        for (int64_t tile = 0; tile < tiles; tile++)
            work(context, tile, 0);
        return;
    }
    pool->tiles = tiles;
    pool->work = work;
    pool->context = context;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    publish(pool);
    take_tiles(pool, 0);
    wait_for_workers(pool, &pool->done);
}

void pool_park(struct pool *pool)
{
    if (!pool || pool->started == 0)
        return;
    atomic_store(&pool->park, true);
    wait_for_workers(pool, &pool->sleeping);
}

int pool_threads(const struct pool *pool)
{
    return pool ? pool->threads : 1;
}

static enum status start_workers(struct pool *pool, struct error *err)
{
    int count = pool->threads - 1;
    for (int k = 0; k < count; k++) {
        struct worker *worker = &pool->workers[k];
        worker->pool = pool;
        worker->index = k + 1;
        worker->cpu = cpus_at(&pool->caller_cpus, k + 1);
        worker->seen = atomic_load(&pool->epoch);
        if (pthread_create(&worker->thread, NULL, worker_main, worker))
            return FAIL(err, STATUS_FAILED, "cannot start thread %d of %d", k + 2, count + 1);
        pool->started++;
        cpus_bind_to(worker->thread, worker->cpu);
    }
    return STATUS_OK;
}

static void find_cpus(struct pool *pool)
{
    if (!cpus_of_thread(&pool->caller_cpus))
        cpus_add(&pool->caller_cpus, 0);
}

enum status pool_start(struct pool *pool, struct error *err)
{
    if (pool->started || pool->threads == 1)
        return STATUS_OK;
    find_cpus(pool);
    atomic_store(&pool->stop, false);
    enum status status = start_workers(pool, err);
    if (status == STATUS_OK)
        cpus_bind_to(pthread_self(), cpus_at(&pool->caller_cpus, 0));
    else
        pool_stop(pool);
    return status;
}

void pool_stop(struct pool *pool)
{
    if (!pool || pool->started == 0)
        return;
    atomic_store(&pool->stop, true);
    publish(pool);
    for (int k = 0; k < pool->started; k++)
        pthread_join(pool->workers[k].thread, NULL);
    pool->started = 0;
    cpus_bind(pthread_self(), &pool->caller_cpus);
}

enum status pool_new(int threads, struct pool **out, struct error *err)
{
    *out = NULL;
    struct pool *pool = aligned_alloc(CACHE_LINE, sizeof(*pool));
    if (!pool)
        return FAIL_NO_MEMORY(err);
    *pool = (struct pool){0};
    find_cpus(pool);
    pool->threads = threads > 0 ? threads : cpus_count(&pool->caller_cpus);
    pool->workers = calloc((size_t)pool->threads, sizeof(*pool->workers));
    enum status status = pool->workers ? pool_start(pool, err) : FAIL_NO_MEMORY(err);
    if (status != STATUS_OK) {
        pool_free(pool);
        return status;
    }
    *out = pool;
    return STATUS_OK;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    pool_stop(pool);
    free(pool->workers);
    free(pool);
}
