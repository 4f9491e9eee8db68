/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters through PAPI. PAPI counts the thread that asks, and ridge's threads are older than the
 * profiler: so every thread of the process gets an event set of its own that is attached to it
 * from outside. Only events that could be started and read are believed: on virtual machines PAPI
 * accepts names that the kernel then refuses. */
#define _GNU_SOURCE
#include <dirent.h>
#include <math.h>
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/cpus.h"
#include "profilers/lib/counters.h"
#include "profilers/plugins/papi/software.h"

enum { EVENTS_MAX = 64, THREADS_MAX = CPUS_MAX, FILES_MAX = 4 * THREADS_MAX };

/* A counter of the kernel for one thread. */
struct file {
    int file, event; /* event: position in the list that was asked for */
};

struct counters_set {
    int count;            /* events asked for */
    int used[EVENTS_MAX]; /* position in the event sets; -1: not counted */
    int used_count;
    int set_count;
    int sets[THREADS_MAX];   /* PAPI's handles, one per thread */
    bool direct[EVENTS_MAX]; /* counted by the kernel, not by PAPI */
    int file_count;
    struct file files[FILES_MAX];
};

/* ---- one event set ---- */

static void drop_set(int handle)
{
    if (handle == PAPI_NULL)
        return;
    PAPI_cleanup_eventset(handle);
    PAPI_destroy_eventset(&handle);
}

/* An empty set for the component of an event; attached to a thread unless tid is 0. */
static int make_set(const char *event, unsigned long tid, int *handle)
{
    int code, status = PAPI_event_name_to_code(event, &code);
    *handle = PAPI_NULL;
    if (status == PAPI_OK)
        status = PAPI_create_eventset(handle);
    if (status == PAPI_OK)
        status = PAPI_assign_eventset_component(*handle, PAPI_get_event_component(code));
    if (status == PAPI_OK && tid)
        status = PAPI_attach(*handle, tid);
    if (status != PAPI_OK) {
        drop_set(*handle);
        *handle = PAPI_NULL;
    }
    return status;
}

/* ---- whether an event can be counted ---- */

static const char *advice_for(int status)
{
    if (status == PAPI_EPERM)
        return "; sudo sysctl kernel.perf_event_paranoid=1 (0 for memory controllers)";
    if (status == PAPI_ENOEVNT || status == PAPI_ENOCMP || status == PAPI_ESYS)
        return "; no such counter here: virtual machines often have none, run on the host";
    if (status == PAPI_ECNFLCT || status == PAPI_ECOUNT)
        return "; too few counters at once: is another profiler or the NMI watchdog running?";
    return "";
}

static void explain(char *reason, const char *event, const char *call, int status)
{
    snprintf(reason, COUNTERS_REASON, "%.80s: %s says %d (%s)%s", event, call, status,
             PAPI_strerror(status), advice_for(status));
}

/* Adds, starts and reads an event alone. */
static bool try_event(const char *event, char *reason)
{
    long long value = 0;
    int handle;
    const char *call = "PAPI_create_eventset";
    int status = make_set(event, 0, &handle);
    if (status == PAPI_OK) {
        call = "PAPI_add_named_event";
        status = PAPI_add_named_event(handle, event);
    }
    if (status == PAPI_OK) {
        call = "PAPI_start";
        status = PAPI_start(handle);
    }
    if (status == PAPI_OK) {
        call = "PAPI_stop";
        status = PAPI_stop(handle, &value);
    }
    drop_set(handle);
    if (status != PAPI_OK)
        explain(reason, event, call, status);
    return status == PAPI_OK;
}

/* ---- sets of all threads ---- */

static void close_set(struct counters_set *set)
{
    for (int k = 0; k < set->set_count; k++)
        drop_set(set->sets[k]);
    for (int k = 0; k < set->file_count; k++)
        software_close(set->files[k].file);
    free(set);
}

/* All believed events for one thread; an event that does not fit beside the others loses its
 * place in the first set, before there is a second. */
static bool add_thread(struct counters_set *set, const char *const *events, unsigned long tid,
                       char (*reasons)[COUNTERS_REASON])
{
    int handle = PAPI_NULL, position = 0;
    for (int k = 0; k < set->count; k++) {
        if (set->used[k] < 0)
            continue;
        int status = handle == PAPI_NULL ? make_set(events[k], tid, &handle) : PAPI_OK;
        if (status == PAPI_OK)
            status = PAPI_add_named_event(handle, events[k]);
        if (status != PAPI_OK && set->set_count > 0)
            break; /* the thread ended meanwhile, or has what others have not */
        if (status != PAPI_OK)
            explain(reasons[k], events[k], "PAPI_add_named_event beside the others", status);
        set->used[k] = status == PAPI_OK ? position++ : -1;
    }
    if (set->set_count == 0)
        set->used_count = position;
    if (position != set->used_count || position == 0) {
        drop_set(handle);
        return false;
    }
    set->sets[set->set_count++] = handle;
    return true;
}

