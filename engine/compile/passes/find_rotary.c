/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotated positions as transformers writes them,
 *   x cos + concat(-x[half:], x[:half]) sin, with fixed angles, the same for both halves,
 * become RotaryEmbedding, which reads and writes x once. Heads are the axis before that of the
 * positions or the one behind it. */
#include <stdlib.h>
#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/compile/passes/view.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

enum { COSINES, SINES, SHARED_MAX = 16 };

struct rotation {
    int x, angles[2];
    bool heads_last;                  /* [B, S, heads, D], otherwise [B, heads, S, D] */
    int64_t positions, size, batches; /* of the angles */
};

/* What layers share: angles of rows of positions and the row of each token. */
struct caches {
    int count;
    struct rotation of[SHARED_MAX];
    int values[SHARED_MAX][3];
};

/* The part of x that a value is, as half of the last axis from `start` on. */
static bool is_half(const struct graph *g, int value, int x, int64_t start)
{
    struct view view;
    int64_t step[RANK_MAX];
    const struct shape *whole = &g->values[x].shape;
    struct shape half = *whole;
    half.dim[whole->rank - 1] /= 2;
    view_of(g, value, 1, &view);
    if (view.origin != x || view.factor != 1 || view.start != start ||
        !shape_equal(&view.shape, &half) || !view_steps(&view, step))
        return false;
    for (int d = 0; d < half.rank; d++)
        if (half.dim[d] != 1 && step[d] != shape_span(whole, d + 1, whole->rank))
            return false;
    return true;
}

/* Concat(-x[half:], x[:half]) */
static bool is_turned(const struct graph *g, int value, int x)
{
    const struct node *concat = rewrite_producer(g, value, &op_concat);
    const struct shape *shape = &g->values[x].shape;
    int64_t size = shape->dim[shape->rank - 1];
    if (!concat || concat->input_count != 2 || size % 2 ||
        shape_axis(shape, node_int(concat, "axis", 0)) != shape->rank - 1)
        return false;
    const struct node *neg = rewrite_producer(g, concat->inputs[0], &op_neg);
    return neg && is_half(g, neg->inputs[0], x, size / 2) && is_half(g, concat->inputs[1], x, 0);
}

/* A product with what is fixed, read once. */
static bool fixed_product(const struct graph *g, int value, int *x, int *fixed)
{
    const struct node *mul = rewrite_producer(g, value, &op_mul);
    if (!mul || rewrite_only_user(g, value) == NONE)
        return false;
    int k = value_is_fixed(&g->values[mul->inputs[0]]) ? 0 : 1;
    *fixed = mul->inputs[k];
    *x = mul->inputs[1 - k];
    return value_is_fixed(&g->values[*fixed]) && !value_is_fixed(&g->values[*x]) &&
           shape_equal(&g->values[*x].shape, &g->values[value].shape);
}

/* Angles that belong to positions, of all sequences or of each. */
static bool lie_by_position(const struct graph *g, struct rotation *r)
{
    const struct shape *x = &g->values[r->x].shape, *s = &g->values[r->angles[COSINES]].shape;
    int64_t dim[4];
    if (!shape_equal(s, &g->values[r->angles[SINES]].shape) || s->rank > 4)
        return false;
    for (int d = 0; d < 4; d++)
        dim[d] = d < 4 - s->rank ? 1 : s->dim[d - (4 - s->rank)];
    r->heads_last = dim[1] == x->dim[1] && dim[2] == 1;
    r->positions = x->dim[r->heads_last ? 1 : 2];
    r->batches = dim[0];
    r->size = x->dim[3];
    bool heads_first = dim[1] == 1 && dim[2] == x->dim[2];
    return (r->heads_last || heads_first) && dim[3] == r->size &&
           (dim[0] == 1 || dim[0] == x->dim[0]);
}

