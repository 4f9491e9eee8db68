/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/roofs/levels.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/numbers/stats.h"
#include "base/system/clock.h"
#include "engine/kernels/lib/roof.h"
#include "harness/machine/topology.h"
#include "harness/roofs/peak.h"
#include "harness/roofs/timed_pass.h"

enum {
    REGIONS = 101,       /* handed over */
    REGIONS_LEAST = 5,   /* even if ... */
    REGIONS_NS = 500000, /* ... they take so long */
    PASSES = 3,
    BURSTS = 3,
    DRAM_PASS = 8 << 20,    /* bytes that all threads read in a pass: half a millisecond or so */
    DRAM_LEAST = 64 << 20,  /* of the buffer, and twice the last-level caches */
    CACHE_LEAST = 64 << 10, /* bytes per thread */
    CACHE_MOST = 4 << 20,
    CACHE_PASS = 2 << 20, /* a pass reads as much per thread, as often as that takes */
};

struct levels {
    float *block;
    size_t bytes;     /* of the block */
    bool past_caches; /* it is larger than the caches */
    char small[96];   /* why not */
    struct topology *topology;
    int64_t at; /* where the next reading of DRAM begins, in floats from each thread's region */
};

/* ---- the buffer ---- */

static enum status map_block(struct levels *l, int64_t memory_bytes, struct error *err)
{
    int64_t want = 2 * topology_own_last_level_bytes(l->topology);
    want = want < DRAM_LEAST ? DRAM_LEAST : want;
    l->past_caches = want <= memory_bytes;
    snprintf(l->small, sizeof(l->small),
             "needs %lld MB, twice the last-level caches; %lld may be used",
             (long long)(want >> 20), (long long)(memory_bytes >> 20));
    l->bytes = l->past_caches ? (size_t)want : (size_t)CACHE_MOST;
    void *block = mmap(NULL, l->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return FAIL(err, STATUS_NO_MEMORY, "no %zu MB to read the levels of this machine from",
                    l->bytes >> 20);
    madvise(block, l->bytes, MADV_HUGEPAGE); /* refused on some kernels: then small pages */
    l->block = block;
    for (size_t k = 0; k < l->bytes / sizeof(float); k++)
        l->block[k] = 1;
    return STATUS_OK;
}

enum status levels_open(int64_t memory_bytes, struct levels **out, struct error *err)
{
    *out = NULL;
    struct levels *levels = calloc(1, sizeof(*levels));
    if (!levels)
        return FAIL_NO_MEMORY(err);
    enum status status = topology_open(&levels->topology, err);
    if (status == STATUS_OK)
        status = map_block(levels, memory_bytes, err);
    if (status == STATUS_OK)
        *out = levels;
    else
        levels_close(levels);
    return status;
}

void levels_close(struct levels *levels)
{
    if (!levels)
        return;
    if (levels->block)
        munmap(levels->block, levels->bytes);
    if (levels->topology)
        topology_close(levels->topology);
    free(levels);
}

/* ---- readings ---- */

static void nothing(void *context, int64_t tile, int thread)
{
    (void)context;
    (void)tile;
    (void)thread;
}

static double hand_over(struct pool *pool)
{
    double times[REGIONS];
    int threads = pool_threads(pool), count = 0;
    pool_run(pool, threads, nothing, NULL); /* wakes them */
    uint64_t begin = clock_now_ns(), start = begin;
    while (count < REGIONS && (count < REGIONS_LEAST || start - begin < REGIONS_NS)) {
        pool_run(pool, threads, nothing, NULL);
        uint64_t end = clock_now_ns();
        times[count++] = (double)(end - start) * 1e-9;
        start = end;
    }
    stats_sort(times, count);
    return stats_median(times, count);
}

struct walk {
    const float *block;
    int64_t region, from, count; /* floats: per thread, where in it, how many in a round */
    roof_stream *read;
    float sink[TIMED_PASS_THREADS_MAX];
};

static void work_read(void *context, int thread, int64_t rounds)
{
    struct walk *w = context;
    /* A loop that reads needs no more of what it is given. */
    float *at = (float *)(uintptr_t)(w->block + thread * w->region + w->from);
    w->sink[thread] = w->read(&(struct roof_arrays){.a = at, .count = w->count}, rounds);
}

#if BUILT_ISAS > 2
static roof_stream *const readers[ISA_COUNT] = {roof_read_scalar, roof_read_avx2, roof_read_avx512};
#else
static roof_stream *const readers[ISA_COUNT] = {roof_read_scalar, roof_read_scalar,
                                                roof_read_scalar};
#endif

static double rate(const struct timed_pass *pass, int64_t rounds, double bytes_each)
{
    return bytes_each * (double)rounds * pass->threads / (double)timed_pass_run(pass, rounds) * 1e9;
}

/* Floats of each thread that a pass may walk over. */
static int64_t in_steps(int64_t bytes)
{
    return bytes / (int64_t)sizeof(float) / ROOF_COUNT_STEP * ROOF_COUNT_STEP;
}

static double dram_read(struct levels *l, const struct timed_pass *pass, struct walk *w)
{
    double rates[PASSES];
    w->count = in_steps(DRAM_PASS / pass->threads);
    for (int k = 0; k < PASSES; k++) {
        l->at = l->at + 2 * w->count > w->region ? 0 : l->at + w->count;
        w->from = l->at;
        rates[k] = rate(pass, 1, (double)w->count * sizeof(float));
    }
    stats_sort(rates, PASSES);
    return stats_median(rates, PASSES);
}

static void work_cpu(void *context, int thread, int64_t rounds)
{
    int *cpus = context;
    (void)rounds;
    cpus[thread] = sched_getcpu();
}

/* Half of a thread's share of the last cache, so that neighbours in it do not push all of it out.
 */
static int64_t cache_set(const struct levels *l, const struct timed_pass *pass)
{
    int cpus[TIMED_PASS_THREADS_MAX];
    int64_t limit = (int64_t)l->bytes / pass->threads, share = 0;
    timed_pass_run(&(struct timed_pass){pass->pool, pass->threads, work_cpu, cpus}, 1);
    for (int level = CACHE_LEVELS; level > 0 && share == 0; level--)
        share = topology_cache_share(l->topology, level, cpus, pass->threads) / 2;
    share = share < CACHE_LEAST ? CACHE_LEAST : share > CACHE_MOST ? CACHE_MOST : share;
    return share < limit ? share : limit;
}

static double cache_read(const struct levels *l, const struct timed_pass *pass, struct walk *w)
{
    double rates[PASSES];
    w->from = 0;
    w->count = in_steps(cache_set(l, pass));
    if (w->count == 0)
        return NAN;
    double bytes = (double)w->count * sizeof(float);
    int64_t rounds = (int64_t)ceil(CACHE_PASS / bytes);
    timed_pass_run(pass, 1); /* brings it there */
    for (int k = 0; k < PASSES; k++)
        rates[k] = rate(pass, rounds, bytes);
    stats_sort(rates, PASSES);
    return stats_median(rates, PASSES);
}

void levels_read(struct levels *l, struct pool *pool, enum precision precision,
                 struct levels_now *out)
{
    int threads =
        pool_threads(pool) < TIMED_PASS_THREADS_MAX ? pool_threads(pool) : TIMED_PASS_THREADS_MAX;
    struct walk walk = {.block = l->block,
                        .region = in_steps((int64_t)l->bytes / threads),
                        .read = readers[isa_detect()]};
    struct timed_pass pass = {pool, threads, work_read, &walk};
    *out = (struct levels_now){
        .reason = {[LEVEL_HAND_OVER] = "one thread hands nothing over",
                   [LEVEL_CACHE] = "no room for what the caches of all threads hold",
                   [LEVEL_DRAM] = l->small,
                   [LEVEL_ARITHMETIC] = "no instruction for this precision is known here"}};
    out->value[LEVEL_HAND_OVER] = threads > 1 ? hand_over(pool) : NAN;
    out->value[LEVEL_DRAM] = l->past_caches ? dram_read(l, &pass, &walk) : NAN;
    out->value[LEVEL_CACHE] = cache_read(l, &pass, &walk);
    out->value[LEVEL_ARITHMETIC] = peak_rate(pool, isa_detect(), precision, BURSTS);
}

void levels_none(const char *reason, struct levels_now *out)
{
    for (int k = 0; k < LEVEL_COUNT; k++) {
        out->value[k] = NAN;
        out->reason[k] = reason;
    }
}

void levels_join(const struct levels_now *before, const struct levels_now *after,
                 struct visit_record *visit)
{
    visit->level_count = LEVEL_COUNT;
    for (int k = 0; k < LEVEL_COUNT; k++) {
        double value = sqrt(before->value[k] * after->value[k]);
        visit->levels[k] = (struct level_record){.name = level_kinds[k].name,
                                                 .unit = level_kinds[k].unit,
                                                 .better = level_kinds[k].better,
                                                 .value = value,
                                                 .reason = isnan(value) ? before->reason[k] : ""};
    }
}
