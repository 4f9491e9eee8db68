/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan is what will be measured: a flat list of points in the order in which they run. Made from
 * a suite (harness/suite.h) or from the words of a command line; nothing changes it afterwards.
 *
 * A point's id is the hash of its canonical text, which names everything that makes two
 * measurements comparable (workload, parameters other than defaults, mode, device, precision,
 * batch, threads, scenario, cache, providers) and nothing else: not the stopping rule, not the file
 * it came from. Canonical text: keys in fixed order, "key=value" joined by spaces, e.g.
 *   workload=resnet50 params=version=1.5 mode=inference device=cpu precision=f32 batch=32 threads=2
 *   scenario=single_stream cache=warm providers=
 */
#ifndef HARNESS_PLAN_H
#define HARNESS_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum scenario { SCENARIO_SINGLE_STREAM, SCENARIO_OFFLINE, SCENARIO_SERVER, SCENARIO_COUNT };

const char *scenario_name(enum scenario scenario);

/* How a point is measured. Zero is not a default: plan_* fill everything in. */
struct protocol {
    enum scenario scenario;
    bool cold;                /* flush the caches before each sample */
    double warmup_s;          /* at least, and at least warmup_runs executions */
    int64_t warmup_runs;      /* default 3 and 0.2 s */
    int64_t samples_min;      /* default 15 */
    int64_t samples_max;      /* default 20000 */
    double seconds_min;       /* default 1: of accumulated sample time */
    double seconds_max;       /* default 15: wall time of the point's time phase */
    double interval;          /* stop when the half-width of the median's 95 % interval is below
                                 this share of it; default 0.01. 0: only the floors count */
    double latency_bound_s;   /* server: bound of ... */
    double latency_quantile;  /* ... this quantile; default 0.99 */
    int64_t server_queries;   /* server: per tried rate; default 200 */
    bool verify;              /* compare with the float64 reference first; default true */
    bool layers;              /* time every step apart, after the time phase; default true */
    bool interval_is_default; /* nobody asked for it */
};

struct point {
    char id[17];
    const char *canonical;
    const char *spec;     /* what workload_open takes: "resnet50:version=1.5" or a path */
    const char *workload; /* name or path */
    const char *params;   /* "version=1.5", "" without */
    const char *domain, *mode, *device, *precision, *providers;
    int64_t batch;
    int threads; /* resolved: never 0 */
    struct protocol protocol;
    const char *profilers; /* "model,papi" */
    const char *skip;      /* reason not to run it; NULL: runs */
    const char *origin;    /* "suites/quick.toml:14" or "command line" */
    double estimate_s;     /* rough wall time; NAN when unknown */
};

struct plan {
    struct arena arena;
    const char *suite;      /* path, or "command line" */
    const char *suite_text; /* as read, includes expanded; "" for a command line */
    const struct point *points;
    int count;
    char hash[17];           /* over all ids in order */
    const char *db, *report; /* where results go */
    bool ceilings;           /* measure them in the run */
    double budget_s;         /* 0: none */
};

void plan_release(struct plan *plan);

#endif
