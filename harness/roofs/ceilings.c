/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/roofs/ceilings.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/numbers/integers.h"
#include "base/numbers/stats.h"
#include "engine/kernels/lib/roof.h"
#include "harness/machine/procfs.h"
#include "harness/machine/topology.h"
#include "harness/roofs/timed_pass.h"
#include "harness/watch/free_memory.h"

enum {
    REPEATS = 101,
    REPEATS_QUICK = 31,
    /* One sample. Short, so that most samples are whole even where other programs take turns of
     * some milliseconds; 10000 times the clock's step. */
    PASS_NS = 400000,
    LEVELS = 4,
    PAGE = 4096,
    HUGE_PAGE = 2 << 20,
    /* Between arrays, modulo the page size: a load from the address of a recent store plus a
     * multiple of 4096 waits for it on many cores. */
    STAGGER = 1344,
    ARRAYS_MAX = 3,
    /* Of an array that is walked over in several samples: as long as the whole is larger than the
     * cache, it does not matter where a sample ends. */
    PIECE_BYTES = 1 << 20,
};

struct session {
    struct pool *pool;
    const struct ceiling_options *options;
    struct arena *arena;
    struct topology *topology;
    struct ceiling_record *records;
    size_t capacity;
    int count;
    int threads; /* of this round */
    int *cpus;   /* where thread k runs */
};

bool ceiling_is_wanted(const struct ceiling_options *options, const char *name)
{
    return !options->only || strstr(name, options->only);
}

static enum status add(struct session *s, struct ceiling_record record, struct error *err)
{
    if (record.name && !ceiling_is_wanted(s->options, record.name))
        return STATUS_OK;
    record.device = "cpu";
    record.threads = s->threads;
    if (!record.reason)
        record.reason = "";
    size_t need = (size_t)s->count + 1;
    struct ceiling_record *records =
        arena_grow(s->arena, s->records, &s->capacity, need, sizeof(*records));
    if (!records || !record.name)
        return FAIL_NO_MEMORY(err);
    s->records = records;
    records[s->count++] = record;
    return STATUS_OK;
}

/* Repeats a pass of `amount` operations or bytes per thread and round; fills value, min, max, n. */
static void measure(const struct session *s, const struct timed_pass *pass, double amount,
                    struct ceiling_record *record)
{
    double rates[REPEATS];
    int repeats = s->options->quick ? REPEATS_QUICK : REPEATS;
    if (record->name && !ceiling_is_wanted(s->options, record->name))
        return;
    int64_t rounds = timed_pass_calibrate(pass, PASS_NS);
    for (int k = 0; k < repeats; k++)
        rates[k] =
            amount * (double)rounds * pass->threads / (double)timed_pass_run(pass, rounds) * 1e9;
    stats_sort(rates, repeats);
    record->value = stats_median(rates, repeats);
    record->min = rates[0];
    record->max = rates[repeats - 1];
    record->n = repeats;
}

/* ---- arithmetic ---- */

struct arithmetic {
    const char *pattern, *precision, *isa, *unit;
    enum isa least;
    bool (*has)(void); /* beyond `least`; NULL: nothing */
    const char *missing;
    roof_compute *run;
};

#if BUILT_ISAS > 2

static const struct arithmetic arithmetic[] = {
    {"fma", "f32", "scalar", "FLOP/s", ISA_SCALAR, NULL, NULL, roof_fma_f32_scalar},
    {"fma", "f32", "avx2", "FLOP/s", ISA_AVX2, NULL, NULL, roof_fma_f32_avx2},
    {"fma", "f32", "avx512", "FLOP/s", ISA_AVX512, NULL, NULL, roof_fma_f32_avx512},
    {"fma", "f64", "scalar", "FLOP/s", ISA_SCALAR, NULL, NULL, roof_fma_f64_scalar},
    {"fma", "f64", "avx2", "FLOP/s", ISA_AVX2, NULL, NULL, roof_fma_f64_avx2},
    {"fma", "f64", "avx512", "FLOP/s", ISA_AVX512, NULL, NULL, roof_fma_f64_avx512},
    {"dot", "i8", "avx2", "OP/s", ISA_AVX2, NULL, NULL, roof_dot_i8_avx2},
    {"dot", "i8", "avx_vnni", "OP/s", ISA_AVX2, cpu_has_avx_vnni, "AVX-VNNI",
     roof_dot_i8_vnni_avx2},
    {"dot", "i8", "avx512", "OP/s", ISA_AVX512, NULL, NULL, roof_dot_i8_avx512},
    {"dot", "i8", "avx512_vnni", "OP/s", ISA_AVX512, cpu_has_vnni, "AVX512-VNNI",
     roof_dot_i8_vnni_avx512},
    {"dot", "bf16", "avx512_bf16", "FLOP/s", ISA_AVX512, cpu_has_bf16, "AVX512-BF16",
     roof_dot_bf16_avx512},
};

