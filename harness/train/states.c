/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/train/states.h"

#include <string.h>

struct kept_state {
    const char *name;
    void *data;
    size_t bytes;
};

enum status states_keep(struct exe *exe, struct states *states, struct error *err)
{
    const struct graph *g = exe_graph(exe);
    *states = (struct states){.count = g->state_count};
    states->kept = arena_array(&states->arena, (size_t)g->state_count + 1, sizeof(*states->kept));
    if (!states->kept)
        return FAIL_NO_MEMORY(err);
    for (int s = 0; s < g->state_count; s++) {
        const struct value *value = &g->values[g->states[s].before];
        struct kept_state *kept = &states->kept[s];
        kept->bytes = value_size(value);
        kept->name = arena_strdup(&states->arena, value->name);
        kept->data = arena_copy(
            &states->arena, exe_input(exe, graph_input_index(g, g->states[s].before)), kept->bytes);
        if (!kept->name || (!kept->data && kept->bytes))
            return FAIL_NO_MEMORY(err);
    }
    return STATUS_OK;
}

enum status states_give(const struct states *states, struct exe *exe, struct error *err)
{
    const struct graph *g = exe_graph(exe);
    if (g->state_count != states->count)
        return FAIL(err, STATUS_FAILED, "%s has %d states at this size, not %d", g->name,
                    g->state_count, states->count);
    for (int s = 0; s < states->count; s++) {
        const struct kept_state *kept = &states->kept[s];
        int input = graph_input_named(g, kept->name);
        if (input == NONE || value_size(&g->values[g->inputs[input]]) != kept->bytes)
            return FAIL(err, STATUS_FAILED,
                        "\"%s\" depends on the size of the image: %s cannot be trained on growing "
                        "images",
                        kept->name, g->name);
        memcpy(exe_input(exe, input), kept->data, kept->bytes);
    }
    return STATUS_OK;
}

void states_release(struct states *states)
{
    arena_release(&states->arena);
    *states = (struct states){.count = 0};
}
