/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/cupti_run.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/unit.h"

const struct fake_script cupti_usual = {
    .chip = "GH100", .passes = RUN_PASSES, .version = 130001, .devices = 2, .zero_metric = -1};

const struct fake_control *fake_of_build(void)
{
    char reason[CUPTI_REASON] = "CUPTI's headers were not there when building";
    const struct fake_control *fake = fake_open();
    if (fake && cupti_plugin(reason, sizeof(reason)))
        return fake;
    printf("skipped: %s\n", reason);
    exit(UNIT_SKIP);
}

int fake_begin_each(void **state)
{
    (void)state;
    fake_open()->set(&cupti_usual);
    setenv("RIDGE_CUPTI", fake_path(), 1);
    setenv("RIDGE_LIBCUDA", fake_path(), 1);
    return 0;
}

enum status cupti_one_pass(const struct profiler *p, void *session, int pass,
                           struct cupti_outcome *out, struct error *err)
{
    bool by_step = p->by_step && p->by_step(session);
    TRY(p->begin(session, pass, err));
    TRY(p->settle ? p->settle(session, pass, err) : STATUS_OK);
    for (int s = 0; s < RUN_STEPS && by_step; s++) {
        p->step_begin(session, s);
        p->step_end(session, s);
    }
    out->passes++;
    out->step_passes += by_step;
    return p->end(session, pass, by_step ? 1 : RUN_EXECUTIONS, err);
}

enum status cupti_run(const char *name, const char *device, struct cupti_outcome *out,
                      struct error *err)
{
    const struct profiler_model model = {.device = device, .steps = RUN_STEPS};
    return cupti_run_model(name, &model, out, err);
}

enum status cupti_run_held(const char *device, struct cupti_outcome *out, struct error *err)
{
    struct profiler_model model = {.device = device, .steps = RUN_STEPS};
    *out = (struct cupti_outcome){.count = 0};
    TRY(profiler_find("cupti")->attach(device, &model.attached, err));
    return cupti_run_model("cupti", &model, out, err);
}

enum status cupti_run_model(const char *name, const struct profiler_model *model,
                            struct cupti_outcome *out, struct error *err)
{
    const struct profiler *p = profiler_find(name);
    void *session;
    *out = (struct cupti_outcome){.count = 0};
    enum status status = p->open(model, 1, &session, err);
    if (status != STATUS_OK)
        return status;
    for (int pass = 0; pass < p->passes(session) && status == STATUS_OK; pass++)
        status = cupti_one_pass(p, session, pass, out, err);
    if (status == STATUS_OK) {
        out->count = p->read(session, out->metrics);
        for (int k = 0; k < out->count; k++) {
            snprintf(out->names[k], sizeof(out->names[k]), "%s", out->metrics[k].name);
            snprintf(out->reasons[k], sizeof(out->reasons[k]), "%s", out->metrics[k].reason);
        }
        for (int s = 0; s < RUN_STEPS && p->read_step; s++) {
            out->step_counts[s] = p->read_step(session, s, out->steps[s]);
            snprintf(out->step_reasons[s], sizeof(out->step_reasons[s]), "%s",
                     out->step_counts[s] ? out->steps[s][0].reason : "");
        }
    }
    p->close(session);
    return status;
}
