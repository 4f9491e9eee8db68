/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory traffic of an NVIDIA GPU while the workload runs as always: its counters are sampled, with
 * no replay and no change to kernels, over streams and graphs. It counts the whole device; a check
 * on what profiler cupti counts, and the one to use where work must not be repeated. */
#include "profilers/lib/cupti_session.h"

static bool cupti_pm_available(char *reason, size_t size)
{
    return cupti_session_available(CUPTI_SAMPLES, reason, size);
}

static enum status cupti_pm_start(const struct profiler_model *model, int threads, void **session,
                                  struct error *err)
{
    (void)threads;
    return cupti_session_open(model, CUPTI_SAMPLES, session, err);
}

REGISTER(profiler, cupti_pm) = {
    .name = "cupti_pm",
    .summary = "memory traffic of NVIDIA GPUs, sampled by CUPTI while all runs as always",
    .system_wide = true,
    .executions_max = 1000000,
    .attaches = true,
    .available = cupti_pm_available,
    .open = cupti_pm_start,
    .passes = cupti_session_passes,
    .begin = cupti_session_begin,
    .end = cupti_session_end,
    .read = cupti_session_read,
    .close = cupti_session_close,
};