/* Opens the kernel's counters for a thread; one that ended meanwhile is no failure. */
static void add_files(struct counters_set *set, const char *const *events, int tid)
{
    for (int k = 0; k < set->count && set->file_count < FILES_MAX; k++) {
        int file = set->direct[k] ? software_open(software_event(events[k]), tid) : -1;
        if (file >= 0)
            set->files[set->file_count++] = (struct file){file, k};
    }
}

static void add_threads(struct counters_set *set, const char *const *events,
                        char (*reasons)[COUNTERS_REASON])
{
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        unsigned long tid = strtoul(entry->d_name, NULL, 10);
        if (tid && set->set_count < THREADS_MAX)
            add_thread(set, events, tid, reasons);
        if (tid)
            add_files(set, events, (int)tid);
    }
    if (folder)
        closedir(folder);
}

/* Sets how an event is counted, or why not. */
static void choose(struct counters_set *set, int k, const char *event, char *reason)
{
    int software = software_event(event);
    reason[0] = '\0';
    set->used[k] = -1;
    if (software < 0) {
        set->used[k] = try_event(event, reason) ? 0 : -1;
        return;
    }
    int file = software_open(software, 0);
    set->direct[k] = file >= 0;
    if (file < 0)
        software_explain(event, file, reason, COUNTERS_REASON);
    else
        software_close(file);
}

static struct counters_set *open_set(const char *const *events, int count, bool system_wide,
                                     char (*reasons)[COUNTERS_REASON])
{
    struct counters_set *set = calloc(1, sizeof(*set));
    if (!set)
        return NULL;
    set->count = count < EVENTS_MAX ? count : EVENTS_MAX;
    for (int k = 0; k < count; k++)
        if (k < EVENTS_MAX)
            choose(set, k, events[k], reasons[k]);
        else
            snprintf(reasons[k], COUNTERS_REASON, "more than %d events in a group", EVENTS_MAX);
    if (system_wide)
        add_thread(set, events, 0, reasons);
    else
        add_threads(set, events, reasons);
    return set;
}

/* ---- counting ---- */

static bool start_set(struct counters_set *set, char *reason)
{
    for (int k = 0; k < set->set_count; k++) {
        int status = PAPI_start(set->sets[k]);
        if (status == PAPI_OK)
            continue;
        long long values[EVENTS_MAX];
        while (k-- > 0)
            PAPI_stop(set->sets[k], values);
        explain(reason, "all events together", "PAPI_start", status);
        return false;
    }
    for (int k = 0; k < set->file_count; k++)
        software_start(set->files[k].file);
    return true;
}

static bool stop_set(struct counters_set *set, double *values, char *reason)
{
    double sums[EVENTS_MAX] = {0};
    int worst = PAPI_OK;
    for (int k = 0; k < set->set_count; k++) {
        long long counted[EVENTS_MAX] = {0};
        int status = PAPI_stop(set->sets[k], counted);
        worst = status != PAPI_OK ? status : worst;
        for (int e = 0; e < set->used_count; e++)
            sums[e] += (double)counted[e];
    }
    for (int k = 0; k < set->count; k++)
        values[k] = set->direct[k]                            ? 0
                    : set->used[k] < 0 || set->set_count == 0 ? NAN
                                                              : sums[set->used[k]];
    for (int k = 0; k < set->file_count; k++)
        values[set->files[k].event] += software_stop(set->files[k].file);
    if (worst != PAPI_OK)
        explain(reason, "all events together", "PAPI_stop", worst);
    return worst == PAPI_OK;
}

/* ---- entry ---- */

static const struct counters_backend backend = {
    .abi = COUNTERS_ABI,
    .open = open_set,
    .start = start_set,
    .stop = stop_set,
    .close = close_set,
};

const struct counters_backend *ridge_counters(char *reason, size_t size)
{
    const int wanted = PAPI_VER_CURRENT;
    int version = PAPI_is_initialized() ? wanted : PAPI_library_init(wanted);
    PAPI_set_debug(PAPI_QUIET); /* it would print to stderr */
    if (version == wanted)
        return &backend;
    snprintf(reason, size, "libpapi says %d (%s) when asked for version %d.%d: make again", version,
             version < 0 ? PAPI_strerror(version) : "another version", PAPI_VERSION_MAJOR(wanted),
             PAPI_VERSION_MINOR(wanted));
    return NULL;
}
