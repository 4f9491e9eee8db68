/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan is what will be measured: a flat list of points in the order in which they run. Made from
 * a suite (harness/suite/suite.h) or from the words of a command line; nothing changes it
 * afterwards.
 *
 * A point's id is the hash of its canonical text, which names everything that makes two
 * measurements comparable (workload, parameters other than defaults, mode, device, precision,
 * batch, threads, scenario, cache, providers, tuning) and nothing else: not the stopping rule, not
 * the file it came from. Canonical text: keys in fixed order, "key=value" joined by spaces, e.g.
 *   workload=resnet50 params=version=1.5 mode=inference device=cpu precision=f32 batch=32 threads=2
 *   scenario=single_stream cache=warm providers=
 * then tuning=quick where kernels were not fully tuned, since others may have won,
 * recompute=SEGMENTS (auto: as many as save most) of a training that keeps few activations, and for
 * a server, whose rate means nothing without them, bound=0.1 quantile=0.99. Last come options of
 * the command line that make other code (harness/suite/code_choice.h): isa=scalar max_error=1e-05
 * tuning=none fusing=none capture=none. Training on several ranks has ranks=2 among its params, and
 * after providers= scaling=weak backend=shm algorithm=, as harness/scale/scale_store.c writes it.
 */
#ifndef HARNESS_SUITE_PLAN_H
#define HARNESS_SUITE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text/options.h"
#include "harness/suite/code_choice.h"

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
    int64_t samples_floor;    /* even if they take longer than seconds_max; 0: six */
    double seconds_min;       /* default 1: of accumulated sample time */
    double seconds_max;       /* default 15: wall time of the point's time phase */
    double interval;          /* stop when the half-width of the median's 95 % interval is below
                                 this share of it; default 0.01. 0: only the floors count */
    double latency_bound_s;   /* server: bound of ... */
    double latency_quantile;  /* ... this quantile; default 0.99 */
    int64_t server_queries;   /* server: per tried rate; default 200 */
    bool verify;              /* compare with the float64 reference first; default true */
    bool layers;              /* time every step apart, after the time phase; default true */
    int rounds;               /* visits among which all of this is divided; default 3; 1: server */
    bool quick_tune;          /* one variant of each kernel competes */
    bool interval_is_default; /* nobody asked for it */
};

struct point {
    char id[17];
    const char *canonical;
    const char *spec;     /* what workload_open takes: "resnet50:version=1.5" or a path */
    const char *workload; /* name or path */
    const char *params;   /* "version=1.5", "" without */
    const char *domain, *mode, *device, *precision, *providers;
    int64_t batch;    /* of all ranks; 0: as a model file says that could not be understood */
    int threads;      /* resolved: never 0; of each rank */
    bool recompute;   /* of a step of training: activations */
    int64_t segments; /* of that; 0: as many as save most */
    int ranks;        /* that learn together; 0: not such a point */
    int ranks_most;   /* of all points of the same entry: among so many CPUs are divided */
    bool strong;      /* of ranks: the batch does not grow with them */
    const char *backend;
    int64_t steps; /* of ranks, in place of the protocol's stopping rule */
    struct protocol protocol;
    struct code_choice code; /* of the command line, for all points */
    const char *profilers;   /* "model,papi" */
    const char *skip;        /* reason not to run it; NULL: runs */
    const char *origin;      /* "suites/quick.toml:14" or the word of the command line */
    double estimate_s;       /* wall time of earlier runs; NAN when unknown */
    bool over_budget;        /* it does not fit into the plan's budget: plan_admit */
};

struct plan {
    struct arena arena;
    const char *suite;      /* path, or "command line" */
    const char *suite_text; /* as read, includes expanded; "" for a command line */
    struct point *points;
    int count;
    char hash[17];                 /* over all ids in order */
    const char *db, *report;       /* where results go; report "": none is written */
    bool ceilings;                 /* measure them in the run */
    double budget_s;               /* 0: none */
    int rounds;                    /* in how many the points are visited */
    struct option_seed order_seed; /* of each round's order; not given: the run takes one */
};

/* What a command line overrides in every point; zeroed: nothing. Text is as in a suite, lists with
 * commas: batch "1,8,32". */
struct plan_overrides {
    const char *tuning; /* "quick" or NULL; of `run --quick-tune` */
    struct code_choice code;
    const char *batch, *threads, *providers, *device, *precision, *mode, *scenario, *profilers;
    int64_t samples;              /* at least so many */
    struct option_amount seconds; /* at least so long */
    double seconds_max;           /* sampling ends then in any case */
    const char *interval, *latency_bound, *quantile;
    const char *segments;
    const char *only; /* comma list of workloads: no others */
    const char *db, *report;
    struct option_amount budget_s; /* 0: none, whatever the suite says */
    const char *rounds;
    struct option_seed order_seed;
    bool recompute, cold, no_verify, no_layers, no_ceilings, no_report;
    int cpus; /* what "all" means; 0: the CPUs that this process may use */
};

