/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/turns/sample_on_request.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/campaign/target.h"
#include "harness/cli/command.h"

static double latency_ns(const struct target *t, long long runs)
{
    const struct subject *subject = &t->subject;
    uint64_t start = t->time.now_ns(t->time.context);
    for (long long k = 0; k < runs; k++)
        subject->run(subject->context);
    if (subject->finish)
        subject->finish(subject->context);
    return (double)(t->time.now_ns(t->time.context) - start) / (double)runs;
}

/* A run that failed takes hardly any time, so its time is not reported. */
static enum status answer(const struct target *t, const char *line, struct error *err)
{
    long long runs = strtoll(line, NULL, 10);
    double ns =
        runs > 0 && t->exe ? exe_time_runs(t->exe, runs) : latency_ns(t, runs > 0 ? runs : 1);
    TRY(t->exe ? exe_status(t->exe, err) : STATUS_OK);
    printf("%.6f\n", ns * 1e-6);
    fflush(stdout);
    return STATUS_OK;
}

static enum status serve(const struct target *t, struct error *err)
{
    char line[64];
    latency_ns(t, 1);
    TRY(t->exe ? exe_status(t->exe, err) : STATUS_OK);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin))
        TRY(answer(t, line, err));
    return STATUS_OK;
}

int sample_on_request(const struct point *point, const struct model_options *model)
{
    struct error err = {0};
    struct target target;
    if (point->skip)
        return command_fail((UNSUPPORTED(&err, "%s", point->skip), &err));
    if (target_open(point, model, &target, &err) != STATUS_OK)
        return command_fail(&err);
    enum status status = serve(&target, &err);
    target_close(&target);
    return status == STATUS_OK ? EXIT_FINE : command_fail(&err);
}
