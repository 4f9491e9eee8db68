/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/serve.h"

#include <stdio.h>

#include "base/clock.h"
#include "harness/command.h"

int serve_samples(const char *spec, const struct model_options *model)
{
    struct error err = {0};
    struct graph *graph;
    struct exe *exe;
    char line[64];
    if (model_open(spec, model, &graph, &exe, &err) != STATUS_OK)
        return command_fail(&err);
    exe_run(exe);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        uint64_t start = clock_now_ns();
        exe_run(exe);
        printf("%.6f\n", (double)(clock_now_ns() - start) * 1e-6);
        fflush(stdout);
    }
    exe_free(exe);
    graph_free(graph);
    return EXIT_FINE;
}
