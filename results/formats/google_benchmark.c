/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON as Google Benchmark writes it, so that its compare.py and the tools around it take our
 * results. Each raw sample is one repetition of one iteration; mean, median, stddev and cv are the
 * aggregates. That format has no place for an unknown CPU time, and its readers divide by it: it
 * holds the wall time, and the context says so. A result that failed has no time, and a 0 would go
 * into compare.py's mean: such results are listed in the context. An invalid result has its times
 * and, as Google Benchmark's label, why they count for nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "base/text/json.h"
#include "results/format.h"

struct series {
    struct arena arena;
    char *name, *label; /* label: NULL unless invalid */
    bool of_several_runs;
    int family, repetitions, threads;
    double *times_ns;
};

/* compare.py takes equal names for repetitions of one benchmark: all that makes a point another
 * one is in its name, " bound=0.1" as "/bound:0.1", and of several runs which it was. */
static enum status name_series(const struct grid *grid, int64_t row, struct series *series,
                               struct error *err)
{
    const char *params = grid_text(grid, row, "params");
    const char *providers = grid_text(grid, row, "providers");
    const char *rare = format_rare_words(grid, row);
    series->threads = (int)grid_number(grid, row, "threads");
    series->name = arena_printf(&series->arena, "%s%s%s/%s/%s/%s/%s/%s/batch:%s/threads:%d%s%s%s",
                                grid_text(grid, row, "workload"), *params ? ":" : "", params,
                                grid_text(grid, row, "mode"), grid_text(grid, row, "device"),
                                grid_text(grid, row, "precision"), grid_text(grid, row, "scenario"),
                                grid_text(grid, row, "cache"), grid_text(grid, row, "batch"),
                                series->threads, *providers ? "/" : "", providers, rare);
    if (!series->name)
        return FAIL_NO_MEMORY(err);
    for (char *at = series->name + strlen(series->name) - strlen(rare); *at; at++)
        *at = *at == ' ' ? '/' : *at == '=' ? ':' : *at;
    if (series->of_several_runs)
        series->name =
            arena_printf(&series->arena, "%s/run:%.8s", series->name, grid_text(grid, row, "run"));
    return series->name ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status label_series(const struct grid *grid, int64_t row, struct series *series,
                                struct error *err)
{
    series->label = NULL;
    if (strcmp(grid_text(grid, row, "verdict"), "valid") == 0)
        return STATUS_OK;
    series->label = arena_printf(&series->arena, "invalid: %s", grid_text(grid, row, "reason"));
    return series->label ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status write_failures(struct json *json, const struct grid *grid, struct series *series,
                                  struct error *err)
{
    json_open(json, "ridge_failures", '[');
    for (int64_t row = 0; row < grid->row_count; row++) {
        if (!format_starts_result(grid, row) || strcmp(grid_text(grid, row, "status"), "ok") == 0)
            continue;
        TRY(name_series(grid, row, series, err));
        json_open(json, NULL, '{');
        json_text(json, "name", series->name);
        json_text(json, "status", grid_text(grid, row, "status"));
        json_text(json, "reason", grid_text(grid, row, "reason"));
        json_close(json);
    }
    json_close(json);
    return STATUS_OK;
}

static enum status write_context(struct json *json, const struct grid *grid, struct series *series,
                                 struct error *err)
{
    bool debug = strcmp(grid_text(grid, 0, "config"), "debug") == 0;
    json_open(json, "context", '{');
    json_text(json, "date", grid_text(grid, 0, "run_started_utc"));
    json_text(json, "host_name", grid_text(grid, 0, "host"));
    json_text(json, "executable", "ridge");
    json_open(json, "caches", '[');
    json_close(json);
    json_open(json, "load_avg", '[');
    json_close(json);
    json_text(json, "library_build_type", debug ? "debug" : "release");
    json_text(json, "ridge_run", grid_text(grid, 0, "run"));
    json_text(json, "ridge_git", grid_text(grid, 0, "git"));
    json_text(json, "ridge_cpu_time", "not measured: equals real_time");
    TRY(write_failures(json, grid, series, err));
    json_close(json);
    return STATUS_OK;
}

static void write_head(struct json *json, const struct series *series, const char *name,
                       const char *type)
{
    json_text(json, "name", name);
    json_int(json, "family_index", series->family);
    json_int(json, "per_family_instance_index", 0);
    json_text(json, "run_name", series->name);
    json_text(json, "run_type", type);
    json_int(json, "repetitions", series->repetitions);
    if (series->label)
        json_text(json, "label", series->label);
}

static void write_times(struct json *json, double real_time)
{
    json_number(json, "real_time", real_time);
    json_number(json, "cpu_time", real_time);
    json_text(json, "time_unit", "ns");
}

static void write_repetitions(struct json *json, const struct series *series)
{
    for (int k = 0; k < series->repetitions; k++) {
        json_open(json, NULL, '{');
        write_head(json, series, series->name, "iteration");
        json_int(json, "repetition_index", k);
        json_int(json, "threads", series->threads);
        json_int(json, "iterations", 1);
        write_times(json, series->times_ns[k]);
        json_close(json);
    }
}

static enum status write_aggregate(struct json *json, struct series *series, const char *name,
                                   double value, struct error *err)
{
    bool percentage = strcmp(name, "cv") == 0;
    const char *whole = arena_printf(&series->arena, "%s_%s", series->name, name);
    if (!whole)
        return FAIL_NO_MEMORY(err);
    json_open(json, NULL, '{');
    write_head(json, series, whole, "aggregate");
    json_int(json, "threads", series->threads);
    json_text(json, "aggregate_name", name);
    json_text(json, "aggregate_unit", percentage ? "percentage" : "time");
    json_int(json, "iterations", series->repetitions);
    write_times(json, value);
    json_close(json);
    return STATUS_OK;
}

static enum status write_aggregates(struct json *json, struct series *series, struct error *err)
{
    double sum = 0, squares = 0;
    const int n = series->repetitions;
    if (n < 2)
        return STATUS_OK;
    for (int k = 0; k < n; k++)
        sum += series->times_ns[k];
    for (int k = 0; k < n; k++)
        squares += pow(series->times_ns[k] - sum / n, 2);
    stats_sort(series->times_ns, n);
    const double deviation = sqrt(squares / (n - 1));
    TRY(write_aggregate(json, series, "mean", sum / n, err));
    TRY(write_aggregate(json, series, "median", stats_median(series->times_ns, n), err));
    TRY(write_aggregate(json, series, "stddev", deviation, err));
    return write_aggregate(json, series, "cv", sum > 0 ? deviation / (sum / n) : 0, err);
}

/* Its samples, or the median alone where the grid holds none. */
static enum status read_series(const struct grid *grid, int64_t row, struct series *series,
                               struct error *err)
{
    int64_t *samples = format_samples(grid_text(grid, row, "samples_ns"), &series->repetitions);
    series->times_ns = calloc((size_t)series->repetitions + 1, sizeof(*series->times_ns));
    if (!samples || !series->times_ns) {
        free(samples);
        return FAIL_NO_MEMORY(err);
    }
    for (int k = 0; k < series->repetitions; k++)
        series->times_ns[k] = (double)samples[k];
    if (series->repetitions == 0) {
        series->times_ns[0] = grid_number(grid, row, "value") * 1e9;
        series->repetitions = 1;
    }
    free(samples);
    return STATUS_OK;
}

static enum status write_result(struct json *json, const struct grid *grid, int64_t row,
                                struct series *series, struct error *err)
{
    bool ok = strcmp(grid_text(grid, row, "status"), "ok") == 0;
    bool is_time = strcmp(grid_text(grid, row, "metric"), "time_s") == 0 &&
                   grid_text(grid, row, "step")[0] == 0 && !isnan(grid_number(grid, row, "value"));
    if (!ok || !is_time)
        return STATUS_OK;
    TRY(name_series(grid, row, series, err));
    TRY(label_series(grid, row, series, err));
    enum status status = read_series(grid, row, series, err);
    if (status == STATUS_OK) {
        write_repetitions(json, series);
        status = write_aggregates(json, series, err);
    }
    free(series->times_ns);
    return status;
}

static enum status write_document(struct json *json, const struct grid *grid, struct series *series,
                                  struct error *err)
{
    json_open(json, NULL, '{');
    TRY(write_context(json, grid, series, err));
    json_open(json, "benchmarks", '[');
    for (int64_t row = 0; row < grid->row_count; row++) {
        series->family += format_starts_result(grid, row);
        TRY(write_result(json, grid, row, series, err));
    }
    json_close(json);
    json_close(json);
    return STATUS_OK;
}

static enum status write_google(const struct grid *grid, FILE *stream, struct error *err)
{
    struct json json;
    struct series series = {.family = -1};
    for (int64_t row = 1; row < grid->row_count && !series.of_several_runs; row++)
        series.of_several_runs =
            strcmp(grid_text(grid, row, "run"), grid_text(grid, 0, "run")) != 0;
    json_begin(&json, stream);
    enum status status = write_document(&json, grid, &series, err);
    arena_release(&series.arena);
    return status == STATUS_OK ? format_flush(stream, err) : status;
}

REGISTER(format, google_benchmark) = {
    .name = "google_benchmark",
    .extension = "json",
    .summary = "JSON that the tools of Google Benchmark read (compare.py)",
    .samples = true,
    .write = write_google,
};
