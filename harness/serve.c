/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/serve.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "harness/command.h"

static double latency_ns(struct exe *exe)
{
    uint64_t start = clock_now_ns();
    exe_run(exe);
    return (double)(clock_now_ns() - start);
}

/* A run that failed takes hardly any time, so its time is not told. */
static enum status answer(struct exe *exe, const char *line, struct error *err)
{
    long long runs = strtoll(line, NULL, 10);
    double ns = runs > 0 ? exe_time_runs(exe, runs) : latency_ns(exe);
    TRY(exe_status(exe, err));
    printf("%.6f\n", ns * 1e-6);
    fflush(stdout);
    return STATUS_OK;
}

static enum status serve(struct exe *exe, struct error *err)
{
    char line[64];
    exe_run(exe);
    TRY(exe_status(exe, err));
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin))
        TRY(answer(exe, line, err));
    return STATUS_OK;
}

int serve_samples(const char *spec, const struct model_options *model)
{
    struct error err = {0};
    struct graph *graph;
    struct exe *exe;
    if (model_open(spec, model, &graph, &exe, &err) != STATUS_OK)
        return command_fail(&err);
    enum status status = serve(exe, &err);
    exe_free(exe);
    graph_free(graph);
    return status == STATUS_OK ? EXIT_FINE : command_fail(&err);
}
