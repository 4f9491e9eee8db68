/* SPDX-License-Identifier: Apache-2.0
 *
 * Every key of a suite file. Floors and caps of the stopping rule are those of docs/method.md. */
#include <float.h>
#include <string.h>

#include "base/registry.h"
#include "base/text/options.h"
#include "collective/backend.h"
#include "engine/run/provider.h"
#include "harness/suite/device_words.h"
#include "harness/suite/suite.h"

#define X(name) #name,
static const char *const profilers[] = {
#include "profiler_list.inc"
    NULL};
#undef X
static const char *const tunings[] = {"full", "quick", NULL};
static const char *const precisions[] = {"f32", "tf32", "bf16", "f16", "i8", "f8", NULL};
static const char *const modes[] = {"inference", "training", NULL};
static const char *const scenarios[] = {"single_stream", "offline", "server", NULL};
static const char *const all[] = {"all", NULL};

#define BATCH_MAX   OPTION_COUNT_MAX
#define THREADS_MAX OPTION_THREADS_MAX
#define COUNT_MAX   OPTION_COUNT_MAX
#define SECONDS_MAX 1e6
#define ROUNDS_MAX  100
#define RANKS_MAX   1024
#define STEPS_MAX   1e6

/* One that is known and not here is a reason to skip a point; any other is a typing error. */
static enum status backend_word_check(const char *text, struct error *err)
{
    enum { BACKENDS_MAX = 16 };
    const char *names[BACKENDS_MAX];
    int count = 0;
    if (backend_find(text))
        return STATUS_OK;
    for (int k = 0; k < backend_count() && count < BACKENDS_MAX; k++)
        names[count++] = backend_at(k)->name;
    const char *near = nearest_word(text, names, count);
    if (near)
        return FAIL(err, STATUS_FAILED, "\"%.60s\" is not known, did you mean \"%s\"?", text, near);
    return FAIL(err, STATUS_FAILED, "\"%.60s\" is not known; `ridge bench -h` names all", text);
}

