/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/scale/command_run.h"

#include <time.h>

#include "base/numbers/stats.h"
#include "base/text/utc.h"
#include "harness/machine/environment.h"
#include "harness/suite/plan.h"
#include "results/store.h"

static enum status put_all(struct store *store, const char *command, int count,
                           command_result *result, const void *context, struct arena *arena,
                           struct error *err)
{
    struct environment environment;
    struct build_record build;
    char uuid[UUID_TEXT], started[UTC_TEXT], hash[17];
    int64_t run;
    TRY(environment_probe(&environment, arena, false, err));
    TRY(build_probe(&build, arena, err));
    uuid_make(uuid);
    utc_now(started);
    plan_id(command, hash);
    struct run_head head = {.uuid = uuid,
                            .environment = &environment,
                            .build = &build,
                            .command = command,
                            .suite = "command line",
                            .suite_text = "",
                            .plan_hash = hash,
                            .planned = count,
                            .rounds = 1,
                            .started_utc = started,
                            .order_key = (int64_t)time(NULL),
                            .branch = "",
                            .tag = ""};
    TRY(run_begin(store, &head, &run, err));
    TRY(run_put_facts(store, run, "before", &environment, err));
    for (int k = 0; k < count; k++) {
        struct record record;
        TRY(result(context, k, arena, &record, err));
        TRY(run_put(store, run, &record, err));
    }
    return run_end(store, run, true, true, "", err);
}

enum status command_run_store(const char *db, const char *command, int count,
                              command_result *result, const void *context, struct error *err)
{
    struct arena arena = {0};
    struct store *store;
    TRY(store_open(db, STORE_WRITE, &store, err));
    enum status status = put_all(store, command, count, result, context, &arena, err);
    store_close(store);
    arena_release(&arena);
    return status;
}

struct metric_record command_run_time(const double *sorted, int count, double median_s)
{
    struct metric_record row = metric_alone(-1, "time_s", "s", median_s);
    double error = 1.96 * stats_median_error(sorted, count, count);
    row.source = "clock";
    row.better = BETTER_LOWER;
    row.n = count;
    row.min = sorted[0];
    row.q1 = stats_quantile(sorted, count, 0.25);
    row.q3 = stats_quantile(sorted, count, 0.75);
    row.max = sorted[count - 1];
    row.ci_low = median_s - error;
    row.ci_high = median_s + error;
    return row;
}

enum status command_run_samples(const double *times, int count, int warm_up, struct arena *arena,
                                struct record *record, struct error *err)
{
    struct sample_record *samples = arena_array(arena, (size_t)count + 1, sizeof(*samples));
    if (!samples)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < count; k++)
        samples[k] = (struct sample_record){.phase = k < warm_up ? SAMPLE_WARMUP : SAMPLE_TIME,
                                            .time_ns = (int64_t)(times[k] * 1e9),
                                            .queue_ns = RECORD_NONE,
                                            .context_switches = RECORD_NONE,
                                            .migrations = RECORD_NONE,
                                            .page_faults = RECORD_NONE,
                                            .steal_ns = RECORD_NONE,
                                            .clock_hz = NAN};
    record->samples = samples;
    record->sample_count = count;
    return STATUS_OK;
}
