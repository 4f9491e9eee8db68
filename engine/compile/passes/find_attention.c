/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaled dot-product attention as models write it,
 *   softmax(scale Q K' + mask) V, with Q and V as [B, heads, S, D] and K' as [B, heads, D, S],
 * becomes one Attention, which has no matrix of scores in memory. Exporters make Q, K and V of
 * what projections compute by reshapes, transposes, slices and factors in many orders: they are
 * compared as views of it.
 *   - Where heads lie side by side in rows of positions, Attention reads the rows themselves: of
 *     three tensors or of one in which queries, keys and values follow each other.
 *   - Otherwise (rotated positions) each head counts as a sequence of its own.
 *   - Where heads share keys and values, which were repeated for them, or a mask, that cannot be:
 *     they are brought side by side, and what they share is read once. So are those of which
 *     pass_cancel_transpose finds that they were before.
 * A fixed mask that hides what follows a query is not read: Attention skips those keys.
 * PyTorch writes zeros over the NaN of queries to which the mask leaves no key. */
#include "base/numbers/integers.h"
#include "engine/compile/passes/attention_match.h"
#include "engine/compile/passes/cancel_transpose.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/compile/passes/view.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

enum { MOVES = 12 }; /* nodes between a projection and its product, at most */

/* ---- where queries, keys and values lie ---- */

/* How many heads of queries, keys or values there are. */
static int64_t heads_of(const struct match *m, int k)
{
    return k == QUERIES ? m->heads : m->heads / m->group;
}

/* A factor as [B, heads_of, positions, D], whatever rank the model gave it. */
static bool factor_view(const struct graph *g, const struct match *m, int k, int moves,
                        struct view *view)
{
    static const int64_t turn[] = {0, 1, 3, 2};
    int64_t length = m->length[k];
    struct shape shape = k == KEYS ? shape_of(m->batch, m->heads, m->size, length)
                                   : shape_of(m->batch, m->heads, length, m->size);
    view_of(g, m->product[k], moves, view);
    if (!view_reshape(view, &shape) || (k == KEYS && !view_turn(view, turn)))
        return false;
    if (k != QUERIES && m->group > 1) {
        if (view_repeats(view, 1) != m->group)
            return false;
        view_once(view, 1);
    }
    return k != VALUES || view->factor == 1;
}

/* How often the heads of keys or of values are repeated. */
static int64_t repeats(const struct graph *g, const struct match *m, int k)
{
    int64_t most = 1;
    for (int moves = 1; moves <= MOVES; moves++) {
        struct view view;
        if (factor_view(g, m, k, moves, &view))
            most = larger(most, view_repeats(&view, 1));
    }
    return most;
}

static void find_groups(const struct graph *g, struct match *m)
{
    m->group = 1;
    int64_t times = repeats(g, m, KEYS);
    if (times > 1 && repeats(g, m, VALUES) == times)
        m->group = times;
}

/* Whether element (b, h, s, d) is at start + ((b S + s) row + h D + d) of an origin of B S rows. */
static bool in_rows(const struct graph *g, const struct view *view, int64_t row)
{
    const struct shape *s = &view->shape;
    const int64_t wanted[] = {s->dim[2] * row, s->dim[3], row, 1};
    int64_t step[RANK_MAX];
    if (!view_steps(view, step))
        return false;
    for (int d = 0; d < 4; d++)
        if (s->dim[d] != 1 && step[d] != wanted[d])
            return false;
    return shape_count(&g->values[view->origin].shape) == s->dim[0] * s->dim[2] * row;
}

/* As far up as it can be, so that what lies between is no longer needed. */
static bool find_rows(const struct graph *g, const struct match *m, int k, int64_t row,
                      int64_t start, struct view *view)
{
    for (int moves = MOVES; moves >= 0; moves--)
        if (factor_view(g, m, k, moves, view) && view->start == start && in_rows(g, view, row))
            return true;
    return false;
}

/* Of all three, side by side. */
static int64_t packed_width(const struct match *m)
{
    return (m->heads + 2 * heads_of(m, KEYS)) * m->size;
}

/* Of one origin with rows of queries | keys | values. */
static bool find_packed(const struct graph *g, const struct match *m, struct view *views)
{
    int64_t start = 0;
    for (int k = 0; k < 3; k++) {
        if (!find_rows(g, m, k, packed_width(m), start, &views[k]) ||
            views[k].origin != views[0].origin)
            return false;
        start += heads_of(m, k) * m->size;
    }
    return m->length[QUERIES] == m->length[KEYS];
}

static bool find_own_rows(const struct graph *g, const struct match *m, int k, struct view *view)
{
    return find_rows(g, m, k, heads_of(m, k) * m->size, 0, view);
}

static bool find_apart(const struct graph *g, const struct match *m, struct view *views)
{
    for (int k = 0; k < 3; k++)
        if (!find_own_rows(g, m, k, &views[k]))
            return false;
    return true;
}

/* Heads one after the other, each with its positions: by as few moves as possible, since those
 * before are carried out. */
static bool find_stacked(const struct graph *g, const struct match *m, int k, struct view *view)
{
    for (int moves = 0; moves <= MOVES; moves++) {
        if (factor_view(g, m, k, moves, view) && view_is_whole(g, view))
            return true;
    }
    return false;
}

/* The same, where there is one, as [B, heads, positions, D]: a value of which pass_cancel_transpose
 * may know more than of what was made of it. */
static bool find_apart_stacked(const struct graph *g, const struct match *m, int k,
                               struct view *view)
{
    struct shape apart = shape_of(m->batch, heads_of(m, k), m->length[k], m->size);
    for (int moves = 0; moves <= MOVES; moves++)
        if (factor_view(g, m, k, moves, view) && view_is_whole(g, view) &&
            shape_equal(&g->values[view->origin].shape, &apart))
            return true;
    return false;
}

/* ---- what comes of it ---- */

/* Of `batch` sequences with so many heads each; [batch, S, heads D]. */
static int attend(struct graph *g, const struct match *m, int64_t heads, const int *in, int mask,
                  double scale)
{
    int count = mask != NONE ? 4 : in[KEYS] != NONE ? 3 : 1, attr_count = 2;
    int inputs[] = {in[QUERIES], in[KEYS], in[VALUES], mask};
    struct attr attrs[5] = {attr_int("heads", heads), attr_float("scale", scale)};
    if (m->group > 1)
        attrs[attr_count++] = attr_int("kv_heads", heads / m->group);
    if (m->causal)
        attrs[attr_count++] = attr_int("causal", 1);
    if (m->guarded && mask != NONE && (m->causal || mask_may_leave_nothing(g, mask)))
        attrs[attr_count++] = attr_int("zero_empty", 1);
    return graph_node(g, op_attention.name, NULL, count, inputs, attr_count, attrs);
}

/* [B, S, heads D] takes the place of the last value below the context in which its elements have
 * that order; of a turned copy, if there is none. */
static void place(struct graph *g, const struct match *m, int rows)
{
    static const int64_t turn[] = {0, 2, 1, 3};
    struct shape apart = shape_of(m->batch, m->length[QUERIES], m->heads, m->size);
    struct shape context = g->values[m->context].shape;
    struct view view;
    view_whole(g, rows, &view);
    bool can =
        view_reshape(&view, &apart) && view_turn(&view, turn) && view_reshape(&view, &context);
    int last = NONE, value = m->context;
    while (can) {
        if (view_is_whole(g, &view))
            last = value;
        int user = rewrite_only_user(g, value);
        can = user != NONE && g->nodes[user].inputs[0] == value &&
              view_through(g, &g->nodes[user], &view);
        value = can ? g->nodes[user].outputs[0] : NONE;
    }
    if (last == NONE) {
        rows = make_permuted(g, make_reshaped(g, rows, &apart), 4, turn);
        last = m->context;
    }
    rewrite_replace(g, last, make_reshaped_as(g, rows, last));
}

/* Whether four axes are those of a shape after axes of size 1. */
static bool is_padded(const struct shape *shape, const struct shape *four)
{
    if (shape->rank > 4)
        return false;
    for (int d = 0; d < 4; d++) {
        int own = d - (4 - shape->rank);
        if (four->dim[d] != (own < 0 ? 1 : shape->dim[own]))
            return false;
    }
    return true;
}

/* The sum of all masks, with no more axes than Attention knows; NONE: there is none. shape: its
 * size, as [batch or 1, heads or 1, S or 1, K or 1]. */
static int whole_mask(struct graph *g, const struct match *m, struct shape *shape)
{
    int sum = NONE;
    *shape = shape_of(1, 1, 1, 1);
    for (int k = 0; k < m->masks; k++) {
        const struct shape *wanted = &m->mask_shape[k];
        int mask = m->mask[k];
        if (!is_padded(&g->values[mask].shape, wanted))
            mask = make_reshaped(g, mask, wanted);
        sum = sum == NONE ? mask : make_add(g, sum, mask);
        for (int d = 0; d < 4; d++)
            if (wanted->dim[d] != 1)
                shape->dim[d] = wanted->dim[d];
    }
    return sum;
}

/* in: with the heads side by side. */
static void attend_to_rows(struct graph *g, const struct match *m, const int *in,
                           const struct view *views)
{
    struct shape shape;
    int rows = attend(g, m, m->heads, in, whole_mask(g, m, &shape),
                      m->scale * views[QUERIES].factor * views[KEYS].factor);
    if (!g->failed)
        place(g, m, rows);
}

static bool use_rows(struct graph *g, const struct match *m)
{
    struct view views[3];
    int in[] = {NONE, NONE, NONE};
    bool packed = find_packed(g, m, views);
    if (!packed && !find_apart(g, m, views))
        return false;
    for (int k = 0; k < (packed ? 1 : 3); k++) {
        int64_t row = packed ? packed_width(m) : heads_of(m, k) * m->size;
        struct shape rows = shape_of(m->batch, m->length[k], row);
        in[k] = make_reshaped(g, views[k].origin, &rows);
    }
    attend_to_rows(g, m, in, views);
    return true;
}

/* The mask of heads that count as sequences, with one head each; false: it repeats heads. */
static bool mask_of_stack(struct graph *g, const struct match *m, int *mask)
{
    struct shape s;
    *mask = whole_mask(g, m, &s);
    if (*mask == NONE || (s.dim[0] == 1 && s.dim[1] == 1))
        return true;
    if (s.dim[0] != m->batch || s.dim[1] != m->heads)
        return false;
    struct shape stack = shape_of(m->batch * m->heads, 1, s.dim[2], s.dim[3]);
    *mask = make_reshaped(g, *mask, &stack);
    return true;
}

static bool use_stack(struct graph *g, const struct match *m)
{
    int in[3], mask;
    double scale = m->scale;
    if (m->batch * m->heads > SEQUENCES_MAX || !mask_of_stack(g, m, &mask))
        return false;
    for (int k = 0; k < 3; k++) {
        struct view view;
        struct shape stack = shape_of(m->batch * m->heads, m->length[k], m->size);
        int origin = m->product[k];
        if (find_stacked(g, m, k, &view)) {
            origin = view.origin;
            scale *= view.factor;
        } else if (k == KEYS) {
            origin = make_transposed(g, origin);
        }
        in[k] = make_reshaped(g, origin, &stack);
    }
    int fresh = attend(g, m, 1, in, mask, scale);
    if (!g->failed)
        rewrite_replace(g, m->context, make_reshaped_as(g, fresh, m->context));
    return true;
}

/* Heads one after the other as [B, S, heads D]. */
static int side_by_side(struct graph *g, const struct match *m, int k, int stacked)
{
    static const int64_t turn[] = {0, 2, 1, 3};
    struct shape apart = shape_of(m->batch, heads_of(m, k), m->length[k], m->size);
    struct shape rows = shape_of(m->batch, m->length[k], heads_of(m, k) * m->size);
    return make_reshaped(g, make_permuted(g, make_reshaped(g, stacked, &apart), 4, turn), &rows);
}

/* Whether heads that were changed one by one can be had side by side for nothing. */
static bool come_side_by_side(const struct graph *g, const struct match *m)
{
    static const int64_t turn[] = {0, 2, 1, 3};
    for (int k = 0; k < 3; k++) {
        struct view view;
        if (find_own_rows(g, m, k, &view))
            continue;
        if (!find_apart_stacked(g, m, k, &view) || !transpose_cancels(g, view.origin, 4, turn))
            return false;
    }
    return true;
}

/* Heads that share keys and values or masks, of which some were changed one by one. */
static bool use_turned(struct graph *g, const struct match *m)
{
    bool in_place[3];
    struct view views[3];
    int in[3];
    for (int k = 0; k < 3; k++) {
        in_place[k] = find_own_rows(g, m, k, &views[k]);
        if (!in_place[k] && !find_apart_stacked(g, m, k, &views[k]) &&
            !find_stacked(g, m, k, &views[k]))
            return false;
    }
    for (int k = 0; k < 3; k++) {
        struct shape rows = shape_of(m->batch, m->length[k], heads_of(m, k) * m->size);
        int origin = views[k].origin;
        in[k] = in_place[k] ? make_reshaped(g, origin, &rows) : side_by_side(g, m, k, origin);
    }
    attend_to_rows(g, m, in, views);
    return true;
}

enum status pass_find_attention(struct graph *g, struct error *err)
{
    int count = g->node_count;
    for (int n = 0; n < count && !g->failed; n++) {
        struct match m;
        if (g->nodes[n].dead || g->nodes[n].op != &op_mat_mul ||
            !attention_match(g, &g->nodes[n], &m))
            continue;
        g->phase = g->nodes[n].phase;
        find_groups(g, &m);
        bool turn = m.group > 1 || come_side_by_side(g, &m);
        if (use_rows(g, &m) || (turn && use_turned(g, &m)))
            continue;
        m.group = 1;
        if (!use_stack(g, &m))
            use_turned(g, &m);
    }
    return g->failed ? graph_check(g, err) : STATUS_OK;
}