static roof_stream *const streams[][ISA_COUNT] = {
    {roof_read_scalar, roof_read_avx2, roof_read_avx512},
    {roof_copy_scalar, roof_copy_avx2, roof_copy_avx512},
    {roof_triad_scalar, roof_triad_avx2, roof_triad_avx512},
    {roof_copy_nt_scalar, roof_copy_nt_avx2, roof_copy_nt_avx512},
    {roof_triad_nt_scalar, roof_triad_nt_avx2, roof_triad_nt_avx512},
};

#else

static const struct arithmetic arithmetic[] = {
    {"fma", "f32", "scalar", "FLOP/s", ISA_SCALAR, NULL, NULL, roof_fma_f32_scalar},
    {"fma", "f64", "scalar", "FLOP/s", ISA_SCALAR, NULL, NULL, roof_fma_f64_scalar},
};

static roof_stream *const streams[][ISA_COUNT] = {
    {roof_read_scalar},    {roof_copy_scalar},     {roof_triad_scalar},
    {roof_copy_nt_scalar}, {roof_triad_nt_scalar},
};

#endif

struct arithmetic_pass {
    roof_compute *run;
    float *sink; /* 64 bytes per thread: no line is shared */
};

static void work_arithmetic(void *context, int thread, int64_t rounds)
{
    const struct arithmetic_pass *x = context;
    x->run(rounds, x->sink + (size_t)thread * 16);
}

static enum status measure_arithmetic(struct session *s, const struct arithmetic *row,
                                      struct error *err)
{
    struct ceiling_record record = {
        .kind = CEILING_COMPUTE,
        .name = arena_printf(s->arena, "%s %s %s", row->pattern, row->precision, row->isa),
        .level = "",
        .precision = row->precision,
        .isa = row->isa,
        .pattern = row->pattern,
        .working_set_bytes = RECORD_NONE,
        .unit = row->unit,
        .value = NAN,
        .min = NAN,
        .max = NAN,
    };
    const char *missing = row->least > s->options->isa ? isa_name(row->least) : row->missing;
    if (row->least > s->options->isa || (row->has && !row->has())) {
        record.reason = arena_printf(s->arena, "%s is not there%s", missing,
                                     row->least > isa_detect() || row->has ? " in this CPU"
                                                                           : ": --isa is lower");
        return record.reason ? add(s, record, err) : FAIL_NO_MEMORY(err);
    }
    struct arithmetic_pass x = {row->run, arena_alloc(s->arena, (size_t)s->threads * 64)};
    if (!x.sink)
        return FAIL_NO_MEMORY(err);
    struct timed_pass pass = {s->pool, s->threads, work_arithmetic, &x};
    float ignored;
    measure(s, &pass, row->run(1, &ignored), &record);
    return add(s, record, err);
}

/* ---- bandwidth ---- */

struct pattern {
    const char *name;
    int arrays;
    bool past_caches; /* its stores reach memory whatever the working set is: DRAM only */
};

static const struct pattern patterns[] = {
    {"read", 1, false},   {"copy", 2, false},    {"triad", 3, false},
    {"copy_nt", 2, true}, {"triad_nt", 3, true},
};

static const char *const level_names[LEVELS] = {"L1", "L2", "L3", "DRAM"};

/* Memory of all threads: a region each, touched first by its thread. */
struct field {
    char *block;
    size_t mapped;
    int64_t region_bytes;
    char *first; /* region of thread 0, on a boundary of huge pages */
    roof_stream *run;
    int arrays;
    int64_t count; /* floats per array */
    /* A round walks over one piece; the next round over the next. */
    int64_t pieces;
    int64_t *next; /* per thread, a cache line each */
};

static float *array_of(const struct field *f, int thread, int index)
{
    int64_t bytes = f->count * (int64_t)sizeof(float);
    int64_t apart = round_up(bytes, PAGE) + STAGGER;
    return (float *)(void *)(f->first + thread * f->region_bytes + index * apart);
}

