/* SPDX-License-Identifier: Apache-2.0
 *
 * A sample is the time between two events around so many rounds that it takes two milliseconds:
 * long against the events' own 0.5 us, short against the time in which a GPU gets hot. Before the
 * first sample of a roof its rounds run for a while, since an idle GPU's clock is low. */
#include "harness/roofs/device_ceilings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/numbers/stats.h"
#include "base/registry.h"
#include "base/system/clock.h"
#include "engine/run/device_roof.h"
#include "profilers/lib/nvml.h"
#include "profilers/lib/profiler.h"

enum {
    REPEATS = 101,
    REPEATS_QUICK = 31,
    PASS_NS = 2000000,
    ROUNDS_MAX = 1 << 30,
    /* Launches that are queued or captured together, so that they share the cost of the replay. */
    LAUNCHES = 250,
    WARM_NS = 20000000,
    WARM_FIRST_NS = 300000000,
    LINK_BYTES = 32 << 20,
    /* Of memory within which the device copies, as the roofs of plug-ins have it. */
    CACHES = 10,
    /* The clock is read in every tenth pass: reading takes the host longer than some passes last.
     */
    PASSES_PER_LOOK = 10,
    LOOKS_MAX = REPEATS / PASSES_PER_LOOK + 1,
};

struct session {
    const char *name;
    const struct ceiling_options *options;
    bool warm;
    struct device device;
    void *stream, *begin, *end;
    struct arena *arena;
    struct ceiling_record *records;
    size_t capacity;
    int count;
    struct error broken;      /* why nothing can be measured any more */
    struct nvml_gauge gauge;  /* of this device, if it is open */
    double clocks[LOOKS_MAX]; /* that the latest roof was measured at */
    int looks;
};

/* Puts rounds into the session's stream. */
struct device_pass {
    enum status (*put)(struct session *s, const void *context, int64_t rounds, struct error *err);
    const void *context;
};

/* ---- records ---- */

static struct ceiling_record record_of(struct session *s, enum ceiling_kind kind, const char *name)
{
    return (struct ceiling_record){.device = s->name,
                                   .kind = kind,
                                   .name = name,
                                   .level = "",
                                   .precision = "",
                                   .isa = "",
                                   .pattern = "",
                                   .working_set_bytes = RECORD_NONE,
                                   .value = NAN,
                                   .unit = "B/s",
                                   .reason = "",
                                   .min = NAN,
                                   .max = NAN,
                                   .clock_hz = NAN};
}

static enum status add(struct session *s, const struct ceiling_record *record, struct error *err)
{
    if (!ceiling_is_wanted(s->options, record->name))
        return STATUS_OK;
    size_t need = (size_t)s->count + 1;
    struct ceiling_record *records =
        arena_grow(s->arena, s->records, &s->capacity, need, sizeof(*records));
    if (!records)
        return FAIL_NO_MEMORY(err);
    s->records = records;
    records[s->count++] = *record;
    return STATUS_OK;
}

static enum status add_missing(struct session *s, struct ceiling_record record, const char *reason,
                               struct error *err)
{
    record.value = record.min = record.max = NAN;
    record.n = 0;
    record.reason = arena_strdup(s->arena, reason);
    return record.reason ? add(s, &record, err) : FAIL_NO_MEMORY(err);
}

/* When the device was lost, that is the reason for all further ceilings. */
static enum status add_failed(struct session *s, const struct ceiling_record *record,
                              struct error *why, struct error *err)
{
    if (device_blame(&s->device, s->stream, why) == STATUS_LOST && s->broken.code == STATUS_OK) {
        s->broken = *why;
        error_context(&s->broken, "the device was lost at ceiling \"%s\"", record->name);
    }
    return add_missing(s, *record, why->message, err);
}

/* ---- time ---- */

/* While the device works: its clock falls when it does not. */
static void look_at_clock(struct session *s)
{
    double hz = s->gauge.open ? nvml_gauge_read(&s->gauge).clock_hz : NAN;
    if (hz > 0 && s->looks < LOOKS_MAX)
        s->clocks[s->looks++] = hz;
}

