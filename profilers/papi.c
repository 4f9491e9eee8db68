/* SPDX-License-Identifier: Apache-2.0
 *
 * Hardware counters by the groups of profilers/groups, through libpapi. The library is opened when
 * it is needed, behind plugins/profilers/papi.so (profilers/plugins/papi/). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/plugin_open.h"
#include "profilers/lib/counting.h"

enum { CPUINFO_SIZE = 16384 };

static const double idle_s = 0.1; /* long enough for refresh and daemons to average out */

struct session {
    struct arena arena;
    struct counting *counting;
};

static const struct counters_backend *find_backend(char *reason, size_t size)
{
    static const struct plugin_wanted plugin = {"profilers", "papi", "ridge_counters", "libpapi",
                                                "apt-get install libpapi-dev, then make"};
    ridge_counters_entry *entry;
    void *symbol = plugin_open(&plugin, reason, size);
    if (!symbol)
        return NULL;
    memcpy(&entry, &symbol, sizeof(entry)); /* POSIX's way round ISO C's rule on casts */
    const struct counters_backend *backend = entry(reason, size);
    if (backend && backend->abi != COUNTERS_ABI) {
        snprintf(reason, size, "plugins/profilers/papi.so was built for another ridge: make");
        return NULL;
    }
    return backend;
}

static void identify_cpu(struct cpu_identity *cpu)
{
    char text[CPUINFO_SIZE];
    FILE *file = fopen("/proc/cpuinfo", "re");
    size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[size] = '\0';
    if (file)
        fclose(file);
    cpu_identity_parse(text, cpu);
}

/* ---- the profiler ---- */

static bool papi_available(char *reason, size_t size)
{
    snprintf(reason, size, "%s", "");
    return find_backend(reason, size) != NULL;
}

static enum status open_counting(struct session *s, struct error *err)
{
    char reason[400] = "";
    struct counting_setup setup = {.idle_s = idle_s};
    setup.backend = find_backend(reason, sizeof(reason));
    if (!setup.backend)
        return UNSUPPORTED(err, "%s", reason);
    TRY(group_read_all(&s->arena, &setup.groups, &setup.group_count, err));
    identify_cpu(&setup.cpu);
    return counting_open(&setup, &s->counting, err);
}

static enum status papi_open(const struct profiler_model *model, int threads, void **session,
                             struct error *err)
{
    (void)model;
    (void)threads; /* every thread that the process has is counted */
    struct session *s = calloc(1, sizeof(*s));
    if (!s)
        return FAIL_NO_MEMORY(err);
    enum status status = open_counting(s, err);
    if (status != STATUS_OK) {
        arena_release(&s->arena);
        free(s);
        return status;
    }
    *session = s;
    return STATUS_OK;
}

static int papi_passes(const void *session)
{
    const struct session *s = session;
    return counting_passes(s->counting);
}

static enum status papi_begin(void *session, int pass, struct error *err)
{
    struct session *s = session;
    return counting_begin(s->counting, pass, err);
}

static enum status papi_end(void *session, int pass, int64_t executions, struct error *err)
{
    struct session *s = session;
    return counting_end(s->counting, pass, executions, err);
}

static int papi_read(void *session, struct profiler_metric *metrics)
{
    struct session *s = session;
    return counting_read(s->counting, metrics);
}

static void papi_close(void *session)
{
    struct session *s = session;
    counting_close(s->counting);
    arena_release(&s->arena);
    free(s);
}

REGISTER(profiler, papi) = {
    .name = "papi",
    .summary = "hardware and kernel counters by libpapi: profilers/groups",
    .available = papi_available,
    .open = papi_open,
    .passes = papi_passes,
    .begin = papi_begin,
    .end = papi_end,
    .read = papi_read,
    .close = papi_close,
};
