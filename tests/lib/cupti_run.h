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

/* Ends a unit test with a skip where the plug-in was not built. */
const struct fake_control *fake_of_build(void);
/* Before each test: the GPU works, and is that of the made library. */
int fake_begin_each(void **state);

struct cupti_outcome {
    struct profiler_metric metrics[PROFILER_METRICS_MAX], steps[RUN_STEPS][PROFILER_METRICS_MAX];
    char step_reasons[RUN_STEPS][256]; /* of the first metric */
    int count, step_counts[RUN_STEPS], passes, step_passes;
    char names[PROFILER_METRICS_MAX][64]; /* text of the session goes with it */
    char reasons[PROFILER_METRICS_MAX][256];
};

/* Runs the pass that is next, and counts it. */
enum status cupti_one_pass(const struct profiler *p, void *session, int pass,
                           struct cupti_outcome *out, struct error *err);
/* Opens, counts, reads and closes. */
enum status cupti_run_model(const char *name, const struct profiler_model *model,
                            struct cupti_outcome *out, struct error *err);
enum status cupti_run(const char *name, const char *device, struct cupti_outcome *out,
                      struct error *err);
/* The same by cupti, attached before anything runs on the device. */
enum status cupti_run_held(const char *device, struct cupti_outcome *out, struct error *err);

#endif
