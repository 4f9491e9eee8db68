/* SPDX-License-Identifier: Apache-2.0
 *
 * Energy, power and clocks of an NVIDIA GPU, by NVML. Nothing is subtracted: idle power is part of
 * what an execution costs. The counters of energy move ten times a second, so a pass of five
 * seconds knows them to 2 %. It watches the whole device. docs/gpu.md. */
#include "profilers/lib/nvml.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "profilers/lib/profiler.h"

struct session {
    struct nvml_watch *watch;
    int64_t executions;
    char reasons[160]; /* names of the bits that were seen */
};

/* device: as a point names it; NULL: the CPU. */
static enum status open_watch(const char *device, struct nvml_watch **watch, struct error *err)
{
    struct nvml_api api;
    int index = profiler_cuda_index(device);
    TRY(nvml_load(getenv("RIDGE_NVML"), getenv("RIDGE_LIBCUDA"), &api, err));
    if (index < 0)
        return UNSUPPORTED(err, "it watches NVIDIA GPUs, and this ran on %s: --device cuda",
                           device ? device : "the CPU");
    return nvml_watch_open(&api, index, watch, err);
}

static bool nvml_available(char *reason, size_t size)
{
    struct nvml_watch *watch;
    struct error err = {.message = ""};
    bool there = open_watch("cuda", &watch, &err) == STATUS_OK;
    if (there)
        nvml_watch_close(watch);
    snprintf(reason, size, "%s", there ? "" : err.message);
    return there;
}

static enum status nvml_open(const struct profiler_model *model, int threads, void **session,
                             struct error *err)
{
    (void)threads;
    struct session *s = calloc(1, sizeof(*s));
    if (!s)
        return FAIL_NO_MEMORY(err);
    enum status status = open_watch(model ? model->device : NULL, &s->watch, err);
    if (status != STATUS_OK)
        free(s);
    else
        *session = s;
    return status;
}

static int nvml_passes(const void *session)
{
    (void)session;
    return 1;
}

static enum status nvml_begin(void *session, int pass, struct error *err)
{
    struct session *s = session;
    (void)pass;
    return nvml_watch_begin(s->watch, err);
}

static enum status nvml_end(void *session, int pass, int64_t executions, struct error *err)
{
    struct session *s = session;
    (void)pass;
    s->executions += executions;
    return nvml_watch_end(s->watch, err);
}

static void name_reasons(unsigned long long bits, char *text, size_t size)
{
    char names[120];
    nvml_name_reasons(bits, names, sizeof(names));
    snprintf(text, size, "bits seen: %s; 0x%llx", names[0] ? names : "none", bits);
}

static int nvml_read(void *session, struct profiler_metric *metrics)
{
    struct session *s = session;
    const struct nvml_seen seen = nvml_watch_seen(s->watch);
    const double per = s->executions > 0 ? 1 / (double)s->executions : NAN;
    const double share = seen.seconds > 0 ? 1 / seen.seconds : NAN;
    name_reasons(seen.reasons, s->reasons, sizeof(s->reasons));
    const struct profiler_metric all[] = {
        {"energy_j", "J", "nvmlDeviceGetTotalEnergyConsumption", "", seen.energy_j * per},
        {"power_w", "W", "energy / time of the pass", "", seen.energy_j * share},
        {"power_max_w", "W", "field 186, every 20 ms", "", seen.power_max_w},
        {"clock_sm_hz", "Hz", "mean of looks, every 20 ms", "", seen.clock_sm_hz},
        {"clock_sm_min_hz", "Hz", "least of looks", "", seen.clock_sm_min_hz},
        {"clock_memory_hz", "Hz", "mean of looks", "", seen.clock_memory_hz},
        {"temperature_max_c", "C", "highest of looks", "", seen.temperature_max_c},
        {"held_by_power_share", "1", "field 74 / time: clocks held down by the power limit", "",
         seen.held_s[HELD_POWER] * share},
        {"held_by_heat_share", "1", "field 75 / time: ... by heat", "",
         seen.held_s[HELD_HEAT] * share},
        {"held_by_boost_share", "1", "field 76 / time: ... by other GPUs (sync boost)", "",
         seen.held_s[HELD_BOOST] * share},
        {"held_by_board_share", "1", "field 77 / time: ... by the board's limit", "",
         seen.held_s[HELD_BOARD] * share},
        {"clock_reasons", "1", s->reasons, "", s->executions ? (double)seen.reasons : NAN},
    };
    for (int k = 0; k < ARRAY_COUNT(all); k++) {
        metrics[k] = all[k];
        if (isnan(metrics[k].value))
            metrics[k].reason =
                s->executions ? "this GPU or driver does not report it" : "nothing was executed";
    }
    return ARRAY_COUNT(all);
}

static void nvml_close(void *session)
{
    struct session *s = session;
    nvml_watch_close(s->watch);
    free(s);
}

REGISTER(profiler, nvml) = {
    .name = "nvml",
    .summary = "energy, power and clocks of NVIDIA GPUs by NVML",
    .system_wide = true,
    .pass_s = 5,
    .executions_max = 1000000000,
    .available = nvml_available,
    .open = nvml_open,
    .passes = nvml_passes,
    .begin = nvml_begin,
    .end = nvml_end,
    .read = nvml_read,
    .close = nvml_close,
};