static double median_clock(struct session *s)
{
    stats_sort(s->clocks, s->looks);
    return s->looks ? stats_median(s->clocks, s->looks) : NAN;
}

static enum status pass_ns(struct session *s, const struct device_pass *pass, int64_t rounds,
                           bool look, double *ns, struct error *err)
{
    const struct device_kind *kind = s->device.kind;
    TRY(kind->event_record(&s->device, s->begin, s->stream, err));
    TRY(pass->put(s, pass->context, rounds, err));
    TRY(kind->event_record(&s->device, s->end, s->stream, err));
    if (look)
        look_at_clock(s);
    TRY(kind->wait(&s->device, s->stream, err));
    TRY(kind->event_elapsed(&s->device, s->begin, s->end, ns, err));
    *ns = *ns > 1 ? *ns : 1;
    return STATUS_OK;
}

/* The rounds that take a pass's time, after the device has worked long enough. */
static enum status calibrate(struct session *s, const struct device_pass *pass, int64_t rounds_max,
                             int64_t *rounds, struct error *err)
{
    double worked = 0, warm = s->warm ? WARM_NS : WARM_FIRST_NS, ns;
    *rounds = 1;
    for (;;) {
        TRY(pass_ns(s, pass, *rounds, false, &ns, err));
        worked += ns;
        double factor = PASS_NS / ns;
        bool enough = factor <= 2 || *rounds == rounds_max;
        if (enough && worked >= warm)
            break;
        double wanted = (double)*rounds * (factor > 16 ? 16 : factor);
        *rounds = wanted < 1 ? 1 : wanted > (double)rounds_max ? rounds_max : (int64_t)wanted;
    }
    s->warm = true;
    return STATUS_OK;
}

/* As long as a pass took: the limits of power and heat look at more than a few milliseconds, and
 * the clock stays up for longer than that. */
static void rest(double pass_ns)
{
    long ns = (long)(pass_ns < PASS_NS ? pass_ns : PASS_NS);
    nanosleep(&(struct timespec){0, ns}, NULL);
}

static enum status sample(struct session *s, const struct device_pass *pass, int64_t rounds_max,
                          double amount, double *values, int repeats, struct error *err)
{
    int64_t rounds;
    TRY(calibrate(s, pass, rounds_max, &rounds, err));
    s->looks = 0;
    for (int k = 0; k < repeats; k++) {
        double ns;
        TRY(pass_ns(s, pass, rounds, k % PASSES_PER_LOOK == 0, &ns, err));
        if (!s->options->quick)
            rest(ns);
        values[k] = amount * (double)rounds / ns * 1e9;
    }
    return STATUS_OK;
}

static void summarise(struct ceiling_record *record, double *values, int repeats)
{
    stats_sort(values, repeats);
    record->value = stats_median(values, repeats);
    record->min = values[0];
    record->max = values[repeats - 1];
    record->n = repeats;
}

/* Fills value, min, max and n: amount per round over time, or time per round where that is what is
 * asked. A failure becomes the record's reason. */
static enum status measure(struct session *s, const struct device_pass *pass, int64_t rounds_max,
                           double amount, struct ceiling_record *record, struct error *err)
{
    double values[REPEATS];
    struct error why = {0};
    int repeats = s->options->quick ? REPEATS_QUICK : REPEATS;
    if (!ceiling_is_wanted(s->options, record->name))
        return STATUS_OK;
    if (sample(s, pass, rounds_max, amount, values, repeats, &why) != STATUS_OK)
        return add_failed(s, record, &why, err);
    if (record->kind == CEILING_LATENCY)
        for (int k = 0; k < repeats; k++)
            values[k] = 1 / values[k];
    summarise(record, values, repeats);
    record->clock_hz = median_clock(s);
    return add(s, record, err);
}

/* ---- launches ---- */

struct launching {
    const struct device_roof *roof;
    const struct roof_state *state;
    struct device_graph *graph; /* of LAUNCHES */
};

