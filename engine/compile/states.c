/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the next contents of a state are computed: over those that the run has found, where nobody
 * needs these any more and the operator can, else in memory of their own, from which they are moved
 * after all steps. */
#include "engine/compile/stages.h"

/* Whether a step after the one that writes `after` still reads what was there before, under this or
 * another name, or it is still on its way to other ranks. */
static bool read_later(const struct exe *exe, int before, int step)
{
    for (int k = 0; k < exe->exchange_count; k++)
        if (exe->places[exe->exchanges[k].from].root == before && exe->exchanges[k].first > step)
            return true;
    for (int s = step + 1; s < exe->step_count; s++) {
        const struct node *node = exe->steps[s].query.node;
        for (int k = 0; k < node->input_count; k++)
            if (node->inputs[k] != NONE && exe->places[node->inputs[k]].root == before)
                return true;
    }
    for (int k = 0; k < exe->g->output_count; k++)
        if (exe->places[exe->g->outputs[k]].root == before)
            return true;
    return false;
}

/* Whether a step may write the state's next contents over those that it reads. */
static bool can_be_in_place(const struct exe *exe, const struct state *state)
{
    const struct place *after = &exe->places[state->after];
    const struct value *value = &exe->g->values[state->after];
    if (value->producer == NONE || after->root != state->after || exe->options.keep_values ||
        !desc_same_memory(&after->desc, &exe->places[state->before].desc))
        return false;
    const struct node *node = &exe->g->nodes[value->producer];
    bool reads = false;
    for (int k = 0; k < node->op_inputs; k++)
        reads = reads || node->inputs[k] == state->before;
    int bit = value->producer_out < 31 ? value->producer_out : 31;
    bool posted = node->post_count && value->producer_out == 0;
    return reads && (node->op->in_place >> bit & 1) && !posted &&
           !read_later(exe, state->before, after->first);
}

/* Under all its names. */
static void put_in_place(struct exe *exe, const struct state *state)
{
    for (int v = 0; v < exe->g->value_count; v++)
        if (exe->places[v].root == state->after)
            exe->places[v].root = state->before;
}

enum status place_states(struct exe *exe, struct error *err)
{
    exe->moved = arena_array(&exe->arena, (size_t)exe->g->state_count + 1, sizeof(*exe->moved));
    if (!exe->moved)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < exe->g->state_count; k++) {
        const struct state *state = &exe->g->states[k];
        exe->places[state->before].used = true;
        if (state->after == NONE)
            continue;
        if (can_be_in_place(exe, state))
            put_in_place(exe, state);
        else
            exe->moved[exe->moved_count++] = k;
    }
    return STATUS_OK;
}