static bool find(const struct graph *g, const struct node *add, struct rotation *r)
{
    const struct value *y = &g->values[add->outputs[0]];
    if (y->dtype != DTYPE_F32 || y->shape.rank != 4 || shape_count(&y->shape) == 0)
        return false;
    for (int k = 0; k < 2; k++) {
        int turned;
        if (fixed_product(g, add->inputs[k], &r->x, &r->angles[COSINES]) &&
            fixed_product(g, add->inputs[1 - k], &turned, &r->angles[SINES]) &&
            shape_equal(&g->values[r->x].shape, &y->shape) && is_turned(g, turned, r->x) &&
            lie_by_position(g, r))
            return true;
    }
    return false;
}

/* The first half of each row; NONE: the second is another, or memory is out. */
static int half_of(struct graph *g, const struct rotation *r, int angles)
{
    int64_t rows = r->batches * r->positions, half = r->size / 2;
    float *all = malloc((size_t)(rows * r->size) * sizeof(*all));
    float *halves = malloc((size_t)(rows * half) * sizeof(*halves));
    bool same = all && halves;
    if (same)
        value_materialise(&g->values[angles], all);
    for (int64_t i = 0; same && i < rows; i++) {
        const float *row = all + i * r->size;
        same = memcmp(row, row + half, (size_t)half * sizeof(*row)) == 0;
        memcpy(halves + i * half, row, (size_t)half * sizeof(*row));
    }
    free(all);
    if (same)
        return rewrite_weight(g, NULL, shape_of(rows, half), halves);
    free(halves);
    return NONE;
}

/* Which row of the angles belongs to each token. */
static int rows_of_tokens(struct graph *g, const struct rotation *r)
{
    int64_t batch = g->values[r->x].shape.dim[0], count = batch * r->positions;
    int64_t *rows = malloc((size_t)count * sizeof(*rows));
    if (!rows)
        return NONE;
    for (int64_t i = 0; i < count; i++)
        rows[i] = r->batches == 1 ? i % r->positions : i;
    int v = graph_const(g, NULL, DTYPE_I64, shape_of(batch, r->positions), rows);
    free(rows);
    return v;
}

/* values: cosines, sines and rows; false: these angles are no such. */
static bool caches_of(struct graph *g, const struct rotation *r, struct caches *c, int *values)
{
    int64_t batch = g->values[r->x].shape.dim[0];
    for (int k = 0; k < c->count; k++) {
        const struct rotation *other = &c->of[k];
        if (other->angles[COSINES] == r->angles[COSINES] &&
            other->angles[SINES] == r->angles[SINES] && other->heads_last == r->heads_last &&
            g->values[other->x].shape.dim[0] == batch) {
            memcpy(values, c->values[k], sizeof(c->values[k]));
            return true;
        }
    }
    for (int k = 0; k < 2; k++)
        if ((values[k] = half_of(g, r, r->angles[k])) == NONE)
            return false;
    values[2] = rows_of_tokens(g, r);
    if (values[2] != NONE && c->count < SHARED_MAX) {
        c->of[c->count] = *r;
        memcpy(c->values[c->count++], values, sizeof(c->values[0]));
    }
    return values[2] != NONE;
}

static void replace(struct graph *g, const struct rotation *r, int old, const int *caches)
{
    struct shape shape = g->values[r->x].shape;
    struct shape rows = shape_of(shape.dim[0], shape.dim[1], shape.dim[2] * shape.dim[3]);
    int x = r->heads_last ? make_reshaped(g, r->x, &rows) : r->x;
    int fresh = graph_node(g, op_rotary_embedding.name, NULL, 4,
                           (const int[]){x, caches[0], caches[1], caches[2]}, r->heads_last,
                           (const struct attr[]){attr_int("num_heads", shape.dim[2])});
    if (!g->failed)
        rewrite_replace(g, old, make_reshaped(g, fresh, &shape));
}

enum status pass_find_rotary(struct graph *g, struct error *err)
{
    int count = g->node_count;
    struct caches caches = {.count = 0};
    for (int n = 0; n < count && !g->failed; n++) {
        const struct node *add = &g->nodes[n];
        struct rotation r;
        int values[3];
        if (add->dead || add->op != &op_add || add->post_count || !find(g, add, &r))
            continue;
        int old = add->outputs[0];
        g->phase = add->phase;
        if (caches_of(g, &r, &caches, values))
            replace(g, &r, old, values);
    }
    return g->failed ? graph_check(g, err) : STATUS_OK;
}
