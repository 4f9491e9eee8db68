/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/recurrence_gradient.h"

#include "engine/graph/op_list.h"
#include "engine/ops/lib/rnn.h"

enum { DIRECTIONS = 2 };

/* The node, with time first and weights and results by direction. */
struct recurrent {
    struct graph *g;
    enum cell cell;
    int in[RNN_PEEPHOLE + 1]; /* values; NONE: absent */
    int y, dy, dh, dc;        /* y, dy: [T, D, B, H], dh, dc: [D, B, H] */
    struct rnn_shape shape;
    bool linear, relu;
    bool wanted[RNN_PEEPHOLE + 1];
};

/* Gradients of one direction. */
struct parts {
    int x, w, r, bias, h, c, attention;
};

/* ---- words ---- */

/* Element `index` along an axis, which goes. */
static int pick(struct graph *g, int x, int axis, int64_t index)
{
    if (x == NONE)
        return NONE;
    struct shape part = gradient_shape(g, x), rest = {0};
    int64_t start[RANK_MAX] = {0};
    start[axis] = index;
    part.dim[axis] = 1;
    for (int k = 0; k < part.rank; k++)
        if (k != axis)
            rest.dim[rest.rank++] = part.dim[k];
    return make_reshaped(g, make_slice(g, x, start, &part), &rest);
}

/* Elements [first, first + count) along the last or the only axis of those before. */
static int range_of(struct graph *g, int x, int axis, int64_t first, int64_t count)
{
    if (x == NONE)
        return NONE;
    struct shape part = gradient_shape(g, x);
    int64_t start[RANK_MAX] = {0};
    start[axis] = first;
    part.dim[axis] = count;
    return make_slice(g, x, start, &part);
}

static int joined(struct graph *g, int axis, int count, const int *parts)
{
    if (count == 1)
        return parts[0];
    return graph_node(g, op_concat.name, NULL, count, parts, ATTRS(attr_int("axis", axis)));
}

/* op(a) op(b) + bias */
static int product(struct graph *g, int a, bool ta, int b, bool tb, int bias)
{
    int inputs[3] = {a, b, bias};
    return graph_node(g, op_gemm.name, NULL, bias == NONE ? 2 : 3, inputs,
                      ATTRS(attr_int("transA", ta), attr_int("transB", tb)));
}

/* x as rows of its last axis, which is so long. */
static int matrix(struct graph *g, int x, int64_t columns)
{
    if (x == NONE)
        return NONE;
    struct shape all = gradient_shape(g, x);
    struct shape flat = shape_of(shape_span(&all, 0, all.rank - 1), columns);
    return make_reshaped(g, x, &flat);
}

static int sum_of_rows(struct graph *g, int x)
{
    static const int64_t rows = 0;
    return make_sum(g, x, 1, &rows, false);
}

/* ---- reading the node ---- */

static int time_first(struct graph *g, int x, bool batch_first, int rank, const int64_t *perm)
{
    return x == NONE || !batch_first ? x : make_permuted(g, x, rank, perm);
}

static enum status check(const struct gradient_call *c, enum cell cell, const char *const *defaults,
                         bool *relu, struct error *err)
{
    const struct node *node = gradient_node(c);
    struct shape w = gradient_shape(c->g, gradient_in(c, RNN_W));
    bool memory = cell == CELL_LSTM;
    *relu = false;
    if ((memory && gradient_in(c, RNN_PEEPHOLE) != NONE) || node_attr(node, "clip") ||
        node_int(node, "input_forget", 0))
        return UNSUPPORTED(err, "the gradient of %s with peepholes, coupled gates or a clip",
                           node->op->name);
    for (int d = 0; d < w.dim[0]; d++) {
        struct rnn_activation f[RNN_ACTIVATIONS_MAX];
        TRY(rnn_activations(node, d, defaults, f, err));
        bool rectifies = cell == CELL_RNN && f[0].function == FN_RELU;
        bool usual = f[0].function == (cell == CELL_RNN ? FN_TANH : FN_SIGMOID);
        for (int k = 1; cell != CELL_RNN && defaults[k]; k++)
            usual = usual && f[k].function == FN_TANH;
        if ((!usual && !rectifies) || (d > 0 && rectifies != *relu))
            return UNSUPPORTED(err, "the gradient of %s with other activations than the usual ones",
                               node->op->name);
        *relu = rectifies;
    }
    if (gradient_out(c, 0) == NONE)
        return UNSUPPORTED(err, "%s without its output 0, which the gradient reads",
                           node->op->name);
    return STATUS_OK;
}

