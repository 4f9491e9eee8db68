/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/compile/passes/attention_match.h"

#include <string.h>

#include "base/numbers/integers.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/compile/passes/view.h"
#include "engine/graph/op_list.h"

enum {
    DEPTH = 6,           /* of sums and shapes between scores and softmax */
    HEAD_SIZE_MAX = 128, /* what the kernels of every device take */
};

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
        *guarded = g->nodes[n].dead || !rewrite_reads(&g->nodes[n], test->inputs[0]) ||
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
    m->choice = MASK_OTHER;
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

/* The scores between which and a large negative number a fixed choice is made; NONE. */
static int chosen_scores(const struct graph *g, const struct node *where, bool *hides,
                         double *number)
{
    for (int k = 1; k < 3; k++) {
        *hides = k == 1;
        if (rewrite_scalar(g, where->inputs[k], number))
            return where->inputs[3 - k];
    }
    return NONE;
}

static bool masked_scores(const struct graph *g, int value, int depth, struct match *m);

/* Where(seen, scores, -inf) */
static bool masked_by_choice(const struct graph *g, const struct node *where, int depth,
                             struct match *m)
{
    bool hides;
    double number;
    int scores = chosen_scores(g, where, &hides, &number);
    if (scores == NONE || !masked_scores(g, scores, depth, m) || m->choice != MASK_OTHER ||
        !shape_equal(&g->values[scores].shape, &g->values[where->outputs[0]].shape))
        return false;
    m->choice =
        mask_of_choice(g, where->inputs[0], hides, number, m->length[QUERIES], m->length[KEYS]);
    return m->choice != MASK_OTHER;
}

/* Softmax's input: scores and any masks added to them. Between sums another shape may divide the
 * leading axes in another way. */
static bool masked_scores(const struct graph *g, int value, int depth, struct match *m)
{
    const struct shape *shape = &g->values[value].shape;
    const struct node *add = rewrite_producer(g, value, &op_add);
    const struct node *cut = rewrite_producer(g, value, &op_reshape);
    const struct node *where = rewrite_producer(g, value, &op_where);
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
    if (where)
        return masked_by_choice(g, where, depth - 1, m);
    for (int k = 0; add && k < 2; k++)
        if (shape_equal(&g->values[add->inputs[k]].shape, shape) &&
            masked_scores(g, add->inputs[k], depth - 1, m) &&
            take_mask(g, add->inputs[1 - k], shape, m))
            return true;
    return false;
}

/* Takes causal masks out of the list. What a finite number hides stays hidden only where no other
 * mask hides the rest of the keys; false: that decides what comes of a choice. */
static bool skip_hidden(const struct graph *g, struct match *m)
{
    int left = 0;
    m->causal = m->choice != MASK_OTHER;
    for (int k = 0; k < m->masks; k++) {
        enum mask_kind kind = mask_of_sum(g, m->mask[k], m->length[QUERIES], m->length[KEYS]);
        if (kind == MASK_CAUSAL || (kind == MASK_CAUSAL_BIG && m->masks == 1)) {
            m->causal = true;
            continue;
        }
        m->mask_shape[left] = m->mask_shape[k];
        m->mask[left++] = m->mask[k];
    }
    m->masks = left;
    return left == 0 || m->choice != MASK_CAUSAL_BIG;
}

bool attention_match(const struct graph *g, const struct node *product, struct match *m)
{
    bool guarded;
    const struct node *softmax = probabilities(g, product->inputs[0], &guarded);
    if (!softmax || product->post_count || product->attr_count)
        return false;
    m->guarded = guarded;
    m->product[VALUES] = product->inputs[1];
    m->context = product->outputs[0];
    return masked_scores(g, softmax->inputs[0], DEPTH, m) && skip_hidden(g, m);
}
