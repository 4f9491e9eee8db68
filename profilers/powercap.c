/* SPDX-License-Identifier: Apache-2.0
 *
 * Energy of the CPU packages, with everything that runs on them: nothing is subtracted, because
 * idle power is part of what an execution costs. psys, the whole board, is left out. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "profilers/lib/powercap.h"
#include "profilers/lib/profiler.h"

struct session {
    struct powercap counters;
    int64_t executions;
};

static bool powercap_is_available(char *reason, size_t size)
{
    struct powercap counters;
    struct error err = {.message = ""};
    bool there = powercap_open(&counters, "", &err) == STATUS_OK;
    snprintf(reason, size, "%s", there ? "" : err.message);
    return there;
}

static enum status powercap_session(const struct profiler_model *model, int threads, void **session,
                                    struct error *err)
{
    (void)model;
    (void)threads;
    struct session *s = calloc(1, sizeof(*s));
    if (!s)
        return FAIL_NO_MEMORY(err);
    enum status status = powercap_open(&s->counters, "", err);
    if (status != STATUS_OK)
        free(s);
    else
        *session = s;
    return status;
}

static int powercap_passes(const void *session)
{
    (void)session;
    return 1;
}

static enum status powercap_start(void *session, int pass, struct error *err)
{
    struct session *s = session;
    (void)pass;
    return powercap_begin(&s->counters, err);
}

static enum status powercap_stop(void *session, int pass, int64_t executions, struct error *err)
{
    struct session *s = session;
    (void)pass;
    s->executions += executions;
    return powercap_add(&s->counters, err);
}

static int powercap_metrics(void *session, struct profiler_metric *metrics)
{
    static const struct {
        const char *name, *prefix, *formula;
    } parts[] = {
        {"energy_j", "package", "sum of energy_uj of all packages"},
        {"energy_dram_j", "dram", "sum of energy_uj of all zones \"dram\""},
        {"energy_cores_j", "core", "sum of energy_uj of all zones \"core\""},
    };
    const struct session *s = session;
    for (int k = 0; k < ARRAY_COUNT(parts); k++) {
        double joules = powercap_joules(&s->counters, parts[k].prefix);
        const char *reason = isnan(joules)    ? "this CPU has no such zone"
                             : !s->executions ? "nothing was executed"
                                              : "";
        metrics[k] = (struct profiler_metric){parts[k].name, "J", parts[k].formula, reason,
                                              joules / (double)s->executions};
        if (!s->executions)
            metrics[k].value = NAN;
    }
    return ARRAY_COUNT(parts);
}

REGISTER(profiler, powercap) = {
    .name = "powercap",
    .summary = "energy of the CPU packages (RAPL)",
    .system_wide = true,
    .executions_max = 1000000000, /* the counters move a thousand times a second */
    .available = powercap_is_available,
    .open = powercap_session,
    .passes = powercap_passes,
    .begin = powercap_start,
    .end = powercap_stop,
    .read = powercap_metrics,
    .close = free,
};
