/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph/graph.h"

/* Of an input that is a state from now on. */
static void add_state(struct graph *g, int v)
{
    struct state *grown =
        arena_grow(&g->arena, g->states, &g->state_cap, (size_t)g->state_count + 1, sizeof(*grown));
    if (!grown) {
        FAIL_NO_MEMORY(&g->err);
        g->failed = true;
        return;
    }
    g->values[v].kind = VALUE_STATE;
    g->states = grown;
    grown[g->state_count++] = (struct state){.before = v, .after = NONE};
}

int graph_state(struct graph *g, const char *name, enum dtype dtype, struct shape shape,
                struct fill fill)
{
    int v = graph_input(g, name, dtype, shape, fill);
    if (!g->failed)
        add_state(g, v);
    return v;
}

void graph_make_state(struct graph *g, int v)
{
    if (g->failed || v == NONE)
        return;
    graph_make_input(g, v, g->values[v].fill);
    if (!g->failed)
        add_state(g, v);
}

int graph_state_of(const struct graph *g, int v)
{
    for (int s = 0; s < g->state_count; s++)
        if (g->states[s].before == v)
            return s;
    return NONE;
}

void graph_state_after(struct graph *g, int before, int after)
{
    int s = graph_state_of(g, before);
    if (g->failed)
        return;
    if (s == NONE || after == NONE || g->values[after].kind != VALUE_RESULT ||
        g->values[after].dtype != g->values[before].dtype ||
        !shape_equal(&g->values[after].shape, &g->values[before].shape)) {
        FAIL(&g->err, STATUS_FAILED, "\"%s\" is no state that could become \"%s\"",
             before == NONE ? "" : g->values[before].name,
             after == NONE ? "" : g->values[after].name);
        g->failed = true;
        return;
    }
    int replaced = g->states[s].after;
    g->states[s].after = after;
    if (replaced == NONE)
        graph_output(g, after);
    for (int k = 0; replaced != NONE && k < g->output_count; k++)
        if (g->outputs[k] == replaced)
            g->outputs[k] = after;
}

const char *phase_name(enum phase phase)
{
    static const char *const names[PHASE_COUNT] = {
        [PHASE_FORWARD] = "forward",
        [PHASE_BACKWARD] = "backward",
        [PHASE_COMMUNICATION] = "communication",
        [PHASE_UPDATE] = "update",
    };
    return names[phase];
}
