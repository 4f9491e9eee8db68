/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/compile/compile.h"

#include <stdlib.h>

#include "engine/compile/stages.h"

static enum status copy_graph(struct exe *exe, const struct graph *graph, struct error *err)
{
    exe->g = graph_copy(graph);
    if (!exe->g)
        return FAIL_NO_MEMORY(err);
    if (exe->pool)
        return STATUS_OK;
    TRY(pool_new(exe->options.threads, &exe->pool, err));
    exe->owns_pool = true;
    return STATUS_OK;
}

static enum status rewrite_graph(struct exe *exe, struct error *err)
{
    struct narrow_judge judge = narrow_judge_of(&exe->options);
    TRY(passes_run(exe->g, &exe->options, &judge, &exe->passes, err));
    if (exe->options.images == IMAGES_FREE)
        exe->options.images = images_usual(exe);
    return lower_graph(exe, err);
}

static bool learns(const struct graph *g)
{
    for (int n = 0; g->state_count && n < g->node_count; n++) {
        enum phase phase = g->nodes[n].phase;
        if (!g->nodes[n].dead && (phase == PHASE_BACKWARD || phase == PHASE_UPDATE))
            return true;
    }
    return false;
}

static enum status begin(struct exe *exe, const struct graph *graph, struct error *err)
{
    TRY(copy_graph(exe, graph, err));
    TRY(exe_device_open(exe, err));
    if (exe_is_on_device(exe) && learns(exe->g))
        return UNSUPPORTED(err, "training runs on the CPU only as yet, not on %s",
                           exe->options.device);
    if (!exe_is_on_device(exe) && exe->options.precision != PRECISION_BF16)
        exe->options.precision = PRECISION_F32;
    return rewrite_graph(exe, err);
}

static enum status end(struct exe *exe, struct error *err)
{
    TRY(tune_steps(exe, err));
    TRY(memory_plan(exe, err));
    if (!exe_is_on_device(exe))
        return exe_link(exe, err);
    TRY(exe_device_link(exe, err));
    return branches_settle(exe, err);
}

/* Whoever compiles may have them on a stack that is gone when the executable is used. */
static enum status keep_names(struct exe *exe, struct error *err)
{
    struct exe_options *o = &exe->options;
    const char **names[] = {&o->providers, &o->cache, &o->only, &o->device};
    for (int k = 0; k < ARRAY_COUNT(names); k++)
        if (*names[k] && !(*names[k] = arena_strdup(&exe->arena, *names[k])))
            return FAIL_NO_MEMORY(err);
    return STATUS_OK;
}

/* *out: NULL where `make` fails. */
static enum status exe_make(const struct graph *graph, const struct exe_options *options,
                            enum status (*make)(struct exe *exe, const struct graph *graph,
                                                struct error *err),
                            struct exe **out, struct error *err)
{
    struct exe *exe = calloc(1, sizeof(*exe));
    *out = NULL;
    if (!exe)
        return FAIL_NO_MEMORY(err);
    exe->options = *options;
    exe->pool = options->pool;
    enum status status = keep_names(exe, err);
    if (status == STATUS_OK)
        status = make(exe, graph, err);
    if (status == STATUS_OK)
        *out = exe;
    else
        exe_free(exe);
    return status;
}

enum status exe_begin(const struct graph *graph, const struct exe_options *options,
                      struct exe **out, struct error *err)
{
    return exe_make(graph, options, begin, out, err);
}

static enum status outline(struct exe *exe, const struct graph *graph, struct error *err)
{
    TRY(copy_graph(exe, graph, err));
    return rewrite_graph(exe, err);
}

enum status exe_outline(const struct graph *graph, const struct exe_options *options,
                        struct exe **out, struct error *err)
{
    TRY(graph_check(graph, err));
    return exe_make(graph, options, outline, out, err);
}

enum status exe_end(struct exe **exe, struct error *err)
{
    enum status status = end(*exe, err);
    if (status == STATUS_OK)
        return status;
    exe_free(*exe);
    *exe = NULL;
    return status;
}

enum status exe_new(const struct graph *graph, const struct exe_options *options, struct exe **out,
                    struct error *err)
{
    *out = NULL;
    TRY(graph_check(graph, err));
    TRY(exe_begin(graph, options, out, err));
    bool doubt = options->images == IMAGES_FREE && images_in_doubt(*out);
    TRY(doubt ? images_settle(graph, out, err) : exe_end(out, err));
    if (exe_is_on_device(*out))
        exe_reset(*out); /* the first run there changed states, and so did those that were timed */
    return STATUS_OK;
}
