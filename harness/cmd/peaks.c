/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge peaks: the ceilings of this machine, measured now. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text/json.h"
#include "base/text/table.h"
#include "base/text/utc.h"
#include "engine/run/device.h"
#include "engine/run/plugin.h"
#include "harness/cli/command.h"
#include "harness/machine/environment.h"
#include "harness/roofs/ceilings.h"
#include "harness/roofs/device_ceilings.h"
#include "results/store.h"

struct peaks_options {
    int64_t threads;
    const char *isa, *db, *device, *only;
    bool every, quick, json, save, redact;
};

/* What was measured, and on which machine. */
struct peaks {
    struct arena arena;
    struct environment environment;
    struct build_record build;
    const struct ceiling_record *records;
    int count;
    char started[UTC_TEXT];
};

static const struct option options[] = {
    {"device", 0, OPTION_TEXT, offsetof(struct peaks_options, device), "NAME",
     "cpu, or a device of a plug-in: cuda, cuda:1"},
    {"threads", 't', OPTION_THREADS, offsetof(struct peaks_options, threads), "N",
     "measure one thread and N (default: one per CPU)"},
    {"every", 0, OPTION_FLAG, offsetof(struct peaks_options, every), NULL,
     "also every number of threads in between"},
    {"isa", 0, OPTION_TEXT, offsetof(struct peaks_options, isa), "NAME",
     "highest instruction set: scalar, avx2 or avx512"},
    {"only", 0, OPTION_TEXT, offsetof(struct peaks_options, only), "TEXT",
     "those whose name contains TEXT: \"DRAM\", \"launch wait\""},
    {"quick", 'q', OPTION_FLAG, offsetof(struct peaks_options, quick), NULL,
     "fewer and shorter samples"},
    {"save", 0, OPTION_FLAG, offsetof(struct peaks_options, save), NULL,
     "store them in the database, as a separate run"},
    {"db", 'd', OPTION_TEXT, offsetof(struct peaks_options, db), "FILE",
     "database (default out/ridge.db)"},
    {"redact", 0, OPTION_FLAG, offsetof(struct peaks_options, redact), NULL,
     "with --save: without names, serial numbers and paths of this machine"},
    {"json", 0, OPTION_FLAG, offsetof(struct peaks_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

static enum status isa_of(const char *name, enum isa *isa, struct error *err)
{
    *isa = isa_detect();
    if (!name)
        return STATUS_OK;
    for (int k = 0; k < ISA_COUNT; k++) {
        if (strcmp(name, isa_name((enum isa)k)) != 0)
            continue;
        if (k > (int)*isa)
            return FAIL(err, STATUS_FAILED, "this CPU has no %s: its highest is %s", name,
                        isa_name(*isa));
        *isa = (enum isa)k;
        return STATUS_OK;
    }
    return FAIL(err, STATUS_FAILED, "instruction set \"%s\" unknown: scalar, avx2 or avx512", name);
}

static void print_bytes(struct table *table, const struct ceiling_record *r)
{
    int64_t bytes = r->working_set_bytes;
    if (bytes == RECORD_NONE)
        table_cell(table, "%s", r->kind == CEILING_COMPUTE ? "registers" : " ");
    else if (bytes >= 10 << 20)
        table_cell(table, "%" PRId64 " MiB", bytes >> 20);
    else
        table_cell(table, "%" PRId64 " KiB", bytes >> 10);
}

struct printed_unit {
    double factor;
    const char *unit;
};

/* Rates in billions, times in microseconds, sizes in MB. */
static struct printed_unit printed_unit(const struct ceiling_record *r)
{
    if (r->kind == CEILING_LATENCY)
        return (struct printed_unit){1e6, "us"};
    if (r->kind == CEILING_CAPACITY)
        return (struct printed_unit){1e-6, "MB"};
    return (struct printed_unit){1e-9, strcmp(r->unit, "B/s") == 0      ? "GB/s"
                                       : strcmp(r->unit, "FLOP/s") == 0 ? "GFLOP/s"
                                                                        : "GOP/s"};
}

static void print_value(struct table *table, const struct ceiling_record *r)
{
    struct printed_unit print = printed_unit(r);
    if (isnan(r->value))
        table_cell(table, "-");
    else
        table_cell(table, "%.*f", r->kind == CEILING_LATENCY ? 2 : 1, r->value * print.factor);
    table_cell(table, "%s", print.unit);
    if (isnan(r->min)) {
        table_cell(table, " ");
        table_cell(table, " ");
    } else {
        table_cell(table, "%+.1f %%", (r->min / r->value - 1) * 100);
        table_cell(table, "%+.1f %%", (r->max / r->value - 1) * 100);
    }
}

static bool has_clock(const struct ceiling_record *records, int count)
{
    for (int k = 0; k < count; k++)
        if (records[k].clock_hz > 0)
            return true;
    return false;
}

static void print_clock(struct table *table, const struct ceiling_record *r)
{
    if (r->clock_hz > 0)
        table_cell(table, "%.2f GHz", r->clock_hz * 1e-9);
    else
        table_cell(table, " ");
}

static void print_table(const struct ceiling_record *records, int count)
{
    struct table table = {0};
    bool clock = has_clock(records, count);
    table_column(&table, "ceiling", TABLE_LEFT);
    table_column(&table, "threads", TABLE_RIGHT);
    table_column(&table, "value", TABLE_RIGHT);
    table_column(&table, "unit", TABLE_LEFT);
    table_column(&table, "lowest", TABLE_RIGHT);
    table_column(&table, "highest", TABLE_RIGHT);
    table_column(&table, "working set", TABLE_RIGHT);
    if (clock)
        table_column(&table, "clock", TABLE_RIGHT);
    table_column(&table, "", TABLE_LEFT);
    for (int k = 0; k < count; k++) {
        const struct ceiling_record *r = &records[k];
        table_cell(&table, "%s", r->name);
        if (r->threads)
            table_cell(&table, "%d", r->threads);
        else
            table_cell(&table, " ");
        print_value(&table, r);
        print_bytes(&table, r);
        if (clock)
            print_clock(&table, r);
        table_cell(&table, "%s", r->reason[0] ? r->reason : r->datasheet ? r->isa : "");
    }
    table_print(&table, stdout);
    table_release(&table);
}

static void print_json(const struct ceiling_record *records, int count)
{
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '[');
    for (int k = 0; k < count; k++) {
        const struct ceiling_record *r = &records[k];
        json_open(&json, NULL, '{');
        json_text(&json, "name", r->name);
        json_text(&json, "kind", ceiling_kind_name(r->kind));
        json_text(&json, "device", r->device);
        json_text(&json, "level", r->level);
        json_text(&json, "precision", r->precision);
        json_text(&json, "isa", r->isa);
        json_text(&json, "pattern", r->pattern);
        json_int(&json, "threads", r->threads);
        json_number(&json, "value", r->value);
        json_text(&json, "unit", r->unit);
        json_int(&json, "n", r->n);
        json_number(&json, "min", r->min);
        json_number(&json, "max", r->max);
        if (r->working_set_bytes == RECORD_NONE)
            json_null(&json, "working_set_bytes");
        else
            json_int(&json, "working_set_bytes", r->working_set_bytes);
        json_number(&json, "clock_hz", r->clock_hz > 0 ? r->clock_hz : NAN);
        json_text(&json, "reason", r->reason[0] ? r->reason : NULL);
        json_close(&json);
    }
    json_close(&json);
}

static enum status measure_cpu(const struct peaks_options *o, struct peaks *peaks,
                               struct error *err)
{
    struct ceiling_options wanted = {.quick = o->quick, .every_count = o->every, .only = o->only};
    struct pool *pool;
    TRY(isa_of(o->isa, &wanted.isa, err));
    TRY(pool_new((int)o->threads, &pool, err));
    enum status status =
        ceilings_measure(pool, &wanted, &peaks->arena, &peaks->records, &peaks->count, err);
    pool_free(pool);
    return status;
}

static bool is_cpu(const struct peaks_options *o)
{
    char name[DEVICE_NAME_SIZE];
    device_canonical(o->device, name);
    return strcmp(name, "cpu") == 0;
}

static enum status measure_device(const struct peaks_options *o, struct peaks *peaks,
                                  struct error *err)
{
    const struct ceiling_options wanted = {.quick = o->quick, .only = o->only};
    return device_ceilings_measure(o->device, &wanted, &peaks->arena, &peaks->records,
                                   &peaks->count, err);
}

/* Facts of the machine are read before threads are bound to CPUs. */
static enum status measure(const struct peaks_options *o, struct peaks *peaks, struct error *err)
{
    utc_now(peaks->started);
    if (!is_cpu(o)) {
        plugins_load(NULL);
        TRY(device_check(o->device, err));
    }
    TRY(environment_probe(&peaks->environment, &peaks->arena, o->redact, err));
    TRY(build_probe(&peaks->build, &peaks->arena, err));
    TRY(is_cpu(o) ? measure_cpu(o, peaks, err) : measure_device(o, peaks, err));
    return peaks->count ? STATUS_OK
                        : FAIL(err, STATUS_FAILED, "no ceiling's name contains \"%s\"", o->only);
}

static enum status put(struct store *store, const struct peaks *peaks, struct error *err)
{
    char uuid[UUID_TEXT];
    int64_t run;
    uuid_make(uuid);
    struct run_head head = {.uuid = uuid,
                            .environment = &peaks->environment,
                            .build = &peaks->build,
                            .command = "ridge peaks",
                            .suite = "peaks",
                            .suite_text = "",
                            .plan_hash = "",
                            .started_utc = peaks->started,
                            .order_key = (int64_t)time(NULL),
                            .branch = "",
                            .tag = ""};
    TRY(run_begin(store, &head, &run, err));
    TRY(run_put_facts(store, run, "before", &peaks->environment, err));
    TRY(run_put_ceilings(store, run, peaks->records, peaks->count, err));
    return run_end(store, run, true, true, "", err);
}

static enum status save(const struct peaks_options *o, const struct peaks *peaks, struct error *err)
{
    struct store *store;
    TRY(store_open(o->db ? o->db : "out/ridge.db", STORE_WRITE, &store, err));
    enum status status = put(store, peaks, err);
    if (status == STATUS_OK)
        fprintf(stderr, "saved in %s\n", store_path(store));
    store_close(store);
    return status;
}

static int peaks_main(int word_count, char **words, const void *values)
{
    const struct peaks_options *o = values;
    struct peaks peaks = {.count = 0};
    struct error err;
    if (word_count) {
        fprintf(stderr, "ridge peaks: takes no word, got \"%s\"\n", words[0]);
        return EXIT_USAGE;
    }
    if (o->only && (o->save || o->db)) {
        fprintf(stderr, "ridge peaks: what --only picks is not stored\n");
        return EXIT_USAGE;
    }
    enum status status = measure(o, &peaks, &err);
    if (status == STATUS_OK && o->json)
        print_json(peaks.records, peaks.count);
    else if (status == STATUS_OK)
        print_table(peaks.records, peaks.count);
    if (status == STATUS_OK && (o->save || o->db))
        status = save(o, &peaks, &err);
    arena_release(&peaks.arena);
    return status == STATUS_OK ? EXIT_FINE : command_fail(&err);
}

REGISTER(command, peaks) = {
    .name = "peaks",
    .summary = "measure what this machine can do at most: arithmetic and bandwidth",
    .usage = "[--device NAME] [--threads N] [--every] [--isa NAME] [--quick] [--only TEXT] "
             "[--json] [--save] [--db FILE]",
    .help =
        "For the CPU or one other device; cores and threads concern the CPU alone.\n"
        "Each value is the median of the samples; the next columns say how far the lowest and\n"
        "the highest sample are from it. docs/method.md and, for GPUs, docs/gpu.md say what each\n"
        "name means.",
    .options = options,
    .values_size = sizeof(struct peaks_options),
    .main = peaks_main,
};
