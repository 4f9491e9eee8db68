/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole sessions of the CUPTI profilers over the made library, for tests. */
#ifndef TESTS_LIB_CUPTI_RUN_H
#define TESTS_LIB_CUPTI_RUN_H

#include "profilers/lib/profiler.h"
#include "tests/lib/cupti_fake.h"

enum { RUN_STEPS = 3, RUN_EXECUTIONS = 4, RUN_PASSES = 2 };

/* A GPU that works. */
extern const struct fake_script cupti_usual;

struct cupti_outcome {
    struct profiler_metric metrics[PROFILER_METRICS_MAX], steps[RUN_STEPS][PROFILER_METRICS_MAX];
    int count, step_counts[RUN_STEPS], passes, step_passes;
    char names[PROFILER_METRICS_MAX][64]; /* text of the session goes with it */
    bool has_reason[PROFILER_METRICS_MAX];
};

/* Runs the pass that is next, and counts it. */
enum status cupti_one_pass(const struct profiler *p, void *session, int pass,
                           struct cupti_outcome *out, struct error *err);
/* Opens, counts, reads and closes. */
enum status cupti_run(const char *name, const char *device, struct cupti_outcome *out,
                      struct error *err);

#endif
