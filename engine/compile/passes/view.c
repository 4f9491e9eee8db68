/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/compile/passes/view.h"

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/lib/move.h"

enum { OPERANDS_MAX = 16, REPEATED_MAX = 1024 };

static bool add_part(struct view *view, int64_t dim, int64_t step)
{
    if (dim == 1)
        return true;
    if (view->parts == VIEW_PARTS)
        return false;
    view->dim[view->parts] = dim;
    view->step[view->parts++] = step;
    return true;
}

void view_whole(const struct graph *g, int value, struct view *view)
{
    *view = (struct view){.origin = value, .factor = 1, .shape = g->values[value].shape};
    int rank = view->shape.rank;
    for (int d = 0; d < rank; d++)
        add_part(view, view->shape.dim[d], shape_span(&view->shape, d + 1, rank));
}

/* The parts of an axis: [first, end). */
struct run {
    int first, end;
};

static void runs_of(const struct view *view, struct run *runs)
{
    int at = 0;
    for (int d = 0; d < view->shape.rank; d++) {
        int64_t left = view->shape.dim[d];
        runs[d].first = at;
        while (left > 1)
            left /= view->dim[at++];
        runs[d].end = at;
    }
}

/* Neighbours that are walked as one become one. */
static void join_parts(struct view *view)
{
    int count = 0;
    for (int k = 0; k < view->parts; k++) {
        int64_t dim = view->dim[k], step = view->step[k];
        bool joins = count && view->step[count - 1] == dim * step;
        count += !joins;
        view->dim[count - 1] = joins ? view->dim[count - 1] * dim : dim;
        view->step[count - 1] = step;
    }
    view->parts = count;
}

/* An axis from what is left of the last part on, backwards. */
static bool take_axis(struct view *from, int64_t size, struct view *to)
{
    while (size > 1) {
        int last = from->parts - 1;
        int64_t left = from->dim[last], take = left % size == 0 ? size : left;
        if (size % take || !add_part(to, take, from->step[last]))
            return false;
        size /= take;
        from->dim[last] /= take;
        from->step[last] *= take;
        from->parts -= from->dim[last] == 1;
    }
    return true;
}

bool view_reshape(struct view *view, const struct shape *shape)
{
    struct view left = *view;
    if (shape_count(shape) != shape_count(&view->shape) || shape_count(shape) == 0)
        return false;
    join_parts(&left);
    view->shape = *shape;
    view->parts = 0;
    for (int d = shape->rank - 1; d >= 0; d--)
        if (!take_axis(&left, shape->dim[d], view))
            return false;
    for (int a = 0, b = view->parts - 1; a < b; a++, b--) {
        int64_t dim = view->dim[a], step = view->step[a];
        view->dim[a] = view->dim[b];
        view->step[a] = view->step[b];
        view->dim[b] = dim;
        view->step[b] = step;
    }
    return true;
}

/* Behind the last part of an axis, and how often that repeats what is before it. */
static int repeated_end(const struct view *view, int axis, int64_t *times)
{
    struct run runs[RANK_MAX] = {{0, 0}};
    runs_of(view, runs);
    int end = runs[axis].end;
    bool repeated = end > runs[axis].first && view->step[end - 1] == 0;
    *times = repeated ? view->dim[end - 1] : 1;
    return end;
}

int64_t view_repeats(const struct view *view, int axis)
{
    int64_t times;
    repeated_end(view, axis, &times);
    return times;
}

void view_once(struct view *view, int axis)
{
    int64_t times;
    int end = repeated_end(view, axis, &times);
    if (times == 1)
        return;
    view->shape.dim[axis] /= times;
    view->parts--;
    for (int k = end - 1; k < view->parts; k++) {
        view->dim[k] = view->dim[k + 1];
        view->step[k] = view->step[k + 1];
    }
}

bool view_steps(const struct view *view, int64_t *step)
{
    struct run runs[RANK_MAX];
    runs_of(view, runs);
    for (int d = 0; d < view->shape.rank; d++) {
        if (runs[d].end - runs[d].first > 1)
            return false;
        step[d] = runs[d].end > runs[d].first ? view->step[runs[d].first] : 0;
    }
    return true;
}

bool view_is_whole(const struct graph *g, const struct view *view)
{
    struct view joined = *view;
    int64_t count = shape_count(&g->values[view->origin].shape);
    join_parts(&joined);
    if (view->start || shape_count(&view->shape) != count)
        return false;
    return count <= 1 || (joined.parts == 1 && joined.step[0] == 1);
}