static enum status put_launches(struct session *s, const void *context, int64_t rounds,
                                struct error *err)
{
    const struct launching *x = context;
    return x->roof->run(x->state, rounds * LAUNCHES, s->stream, err);
}

static enum status put_graph(struct session *s, const void *context, int64_t rounds,
                             struct error *err)
{
    const struct launching *x = context;
    for (int64_t k = 0; k < rounds; k++)
        TRY(s->device.kind->replay(&s->device, x->graph, s->stream, err));
    return STATUS_OK;
}

static enum status capture(struct session *s, struct launching *x, struct error *err)
{
    const struct device_kind *kind = s->device.kind;
    struct error ignored;
    if (!kind->capture_begin)
        return UNSUPPORTED(err, "this device captures nothing");
    TRY(kind->capture_begin(&s->device, s->stream, err));
    enum status status = x->roof->run(x->state, LAUNCHES, s->stream, err);
    enum status ended =
        kind->capture_end(&s->device, s->stream, &x->graph, status == STATUS_OK ? err : &ignored);
    if (status != STATUS_OK && ended == STATUS_OK)
        kind->graph_free(&s->device, x->graph);
    return status == STATUS_OK ? ended : status;
}

/* From the call to an idle device, by the host's clock: what one small execution pays at least. */
static enum status measure_waiting(struct session *s, const struct launching *x,
                                   struct ceiling_record *record, struct error *err)
{
    double values[REPEATS];
    struct error why = {0};
    enum status status = STATUS_OK;
    int repeats = s->options->quick ? REPEATS_QUICK : REPEATS;
    for (int k = 0; k < repeats && status == STATUS_OK; k++) {
        uint64_t start = clock_now_ns();
        status = x->roof->run(x->state, 1, s->stream, &why);
        if (status == STATUS_OK)
            status = s->device.kind->wait(&s->device, s->stream, &why);
        values[k] = (double)(clock_now_ns() - start) * 1e-9;
    }
    if (status != STATUS_OK)
        return add_failed(s, record, &why, err);
    summarise(record, values, repeats);
    return add(s, record, err);
}

static enum status measure_replay(struct session *s, struct launching *x,
                                  struct ceiling_record *record, struct error *err)
{
    struct error why = {0};
    if (capture(s, x, &why) != STATUS_OK)
        return add_failed(s, record, &why, err);
    struct device_pass pass = {put_graph, x};
    enum status status = measure(s, &pass, ROUNDS_MAX, LAUNCHES, record, err);
    s->device.kind->graph_free(&s->device, x->graph);
    return status;
}

static enum status measure_launches(struct session *s, const struct device_roof *roof,
                                    const struct roof_state *state, struct ceiling_record record,
                                    struct error *err)
{
    static const char *const patterns[] = {"stream", "graph", "wait"};
    struct launching x = {.roof = roof, .state = state};
    struct device_pass pass = {put_launches, &x};
    struct ceiling_record of[3];
    for (int k = 0; k < 3; k++) {
        of[k] = record;
        of[k].pattern = patterns[k];
        of[k].name = arena_printf(s->arena, "%s %s", roof->name, patterns[k]);
        if (!of[k].name)
            return FAIL_NO_MEMORY(err);
    }
    TRY(measure(s, &pass, ROUNDS_MAX, LAUNCHES, &of[0], err));
    TRY(measure_replay(s, &x, &of[1], err));
    return measure_waiting(s, &x, &of[2], err);
}

/* ---- roofs of plug-ins ---- */

struct running {
    const struct device_roof *roof;
    const struct roof_state *state;
};

static enum status put_roof(struct session *s, const void *context, int64_t rounds,
                            struct error *err)
{
    const struct running *x = context;
    return x->roof->run(x->state, rounds, s->stream, err);
}

