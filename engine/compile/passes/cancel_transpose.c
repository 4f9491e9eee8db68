/* SPDX-License-Identifier: Apache-2.0
 *
 * A Transpose that undoes earlier ones, with elementwise work in between, takes them away: the work
 * is done in the order that was there before. Positions are rotated so: heads are brought one after
 * the other, rotated, and Attention wants them side by side again. What is fixed is turned instead,
 * once for all who read it. */
#include "engine/compile/passes/cancel_transpose.h"

#include "engine/compile/passes/rewrite.h"
#include "engine/compile/passes/view.h"
#include "engine/graph/function.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

enum { OPERANDS_MAX = 8, NODES_MAX = 48 };

/* Axis k of the result is axis perm[k]. */
struct turn {
    int rank;
    int64_t perm[RANK_MAX];
};

static void turn_of(const struct graph *g, const struct node *transpose, struct turn *turn)
{
    turn->rank = g->values[transpose->inputs[0]].shape.rank;
    if (node_ints(transpose, "perm", turn->perm, RANK_MAX) == turn->rank)
        return;
    for (int k = 0; k < turn->rank; k++)
        turn->perm[k] = turn->rank - 1 - k;
}

/* The value that two turns, the second the given one, give back; NONE. */
static int undone(const struct graph *g, int value, const struct turn *turn)
{
    struct turn first;
    const struct node *transpose = rewrite_producer(g, value, &op_transpose);
    if (!transpose)
        return NONE;
    turn_of(g, transpose, &first);
    for (int k = 0; k < turn->rank; k++)
        if (first.rank != turn->rank || first.perm[turn->perm[k]] != k)
            return NONE;
    return transpose->inputs[0];
}

static bool is_elementwise(const struct node *node)
{
    return node->op->function && function_info(node->op->function)->operands == node->input_count;
}

/* Of rows along the last axis, which stays the last. */
static bool is_norm(const struct graph *g, const struct node *node, const struct turn *turn)
{
    const struct shape *shape = &g->values[node->outputs[0]].shape;
    int last = turn->rank - 1;
    bool rows = (node->op == &op_rms_normalization || node->op == &op_layer_normalization) &&
                shape_axis(shape, node_int(node, "axis", -1)) == last && turn->perm[last] == last;
    for (int k = 1; rows && k < node->input_count; k++)
        rows = g->values[node->inputs[k]].shape.rank <= 1;
    return rows;
}

/* What is computed between the turns, each value after those of which it is made. */
struct between {
    struct turn turn;
    int count, values[NODES_MAX], fresh[NODES_MAX];
};

static int place_of(const struct between *b, int value)
{
    for (int k = 0; k < b->count; k++)
        if (b->values[k] == value)
            return k;
    return NONE;
}

/* Of which a value is a part of neighbours, and where that begins along each axis; NONE. */
static int part_of(const struct graph *g, int value, int64_t *start)
{
    struct view view;
    int64_t step[RANK_MAX];
    const struct node *node = &g->nodes[g->values[value].producer];
    if (node->op != &op_slice && node->op != &op_split)
        return NONE;
    view_of(g, value, 1, &view);
    if (view.origin != node->inputs[0] || view.factor != 1 || !view_steps(&view, step))
        return NONE;
    const struct shape *from = &g->values[view.origin].shape;
    int64_t rest = view.start;
    for (int d = 0; d < from->rank; d++) {
        int64_t span = shape_span(from, d + 1, from->rank);
        if (view.shape.dim[d] != 1 && step[d] != span)
            return NONE;
        start[d] = rest / span;
        rest %= span;
    }
    return view.origin;
}

/* How many of a value's inputs would be turned for it to be; 0: it cannot be. */
static int turned_inputs(const struct graph *g, int value, const struct turn *turn)
{
    int64_t start[RANK_MAX];
    const struct value *v = &g->values[value];
    const struct node *node = v->producer == NONE ? NULL : &g->nodes[v->producer];
    if (!node || node->dead || node->post_count || node->input_count > OPERANDS_MAX ||
        v->shape.rank != turn->rank || shape_count(&v->shape) == 0 || v->count != NONE)
        return 0;
    if (part_of(g, value, start) != NONE)
        return 1;
    if (node->output_count != 1)
        return 0;
    return is_elementwise(node) || node->op == &op_concat ? node->input_count
                                                          : is_norm(g, node, turn);
}

/* Notes what is between a value and turns that are undone; false: something else is there. */
static bool collect(const struct graph *g, int value, struct between *b)
{
    const struct value *v = &g->values[value];
    if (value_is_fixed(v))
        return v->shape.rank <= b->turn.rank && shape_count(&v->shape) > 0;
    if (undone(g, value, &b->turn) != NONE || place_of(b, value) != NONE)
        return true;
    int count = turned_inputs(g, value, &b->turn);
    for (int k = 0; k < count; k++) {
        int input = g->nodes[v->producer].inputs[k];
        if (input == NONE || !collect(g, input, b))
            return false;
    }
    if (count == 0 || b->count == NODES_MAX)
        return false;
    b->values[b->count++] = value;
    return true;
}

static bool makes_one_of(const struct node *node, const struct between *b)
{
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NONE && place_of(b, node->outputs[k]) != NONE)
            return true;
    return false;
}

/* Whether nothing else reads what is between, which would have to be computed twice. The last is
 * the caller's. */
