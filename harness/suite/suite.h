/* SPDX-License-Identifier: Apache-2.0
 *
 * A suite file says what to measure. Reading it gives one validated value: every key is known, has
 * the right type and a value in range; a list or range has become an axis of values. Which points
 * that makes is harness/suite/plan.c's business.
 *
 * All keys stand in one table (harness/suite/suite_keys.c) with type, limits, default and help: the
 * reader, the command line's overrides and `ridge help suite.toml` follow it. Adding a key is a row
 * there, its name in enum suite_key_id, and its use in harness/suite/plan.c.
 *
 * Complaints name file, line and key: "suite.toml:14: workload.batch: ...".
 */
#ifndef HARNESS_SUITE_SUITE_H
#define HARNESS_SUITE_SUITE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text/toml.h"
#include "workloads/workload.h"

enum suite_key_id {
    KEY_NAME,
    KEY_DESCRIPTION,
    KEY_INCLUDE,
    KEY_BUDGET,
    KEY_ROUNDS,
    KEY_CEILINGS,
    KEY_DB,
    KEY_REPORT,
    KEY_WORKLOAD,
    KEY_PATH,
    KEY_BATCH, /* from here on: settings, in [defaults] and in every [[workload]] */
    KEY_THREADS,
    KEY_DEVICE,
    KEY_PRECISION,
    KEY_MODE,
    KEY_RECOMPUTE,
    KEY_SEGMENTS,
    KEY_PROVIDERS,
    KEY_SCENARIO,
    KEY_COLD,
    KEY_PROFILERS,
    KEY_VERIFY,
    KEY_LAYERS,
    KEY_TUNING,
    KEY_INTERVAL,
    KEY_SAMPLES_MIN,
    KEY_SAMPLES_MAX,
    KEY_SECONDS_MIN,
    KEY_SECONDS_MAX,
    KEY_WARMUP_RUNS,
    KEY_WARMUP_S,
    KEY_LATENCY_BOUND,
    KEY_QUANTILE,
    KEY_QUERIES,
    KEY_RANKS,
    KEY_STRONG,
    KEY_BACKEND,
    KEY_STEPS,
    KEY_COUNT
};

/* Where a key may stand. */
enum suite_table {
    TABLE_TOP,
    TABLE_CEILINGS,
    TABLE_OUTPUT,
    TABLE_WORKLOAD,
    TABLE_SETTINGS,
    TABLE_STOP,
    TABLE_SERVER,
    TABLE_SCALING,
    TABLE_COUNT
};

enum suite_type {
    SUITE_TEXT,
    SUITE_WORDS, /* one or several strings that are one value: "model,papi" */
    SUITE_INT,   /* or one of the words in choices */
    SUITE_NUMBER,
    SUITE_BOOL
};

struct suite_key {
    enum suite_table table;
    const char *name;
    enum suite_type type;
    bool sweeps;                /* a list makes a point of each value */
    const char *const *choices; /* NULL-terminated; NULL: anything */
    enum status (*check)(const char *text, struct error *err); /* instead of choices; or NULL */
    double min, max;                                           /* of numbers */
    const char *usual; /* default as text; NULL: none, and help says what happens then */
    const char *help;
};

const struct suite_key *suite_key(enum suite_key_id id);
/* "[defaults.stop]" ... and what the table is for. */
const char *suite_table_title(enum suite_table table);
const char *suite_table_help(enum suite_table table);
/* Reference of the format, made from the table of keys; markdown or plain text. */
void suite_print_reference(FILE *stream, bool markdown);

struct suite_value {
    const char *text; /* always there */
    int64_t integer;
    double number;
    bool truth;
    bool is_word; /* an integer that a word stands for: "all" */
};

/* The values of one key or workload parameter; no value: nobody gave it. */
struct suite_axis {
    const char *name;
    const struct suite_value *values;
    int count;
    const char *origin; /* "suite.toml:14" or "--batch" */
    int order;          /* the lower was written first */
};

/* One workload or model file. */
struct suite_entry {
    const struct workload *workload; /* NULL: a file */
    const char *path;                /* of the file as it can be opened from here */
    const struct param *known;       /* what params are values of, in the same order; or NULL */
    const char *file_batch;          /* what the file calls its batch, or ""; of files */
    const char *origin;              /* "suite.toml:12" */
    struct suite_axis params[PARAM_MAX];
    struct suite_axis axes[KEY_COUNT];
};

struct suite {
    struct arena arena;
    const char *path;
    const char *text; /* of all files, includes first */
    struct suite_axis axes[KEY_COUNT];
    struct suite_entry *entries;
    size_t count, capacity;
    int cpus; /* what "all" stands for */
    int order;
};

/* path: a file, or the name of an embedded suite ("quick", "suites/quick.toml") when there is no
 * such file. cpus: what threads = "all" means. */
enum status suite_load(const char *path, int cpus, struct suite *suite, struct error *err);
/* The same from memory; includes are relative to the folder of `path`. */
enum status suite_parse(const char *path, const char *text, size_t size, int cpus,
                        struct suite *suite, struct error *err);
/* True when suite_load would find something: this distinguishes a suite from a workload. */
bool suite_exists(const char *path);
/* Adds one entry as a command line names it: "resnet50:version=1.5", "model.onnx:sequence=128". */
enum status suite_add_word(struct suite *suite, const char *word, struct error *err);
/* Values of a key as a command line gives them: "1,8,32"; origin: "--batch". */
enum status suite_axis_from_text(struct suite *suite, enum suite_key_id id, const char *origin,
                                 const char *text, struct suite_axis *axis, struct error *err);
void suite_release(struct suite *suite);

#endif