static enum status measure_roof(struct session *s, const struct device_roof *roof,
                                struct error *err)
{
    static const enum ceiling_kind kinds[] = {[ROOF_BANDWIDTH] = CEILING_BANDWIDTH,
                                              [ROOF_COMPUTE] = CEILING_COMPUTE,
                                              [ROOF_LAUNCH] = CEILING_LATENCY};
    struct error why = s->broken;
    struct roof_work work = {.amount = 0};
    struct roof_state *state = NULL;
    struct ceiling_record record = record_of(s, kinds[roof->kind], roof->name);
    record.level = roof->level;
    record.precision = roof->precision;
    record.pattern = roof->pattern;
    record.isa = roof->isa;
    record.unit = roof->unit;
    if (roof->kind != ROOF_LAUNCH && !ceiling_is_wanted(s->options, roof->name))
        return STATUS_OK;
    if (s->broken.code != STATUS_OK ||
        roof->prepare(roof, &s->device, &work, &state, &why) != STATUS_OK)
        return add_missing(s, record, why.message, err);
    if (work.working_bytes)
        record.working_set_bytes = (int64_t)work.working_bytes;
    struct running x = {roof, state};
    struct device_pass pass = {put_roof, &x};
    enum status status = roof->kind == ROOF_LAUNCH
                             ? measure_launches(s, roof, state, record, err)
                             : measure(s, &pass, ROUNDS_MAX, work.amount, &record, err);
    roof->release(state);
    return status;
}

/* ---- copies ---- */

struct copying {
    void *to;
    const void *from;
    size_t bytes;
    enum device_copy direction;
};

static enum status put_copy(struct session *s, const void *context, int64_t rounds,
                            struct error *err)
{
    const struct copying *x = context;
    for (int64_t k = 0; k < rounds; k++)
        TRY(s->device.kind->copy(&s->device, x->to, x->from, x->bytes, x->direction, s->stream,
                                 err));
    return STATUS_OK;
}

static enum status measure_link(struct session *s, void *device, void *host, struct error *err)
{
    const struct copying ways[] = {{device, host, LINK_BYTES, COPY_TO_DEVICE},
                                   {host, device, LINK_BYTES, COPY_TO_HOST}};
    static const char *const names[] = {"copy to device", "copy to host"};
    for (int k = 0; k < 2; k++) {
        struct ceiling_record record = record_of(s, CEILING_BANDWIDTH, names[k]);
        struct device_pass pass = {put_copy, &ways[k]};
        record.level = "link";
        record.pattern = k ? "to_host" : "to_device";
        record.isa = "copy engine, pinned memory";
        record.working_set_bytes = LINK_BYTES;
        TRY(measure(s, &pass, ROUNDS_MAX, LINK_BYTES, &record, err));
    }
    return STATUS_OK;
}

static enum status measure_links(struct session *s, struct error *err)
{
    const struct device_kind *kind = s->device.kind;
    void *device = NULL, *host = NULL;
    struct error why = s->broken;
    enum status status = why.code;
    if (status == STATUS_OK)
        status = kind->alloc(&s->device, LINK_BYTES, &device, &why);
    if (status == STATUS_OK)
        status = kind->alloc_host(&s->device, LINK_BYTES, &host, &why);
    if (status == STATUS_OK) {
        memset(host, 0x5a, LINK_BYTES); /* of this thread's node, and there */
        status = measure_link(s, device, host, err);
    } else {
        struct ceiling_record record = record_of(s, CEILING_BANDWIDTH, "copy to device");
        record.level = "link";
        status = add_missing(s, record, why.message, err);
        record.name = "copy to host";
        if (status == STATUS_OK)
            status = add_missing(s, record, why.message, err);
    }
    if (host)
        kind->free_host(&s->device, host);
    if (device)
        kind->free(&s->device, device);
    return status;
}

static enum status measure_within(struct session *s, struct error *err)
{
    const struct device_properties *p = &s->device.properties;
    struct ceiling_record record = record_of(s, CEILING_BANDWIDTH, "memcpy DRAM");
    size_t bytes = p->cache_bytes * CACHES;
    void *memory = NULL;
    struct error why = s->broken;
    record.level = "DRAM";
    record.pattern = "copy";
    record.isa = "the device's own copy";
    if (why.code == STATUS_OK && (bytes == 0 || 2 * bytes > p->free_bytes / 2))
        (void)UNSUPPORTED(&why,
                          "needs %zu MB, ten times the second cache twice; half of what is "
                          "free are %zu MB",
                          bytes >> 19, p->free_bytes >> 21);
    if (why.code != STATUS_OK || s->device.kind->alloc(&s->device, 2 * bytes, &memory, &why))
        return add_missing(s, record, why.message, err);
    record.working_set_bytes = (int64_t)(2 * bytes);
    struct copying x = {(char *)memory + bytes, memory, bytes, COPY_WITHIN};
    struct device_pass pass = {put_copy, &x};
    enum status status = measure(s, &pass, ROUNDS_MAX, 2 * (double)bytes, &record, err);
    s->device.kind->free(&s->device, memory);
    return status;
}

