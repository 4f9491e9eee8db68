/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a device computes branches of a network side by side: a captured run forks and joins
 * (engine/run/exe_lanes.c), and that is kept where it is faster (ways.c). The plan of memory looks
 * at levels for that: what branches need at once, as far as their depth shows, shares no memory. */
#include <math.h>

#include "engine/compile/stages.h"

/* A plan of memory that looks at levels is taken where it needs at most so much more. */
static const double room_bytes = 256e6, room_factor = 1.5;

static int level_of_inputs(const struct exe *exe, const struct step *step, const int *level_of_root)
{
    const struct node *node = step->query.node;
    int level = 0;
    for (int k = 0; k < node->input_count; k++) {
        int root = node->inputs[k] == NONE ? NONE : exe->places[node->inputs[k]].root;
        if (root != NONE && level_of_root[root] >= level)
            level = level_of_root[root] + 1;
    }
    return level;
}

bool branches_levels(const struct exe *exe, int *levels, int *level_of_root)
{
    int largest = NONE;
    for (int v = 0; v < exe->g->value_count; v++)
        level_of_root[v] = NONE;
    for (int s = 0; s < exe->step_count; s++) {
        const struct node *node = exe->steps[s].query.node;
        levels[s] = level_of_inputs(exe, &exe->steps[s], level_of_root);
        largest = levels[s] > largest ? levels[s] : largest;
        for (int k = 0; k < node->output_count; k++)
            if (node->outputs[k] != NONE &&
                level_of_root[exe->places[node->outputs[k]].root] < levels[s])
                level_of_root[exe->places[node->outputs[k]].root] = levels[s];
    }
    return largest + 1 < exe->step_count;
}

bool branches_have_room(size_t by_levels, size_t by_steps)
{
    return (double)by_levels <= (double)by_steps * room_factor + room_bytes;
}

bool branches_wanted(const struct exe *exe)
{
    return exe_is_on_device(exe) && !exe->options.no_tune && !exe->options.only &&
           !exe->options.no_capture && !exe->options.keep_values && !exe->options.comm;
}

/* What cannot be captured in that way is slower than anything. */
static enum status time_way(void *context, int way, int64_t runs, double *ns, struct error *err)
{
    struct exe *exe = context;
    TRY(exe_use_branches(exe, way == 1, err));
    *ns = exe_not_captured(exe) ? (double)INFINITY : exe_time_runs(exe, runs);
    return exe_status(exe, err);
}

enum status branches_settle(struct exe *exe, struct error *err)
{
    struct ways ways = {.names = {"one_by_one", "side_by_side"}, .time = time_way, .context = exe};
    if (!branches_wanted(exe))
        return STATUS_OK;
    TRY(lanes_open(exe, err));
    if (lanes_count(exe) < 2)
        return STATUS_OK;
    int way = ways_known(&ways, exe);
    if (way == NONE)
        TRY(ways_compare(&ways, &way, err));
    return exe_use_branches(exe, way == 1, err);
}
