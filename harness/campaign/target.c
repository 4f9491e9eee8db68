/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness/machine/topology.h"
#include "profilers/lib/profiler.h"
#include "workloads/workload.h"

enum { LINE_BYTES = 64, NULL_DEFAULT_NS = 1000000, NULL_SCRIPT_MAX = 1000000 };

/* ---- cpu and devices ---- */

static void run_exe(void *context)
{
    exe_start(((struct target *)context)->exe);
}

static void finish_exe(void *context)
{
    exe_wait(((struct target *)context)->exe);
}

static void join_exe(void *context, double run_s)
{
    exe_join_runs(((struct target *)context)->exe, run_s);
}

static void run_exe_many(void *context, int64_t runs)
{
    exe_start_runs(((struct target *)context)->exe, runs);
}

static void evict_part(void *context, int64_t tile, int thread)
{
    struct target *t = context;
    (void)thread;
    size_t part = t->evict_bytes / (size_t)pool_threads(t->pool);
    volatile char *at = t->evict + (size_t)tile * part;
    for (size_t k = 0; k < part; k += LINE_BYTES)
        at[k]++;
}

/* Every thread writes its share of a buffer larger than all caches. */
static void flush_caches(void *context)
{
    struct target *t = context;
    pool_run(t->pool, pool_threads(t->pool), evict_part, t);
}

/* Of the caches of so many threads, each of which may have one of its own. */
static int64_t caches_of(const struct topology *topology, int threads)
{
    int cpu = topology_first_cpu(topology);
    int64_t all = topology_own_last_level_bytes(topology);
    int64_t each = topology_last_level_bytes(topology, &cpu, 1);
    return all > 0 && all < threads * each ? all : threads * each;
}

size_t target_evict_bytes(int threads)
{
    enum { EVICT_MIN = 64 << 20, EVICT_ENOUGH = 1 << 30 };
    struct topology *topology;
    struct error why;
    int64_t caches = 0;
    if (topology_open(&topology, &why) == STATUS_OK) {
        caches = caches_of(topology, threads);
        topology_close(topology);
    }
    int64_t bytes = 4 * caches;
    if (bytes > EVICT_ENOUGH)
        bytes = 2 * caches > EVICT_ENOUGH ? 2 * caches : EVICT_ENOUGH;
    return bytes < EVICT_MIN ? EVICT_MIN : (size_t)bytes;
}

static enum status open_evict(struct target *t, struct error *err)
{
    t->evict_bytes = target_evict_bytes(pool_threads(t->pool));
    t->evict = memory_alloc(t->evict_bytes);
    if (!t->evict)
        return FAIL_NO_MEMORY(err);
    memset(t->evict, 1, t->evict_bytes);
    t->subject.flush = flush_caches;
    return STATUS_OK;
}

/* Without NVML the clock is unknown. */
static void watch_gpu(const char *device, struct real_time *real)
{
    struct nvml_api api;
    struct error why;
    int index = profiler_cuda_index(device);
    real->clock_elsewhere = true;
    if (index >= 0 &&
        nvml_load(getenv("RIDGE_NVML"), getenv("RIDGE_LIBCUDA"), &api, &why) == STATUS_OK)
        nvml_gauge_open(&api, index, &real->gauge, &why);
}

struct model_options target_options(const struct point *point, const struct model_options *base)
{
    struct model_options m = *base;
    m.batch = point->batch;
    m.threads = point->threads;
    m.providers = point->providers[0] ? point->providers : base->providers;
    m.device = point->device;
    m.precision = point->precision;
    m.mode = point->mode;
    m.recompute = point->recompute;
    m.segments = point->segments;
    m.verifies = point->protocol.verify;
    m.quick_tune = base->quick_tune || point->protocol.quick_tune;
    return m;
}

