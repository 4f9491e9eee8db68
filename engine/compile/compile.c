/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/compile/compile.h"

#include <stdlib.h>

#include "engine/compile/stages.h"

static enum status compile(struct exe *exe, const struct graph *graph, struct error *err)
{
    exe->g = graph_copy(graph);
    if (!exe->g)
        return FAIL_NO_MEMORY(err);
    if (!exe->pool) {
        TRY(pool_new(exe->options.threads, &exe->pool, err));
        exe->owns_pool = true;
    }
    TRY(exe_device_open(exe, err));
    if (exe_is_on_device(exe) && exe->g->state_count)
        return UNSUPPORTED(err, "training runs on the CPU only as yet, not on %s",
                           exe->options.device);
    if (!exe_is_on_device(exe))
        exe->options.precision = PRECISION_F32;
    TRY(passes_run(exe->g, &exe->options, &exe->passes, err));
    TRY(lower_graph(exe, err));
    TRY(tune_steps(exe, err));
    TRY(memory_plan(exe, err));
    return exe_is_on_device(exe) ? exe_device_link(exe, err) : exe_link(exe, err);
}

enum status exe_new(const struct graph *graph, const struct exe_options *options, struct exe **out,
                    struct error *err)
{
    *out = NULL;
    TRY(graph_check(graph, err));
    struct exe *exe = calloc(1, sizeof(*exe));
    if (!exe)
        return FAIL_NO_MEMORY(err);
    exe->options = *options;
    exe->pool = options->pool;
    enum status status = compile(exe, graph, err);
    if (status != STATUS_OK) {
        exe_free(exe);
        return status;
    }
    *out = exe;
    return STATUS_OK;
}
