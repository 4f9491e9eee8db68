/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/made_results.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/registry.h"

static const struct fact facts[] = {
    {"cpu", "model", "Made 9000", "", "/proc/cpuinfo", FACT_IDENTITY, FACT_OK},
    {"cpu_state", "governor", "performance", "", "/sys/governor", FACT_TUNING, FACT_OK},
    {"security", "smt", "", "", "/sys/smt", FACT_TUNING, FACT_DENIED},
    {"memory", "free_bytes", "1000000", "B", "/proc/meminfo", FACT_VOLATILE, FACT_OK},
};

static const struct environment environment = {
    .hash = "00112233445566aa",
    .host_uid = "aabbccddeeff0011",
    .host_label = "maker",
    .facts = facts,
    .fact_count = ARRAY_COUNT(facts),
};

static const struct build_record build = {
    .uid = "0123456789abcdef",
    .version = "0.1.0",
    .git = "abcdef123456",
    .config = "release",
    .compiler = "gcc 12",
    .flags = "-O2",
    .features = "onednn",
};

struct run_head made_head(const char *uuid, int when)
{
    static const char *const starts[] = {"2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z",
                                         "2026-01-01T00:00:02.000Z", "2026-01-01T00:00:03.000Z"};
    return (struct run_head){
        .uuid = uuid,
        .environment = &environment,
        .build = &build,
        .command = "ridge run made",
        .suite = "command line",
        .suite_text = "",
        .plan_hash = "feedfacefeedface",
        .planned = 3,
        .started_utc = starts[when % ARRAY_COUNT(starts)],
        .order_key = 1000 + when,
        .branch = "main",
        .tag = "",
    };
}

static void add_metric(struct made_record *made, struct metric_record metric)
{
    metric.reason = metric.reason ? metric.reason : "";
    metric.formula = metric.formula ? metric.formula : "";
    made->metrics[made->record.metric_count++] = metric;
}

static void add_number(struct made_record *made, const char *name, const char *unit,
                       const char *source, enum better better, double value)
{
    add_metric(made, (struct metric_record){.op = -1,
                                            .name = name,
                                            .unit = unit,
                                            .source = source,
                                            .better = better,
                                            .value = value});
}

static void add_whole(struct made_record *made, double time_s, int64_t samples)
{
    const double t = time_s;
    add_metric(made, (struct metric_record){.op = -1,
                                            .name = "time_s",
                                            .unit = "s",
                                            .source = "clock",
                                            .better = BETTER_LOWER,
                                            .value = t,
                                            .n = samples,
                                            .min = t * 0.9,
                                            .q1 = t * 0.95,
                                            .q3 = t * 1.05,
                                            .max = t * 1.5,
                                            .mad = t * 0.05,
                                            .ci_low = t * 0.99,
                                            .ci_high = t * 1.01});
    add_number(made, "latency_p90_s", "s", "clock", BETTER_LOWER, t * 1.2);
    add_number(made, "throughput", "1/s", "clock", BETTER_HIGHER, 32 / t);
    add_number(made, "flops", "1", "model", BETTER_NONE, 1e9);
    add_number(made, "bytes_compulsory", "B", "model", BETTER_NONE, 1e7);
    add_number(made, "arena_bytes", "B", "model", BETTER_LOWER, 6e6);
    add_number(made, "weight_bytes", "B", "model", BETTER_LOWER, 4e6);
    add_metric(made, (struct metric_record){.op = -1,
                                            .name = "dram_read_bytes",
                                            .unit = "B",
                                            .source = "papi",
                                            .better = BETTER_NONE,
                                            .value = NAN,
                                            .reason = "perf_event_paranoid is 3"});
}

static void add_step(struct made_record *made, int k, double time_s, int ops)
{
    static const char *const kinds[] = {"Conv", "MatMul", "Relu", "Add"};
    static const char *const kernels[] = {"matmul_packed", "conv_winograd",
                                          "conv_igemm 6x64 without padding", "matmul_packed"};
    made->ops[k] = (struct op_record){"step", kinds[k % 4], "[32, 64]", kernels[k % 4], "native"};
    const struct metric_record metrics[] = {
        {.op = k, .name = "time_s", .unit = "s", .source = "clock", .value = time_s / ops, .n = 5},
        {.op = k, .name = "flops", .unit = "1", .source = "model", .value = 1e9 / ops},
        {.op = k, .name = "bytes_streamed", .unit = "B", .source = "model", .value = 4e7 / ops},
        {.op = k, .name = "bytes_compulsory", .unit = "B", .source = "model", .value = 2e7 / ops},
    };
    for (int m = 0; m < ARRAY_COUNT(metrics); m++)
        add_metric(made, metrics[m]);
}