static enum status read(const struct gradient_call *c, enum cell cell, const char *const *defaults,
                        struct recurrent *n, struct error *err)
{
    static const int64_t x_perm[] = {1, 0, 2}, y_perm[] = {1, 2, 0, 3};
    struct graph *g = c->g;
    *n = (struct recurrent){.g = g, .cell = cell};
    TRY(check(c, cell, defaults, &n->relu, err));
    const struct node *node = gradient_node(c);
    struct shape x = gradient_shape(g, gradient_in(c, RNN_X));
    struct shape r = gradient_shape(g, gradient_in(c, RNN_R));
    TRY(rnn_shape_from(node, cell_gates(cell), &x, &r, &n->shape, err));
    if (shape_count(&x) == 0 || shape_count(&r) == 0)
        return UNSUPPORTED(err, "the gradient of an empty sequence");
    n->linear = node_int(node, "linear_before_reset", 0) != 0;
    int outputs = node->output_count;
    for (int k = 0; k <= RNN_PEEPHOLE; k++) {
        n->in[k] = gradient_in(c, k);
        n->wanted[k] = k < node->op_inputs && c->wanted[k];
    }
    bool turn = n->shape.batch_first;
    n->in[RNN_X] = time_first(g, n->in[RNN_X], turn, 3, x_perm);
    n->in[RNN_H] = time_first(g, n->in[RNN_H], turn, 3, x_perm);
    if (cell == CELL_LSTM)
        n->in[RNN_C] = time_first(g, n->in[RNN_C], turn, 3, x_perm);
    else if (cell == CELL_AUGRU && turn)
        n->in[RNN_ATTENTION] = make_transposed(g, n->in[RNN_ATTENTION]);
    n->y = time_first(g, gradient_out(c, 0), turn, 4, y_perm);
    n->dy = time_first(g, c->dy[0], turn, 4, y_perm);
    n->dh = outputs > 1 ? time_first(g, c->dy[1], turn, 3, x_perm) : NONE;
    n->dc = outputs > 2 ? time_first(g, c->dy[2], turn, 3, x_perm) : NONE;
    return STATUS_OK;
}

/* ---- one direction ---- */

/* Ones where a moment is the last of its sequence, [T, B, 1]: backwards that is where the first
 * state is read. */
static int last_moments(const struct recurrent *n)
{
    struct graph *g = n->g;
    int64_t index[RANK_MAX] = {1, n->shape.batch, 1}, one = 1;
    int ends = graph_node(g, op_reshape.name, NULL,
                          INPUTS(n->in[RNN_LENGTHS], graph_const_i64(g, 3, index)), NO_ATTRS);
    int lengths = make_cast(g, ends, DTYPE_I64);
    int64_t from = 1, to = n->shape.steps + 1;
    int count = graph_node(g, op_range.name, NULL,
                           INPUTS(graph_const_i64(g, -1, &from), graph_const_i64(g, -1, &to),
                                  graph_const_i64(g, -1, &one)),
                           NO_ATTRS);
    struct shape column = shape_of(n->shape.steps, 1, 1);
    int same = make_binary(g, &op_equal, make_reshaped(g, count, &column), lengths);
    return make_cast(g, same, g->values[n->in[RNN_X]].dtype);
}

/* The state before each step, [T, B, H]. */
static int states_before(const struct recurrent *n, int y, int first, bool reverse)
{
    struct graph *g = n->g;
    const struct rnn_shape *s = &n->shape;
    struct shape one = shape_of(1, s->batch, s->hidden);
    enum dtype dtype = g->values[y].dtype;
    bool inside = reverse && n->in[RNN_LENGTHS] != NONE && first != NONE;
    int edge = first == NONE || inside ? make_zeros(g, dtype, &one) : make_reshaped(g, first, &one);
    int shifted[2] = {edge, NONE};
    if (s->steps > 1) {
        int rest = range_of(g, y, 0, reverse, s->steps - 1);
        shifted[reverse] = edge;
        shifted[!reverse] = rest;
    }
    int before = joined(g, 0, s->steps > 1 ? 2 : 1, shifted);
    if (!inside)
        return before;
    return make_add(g, before, make_mul(g, last_moments(n), make_reshaped(g, first, &one)));
}

/* The sums of the gates of one direction, and what their products were made of: matrices of T B
 * rows. */
