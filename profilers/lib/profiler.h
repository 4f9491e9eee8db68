/* SPDX-License-Identifier: Apache-2.0
 *
 * A profiler counts what one execution of a workload does: profilers/NAME.c, or a plug-in where it
 * needs a library. Counting has its own phase after the timed one, so a profiler may disturb time.
 *
 * Life cycle, per point: available (may be asked before); open; then for each of `passes` passes:
 * begin, (a few executions, settle,) the executions, end; read gives its metrics per execution;
 * close. `passes` is asked again before each pass, because what was counted may show that more is
 * needed. What cannot be counted is not left out: it is a metric with value NAN and a reason. A
 * counter is started and read once before it is believed (open does that).
 *
 * A pass may look at the steps of the executable one by one. Where by_step says so of the pass that
 * begins next, it has one execution, and step_begin and step_end are called around each step, which
 * is waited for on a device. read_step then gives the metrics of one step.
 *
 * The smallest example is profilers/null.c. Tested by tests/unit/test_profilers.c, which walks the
 * registry.
 */
#ifndef PROFILERS_LIB_PROFILER_H
#define PROFILERS_LIB_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/registry.h"

enum { PROFILER_METRICS_MAX = 32 };

/* One number per execution. Text is owned by the session or static. */
struct profiler_metric {
    const char *name; /* flops, dram_read_bytes, energy_j, context_switches ... */
    const char *unit;
    const char *formula; /* exact event names and arithmetic */
    const char *reason;  /* of a NAN value, "" otherwise */
    double value;
};

/* What is known of the workload: counted on paper, and how it is run. */
struct profiler_model {
    double flops, macs, transcendentals, bytes_compulsory, bytes_streamed;
    const char *precision; /* "f32", "bf16" ...; NULL: not known */
    bool tensor_cores;   /* it uses them in f32, too, or may: products of bytes, or of split f32 */
    const char *device;  /* "cpu", "cuda", "cuda:1"; NULL: the CPU */
    int steps;           /* of the executable; 0: they cannot be looked at one by one */
    const bool *on_host; /* per step: it runs on the host, not on the device; NULL: none does */
    double pass_s;       /* that the executions of a pass should take; 0: not known */
    const char *label;   /* tells the point from others, fit for a file name; NULL: nothing does */
    const char *folder;  /* for files that are made beside the numbers; NULL: none are made */
    void *attached;      /* what attach gave, now owned by open; NULL: nothing */
};

struct profiler {
    const char *name;
    const char *summary;
    bool always;            /* counts points that do not name it, too */
    bool system_wide;       /* counts everybody on the machine, not this process alone */
    double pass_s;          /* how long the executions of a pass should take; 0: 1 s */
    int64_t executions_max; /* in a pass; 0: 1000 */
    bool launches;          /* executions launch step by step, instead of replaying what a device
                               recorded before the profiler was there */
    bool attaches; /* to a device's profiling interface, which may slow it down from then on:
                      comes after all that do not, whatever the order of names */
    /* False and a reason (with what to do) when it cannot count anything here. */
    bool (*available)(char *reason, size_t size);
    enum status (*open)(const struct profiler_model *model, int threads, void **session,
                        struct error *err);
    int (*passes)(const void *session);
    enum status (*begin)(void *session, int pass, struct error *err);
    /* May be NULL. Called once a few executions have followed begin: they have paid for what
     * counting sets up, and are forgotten. */
    enum status (*settle)(void *session, int pass, struct error *err);
    enum status (*end)(void *session, int pass, int64_t executions, struct error *err);
    /* Fills at most PROFILER_METRICS_MAX; returns how many. */
    int (*read)(void *session, struct profiler_metric *metrics);
    void (*close)(void *session);
    /* All four or none. */
    bool (*by_step)(const void *session);
    void (*step_begin)(void *session, int step);
    void (*step_end)(void *session, int step); /* what goes wrong is said by end */
    int (*read_step)(void *session, int step, struct profiler_metric *metrics);
    /* All three or none. What a device has loaded before a profiler attached may be closed to it:
     * missed, asked before close, says that executions ran and that it saw none of their work.
     * attach comes before anything runs on the device; a session is then opened with what it gave,
     * or detach gives that back. */
    bool (*missed)(const void *session);
    enum status (*attach)(const char *device, void **attached, struct error *err);
    void (*detach)(void *attached);
};

/* Index of a device "cuda" (0) or "cuda:N"; -1 when it is none. */
int profiler_cuda_index(const char *device);

int profiler_count(void);
const struct profiler *profiler_at(int index);
const struct profiler *profiler_find(const char *name);

#endif