static const struct suite_key keys[KEY_COUNT] = {
    [KEY_NAME] = {.table = TABLE_TOP, .name = "name", .help = "of the suite, for people"},
    [KEY_DESCRIPTION] = {.table = TABLE_TOP, .name = "description", .help = "what it is for"},
    [KEY_INCLUDE] =
        {.table = TABLE_TOP,
         .name = "include",
         .type = SUITE_WORDS,
         .help = "other suites, relative to this file or by name (\"quick\"), as if they came "
                 "before it: their workloads come first, its [defaults] override theirs"},
    [KEY_BUDGET] = {.table = TABLE_TOP,
                    .name = "budget_s",
                    .type = SUITE_NUMBER,
                    .max = SECONDS_MAX,
                    .usual = "0",
                    .help = "seconds that the run may take: what no longer fits is not started; "
                            "0: no limit"},
    [KEY_ROUNDS] = {.table = TABLE_TOP,
                    .name = "rounds",
                    .type = SUITE_INT,
                    .min = 1,
                    .max = ROUNDS_MAX,
                    .usual = "3",
                    .help = "how often the run visits each point, each time in another order; "
                            "what [defaults.stop] demands is divided among these visits"},
    [KEY_CEILINGS] = {.table = TABLE_CEILINGS,
                      .name = "measure",
                      .type = SUITE_BOOL,
                      .usual = "true",
                      .help = "measure what the machine can do (FLOP/s, bytes/s) in the same run"},
    [KEY_DB] = {.table = TABLE_OUTPUT,
                .name = "db",
                .usual = "out/ridge.db",
                .help = "database that results are added to"},
    [KEY_REPORT] = {.table = TABLE_OUTPUT,
                    .name = "report",
                    .usual = "out/report",
                    .help = "folder of the report; \"\": none is written"},
    [KEY_WORKLOAD] = {.table = TABLE_WORKLOAD,
                      .name = "name",
                      .sweeps = true,
                      .help = "a workload of `ridge list`, or a list of them"},
    [KEY_PATH] =
        {.table = TABLE_WORKLOAD,
         .name = "path",
         .sweeps = true,
         .help =
             "instead of name: a model file (.onnx), relative to this file; sizes that it leaves "
             "open are keys, too"},
    [KEY_BATCH] = {.table = TABLE_SETTINGS,
                   .name = "batch",
                   .type = SUITE_INT,
                   .sweeps = true,
                   .min = 1,
                   .max = BATCH_MAX,
                   .help = "images, sequences or rows per execution; default: the workload's own"},
    [KEY_THREADS] = {.table = TABLE_SETTINGS,
                     .name = "threads",
                     .type = SUITE_INT,
                     .sweeps = true,
                     .choices = all,
                     .min = 1,
                     .max = THREADS_MAX,
                     .usual = "all",
                     .help = "\"all\": every CPU that this process may use"},
    [KEY_DEVICE] = {.table = TABLE_SETTINGS,
                    .name = "device",
                    .sweeps = true,
                    .check = device_word_check,
                    .usual = "cpu",
                    .help = "where it runs: \"cpu\", \"cuda\" or the device of another plug-in, "
                            "\"cuda:1\" for the second of several; \"null\" computes nothing and "
                            "makes times up"},
    [KEY_PRECISION] = {.table = TABLE_SETTINGS,
                       .name = "precision",
                       .sweeps = true,
                       .choices = precisions,
                       .usual = "f32",
                       .help =
                           "of activations and weights; on CPUs \"f32\" and \"bf16\", and what a "
                           "workload is made of"},
    [KEY_MODE] = {.table = TABLE_SETTINGS,
                  .name = "mode",
                  .sweeps = true,
                  .choices = modes,
                  .usual = "inference",
                  .help = "forward only, or a whole training step"},
    [KEY_RECOMPUTE] = {.table = TABLE_SETTINGS,
                       .name = "recompute",
                       .type = SUITE_BOOL,
                       .sweeps = true,
                       .usual = "false",
                       .help = "in mode \"training\": compute activations again in the backward "
                               "pass instead of keeping them"},
    [KEY_SEGMENTS] = {.table = TABLE_SETTINGS,
                      .name = "segments",
                      .type = SUITE_INT,
                      .sweeps = true,
                      .max = COUNT_MAX,
                      .usual = "0",
                      .help = "of recompute: results between segments are kept; 0: about the "
                              "square root of the number of forward nodes"},
    [KEY_PROVIDERS] = {.table = TABLE_SETTINGS,
                       .name = "providers",
                       .sweeps = true,
                       .check = providers_check,
                       .usual = "",
                       .help = "only kernels of these: \"native,onednn\"; \"\": all available. "
                               "Steps that none of them computes are left to the reference; where "
                               "these take 1 % of the time or more, the run ends with 3 unless "
                               "\"reference\" is named as well"},
    [KEY_SCENARIO] = {.table = TABLE_SETTINGS,
                      .name = "scenario",
                      .sweeps = true,
                      .choices = scenarios,
                      .usual = "single_stream",
                      .help = "one request after the other, as many as possible, or arriving "
                              "at random under a latency bound"},
    [KEY_COLD] = {.table = TABLE_SETTINGS,
                  .name = "cold",
                  .type = SUITE_BOOL,
                  .sweeps = true,
                  .usual = "false",
                  .help = "flush the caches before each sample"},
    [KEY_PROFILERS] = {.table = TABLE_SETTINGS,
                       .name = "profilers",
                       .type = SUITE_WORDS,
                       .choices = profilers,
                       .usual = "model,papi,powercap",
                       .help = "what is counted after the timing; what is not available gives no "
                               "value and a reason"},
    [KEY_VERIFY] = {.table = TABLE_SETTINGS,
                    .name = "verify",
                    .type = SUITE_BOOL,
                    .usual = "true",
                    .help = "compare the result with the float64 reference first"},
    [KEY_LAYERS] = {.table = TABLE_SETTINGS,
                    .name = "layers",
                    .type = SUITE_BOOL,
                    .usual = "true",
                    .help = "time every step separately, after the timing of the whole"},
    [KEY_TUNING] = {.table = TABLE_SETTINGS,
                    .name = "tuning",
                    .choices = tunings,
                    .usual = "full",
                    .help = "how kernels are chosen for shapes that are new; quick: one variant "
                            "of each kernel competes (tile sizes and the like are not varied), and "
                            "steps with sizes of one magnitude share a winner; part of the "
                            "point's id"},
    [KEY_INTERVAL] = {.table = TABLE_STOP,
                      .name = "interval",
                      .type = SUITE_NUMBER,
                      .max = 1,
                      .usual = "0.01",
                      .help = "sample until the median is known this well: half-width of its 95 % "
                              "interval as a share of it; 0: only the floors count"},
    [KEY_SAMPLES_MIN] = {.table = TABLE_STOP,
                         .name = "samples_min",
                         .type = SUITE_INT,
                         .min = 1,
                         .max = COUNT_MAX,
                         .usual = "15",
                         .help = "minimum number of samples"},
    [KEY_SAMPLES_MAX] = {.table = TABLE_STOP,
                         .name = "samples_max",
                         .type = SUITE_INT,
                         .min = 1,
                         .max = COUNT_MAX,
                         .usual = "20000",
                         .help = "maximum number of samples"},
    [KEY_SECONDS_MIN] = {.table = TABLE_STOP,
                         .name = "seconds_min",
                         .type = SUITE_NUMBER,
                         .max = SECONDS_MAX,
                         .usual = "1",
                         .help = "minimum total time of samples, in seconds"},
    [KEY_SECONDS_MAX] = {.table = TABLE_STOP,
                         .name = "seconds_max",
                         .type = SUITE_NUMBER,
                         .min = DBL_MIN,
                         .max = SECONDS_MAX,
                         .usual = "15",
                         .help = "maximum time of sampling, in seconds"},
    [KEY_WARMUP_RUNS] = {.table = TABLE_STOP,
                         .name = "warmup_runs",
                         .type = SUITE_INT,
                         .max = COUNT_MAX,
                         .usual = "3",
                         .help = "minimum number of executions before the first sample"},
    [KEY_WARMUP_S] = {.table = TABLE_STOP,
                      .name = "warmup_s",
                      .type = SUITE_NUMBER,
                      .max = SECONDS_MAX,
                      .usual = "0.2",
                      .help = "minimum time of these executions, in seconds"},
    [KEY_LATENCY_BOUND] =
        {.table = TABLE_SERVER,
         .name = "latency_bound_s",
         .type = SUITE_NUMBER,
         .sweeps = true,
         .min = DBL_MIN,
         .max = SECONDS_MAX,
         .help = "seconds; finds the highest rate whose latency stays below this bound; "
                 "needed in scenario \"server\""},
    [KEY_QUANTILE] = {.table = TABLE_SERVER,
                      .name = "quantile",
                      .type = SUITE_NUMBER,
                      .min = 0.5,
                      .max = 0.9999,
                      .usual = "0.99",
                      .help = "share of the requests that must stay below it"},
    [KEY_QUERIES] = {.table = TABLE_SERVER,
                     .name = "queries",
                     .type = SUITE_INT,
                     .min = 10,
                     .max = COUNT_MAX,
                     .usual = "200",
                     .help = "requests at each rate that is tried"},
    [KEY_RANKS] = {.table = TABLE_SCALING,
                   .name = "ranks",
                   .type = SUITE_INT,
                   .sweeps = true,
                   .min = 1,
                   .max = RANKS_MAX,
                   .help = "numbers of processes that learn together: a point of each; mode is "
                           "then \"training\", and threads those of each rank, \"all\" its part "
                           "of the CPUs among the largest number of ranks"},
    [KEY_STRONG] = {.table = TABLE_SCALING,
                    .name = "strong",
                    .type = SUITE_BOOL,
                    .sweeps = true,
                    .usual = "false",
                    .help = "batch is that of all ranks together, not of each"},
    [KEY_BACKEND] = {.table = TABLE_SCALING,
                     .name = "backend",
                     .sweeps = true,
                     .check = backend_word_check,
                     .usual = "shm",
                     .help = "what moves the bytes; ranks that an MPI starts, or on devices, are "
                             "measured by `ridge scale` alone"},
    [KEY_STEPS] = {.table = TABLE_SCALING,
                   .name = "steps",
                   .type = SUITE_INT,
                   .min = 1,
                   .max = STEPS_MAX,
                   .usual = "20",
                   .help = "of each point; the first tenth does not count. [stop] has no part in "
                           "it"},
};