static void work_touch(void *context, int thread, int64_t rounds)
{
    const struct field *f = context;
    float *region = (float *)(void *)(f->first + thread * f->region_bytes);
    (void)rounds;
    for (int64_t k = 0; k < f->region_bytes / (int64_t)sizeof(float); k++)
        region[k] = 1;
}

static void work_stream(void *context, int thread, int64_t rounds)
{
    const struct field *f = context;
    int64_t count = f->count / f->pieces;
    int64_t *next = &f->next[(size_t)thread * 8];
    if (f->pieces == 1) {
        struct roof_arrays whole = {array_of(f, thread, 0), array_of(f, thread, 1),
                                    array_of(f, thread, 2), count};
        f->run(&whole, rounds);
        return;
    }
    for (int64_t r = 0; r < rounds; r++) {
        int64_t from = *next % f->pieces * count;
        struct roof_arrays piece = {array_of(f, thread, 0) + from, array_of(f, thread, 1) + from,
                                    array_of(f, thread, 2) + from, count};
        f->run(&piece, 1);
        ++*next;
    }
}

static void work_cpu(void *context, int thread, int64_t rounds)
{
    int *cpus = context;
    (void)rounds;
    cpus[thread] = sched_getcpu();
}

static enum status field_new(struct session *s, int64_t set_bytes, struct field *f,
                             struct error *err)
{
    int64_t region = set_bytes / s->threads + ARRAYS_MAX * (PAGE + STAGGER);
    f->region_bytes = round_up(region, HUGE_PAGE);
    f->mapped = (size_t)(f->region_bytes * s->threads + HUGE_PAGE);
    void *block = mmap(NULL, f->mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED)
        return FAIL(err, STATUS_NO_MEMORY, "no %zu MB for the bandwidth measurement",
                    f->mapped >> 20);
    madvise(block, f->mapped, MADV_HUGEPAGE); /* refused on some kernels: then small pages */
    f->block = block;
    f->first = f->block + (HUGE_PAGE - (uintptr_t)block % HUGE_PAGE) % HUGE_PAGE;
    struct timed_pass pass = {s->pool, s->threads, work_touch, f};
    timed_pass_run(&pass, 1);
    return STATUS_OK;
}

/* Working set of all threads for a level; 0 and a reason when it cannot be measured. Half of a
 * cache, so that stack, code and neighbours do not push it out; never so small that it would fit
 * into the level below. */
static int64_t working_set(const struct session *s, int level, int64_t dram_bytes,
                           const char **reason)
{
    if (level == LEVELS - 1)
        return dram_bytes;
    int64_t share = topology_cache_share(s->topology, level + 1, s->cpus, s->threads);
    int64_t below = level ? topology_cache_share(s->topology, level, s->cpus, s->threads) : 0;
    int64_t bytes = share / 2 > 2 * below ? share / 2 : 2 * below < share ? 2 * below : 0;
    *reason = share == 0 ? arena_printf(s->arena, "hwloc knows no %s here", level_names[level])
                         : arena_printf(s->arena,
                                        "%" PRId64 " KiB of %s per thread are no more "
                                        "than the level below has",
                                        share >> 10, level_names[level]);
    return bytes * s->threads;
}

static enum status measure_stream(struct session *s, struct field *f, int level, int pattern,
                                  int64_t set_bytes, const char *reason, struct error *err)
{
    const struct pattern *p = &patterns[pattern];
    struct ceiling_record record = {
        .name = arena_printf(s->arena, "%s %s", p->name, level_names[level]),
        .level = level_names[level],
        .precision = "",
        .isa = isa_name(s->options->isa),
        .pattern = p->name,
        .unit = "B/s",
        .working_set_bytes = RECORD_NONE,
        .value = NAN,
        .min = NAN,
        .max = NAN,
    };
    f->run = streams[pattern][s->options->isa];
    f->arrays = p->arrays;
    int64_t bytes_each = set_bytes / s->threads / p->arrays;
    f->pieces = bytes_each > 2 * PIECE_BYTES ? bytes_each / PIECE_BYTES : 1;
    int64_t step = ROOF_COUNT_STEP * f->pieces;
    f->count = bytes_each / (int64_t)sizeof(float) / step * step;
    if (f->count == 0) {
        record.reason = reason ? reason : "out of memory";
        return add(s, record, err);
    }
    int64_t piece = f->count / f->pieces;
    double bytes = (double)piece * sizeof(float) * p->arrays;
    record.working_set_bytes = f->count * (int64_t)sizeof(float) * p->arrays * s->threads;
    struct timed_pass pass = {s->pool, s->threads, work_stream, f};
    measure(s, &pass, bytes, &record);
    return add(s, record, err);
}

