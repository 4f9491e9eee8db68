/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run leaves, in the form in which the store takes it: one run_head, then a record
 * per point, then ceilings. Plain values that nobody changes after they are made; all pointers are
 * borrowed for the call. The columns are explained in results/schema/.
 *
 * A number that could not be obtained is NAN (integers: RECORD_NONE) with a reason; the store
 * writes NULL. Text is never NULL, "" where there is nothing to say.
 */
#ifndef RESULTS_RECORD_H
#define RESULTS_RECORD_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define RECORD_NONE INT64_MIN

enum fact_class { FACT_IDENTITY, FACT_TUNING, FACT_VOLATILE, FACT_CLASS_COUNT };
enum fact_status { FACT_OK, FACT_DENIED, FACT_ABSENT, FACT_STATUS_COUNT };

struct fact {
    const char *category, *key;
    const char *value; /* "" unless status is FACT_OK */
    const char *unit;
    const char *source; /* file or call it was read from */
    enum fact_class class;
    enum fact_status status;
};

/* The machine and its settings. hash covers identity and tuning facts, never volatile ones. */
struct environment {
    char hash[17]; /* 16 hex digits */
    char host_uid[17];
    char host_label[64];
    const struct fact *facts;
    int fact_count;
};

struct build_record {
    char uid[17]; /* hash of the executable and its plug-ins */
    const char *version, *git, *config, *compiler, *flags, *features;
};

struct run_head {
    const char *uuid; /* 36 characters */
    const struct environment *environment;
    const struct build_record *build;
    const char *command, *suite, *suite_text, *plan_hash;
    int planned;
    int rounds;             /* planned visits of each point; 0: one */
    int64_t order_seed;     /* of each round's shuffled order */
    const char *turns_uuid; /* the run measured in turns with this one; NULL: none */
    const char *started_utc;
    int64_t order_key;
    const char *branch, *tag;
};

struct point_record {
    const char *key, *canonical;
    const char *workload, *params, *domain, *mode, *device, *precision;
    int64_t batch;
    int threads;
    const char *scenario, *cache, *providers;
};

struct op_record {
    const char *name, *kind, *shape, *kernel, *provider;
};

enum better { BETTER_LOWER, BETTER_HIGHER, BETTER_NONE, BETTER_COUNT };

/* A formula that begins so is a sentence to be shown beside the result. */
#define RECORD_NOTE "note: "

struct metric_record {
    int op; /* index into the record's ops; -1: the whole point */
    const char *name, *unit, *source;
    enum better better;
    double value;
    const char *reason, *formula;
    int64_t n; /* 0: not from samples */
    double min, q1, q3, max, mad, ci_low, ci_high;
};

/* A number alone: without samples, reason and formula, and neither good nor bad. */
static inline struct metric_record metric_alone(int op, const char *name, const char *unit,
                                                double value)
{
    return (struct metric_record){.op = op,
                                  .name = name,
                                  .unit = unit,
                                  .source = "derived",
                                  .better = BETTER_NONE,
                                  .value = value,
                                  .reason = "",
                                  .formula = "",
                                  .min = NAN,
                                  .q1 = NAN,
                                  .q3 = NAN,
                                  .max = NAN,
                                  .mad = NAN,
                                  .ci_low = NAN,
                                  .ci_high = NAN};
}

enum sample_phase { SAMPLE_WARMUP, SAMPLE_TIME, SAMPLE_DISCARDED, SAMPLE_PHASE_COUNT };

struct sample_record {
    int visit; /* round, from 0 */
    enum sample_phase phase;
    int64_t time_ns;
    int64_t queue_ns; /* this and the next: RECORD_NONE when not known */
    int64_t context_switches, migrations, page_faults, steal_ns;
    double clock_hz;
};

enum { LEVELS_MAX = 8 };

/* What the machine itself could do beside a visit. */
struct level_record {
    const char *name, *unit; /* "hand_over", "s" */
    enum better better;
    double value;
    const char *reason;
};

/* One stretch of samples of a point, in one round of the run. */
struct visit_record {
    int round; /* from 0 */
    const char *started_utc;
    int64_t samples;                      /* timed ones */
    double median_s, ci_low_s, ci_high_s; /* of its samples alone */
    double steal_share, wait_share, clock_hz;
    const char *reason; /* why something above is NAN or the visit does not count; "" otherwise */
    struct level_record levels[LEVELS_MAX];
    int level_count;
};

enum result_status { RESULT_OK, RESULT_WRONG, RESULT_FAILED, RESULT_SKIPPED, RESULT_STATUS_COUNT };

struct record {
    int sequence;
    struct point_record point;
    enum result_status status;
    bool valid;
    const char *reason;
    double verify_error, verify_bound;
    const char *verify_how, *stop_reason, *started_utc, *reproduce;
    double wall_s;
    const struct op_record *ops;
    int op_count;
    const struct metric_record *metrics;
    int metric_count;
    const struct sample_record *samples;
    int64_t sample_count;
    const struct visit_record *visits; /* ascending by round */
    int visit_count;
    bool settled; /* replaces what is stored of the same visits */
};

/* The maximum, except for a latency, which is the minimum, and the capacity. */
enum ceiling_kind {
    CEILING_BANDWIDTH,
    CEILING_COMPUTE,
    CEILING_LATENCY,
    CEILING_CAPACITY,
    CEILING_KIND_COUNT
};

struct ceiling_record {
    const char *device;
    enum ceiling_kind kind;
    const char *name, *level, *precision, *isa, *pattern;
    int threads;               /* of the CPU; 0: a device, which is always used whole */
    int64_t working_set_bytes; /* RECORD_NONE where there is none */
    double value;
    const char *unit, *reason;
    bool datasheet; /* stated by the maker or the driver; else measured */
    int64_t n;
    double min, max;
    double clock_hz; /* of the device's processors meanwhile; not above 0: not known */
};

const char *ceiling_kind_name(enum ceiling_kind kind); /* "compute" */

#endif