static enum status open_exe(const struct point *point, const struct model_options *base,
                            struct target *t, struct error *err)
{
    struct model_options m = target_options(point, base);
    TRY(model_open(point->spec, &m, &t->graph, &t->exe, err));
    bool here = exe_device(t->exe)->kind->is_host;
    t->pool = here ? exe_pool(t->exe) : NULL;
    t->subject = (struct subject){.run = run_exe, .context = t};
    if (!here) {
        t->subject.finish = finish_exe;
        t->subject.join = join_exe;
        t->subject.run_many = run_exe_many;
    }
    real_time_open(&t->real, &t->time);
    if (!here)
        watch_gpu(point->device, &t->real);
    return point->protocol.cold && here ? open_evict(t, err) : STATUS_OK;
}

/* ---- null ---- */

static void run_null(void *context)
{
    struct target *t = context;
    t->null_now_ns += t->null_count ? t->null_script[t->null_next] : NULL_DEFAULT_NS;
    t->null_next = t->null_count ? (t->null_next + 1) % t->null_count : 0;
}

static void flush_null(void *context)
{
    (void)context;
}

static uint64_t null_now(void *context)
{
    return ((struct target *)context)->null_now_ns;
}

static void null_sleep(void *context, uint64_t ns)
{
    ((struct target *)context)->null_now_ns = ns;
}

static enum status read_script(struct target *t, const char *path, struct error *err)
{
    char line[64], *end;
    FILE *file = fopen(path, "r");
    if (!file)
        return FAIL(err, STATUS_FAILED, "RIDGE_NULL_SCRIPT %s: %s", path, strerror(errno));
    t->null_script = calloc(NULL_SCRIPT_MAX, sizeof(*t->null_script));
    enum status status = t->null_script ? STATUS_OK : FAIL_NO_MEMORY(err);
    while (status == STATUS_OK && t->null_count < NULL_SCRIPT_MAX &&
           fgets(line, sizeof(line), file)) {
        t->null_script[t->null_count++] = strtoull(line, &end, 10);
        if (end == line || (*end && *end != '\n'))
            status = FAIL(err, STATUS_FAILED, "%s:%lld: \"%.*s\" is no number of nanoseconds", path,
                          (long long)t->null_count, (int)strcspn(line, "\n"), line);
    }
    fclose(file);
    return status;
}

static enum status open_null(const struct point *point, struct target *t, struct error *err)
{
    const char *script = getenv("RIDGE_NULL_SCRIPT");
    enum precision precision;
    TRY(precision_from_name(point->precision, &precision, err));
    const struct model_options m = {.batch = point->batch,
                                    .mode = point->mode,
                                    .recompute = point->recompute,
                                    .segments = point->segments};
    TRY(model_graph(point->spec, &m, precision, &t->graph, err));
    t->subject = (struct subject){.run = run_null, .flush = flush_null, .context = t};
    t->time = (struct time_source){.now_ns = null_now, .sleep_until = null_sleep, .context = t};
    return script ? read_script(t, script, err) : STATUS_OK;
}

/* ---- both ---- */

enum status target_open(const struct point *point, const struct model_options *base,
                        struct target *target, struct error *err)
{
    *target = (struct target){.real = {.sched_fd = -1}};
    enum status status =
        point_is_null(point) ? open_null(point, target, err) : open_exe(point, base, target, err);
    if (status != STATUS_OK)
        target_close(target);
    return status;
}

void target_rest(struct target *t)
{
    if (t->exe)
        pool_stop(exe_pool(t->exe));
    memory_free(t->evict);
    t->evict = NULL;
}

enum status target_wake(struct target *t, const struct point *point, struct error *err)
{
    if (t->exe)
        TRY(pool_start(exe_pool(t->exe), err));
    return point->protocol.cold && t->pool ? open_evict(t, err) : STATUS_OK;
}

void target_close(struct target *target)
{
    real_time_close(&target->real);
    memory_free(target->evict);
    free(target->null_script);
    exe_free(target->exe);
    graph_free(target->graph);
    *target = (struct target){.real = {.sched_fd = -1}};
}