static bool is_closed(const struct graph *g, const struct between *b)
{
    for (int k = 0; k < b->count - 1; k++) {
        for (int n = 0; n < g->node_count; n++)
            if (!g->nodes[n].dead && rewrite_reads(&g->nodes[n], b->values[k]) &&
                !makes_one_of(&g->nodes[n], b))
                return false;
        if (rewrite_is_output(g, b->values[k]))
            return false;
    }
    return true;
}

static bool can_turn(const struct graph *g, int value, struct between *b)
{
    b->count = 0;
    return !value_is_fixed(&g->values[value]) && rewrite_only_user(g, value) != NONE &&
           collect(g, value, b) && is_closed(g, b);
}

bool transpose_cancels(const struct graph *g, int value, int rank, const int64_t *perm)
{
    struct between b = {.turn = {.rank = rank}};
    for (int k = 0; k < rank; k++)
        b.turn.perm[k] = perm[k];
    return g->values[value].shape.rank == rank && can_turn(g, value, &b);
}

/* A Transpose of a value that is there already; NONE. */
static int same_turn(const struct graph *g, int value, const struct turn *turn)
{
    for (int n = 0; n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        struct turn other;
        if (node->dead || node->op != &op_transpose || node->inputs[0] != value)
            continue;
        turn_of(g, node, &other);
        bool same = other.rank == turn->rank;
        for (int k = 0; same && k < turn->rank; k++)
            same = other.perm[k] == turn->perm[k];
        if (same)
            return node->outputs[0];
    }
    return NONE;
}

/* A reshaped value that is there already; otherwise a new one. */
static int with_rank(struct graph *g, int value, int rank)
{
    struct shape shape = g->values[value].shape, whole = {.rank = rank};
    for (int d = 0; d < rank; d++)
        whole.dim[d] = d < rank - shape.rank ? 1 : shape.dim[d - (rank - shape.rank)];
    for (int n = 0; n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        if (!node->dead && node->op == &op_reshape && node->inputs[0] == value &&
            shape_equal(&g->values[node->outputs[0]].shape, &whole))
            return node->outputs[0];
    }
    return make_reshaped(g, value, &whole);
}

/* As it is broadcast. */
static int turn_fixed(struct graph *g, int value, const struct turn *turn)
{
    const struct shape *shape = &g->values[value].shape;
    bool moves = false;
    for (int k = 0; k < turn->rank; k++) {
        int own = (int)turn->perm[k] - (turn->rank - shape->rank);
        moves = moves || (turn->perm[k] != k && own >= 0 && shape->dim[own] != 1);
    }
    if (!moves)
        return value;
    value = with_rank(g, value, turn->rank);
    int there = same_turn(g, value, turn);
    return there == NONE ? make_permuted(g, value, turn->rank, turn->perm) : there;
}

static int turned(struct graph *g, int value, const struct between *b)
{
    int place = place_of(b, value);
    if (value_is_fixed(&g->values[value]))
        return turn_fixed(g, value, &b->turn);
    return place == NONE ? undone(g, value, &b->turn) : b->fresh[place];
}

static int turned_part(struct graph *g, int value, int whole, const int64_t *start,
                       const struct between *b)
{
    struct shape from = g->values[value].shape, shape = from;
    int64_t at[RANK_MAX];
    for (int k = 0; k < b->turn.rank; k++) {
        at[k] = start[b->turn.perm[k]];
        shape.dim[k] = from.dim[b->turn.perm[k]];
    }
    return make_slice(g, turned(g, whole, b), at, &shape);
}

static int turned_concat(struct graph *g, const struct node *node, const int *inputs,
                         const struct turn *turn)
{
    int axis = shape_axis(&g->values[node->outputs[0]].shape, node_int(node, "axis", 0)), to = 0;
    while (turn->perm[to] != axis)
        to++;
    return graph_node(g, op_concat.name, NULL, node->input_count, inputs,
                      ATTRS(attr_int("axis", to)));
}

static int turn_one(struct graph *g, int value, const struct between *b)
{
    int64_t start[RANK_MAX];
    int inputs[OPERANDS_MAX], whole = part_of(g, value, start);
    struct node node = g->nodes[g->values[value].producer]; /* nodes move when one is added */
    if (whole != NONE)
        return turned_part(g, value, whole, start, b);
    int count = turned_inputs(g, value, &b->turn);
    for (int k = 0; k < node.input_count; k++)
        inputs[k] = k < count ? turned(g, node.inputs[k], b) : node.inputs[k];
    if (node.op == &op_concat)
        return turned_concat(g, &node, inputs, &b->turn);
    return graph_node(g, node.op->name, NULL, node.input_count, inputs, node.attr_count,
                      node.attrs);
}

enum status pass_cancel_transpose(struct graph *g, struct error *err)
{
    int count = g->node_count;
    for (int n = 0; n < count && !g->failed; n++) {
        const struct node *node = &g->nodes[n];
        struct between b;
        if (node->dead || node->op != &op_transpose || node->post_count)
            continue;
        turn_of(g, node, &b.turn);
        int old = node->outputs[0], from = node->inputs[0];
        if (!can_turn(g, from, &b))
            continue;
        g->phase = node->phase;
        for (int k = 0; k < b.count && !g->failed; k++)
            b.fresh[k] = turn_one(g, b.values[k], &b);
        if (g->failed)
            break;
        rewrite_replace(g, old, turned(g, from, &b));
        g->nodes[n].dead = true;
    }
    return g->failed ? graph_check(g, err) : STATUS_OK;
}
