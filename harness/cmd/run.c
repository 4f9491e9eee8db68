/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge run: times whole networks. Warm-up, then samples until there are enough of them and enough
 * time has gone by; medians are reported beside the FMA peak of the same run. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/stats.h"
#include "engine/cost.h"
#include "harness/command.h"
#include "harness/model_options.h"
#include "harness/peak.h"

enum { SAMPLES_MAX = 20000 };

struct run_options {
    struct model_options model;
    int64_t samples;
    double seconds;
    bool json, on_request;
};

static const struct option options[] = {
    MODEL_OPTIONS(struct run_options),
    {"samples", 'n', OPTION_INT, offsetof(struct run_options, samples), "N",
     "at least so many (default 15)"},
    {"seconds", 's', OPTION_FLOAT, offsetof(struct run_options, seconds), "X",
     "at least so long (default 1)"},
    {"on-request", 0, OPTION_FLAG, offsetof(struct run_options, on_request), NULL,
     "one sample (ms) per line read from standard input: lets another program take turns"},
    {"json", 0, OPTION_FLAG, offsetof(struct run_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

struct result {
    const char *workload;
    int64_t batch;
    int threads, samples;
    double median_ms, min_ms, p90_ms, gflops, peak_gflops;
    struct exe_memory memory;
};

static int take_samples(struct exe *exe, const struct run_options *o, double *ms)
{
    int64_t least = o->samples ? o->samples : 15;
    double seconds = o->seconds > 0 ? o->seconds : 1;
    uint64_t begin = clock_now_ns();
    for (int k = 0; k < 3 || (clock_now_ns() - begin < 2e8 && k < 1000); k++)
        exe_run(exe);
    begin = clock_now_ns();
    int count = 0;
    while (count < SAMPLES_MAX &&
           (count < least || (double)(clock_now_ns() - begin) < seconds * 1e9)) {
        uint64_t start = clock_now_ns();
        exe_run(exe);
        ms[count++] = (double)(clock_now_ns() - start) * 1e-6;
    }
    return count;
}

static enum status measure(const char *spec, const struct run_options *o, struct result *r,
                           struct error *err)
{
    struct graph *graph;
    struct exe *exe;
    TRY(model_open(spec, &o->model, &graph, &exe, err));
    double *ms = calloc(SAMPLES_MAX, sizeof(*ms));
    if (!ms) {
        exe_free(exe);
        graph_free(graph);
        return FAIL_NO_MEMORY(err);
    }
    struct graph_cost cost;
    graph_cost(graph, &cost);
    enum isa isa = isa_detect();
    double before = peak_fma_f32(exe_pool(exe), isa);
    r->samples = take_samples(exe, o, ms);
    double after = peak_fma_f32(exe_pool(exe), isa);
    stats_sort(ms, r->samples);
    r->workload = spec;
    r->batch = cost.batch;
    r->threads = pool_threads(exe_pool(exe));
    r->median_ms = stats_median(ms, r->samples);
    r->min_ms = ms[0];
    r->p90_ms = stats_quantile(ms, r->samples, 0.9);
    r->gflops = cost.flops / r->median_ms * 1e-6;
    r->peak_gflops = (before > after ? before : after) * 1e-9;
    r->memory = exe_memory(exe);
    free(ms);
    exe_free(exe);
    graph_free(graph);
    return STATUS_OK;
}

static int serve(const char *spec, const struct run_options *o)
{
    struct error err = {0};
    struct graph *graph;
    struct exe *exe;
    char line[64];
    if (model_open(spec, &o->model, &graph, &exe, &err) != STATUS_OK)
        return command_fail(&err);
    exe_run(exe);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        uint64_t start = clock_now_ns();
        exe_run(exe);
        printf("%.6f\n", (double)(clock_now_ns() - start) * 1e-6);
        fflush(stdout);
    }
    exe_free(exe);
    graph_free(graph);
    return EXIT_FINE;
}

static void print_json(struct json *json, const struct result *r)
{
    json_open(json, NULL, '{');
    json_text(json, "workload", r->workload);
    json_int(json, "batch", r->batch);
    json_int(json, "threads", r->threads);
    json_int(json, "samples", r->samples);
    json_number(json, "median_ms", r->median_ms);
    json_number(json, "min_ms", r->min_ms);
    json_number(json, "p90_ms", r->p90_ms);
    json_number(json, "gflops", r->gflops);
    json_number(json, "peak_gflops", r->peak_gflops);
    json_number(json, "peak_fraction", r->gflops / r->peak_gflops);
    json_int(json, "arena_bytes", (int64_t)r->memory.arena_bytes);
    json_int(json, "weight_bytes", (int64_t)r->memory.weight_bytes);
    json_close(json);
}

static void print_row(const struct result *r)
{
    printf("%-24s %6lld %7d %8d %11.4g %11.4g %11.4g %9.4g %6.1f %%\n", r->workload,
           (long long)r->batch, r->threads, r->samples, r->median_ms, r->min_ms, r->p90_ms,
           r->gflops, 100 * r->gflops / r->peak_gflops);
    fflush(stdout);
}

static int run_main(int word_count, char **words, const void *values)
{
    const struct run_options *o = values;
    struct json json;
    int exit_code = EXIT_FINE;
    if (o->on_request)
        return serve(words[0], o);
    if (o->json) {
        json_begin(&json, stdout);
        json_open(&json, NULL, '[');
    } else {
        printf("%-24s %6s %7s %8s %11s %11s %11s %9s %8s\n", "workload", "batch", "threads",
               "samples", "median ms", "min ms", "p90 ms", "GFLOP/s", "of peak");
    }
    for (int k = 0; k < word_count; k++) {
        struct result result = {0};
        struct error err = {0};
        if (measure(words[k], o, &result, &err) != STATUS_OK)
            exit_code = command_fail(&err);
        else if (o->json)
            print_json(&json, &result);
        else
            print_row(&result);
    }
    if (o->json)
        json_close(&json);
    return exit_code;
}

REGISTER(command, run) = {
    .name = "run",
    .summary = "time workloads or .onnx files",
    .usage = "MODEL... [options]",
    .help = "Compiles each model, warms it up and times it. Times are medians of whole runs; the\n"
            "last column is the share of the FP32 FMA peak measured in the same run.",
    .options = options,
    .values_size = sizeof(struct run_options),
    .words_min = 1,
    .main = run_main,
};