/* ---- what the device says ---- */

static enum status add_stated(struct session *s, enum ceiling_kind kind, const char *name,
                              const char *level, double value, struct error *err)
{
    struct ceiling_record record = record_of(s, kind, name);
    record.level = level;
    record.unit = kind == CEILING_CAPACITY ? "B" : "B/s";
    record.isa = "as the driver says";
    record.datasheet = true;
    record.value = value > 0 ? value : NAN;
    record.reason = value > 0 ? "" : "the driver does not say";
    return add(s, &record, err);
}

static enum status add_properties(struct session *s, struct error *err)
{
    const struct device_properties *p = &s->device.properties;
    TRY(add_stated(s, CEILING_CAPACITY, "size L2", "L2", (double)p->cache_bytes, err));
    TRY(add_stated(s, CEILING_CAPACITY, "size DRAM", "DRAM", (double)p->memory_bytes, err));
    return add_stated(s, CEILING_BANDWIDTH, "clock x width DRAM", "DRAM", p->memory_bytes_per_s,
                      err);
}

/* ---- all ---- */

/* Without NVML no clock is known. */
static void open_gauge(struct session *s)
{
    struct nvml_api api;
    struct error unused;
    int index = profiler_cuda_index(s->name);
    if (index >= 0 &&
        nvml_load(getenv("RIDGE_NVML"), getenv("RIDGE_LIBCUDA"), &api, &unused) == STATUS_OK)
        nvml_gauge_open(&api, index, &s->gauge, &unused);
}

static enum status open_session(struct session *s, struct error *err)
{
    const struct device_kind *kind = s->device.kind;
    open_gauge(s);
    TRY(kind->stream_new(&s->device, &s->stream, err));
    TRY(kind->event_new(&s->device, &s->begin, err));
    return kind->event_new(&s->device, &s->end, err);
}

static void close_session(struct session *s)
{
    const struct device_kind *kind = s->device.kind;
    if (s->begin)
        kind->event_free(&s->device, s->begin);
    if (s->end)
        kind->event_free(&s->device, s->end);
    if (s->stream)
        kind->stream_free(&s->device, s->stream);
    nvml_gauge_close(&s->gauge);
    device_close(&s->device);
}

static enum status measure_all(struct session *s, struct error *err)
{
    for (int k = 0; k < device_roof_count(); k++)
        if (strcmp(device_roof_at(k)->device, s->device.kind->name) == 0)
            TRY(measure_roof(s, device_roof_at(k), err));
    TRY(measure_within(s, err));
    TRY(measure_links(s, err));
    return add_properties(s, err);
}

enum status device_ceilings_measure(const char *name, const struct ceiling_options *options,
                                    struct arena *arena, const struct ceiling_record **out,
                                    int *count, struct error *err)
{
    struct session s = {.options = options, .arena = arena};
    *out = NULL;
    *count = 0;
    char canonical[DEVICE_NAME_SIZE];
    device_canonical(name, canonical);
    s.name = arena_strdup(arena, canonical);
    if (!s.name)
        return FAIL_NO_MEMORY(err);
    TRY(device_open(name, &s.device, err));
    if (open_session(&s, &s.broken) != STATUS_OK && s.broken.code == STATUS_OK)
        (void)FAIL(&s.broken, STATUS_FAILED, "%s cannot be used", name);
    enum status status = measure_all(&s, err);
    close_session(&s);
    *out = s.records;
    *count = s.count;
    return status;
}