/* Rows of an option table that fill `struct plan_overrides name` inside of a command's values. */
/* clang-format off */
#define PLAN_OPTION(type, kind, field, letter, name, argument, help)                               \
    {name, letter, OPTION_##kind, offsetof(type, field), argument, help}
#define PLAN_OPTIONS(type, o)                                                                      \
    PLAN_OPTION(type, TEXT, o.batch, 'b', "batch", "LIST", "images, sequences or rows"),           \
    PLAN_OPTION(type, TEXT, o.threads, 't', "threads", "LIST", "default: every CPU"),              \
    PLAN_OPTION(type, TEXT, o.providers, 'p', "providers", "LIST",                                 \
                "only kernels of these: native,onednn,openblas"),                                  \
    PLAN_OPTION(type, TEXT, o.device, 0, "device", "NAME", "cpu"),                                 \
    PLAN_OPTION(type, TEXT, o.precision, 0, "precision", "LIST", "f32"),                           \
    PLAN_OPTION(type, TEXT, o.mode, 0, "mode", "LIST", "inference, training"),                     \
    PLAN_OPTION(type, FLAG, o.recompute, 0, "recompute", NULL,                                     \
                "of training: compute activations again instead of keeping them"),                 \
    PLAN_OPTION(type, TEXT, o.segments, 0, "segments", "LIST",                                     \
                "of --recompute: 0, or between how many results are kept"),                        \
    PLAN_OPTION(type, TEXT, o.scenario, 0, "scenario", "LIST",                                     \
                "single_stream, offline or server"),                                               \
    PLAN_OPTION(type, TEXT, o.latency_bound, 0, "latency-bound", "S",                              \
                "of scenario server, in seconds"),                                                 \
    PLAN_OPTION(type, TEXT, o.quantile, 0, "quantile", "X",                                        \
                "of scenario server: share of the queries below it (default 0.99)"),               \
    PLAN_OPTION(type, FLAG, o.cold, 0, "cold", NULL, "flush the caches before each sample"),       \
    PLAN_OPTION(type, COUNT, o.samples, 'n', "samples", "N", "minimum number (default 15)"),       \
    PLAN_OPTION(type, AMOUNT, o.seconds, 's', "seconds", "S", "minimum time (default 1)"),         \
    PLAN_OPTION(type, POSITIVE, o.seconds_max, 0, "seconds-max", "S",                              \
                "maximum time of sampling (default 15)"),                                          \
    PLAN_OPTION(type, TEXT, o.interval, 0, "interval", "X",                                        \
                "sample until the median is known to this share of it (default 0.01)"),            \
    PLAN_OPTION(type, TEXT, o.profilers, 0, "profilers", "LIST",                                   \
                "what is counted after the timing (default model,papi,powercap)"),                 \
    PLAN_OPTION(type, TEXT, o.only, 0, "only", "LIST", "these workloads of the suite only"),       \
    PLAN_OPTION(type, FLAG, o.no_verify, 0, "no-verify", NULL,                                     \
                "do not compare with the float64 reference"),                                      \
    PLAN_OPTION(type, FLAG, o.no_layers, 0, "no-layers", NULL, "do not time single steps"),        \
    PLAN_OPTION(type, FLAG, o.no_ceilings, 0, "no-ceilings", NULL,                                 \
                "do not measure what the machine can do"),                                         \
    PLAN_OPTION(type, AMOUNT, o.budget_s, 0, "budget", "S",                                        \
                "leave out what does not fit into this time; 0: no limit"),                        \
    PLAN_OPTION(type, TEXT, o.rounds, 0, "rounds", "N",                                            \
                "visits of each point, each time in another order (default 3)"),                   \
    PLAN_OPTION(type, SEED, o.order_seed, 0, "order-seed", "N",                                    \
                "repeats the order of an earlier run"),                                            \
    PLAN_OPTION(type, TEXT, o.db, 0, "db", "FILE", "database (default out/ridge.db)"),             \
    PLAN_OPTION(type, TEXT, o.report, 0, "report", "DIR",                                          \
                "folder of the report (default out/report)"),                                      \
    PLAN_OPTION(type, FLAG, o.no_report, 0, "no-report", NULL, "write no report")
/* clang-format on */

/* Words are suites, workloads ("resnet50:version=1.5") and model files, in any order. No word: the
 * suite ./suite.toml, or "quick" where there is none. overrides may be NULL. */
enum status plan_from_words(char *const *words, int count, const struct plan_overrides *overrides,
                            struct plan *plan, struct error *err);
void plan_release(struct plan *plan);

/* Whether it runs on the device "null", which computes nothing and whose time is made up. */
bool point_is_null(const struct point *point);
/* Whether on a device other than the CPU. */
bool point_has_device(const struct point *point);

/* Identity from a canonical text: 16 hex digits. */
void plan_id(const char *canonical, char id[17]);

#endif
