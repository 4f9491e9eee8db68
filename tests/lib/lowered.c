/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/lowered.h"

#include <stdlib.h>

/* Starts, sizes and scales: what plan looks at. */
enum { SMALL_BYTES = 256 };

static bool is_fixed(const struct lowered *l, int value)
{
    return value != NONE && value_is_fixed(&l->exe.g->values[value]);
}

static size_t largest_weight(const struct lowered *l)
{
    size_t bytes = 64;
    for (int v = 0; v < l->exe.g->value_count; v++)
        if (is_fixed(l, v) && l->exe.places[v].bytes > bytes)
            bytes = l->exe.places[v].bytes;
    return bytes;
}

static enum status mark_fixed(struct lowered *l, struct step *step, bool contents,
                              struct error *err)
{
    const struct node *node = step->query.node;
    const void **fixed = arena_array(&l->exe.arena, (size_t)node->input_count + 1, sizeof(*fixed));
    if (!fixed)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < node->input_count; k++) {
        if (!is_fixed(l, node->inputs[k]))
            continue;
        const struct value *value = &l->exe.g->values[node->inputs[k]];
        size_t bytes = value_size(value);
        fixed[k] = l->zeros;
        if (!contents && bytes > SMALL_BYTES)
            continue;
        void *data = arena_alloc(&l->exe.arena, bytes + 1);
        if (!data)
            return FAIL_NO_MEMORY(err);
        value_materialise(value, data);
        fixed[k] = data;
    }
    step->query.fixed = fixed;
    return STATUS_OK;
}

static enum status mark_all(struct lowered *l, bool contents, struct error *err)
{
    for (int s = 0; s < l->exe.step_count; s++)
        TRY(mark_fixed(l, &l->exe.steps[s], contents, err));
    return STATUS_OK;
}

enum status lowered_open(struct lowered *l, struct graph *graph, enum precision precision,
                         struct error *err)
{
    struct exe_options options = {.threads = 1, .precision = precision};
    return lowered_open_with(l, graph, &options, err);
}

enum status lowered_open_with(struct lowered *l, struct graph *graph,
                              const struct exe_options *options, struct error *err)
{
    *l = (struct lowered){.exe = {.g = graph, .options = *options}};
    TRY(graph_check(graph, err));
    TRY(pool_new(options->threads, &l->exe.pool, err));
    struct narrow_judge judge = narrow_judge_of(&l->exe.options);
    TRY(passes_run(l->exe.g, &l->exe.options, &judge, &l->exe.passes, err));
    TRY(lower_graph(&l->exe, err));
    l->zeros = calloc(1, largest_weight(l));
    return l->zeros ? mark_all(l, false, err) : FAIL_NO_MEMORY(err);
}

enum status lowered_materialise(struct lowered *l, struct error *err)
{
    return mark_all(l, true, err);
}

void lowered_close(struct lowered *l)
{
    pool_free(l->exe.pool);
    graph_free(l->exe.g);
    free(l->zeros);
    arena_release(&l->exe.arena);
}

int lowered_count(const struct lowered *l)
{
    return l->exe.step_count;
}

const struct step *lowered_step(const struct lowered *l, int index)
{
    return &l->exe.steps[index];
}