static const char *const titles[TABLE_COUNT][2] = {
    [TABLE_TOP] = {"top of the file", "About the suite as a whole."},
    [TABLE_CEILINGS] = {"[ceilings]", "What the machine itself can do."},
    [TABLE_OUTPUT] = {"[output]",
                      "Where results go; paths are relative to where ridge is started."},
    [TABLE_WORKLOAD] =
        {"[[workload]]",
         "One per workload. Besides these: every parameter of the workload by its "
         "own name (`ridge list`), and every key of [defaults], which it overrides."},
    [TABLE_SETTINGS] = {"[defaults]", "How workloads are run. Also in [[workload]]."},
    [TABLE_STOP] = {"[defaults.stop], [workload.stop]", "When enough samples were taken."},
    [TABLE_SERVER] = {"[defaults.server], [workload.server]", "Of scenario \"server\"."},
    [TABLE_SCALING] = {"[defaults.scaling], [workload.scaling]",
                       "Of training on several ranks, as `ridge scale` does it. Such a point is "
                       "visited once, in the first round."},
};

const struct suite_key *suite_key(enum suite_key_id id)
{
    return &keys[id];
}

const char *suite_table_title(enum suite_table table)
{
    return titles[table][0];
}

const char *suite_table_help(enum suite_table table)
{
    return titles[table][1];
}