/* At least four times all last-level caches, if there is that much memory. */
static int64_t dram_set(const struct session *s, const char **reason)
{
    int64_t caches = topology_last_level_bytes(s->topology, s->cpus, s->threads);
    int64_t limit = s->options->memory_bytes;
    double available = limit ? 0 : free_memory_find("").bytes;
    if (!limit && isfinite(available))
        limit = (int64_t)(available / 4);
    int64_t want = caches ? 4 * caches : (int64_t)256 << 20;
    if (want < (int64_t)64 << 20)
        want = (int64_t)64 << 20;
    *reason = arena_printf(s->arena,
                           "needs %" PRId64 " MB, four times the last-level caches; %" PRId64
                           " MB may be used",
                           want >> 20, limit >> 20);
    return want <= limit ? want : 0;
}

static enum status measure_streams(struct session *s, struct error *err)
{
    struct field field = {.next = arena_array(s->arena, (size_t)s->threads, 64)};
    if (!field.next)
        return FAIL_NO_MEMORY(err);
    const char *reasons[LEVELS] = {0};
    int64_t sets[LEVELS], largest = 0;
    int64_t dram = dram_set(s, &reasons[LEVELS - 1]);
    for (int level = 0; level < LEVELS; level++) {
        sets[level] = working_set(s, level, dram, &reasons[level]);
        largest = sets[level] > largest ? sets[level] : largest;
    }
    TRY(field_new(s, largest, &field, err));
    enum status status = STATUS_OK;
    for (int level = 0; level < LEVELS; level++)
        for (int p = 0; p < ARRAY_COUNT(patterns) && status == STATUS_OK; p++)
            if (level == LEVELS - 1 || !patterns[p].past_caches)
                status = measure_stream(s, &field, level, p, sets[level], reasons[level], err);
    munmap(field.block, field.mapped);
    return status;
}

/* ---- all ---- */

static enum status measure_threads(struct session *s, int threads, struct error *err)
{
    s->threads = threads;
    for (int k = 0; k < ARRAY_COUNT(arithmetic); k++)
        TRY(measure_arithmetic(s, &arithmetic[k], err));
    return measure_streams(s, err);
}

enum status ceilings_measure(struct pool *pool, const struct ceiling_options *options,
                             struct arena *arena, const struct ceiling_record **out, int *count,
                             struct error *err)
{
    int threads = pool_threads(pool);
    threads = threads < TIMED_PASS_THREADS_MAX ? threads : TIMED_PASS_THREADS_MAX;
    struct session s = {.pool = pool, .options = options, .arena = arena};
    s.cpus = arena_array(arena, (size_t)threads, sizeof(*s.cpus));
    if (!s.cpus)
        return FAIL_NO_MEMORY(err);
    timed_pass_run(&(struct timed_pass){pool, threads, work_cpu, s.cpus}, 1);
    TRY(topology_open(&s.topology, err));
    enum status status = measure_threads(&s, 1, err);
    for (int k = 2; k <= threads && status == STATUS_OK; k++)
        if (options->every_count || k == threads)
            status = measure_threads(&s, k, err);
    topology_close(s.topology);
    *out = s.records;
    *count = s.count;
    return status;
}

bool ceilings_are_low(const struct ceiling_record *list, int count, int threads, double flop_rate)
{
    double highest = 0;
    for (int k = 0; k < count; k++)
        if (list[k].kind == CEILING_COMPUTE && list[k].threads == threads &&
            strcmp(list[k].device, "cpu") == 0 && strcmp(list[k].precision, "f32") == 0)
            highest = fmax(highest, list[k].value);
    return highest > 0 && flop_rate > 1.1 * highest;
}

void ceilings_take_higher(struct ceiling_record *list, const struct ceiling_record *other,
                          int count)
{
    for (int k = 0; k < count; k++)
        if (other[k].value > list[k].value)
            list[k] = other[k];
}
