/* SPDX-License-Identifier: Apache-2.0
 *
 * No step of training falls to the reference kernel: the tiny forms of all workloads that learn,
 * compiled without a library's kernels. One that has to be excepted is named here, with its reason.
 */
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "engine/compile/compile.h"
#include "engine/graph/op.h"
#include "harness/train/trainer.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/training.h"

static int count_plain(const char *spec, const struct exe *exe)
{
    int count = 0;
    for (int s = 0; s < exe_step_count(exe); s++) {
        struct exe_step step = exe_step_at(exe, s);
        if (strcmp(step.kernel->provider, "reference") != 0)
            continue;
        print_error("%s: \"%s\" (%s) is computed by the reference kernel\n", spec, step.node->name,
                    step.node->op->name);
        count++;
    }
    return count;
}

static int plain_steps_of(const struct workload *w)
{
    const struct train_options as_published = {.recompute = false};
    struct exe_options options = {
        .threads = 1, .isa = isa_detect(), .no_tune = true, .providers = "native"};
    struct train_job job;
    const struct training *training;
    struct graph *g;
    struct exe *exe;
    struct error err;
    char *spec;
    if (train_job_of(w->name, true, &job, &spec, &err) != STATUS_OK)
        fail_msg("%s: %s", w->name, err.message);
    MUST(workload_open_training, spec, job.model.batch, &as_published, &g, &training);
    MUST(exe_new, g, &options, &exe);
    int count = count_plain(spec, exe);
    exe_graph_free(exe, g);
    free(spec);
    return count;
}

TEST(steps_of_training_have_kernels)
{
    int trained = 0, count = 0;
    for (int k = 0; k < workload_count(); k++)
        if (workload_at(k)->training) {
            count += plain_steps_of(workload_at(k));
            trained++;
        }
    assert_true(trained > 20);
    assert_int_equal(count, 0);
}