struct sums {
    int x, w, r, before; /* factors */
    int a, u;            /* engine/ops/lib/recurrence.h; u: NONE */
    int reset;           /* GRU with reset before the product: r h; else NONE */
};

static struct sums sums_of(const struct recurrent *n, int d, int states)
{
    struct graph *g = n->g;
    int64_t hidden = n->shape.hidden, width = n->shape.gates * hidden;
    int bias = pick(g, n->in[RNN_BIAS], 0, d);
    int of_w = range_of(g, bias, 0, 0, width), of_r = range_of(g, bias, 0, width, width);
    struct sums s = {.x = matrix(g, n->in[RNN_X], n->shape.input),
                     .w = pick(g, n->in[RNN_W], 0, d),
                     .r = pick(g, n->in[RNN_R], 0, d),
                     .before = matrix(g, states, hidden),
                     .u = NONE,
                     .reset = NONE};
    int x_part = product(g, s.x, false, s.w, true, of_w);
    if (!cell_resets(n->cell)) {
        s.a = make_add(g, x_part, product(g, s.before, false, s.r, true, of_r));
        return s;
    }
    s.a = x_part;
    if (n->linear) {
        s.u = product(g, s.before, false, s.r, true, of_r);
        return s;
    }
    int both = product(g, s.before, false, range_of(g, s.r, 0, 0, 2 * hidden), true,
                       range_of(g, of_r, 0, 0, 2 * hidden));
    int sum =
        make_add(g, range_of(g, s.a, 1, hidden, hidden), range_of(g, both, 1, hidden, hidden));
    s.reset = make_mul(g, make_unary(g, &op_sigmoid, sum), s.before);
    int last = product(g, s.reset, false, range_of(g, s.r, 0, 2 * hidden, hidden), true,
                       range_of(g, of_r, 0, 2 * hidden, hidden));
    s.u = joined(g, 1, 2, (const int[]){both, last});
    return s;
}

static enum status back_through_time(const struct recurrent *n, const struct sums *s, int d,
                                     int states, int *out, struct error *err)
{
    struct graph *g = n->g;
    bool memory = n->cell == CELL_LSTM, attends = n->cell == CELL_AUGRU;
    bool reverse = d == 1 || n->shape.backward;
    struct shape sums = shape_of(n->shape.steps, n->shape.batch, n->shape.gates * n->shape.hidden);
    int inputs[RECURRENCE_INPUTS], outputs = RECURRENCE_OF_FIRST + 1;
    if (memory)
        outputs = RECURRENCE_OF_MEMORY + 1;
    if (cell_resets(n->cell))
        outputs = attends ? RECURRENCE_OUTPUTS : RECURRENCE_OF_U + 1;
    for (int k = 0; k < RECURRENCE_INPUTS; k++)
        inputs[k] = NONE;
    inputs[RECURRENCE_A] = make_reshaped(g, s->a, &sums);
    inputs[RECURRENCE_U] = make_reshaped(g, s->u, &sums);
    inputs[RECURRENCE_R] = s->r;
    inputs[RECURRENCE_DY] = pick(g, n->dy, 1, d);
    inputs[RECURRENCE_DH] = pick(g, n->dh, 0, d);
    inputs[RECURRENCE_DC] = memory ? pick(g, n->dc, 0, d) : NONE;
    inputs[RECURRENCE_H] = cell_resets(n->cell) ? states : NONE;
    inputs[RECURRENCE_C] = memory ? pick(g, n->in[RNN_C], 0, d) : NONE;
    inputs[RECURRENCE_LENGTHS] = n->in[RNN_LENGTHS];
    inputs[RECURRENCE_ATTENTION] = attends ? n->in[RNN_ATTENTION] : NONE;
    TRY(graph_node_many(g, op_recurrent_gradient.name, NULL, RECURRENCE_INPUTS, inputs,
                        ATTRS(attr_string("cell", cell_name(n->cell)), attr_int("reverse", reverse),
                              attr_int("linear_before_reset", n->linear),
                              attr_int("relu", n->relu)),
                        outputs, out));
    return graph_failed(g, err);
}

/* dR: each gate's sums times what R was multiplied by. */
static int by_recurrent_weights(const struct recurrent *n, const struct sums *s, int du)
{
    struct graph *g = n->g;
    int64_t hidden = n->shape.hidden;
    if (s->reset == NONE)
        return product(g, du, true, s->before, false, NONE);
    int parts[2] = {
        product(g, range_of(g, du, 1, 0, 2 * hidden), true, s->before, false, NONE),
        product(g, range_of(g, du, 1, 2 * hidden, hidden), true, s->reset, false, NONE)};
    return joined(g, 0, 2, parts);
}