/* Whether a list of indices is that of `dim` elements, each as often in a row. */
static bool is_repetition(const struct value *index, int64_t dim)
{
    int64_t count = shape_count(&index->shape), at[REPEATED_MAX];
    if (count > REPEATED_MAX || dim == 0 || count == 0 || count % dim)
        return false;
    value_materialise(index, at);
    for (int64_t k = 0; k < count; k++)
        if (at[k] != k / (count / dim))
            return false;
    return true;
}

/* A list of indices that repeats elements of an axis. */
static bool repeats_axis(const struct value *index, int axis, struct view *view)
{
    struct view before = *view;
    struct run runs[RANK_MAX];
    runs_of(&before, runs);
    view->shape.dim[axis] = shape_count(&index->shape);
    view->parts = 0;
    if (!is_repetition(index, before.shape.dim[axis]))
        return false;
    for (int d = 0; d < before.shape.rank; d++) {
        for (int k = runs[d].first; k < runs[d].end; k++)
            if (!add_part(view, before.dim[k], before.step[k]))
                return false;
        if (d == axis && !add_part(view, view->shape.dim[d] / before.shape.dim[d], 0))
            return false;
    }
    return true;
}

/* A scalar index of Gather cuts one slice out. */
static bool through_gather(const struct graph *g, const struct node *node, struct view *view)
{
    const struct value *index = &g->values[node->inputs[1]];
    struct view before = *view;
    int64_t at, step[RANK_MAX];
    int axis = shape_axis(&view->shape, node_int(node, "axis", 0));
    if (!value_is_fixed(index) || index->dtype != DTYPE_I64 || axis < 0)
        return false;
    if (index->shape.rank == 1)
        return repeats_axis(index, axis, view);
    if (index->shape.rank != 0 || !view_steps(view, step))
        return false;
    value_materialise(index, &at);
    at += at < 0 ? view->shape.dim[axis] : 0;
    if (at < 0 || at >= view->shape.dim[axis])
        return false;
    view->start += at * step[axis];
    view->shape.rank = view->parts = 0;
    for (int d = 0; d < before.shape.rank; d++) {
        if (d == axis)
            continue;
        view->shape.dim[view->shape.rank++] = before.shape.dim[d];
        add_part(view, before.shape.dim[d], step[d]);
    }
    return true;
}

/* Along an axis of the result: the whole of an axis, or a cut of one that has one step. */
static bool along(const struct view *before, const struct run *runs, const struct move_loop *loop,
                  struct view *view)
{
    int from = loop->in_axis;
    if (loop->in_step == 0)
        return add_part(view, loop->extent, 0);
    if (from == MOVE_FLAT)
        return false;
    struct run run = runs[from];
    bool whole = loop->in_step == 1 && loop->extent == before->shape.dim[from];
    if (!whole && run.end - run.first != 1)
        return false;
    for (int k = run.first; k < run.end; k++)
        if (!add_part(view, whole ? before->dim[k] : loop->extent,
                      before->step[k] * (whole ? 1 : loop->in_step)))
            return false;
    return true;
}

/* The loop that fills an axis of the result alone and from its begin on; NULL. */
static const struct move_loop *loop_along(const struct move *move, int axis, int64_t size)
{
    const struct move_loop *found = NULL;
    for (int k = 0; k < move->loop_count; k++) {
        const struct move_loop *loop = &move->loops[k];
        if (loop->out_axis != axis || loop->extent == 1)
            continue;
        if (found || loop->out_step != 1 || loop->extent != size)
            return NULL;
        found = loop;
    }
    return found;
}

static bool through_loops(const struct move *move, const struct shape *to, struct view *view)
{
    struct view before = *view;
    struct run runs[RANK_MAX];
    runs_of(&before, runs);
    for (int a = 0; a < before.shape.rank; a++) {
        bool one_step = runs[a].end - runs[a].first == 1;
        if (move->in_start[a] && !one_step)
            return false;
        view->start += move->in_start[a] * (one_step ? before.step[runs[a].first] : 0);
    }
    view->shape = *to;
    view->parts = 0;
    for (int d = 0; d < to->rank; d++) {
        const struct move_loop *loop = loop_along(move, d, to->dim[d]);
        if (move->out_start[d] || (!loop && to->dim[d] != 1) ||
            (loop && !along(&before, runs, loop, view)))
            return false;
    }
    return true;
}

