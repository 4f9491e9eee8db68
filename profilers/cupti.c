/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters of NVIDIA GPUs by the groups of profilers/groups, over ranges: the same executions are
 * repeated for every pass, first as a whole and then step by step. Kernels are patched to count
 * operations, and run one after the other where a range ends, so its passes say nothing about time.
 * The library is behind plugins/profilers/cupti.so (profilers/plugins/cupti/); docs/gpu.md. */
#include "profilers/lib/cupti_session.h"

static bool cupti_available(char *reason, size_t size)
{
    return cupti_session_available(CUPTI_RANGES, reason, size);
}

static enum status cupti_start(const struct profiler_model *model, int threads, void **session,
                               struct error *err)
{
    (void)threads;
    return cupti_session_open(model, CUPTI_RANGES, session, err);
}

static bool cupti_by_step(const void *session)
{
    const struct cupti_session *s = session;
    return gpu_counting_by_step(s->counting);
}

static void cupti_step_begin(void *session, int step)
{
    struct cupti_session *s = session;
    gpu_counting_step_begin(s->counting, step);
}

static void cupti_step_end(void *session, int step)
{
    struct cupti_session *s = session;
    (void)step;
    gpu_counting_step_end(s->counting);
}

static int cupti_read_step(void *session, int step, struct profiler_metric *metrics)
{
    struct cupti_session *s = session;
    return cupti_session_doubt(s, metrics, gpu_counting_read_step(s->counting, step, metrics));
}

REGISTER(profiler, cupti) = {
    .name = "cupti",
    .summary = "counters of NVIDIA GPUs by CUPTI: operations and bytes, whole and per step",
    .executions_max = 8, /* counts repeat exactly, and patched kernels are slow */
    .launches = true,    /* a recorded graph has kernels that were not patched */
    .attaches = true,
    .available = cupti_available,
    .open = cupti_start,
    .passes = cupti_session_passes,
    .begin = cupti_session_begin,
    .end = cupti_session_end,
    .read = cupti_session_read,
    .close = cupti_session_close,
    .by_step = cupti_by_step,
    .step_begin = cupti_step_begin,
    .step_end = cupti_step_end,
    .read_step = cupti_read_step,
    .missed = cupti_session_missed,
    .attach = cupti_session_hold,
    .detach = cupti_session_close,
};