static enum status one_direction(const struct recurrent *n, int d, struct parts *parts,
                                 struct error *err)
{
    struct graph *g = n->g;
    int out[RECURRENCE_OUTPUTS];
    int64_t width = n->shape.gates * n->shape.hidden;
    bool reverse = d == 1 || n->shape.backward;
    int states = states_before(n, pick(g, n->y, 1, d), pick(g, n->in[RNN_H], 0, d), reverse);
    struct sums s = sums_of(n, d, states);
    TRY(graph_failed(g, err));
    TRY(back_through_time(n, &s, d, states, out, err));
    int da = matrix(g, out[RECURRENCE_OF_A], width);
    int du = cell_resets(n->cell) ? matrix(g, out[RECURRENCE_OF_U], width) : da;
    *parts =
        (struct parts){.h = out[RECURRENCE_OF_FIRST],
                       .c = n->cell == CELL_LSTM ? out[RECURRENCE_OF_MEMORY] : NONE,
                       .attention = n->cell == CELL_AUGRU ? out[RECURRENCE_OF_ATTENTION] : NONE};
    if (n->wanted[RNN_X])
        parts->x = make_mat_mul(g, da, s.w);
    if (n->wanted[RNN_W])
        parts->w = product(g, da, true, s.x, false, NONE);
    if (n->wanted[RNN_R])
        parts->r = by_recurrent_weights(n, &s, du);
    if (n->wanted[RNN_BIAS]) {
        int of_w = sum_of_rows(g, da), of_r = du == da ? of_w : sum_of_rows(g, du);
        parts->bias = joined(g, 0, 2, (const int[]){of_w, of_r});
    }
    return graph_failed(g, err);
}

/* ---- all directions ---- */

/* One value per direction, as a new first axis. */
static int stacked(struct graph *g, int count, const int *parts)
{
    int each[DIRECTIONS];
    for (int d = 0; d < count; d++) {
        struct shape from = gradient_shape(g, parts[d]), to = {.rank = from.rank + 1, .dim = {1}};
        for (int k = 0; k < from.rank; k++)
            to.dim[k + 1] = from.dim[k];
        each[d] = make_reshaped(g, parts[d], &to);
    }
    return joined(g, 0, count, each);
}

enum status gradient_of_recurrence(const struct gradient_call *c, enum cell cell,
                                   const char *const *activations, struct error *err)
{
    static const int64_t back[] = {1, 0, 2};
    struct graph *g = c->g;
    struct recurrent n = {0};
    struct parts parts[DIRECTIONS] = {0};
    int w[DIRECTIONS], r[DIRECTIONS], bias[DIRECTIONS], h[DIRECTIONS], memory[DIRECTIONS];
    TRY(read(c, cell, activations, &n, err));
    int count = n.shape.directions, dx = NONE;
    bool turn = n.shape.batch_first;
    for (int d = 0; d < count; d++) {
        TRY(one_direction(&n, d, &parts[d], err));
        w[d] = parts[d].w;
        r[d] = parts[d].r;
        bias[d] = parts[d].bias;
        h[d] = parts[d].h;
        memory[d] = parts[d].c;
        if (n.wanted[RNN_X])
            dx = d ? make_add(g, dx, parts[d].x) : parts[d].x;
    }
    if (n.wanted[RNN_X])
        c->dx[RNN_X] = time_first(g, make_reshaped_as(g, dx, n.in[RNN_X]), turn, 3, back);
    if (n.wanted[RNN_W])
        c->dx[RNN_W] = stacked(g, count, w);
    if (n.wanted[RNN_R])
        c->dx[RNN_R] = stacked(g, count, r);
    if (n.wanted[RNN_BIAS])
        c->dx[RNN_BIAS] = stacked(g, count, bias);
    if (n.wanted[RNN_H])
        c->dx[RNN_H] = time_first(g, stacked(g, count, h), turn, 3, back);
    if (cell == CELL_LSTM && n.wanted[RNN_C])
        c->dx[RNN_C] = time_first(g, stacked(g, count, memory), turn, 3, back);
    if (cell == CELL_AUGRU && n.wanted[RNN_ATTENTION])
        c->dx[RNN_ATTENTION] = turn ? make_transposed(g, parts[0].attention) : parts[0].attention;
    return STATUS_OK;
}
