/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaled dot-product attention as models write it,
 *   softmax(scale Q K' + mask) V, with Q and V as [B, heads, S, D] and K' as [B, heads, D, S],
 * becomes one Attention, which has no matrix of scores in memory. Exporters make Q, K and V of
 * what projections compute by reshapes, transposes, slices and factors in many orders: they are
 * compared as views of it.
 *   - Where heads lie side by side in rows of positions, Attention reads the rows themselves: of
 *     three tensors or of one in which queries, keys and values follow each other.
 *   - Otherwise (rotated positions, shared heads) each head counts as a sequence of its own.
 * PyTorch writes zeros over the NaN of queries to which the mask leaves no key. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/compile/passes/view.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

enum {
    MASKS_MAX = 3,
    DEPTH = 6,           /* of sums and shapes between scores and softmax */
    MOVES = 12,          /* nodes between a projection and its product, at most */
    HEAD_SIZE_MAX = 128, /* what the kernels of every device take */
    SEQUENCES_MAX = 65535
};

enum { QUERIES, KEYS, VALUES };

struct match {
    int64_t batch, heads, size;
    int64_t length[3]; /* positions of queries, of keys and of values */
    int product[3];    /* factors of the two products */
    int masks, mask[MASKS_MAX];
    struct shape mask_shape[MASKS_MAX]; /* [batch or 1, heads or 1, S or 1, K or 1] */
    double scale;
    bool guarded; /* NaN of the softmax counts as zero */
    int context;  /* the result */
};

/* ---- what is there ---- */

static bool reads(const struct node *node, int value)
{
    for (int k = 0; k < node->input_count; k++)
        if (node->inputs[k] == value)
            return true;
    return false;
}

/* Where(IsNaN(p), 0, p) -> p; the value itself if it is nothing of the kind. */
static int without_guard(const struct graph *g, int value, bool *guarded)
{
    double zero;
    const struct node *choice = rewrite_producer(g, value, &op_where);
    const struct node *test = choice ? rewrite_producer(g, choice->inputs[0], &op_is_nan) : NULL;
    *guarded = test && test->inputs[0] == choice->inputs[2] &&
               rewrite_scalar(g, choice->inputs[1], &zero) && zero == 0 &&
               rewrite_only_user(g, value) != NONE;
    for (int n = 0; *guarded && n < g->node_count; n++)
        *guarded = g->nodes[n].dead || !reads(&g->nodes[n], test->inputs[0]) ||
                   &g->nodes[n] == test || &g->nodes[n] == choice;
    return *guarded ? test->inputs[0] : value;
}

/* The softmax along keys that a value is, read by nothing else. */
static const struct node *probabilities(const struct graph *g, int value, bool *guarded)
{
    int plain = without_guard(g, value, guarded);
    const struct node *softmax = rewrite_producer(g, plain, &op_softmax);
    if (!softmax || (!*guarded && rewrite_only_user(g, plain) == NONE))
        return NULL;
    const struct value *out = &g->values[plain];
    int axis = shape_axis(&out->shape, node_int(softmax, "axis", -1));
    bool lines = !node_int(softmax, "flatten", 0) && axis == out->shape.rank - 1;
    return lines && out->dtype == DTYPE_F32 ? softmax : NULL;
}

/* Products of heads, of which none is broadcast; all axes before that of the heads are the batch.
 */
static bool sizes(const struct graph *g, struct match *m)
{
    const struct shape *s[3];
    for (int k = 0; k < 3; k++)
        s[k] = &g->values[m->product[k]].shape;
    int heads = s[0]->rank - 3;
    for (int k = 0; k < 3; k++)
        if (heads < 0 || s[k]->rank != s[0]->rank ||
            memcmp(s[k]->dim, s[0]->dim, ((size_t)heads + 1) * sizeof(s[0]->dim[0])) != 0)
            return false;
    m->batch = shape_span(s[0], 0, heads);
    m->heads = s[0]->dim[heads];
    m->size = s[QUERIES]->dim[heads + 2];
    m->length[QUERIES] = s[QUERIES]->dim[heads + 1];
    m->length[KEYS] = s[KEYS]->dim[heads + 2];
    m->length[VALUES] = s[VALUES]->dim[heads + 1];
    return m->batch <= SEQUENCES_MAX && m->heads <= SEQUENCES_MAX &&
           m->length[KEYS] == m->length[VALUES] && s[KEYS]->dim[heads + 1] == m->size &&
           s[VALUES]->dim[heads + 2] == m->size && m->size > 0 && m->size <= HEAD_SIZE_MAX &&
           m->batch * m->heads * m->length[QUERIES] * m->length[KEYS] > 0;
}

static bool is_scores(const struct graph *g, int value, struct match *m)
{
    struct view scaled;
    view_of(g, value, 0, &scaled);
    const struct node *product = rewrite_producer(g, scaled.origin, &op_mat_mul);
    if (!product || product->attr_count)
        return false;
    m->scale = scaled.factor;
    m->masks = 0;
    m->product[QUERIES] = product->inputs[0];
    m->product[KEYS] = product->inputs[1];
    return sizes(g, m);
}

/* Takes a mask of scores of any rank as [batch or 1, heads or 1, S or 1, K or 1]; false: it is
 * broadcast along a part of the batch. */
static bool take_mask(const struct graph *g, int value, const struct shape *scores, struct match *m)
{
    const struct shape *mask = &g->values[value].shape;
    int lead = scores->rank - mask->rank; /* axes that only the scores have */
    struct shape to = shape_of(1, 1, 1, 1);
    if (lead < 0 || m->masks == MASKS_MAX)
        return false;
    for (int d = 0; d < mask->rank; d++)
        to.dim[larger(4 - scores->rank + lead + d, 0)] *= mask->dim[d];
    bool heads_last = scores->dim[scores->rank - 3] == m->heads;
    bool all = to.dim[0] * to.dim[1] == m->batch * m->heads;
    if (!heads_last && all)
        to = shape_of(m->batch, m->heads, to.dim[2], to.dim[3]);
    if ((to.dim[0] != 1 && to.dim[0] != m->batch) || (to.dim[1] != 1 && to.dim[1] != m->heads))
        return false;
    m->mask_shape[m->masks] = to;
    m->mask[m->masks++] = value;
    return true;
}

/* Softmax's input: scores and any masks added to them. Between sums another shape may divide the
 * leading axes in another way. */
static bool masked_scores(const struct graph *g, int value, int depth, struct match *m)
{
    const struct shape *shape = &g->values[value].shape;
    const struct node *add = rewrite_producer(g, value, &op_add);
    const struct node *cut = rewrite_producer(g, value, &op_reshape);
    if (is_scores(g, value, m))
        return true;
    if (depth == 0 || shape->rank < 3)
        return false;
    if (cut) {
        const struct shape *from = &g->values[cut->inputs[0]].shape;
        return from->rank >= 3 && from->dim[from->rank - 1] == shape->dim[shape->rank - 1] &&
               from->dim[from->rank - 2] == shape->dim[shape->rank - 2] &&
               masked_scores(g, cut->inputs[0], depth - 1, m);
    }
    for (int k = 0; add && k < 2; k++)
        if (shape_equal(&g->values[add->inputs[k]].shape, shape) &&
            masked_scores(g, add->inputs[k], depth - 1, m) &&
            take_mask(g, add->inputs[1 - k], shape, m))
            return true;
    return false;
}

/* From the second product, with the probabilities on the left. */
static bool find(const struct graph *g, const struct node *product, struct match *m)
{
    bool guarded;
    const struct node *softmax = probabilities(g, product->inputs[0], &guarded);
    if (!softmax || product->post_count || product->attr_count)
        return false;
    m->guarded = guarded;
    m->product[VALUES] = product->inputs[1];
    m->context = product->outputs[0];
    return masked_scores(g, softmax->inputs[0], DEPTH, m);
}

/* ---- where queries, keys and values lie ---- */

/* A factor as [B, heads, positions, D], whatever rank the model gave it. */
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
    return k != VALUES || view->factor == 1;
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

/* Of one origin with rows of queries | keys | values. */
static bool find_packed(const struct graph *g, const struct match *m, struct view *views)
{
    int64_t width = m->heads * m->size;
    for (int k = 0; k < 3; k++)
        if (!find_rows(g, m, k, 3 * width, k * width, &views[k]) ||
            views[k].origin != views[0].origin)
            return false;
    return m->length[QUERIES] == m->length[KEYS];
}

static bool find_apart(const struct graph *g, const struct match *m, struct view *views)
{
    for (int k = 0; k < 3; k++)
        if (!find_rows(g, m, k, m->heads * m->size, 0, &views[k]))
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

/* ---- what comes of it ---- */

/* Whether the mask may leave a query without keys. */
static bool may_leave_nothing(const struct graph *g, int mask)
{
    const struct value *v = mask == NONE ? NULL : &g->values[mask];
    int64_t count = v ? shape_count(&v->shape) : 0;
    if (count == 0)
        return false;
    float *x =
        value_is_fixed(v) && v->dtype == DTYPE_F32 ? malloc((size_t)count * sizeof(*x)) : NULL;
    if (!x)
        return true;
    int64_t line = v->shape.rank ? v->shape.dim[v->shape.rank - 1] : 1;
    bool empty = false, finite = false;
    value_materialise(v, x);
    for (int64_t i = 0; i < count; i++) {
        finite = (i % line && finite) || isfinite(x[i]);
        empty = empty || ((i + 1) % line == 0 && !finite);
    }
    free(x);
    return empty;
}

/* Of `batch` sequences with so many heads each; [batch, S, heads D]. */
static int attend(struct graph *g, const struct match *m, int64_t heads, const int *in, int mask,
                  double scale)
{
    int count = mask != NONE ? 4 : in[KEYS] != NONE ? 3 : 1;
    int inputs[] = {in[QUERIES], in[KEYS], in[VALUES], mask};
    struct attr attrs[] = {attr_int("heads", heads), attr_float("scale", scale),
                           attr_int("zero_empty", 1)};
    bool zeros = m->guarded && may_leave_nothing(g, mask);
    return graph_node(g, op_attention.name, NULL, count, inputs, zeros ? 3 : 2, attrs);
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

static bool use_rows(struct graph *g, const struct match *m)
{
    struct view views[3];
    int in[] = {NONE, NONE, NONE};
    bool packed = find_packed(g, m, views);
    if (!packed && !find_apart(g, m, views))
        return false;
    for (int k = 0; k < (packed ? 1 : 3); k++) {
        struct shape rows = shape_of(m->batch, m->length[k], m->heads * m->size * (packed ? 3 : 1));
        in[k] = make_reshaped(g, views[k].origin, &rows);
    }
    struct shape shape;
    int rows = attend(g, m, m->heads, in, whole_mask(g, m, &shape),
                      m->scale * views[QUERIES].factor * views[KEYS].factor);
    if (!g->failed)
        place(g, m, rows);
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

static void use_stack(struct graph *g, const struct match *m)
{
    int in[3], mask;
    double scale = m->scale;
    if (m->batch * m->heads > SEQUENCES_MAX || !mask_of_stack(g, m, &mask))
        return;
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
}

enum status pass_find_attention(struct graph *g, struct error *err)
{
    int count = g->node_count;
    for (int n = 0; n < count && !g->failed; n++) {
        struct match m;
        if (g->nodes[n].dead || g->nodes[n].op != &op_mat_mul || !find(g, &g->nodes[n], &m))
            continue;
        g->phase = g->nodes[n].phase;
        if (!use_rows(g, &m))
            use_stack(g, &m);
    }
    return g->failed ? graph_check(g, err) : STATUS_OK;
}