enum status made_record(struct made_record *made, int sequence, double time_s, int64_t samples,
                        int ops)
{
    memset(made, 0, sizeof(*made));
    snprintf(made->key, sizeof(made->key), "%016x", 0x1000 + sequence);
    snprintf(made->canonical, sizeof(made->canonical), "workload=made batch=%d", sequence);
    snprintf(made->reproduce, sizeof(made->reproduce), "ridge run made --batch %d", sequence);
    made->record = (struct record){
        .sequence = sequence,
        .point = {made->key, made->canonical, "made", "", "vision", "inference", "cpu", "f32", 32,
                  2, "single_stream", "warm", ""},
        .valid = true,
        .reason = "",
        .verify_error = 1e-6,
        .verify_bound = 1e-4,
        .verify_how = "reference f64",
        .stop_reason = "interval 0.8 % of the median",
        .started_utc = "2026-01-01T00:00:00.000Z",
        .reproduce = made->reproduce,
        .wall_s = 1.5,
        .ops = made->ops,
        .op_count = ops,
        .metrics = made->metrics,
        .sample_count = samples,
    };
    add_whole(made, time_s, samples);
    for (int k = 0; k < ops; k++)
        add_step(made, k, time_s, ops);
    made->samples = calloc((size_t)samples + 1, sizeof(*made->samples));
    if (!made->samples)
        return STATUS_NO_MEMORY;
    for (int64_t k = 0; k < samples; k++)
        made->samples[k] =
            (struct sample_record){.phase = k == 0 && samples > 1 ? SAMPLE_WARMUP : SAMPLE_TIME,
                                   .time_ns = (int64_t)(time_s * 1e9) + k * 7919 % 1000,
                                   .queue_ns = RECORD_NONE,
                                   .steal_ns = RECORD_NONE,
                                   .clock_hz = NAN};
    made->record.samples = made->samples;
    return STATUS_OK;
}

void made_release(struct made_record *made)
{
    free(made->samples);
}

const struct ceiling_record *made_ceilings(int *count)
{
    static const struct ceiling_record ceilings[] = {
        {"cpu", CEILING_COMPUTE, "fma f32 avx2", "", "f32", "avx2", "fma", 2, RECORD_NONE, 1e11,
         "FLOP/s", "", false, 5, 0.9e11, 1e11, NAN},
        {"cpu", CEILING_COMPUTE, "fma f32 sse", "", "f32", "sse", "fma", 2, RECORD_NONE, 4e10,
         "FLOP/s", "", false, 5, 3e10, 4e10, NAN},
        {"cpu", CEILING_BANDWIDTH, "triad L3", "L3", "", "avx2", "triad", 2, 4 << 20, 5e10, "B/s",
         "", false, 5, 4e10, 5e10, NAN},
        {"cpu", CEILING_BANDWIDTH, "triad DRAM", "DRAM", "", "avx2", "triad", 2, 1 << 30, 1e10,
         "B/s", "", false, 5, 0.9e10, 1e10, NAN},
        {"cpu", CEILING_BANDWIDTH, "read DRAM", "DRAM", "", "avx2", "read", 2, 1 << 30, 0.8e10,
         "B/s", "", false, 5, 0.7e10, 0.8e10, NAN},
        {"cpu", CEILING_COMPUTE, "dot bf16 amx", "", "bf16", "amx", "dot", 2, RECORD_NONE, NAN,
         "FLOP/s", "this CPU has no AMX", false, 0, NAN, NAN, NAN},
    };
    *count = ARRAY_COUNT(ceilings);
    return ceilings;
}

char *made_folder(void)
{
    const char *tmp = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof(path), "%s/ridge-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(path) ? strdup(path) : NULL;
}

/* Two levels are enough: the folder and that of the spools. */
static void remove_all(const char *folder, int depth)
{
    char path[1024];
    DIR *entries = depth ? opendir(folder) : NULL;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (unlink(path))
            remove_all(path, depth - 1);
    }
    if (entries)
        closedir(entries);
    rmdir(folder);
}

void made_folder_remove(char *folder)
{
    chmod(folder, 0700);
    remove_all(folder, 3);
    free(folder);
}