bool view_turn(struct view *view, const int64_t *perm)
{
    struct view before = *view;
    struct run runs[RANK_MAX];
    runs_of(&before, runs);
    view->parts = 0;
    for (int d = 0; d < before.shape.rank; d++) {
        view->shape.dim[d] = before.shape.dim[perm[d]];
        for (int k = runs[perm[d]].first; k < runs[perm[d]].end; k++)
            if (!add_part(view, before.dim[k], before.step[k]))
                return false;
    }
    return true;
}

static bool is_flat(const struct move *move, int64_t count)
{
    const struct move_loop *loop = &move->loops[0];
    return move->loop_count == 1 && loop->in_axis == MOVE_FLAT && loop->out_axis == MOVE_FLAT &&
           loop->in_step == 1 && loop->out_step == 1 && loop->extent == count;
}

/* What an operator says of itself; output: which of its results. */
static bool through_move(const struct graph *g, const struct node *node, int output,
                         struct view *view)
{
    const struct value *in[OPERANDS_MAX];
    struct value *out[OPERANDS_MAX];
    struct infer c = {.node = node, .in = in, .out = out};
    if (node->input_count > OPERANDS_MAX || node->output_count > OPERANDS_MAX)
        return false;
    for (; c.in_count < node->input_count; c.in_count++)
        in[c.in_count] =
            node->inputs[c.in_count] == NONE ? NULL : &g->values[node->inputs[c.in_count]];
    for (; c.out_count < node->output_count; c.out_count++)
        out[c.out_count] =
            node->outputs[c.out_count] == NONE ? NULL : &g->values[node->outputs[c.out_count]];
    struct op_args args = args_of_infer(&c);
    struct move move;
    const struct shape *to = &g->values[node->outputs[output]].shape;
    if (node->op->inputs_max < 0 || move_of_args(&args, output, &move, NULL) != STATUS_OK ||
        move.input != 0 || move.output != output)
        return false;
    return is_flat(&move, shape_count(&view->shape)) ? view_reshape(view, to)
                                                     : through_loops(&move, to, view);
}

static bool through(const struct graph *g, const struct node *node, int output, struct view *view)
{
    if (node->dead || node->post_count || node->input_count == 0 || node->inputs[0] == NONE)
        return false;
    return node->op == &op_gather ? through_gather(g, node, view)
                                  : through_move(g, node, output, view);
}

bool view_through(const struct graph *g, const struct node *node, struct view *view)
{
    return through(g, node, 0, view);
}

/* What a value is a fixed scalar times of; NONE. */
static int scaled_from(const struct graph *g, int value, double *factor)
{
    double number;
    int other;
    const struct node *mul = rewrite_producer(g, value, &op_mul);
    const struct node *div = rewrite_producer(g, value, &op_div);
    if (mul && rewrite_with_scalar(g, mul, &number, &other)) {
        *factor *= number;
    } else if (div && rewrite_scalar(g, div->inputs[1], &number) && number != 0) {
        *factor /= number;
        other = div->inputs[0];
    } else {
        return NONE;
    }
    return shape_equal(&g->values[other].shape, &g->values[value].shape) ? other : NONE;
}

/* The node that only moves its input 0 into a value, and which of its results that is; NULL. */
static const struct node *mover_of(const struct graph *g, int value, int *output)
{
    int producer = g->values[value].producer;
    const struct node *node = producer == NONE ? NULL : &g->nodes[producer];
    if (!node || node->input_count == 0 || node->inputs[0] == NONE ||
        !(node->op->move || node->op->alias || node->op == &op_gather))
        return NULL;
    for (*output = 0; node->outputs[*output] != value;)
        ++*output;
    return node;
}

void view_of(const struct graph *g, int value, int moves, struct view *view)
{
    double factor = 1;
    int output, scaled = scaled_from(g, value, &factor);
    if (scaled != NONE) {
        view_of(g, scaled, moves, view);
        view->factor *= factor;
        return;
    }
    bool empty = shape_count(&g->values[value].shape) == 0;
    const struct node *mover = moves > 0 && !empty ? mover_of(g, value, &output) : NULL;
    if (mover) {
        view_of(g, mover->inputs[0], moves - 1, view);
        if (through(g, mover, output, view))
            return;
    }
    view_whole(g, value, view);
}
