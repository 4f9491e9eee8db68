/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that lie inside another: all outputs of an AllReduce lie one after another in the memory
 * of the first of them, so that they go to the other ranks in one piece. Its inputs are computed in
 * the place of their outputs, where nobody reads them afterwards; others are copied there by the
 * node's kernel. Other nodes between ranks have one input, which stands untouched until somebody
 * reads the result. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/compile/stages.h"
#include "engine/graph/op_list.h"

/* Everything that is a name of `owner` from now on lies in another value's memory. */
static void move_into(struct exe *exe, int owner, int root, size_t shift)
{
    struct place *to = &exe->places[root], *from = &exe->places[owner];
    to->first = to->first == NONE || from->first < to->first ? from->first : to->first;
    to->last = from->last > to->last ? from->last : to->last;
    for (int v = 0; v < exe->g->value_count; v++)
        if (exe->places[v].root == owner) {
            exe->places[v].root = root;
            exe->places[v].shift += shift;
        }
}

/* Whether the input may be computed where the output will be: it is a result, whole, in no unit,
 * and `step` is the last one that reads it. */
static bool may_share(const struct exe *exe, int in, int out, int step)
{
    const struct place *from = &exe->places[in], *to = &exe->places[out];
    const struct place *owner = &exe->places[from->root];
    const struct value *made = &exe->g->values[from->root];
    return made->kind == VALUE_RESULT && !exe->g->nodes[made->producer].op->between_ranks &&
           owner->bytes == to->bytes && owner->last == step &&
           desc_same_memory(&from->desc, &to->desc);
}

static int first_reader(const struct exe *exe, int root, int step)
{
    for (int s = step + 1; s < exe->step_count; s++) {
        const struct node *node = exe->steps[s].query.node;
        for (int k = 0; k < node->input_count; k++)
            if (node->inputs[k] != NONE && exe->places[node->inputs[k]].root == root)
                return s;
    }
    return exe->step_count;
}

static void place_alone(struct exe *exe, int s, struct exchange *x)
{
    const struct node *node = exe->steps[s].query.node;
    int in = node->inputs[0], out = node->outputs[0];
    struct place *given = &exe->places[exe->places[in].root];
    int64_t sent = shape_count(&exe->g->values[in].shape);
    int64_t got = shape_count(&exe->g->values[out].shape);
    *x = (struct exchange){.step = s,
                           .from = in,
                           .root = out,
                           .first = first_reader(exe, exe->places[out].root, s),
                           .count = sent > got ? sent : got,
                           .dtype = exe->g->values[out].dtype};
    given->last = x->first > given->last ? x->first : given->last;
}

/* Where the ranks have such memory. It is the communicator's, not part of the arena. */
static void place_where_ranks_reach(struct exe *exe, struct place *place)
{
    struct comm *comm = exe->options.comm;
    if (!comm || !comm->memory || exe_is_on_device(exe))
        return;
    place->memory = comm->memory(comm, place->bytes);
    if (!place->memory)
        return;
    memset(place->memory, 0, place->bytes); /* page faults belong here, not in runs */
    exe->sizes.unit_bytes += place->bytes;
}

static enum status place_unit(struct exe *exe, int s, struct exchange *x, struct error *err)
{
    const struct node *node = exe->steps[s].query.node;
    int root = node->outputs[0];
    size_t end = 0;
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] == NONE || node->inputs[k] == NONE ||
            exe->g->values[node->outputs[k]].dtype != exe->g->values[root].dtype)
            return FAIL(err, STATUS_FAILED,
                        "node \"%s\": its outputs are not all there and of one type", node->name);
    for (int k = 0; k < node->output_count; k++) {
        int out = node->outputs[k], owner = exe->places[node->inputs[k]].root;
        size_t bytes = exe->places[out].bytes;
        bool share = may_share(exe, node->inputs[k], out, s);
        if (out != root)
            move_into(exe, out, root, end);
        if (share)
            move_into(exe, owner, root, end);
        bool last = k + 1 == node->output_count;
        end += last ? bytes : (size_t)round_up((int64_t)bytes, (int64_t)exe_alignment(exe));
    }
    exe->places[root].bytes = end;
    exe->places[root].used = true;
    place_where_ranks_reach(exe, &exe->places[root]);
    *x = (struct exchange){.step = s,
                           .from = root,
                           .root = root,
                           .first = first_reader(exe, root, s),
                           .dtype = exe->g->values[root].dtype};
    x->count = (int64_t)(end / dtype_size(x->dtype));
    return STATUS_OK;
}

enum status place_units(struct exe *exe, struct error *err)
{
    int count = 0;
    for (int s = 0; s < exe->step_count; s++)
        count += exe->steps[s].query.node->op->between_ranks;
    exe->exchanges = arena_array(&exe->arena, (size_t)count + 1, sizeof(*exe->exchanges));
    if (!exe->exchanges)
        return FAIL_NO_MEMORY(err);
    if (exe->options.keep_values || (exe_is_on_device(exe) && !exe->options.comm))
        return STATUS_OK; /* each value has its own memory, and nobody to talk to */
    for (int s = 0; s < exe->step_count; s++) {
        const struct op *op = exe->steps[s].query.node->op;
        struct exchange *x = &exe->exchanges[exe->exchange_count];
        exe->exchange_count += op->between_ranks;
        if (op == &op_all_reduce)
            TRY(place_unit(exe, s, x, err));
        else if (op->between_ranks)
            place_alone(exe, s, x);
    }
    return STATUS_OK;
}
