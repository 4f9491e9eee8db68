/* SPDX-License-Identifier: Apache-2.0
 *
 * An Einsum becomes the nodes that other models have in its place, which have kernels: its factors
 * are multiplied two at a time, as stacks of matrices [batch..., rows, summed] and [batch...,
 * summed, columns], or by Mul where nothing or little is summed. Of the orders in which the labels
 * can stand that one is taken which moves the fewest elements; matrices whose last two axes are
 * exchanged are read as they lie (pass absorb_transpose), weights are moved once (fold_constants).
 * What cannot be said so stays an Einsum: diagonals, integers, sizes of 0. */
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/einsum.h"

struct labels {
    int count;
    unsigned char label[EINSUM_LABELS_MAX];
};

/* A tensor; each of its axes has the size of its label, and no label comes twice. */
struct factor {
    int value;
    bool fixed; /* made of weights alone */
    struct labels axes;
};

struct equation {
    struct graph *g;
    struct einsum e;
    enum dtype dtype;
    int64_t most; /* elements that a product on the way may have */
    struct labels all;
    int count;
    struct factor factor[EINSUM_OPERANDS_MAX];
};

/* ---- labels ---- */

static int place_of(const struct labels *labels, int label)
{
    for (int k = 0; k < labels->count; k++)
        if (labels->label[k] == label)
            return k;
    return NONE;
}

static bool has(const struct labels *labels, int label)
{
    return place_of(labels, label) != NONE;
}

static void append(struct labels *labels, int label)
{
    labels->label[labels->count++] = (unsigned char)label;
}

static void append_all(struct labels *labels, const struct labels *more)
{
    for (int k = 0; k < more->count; k++)
        append(labels, more->label[k]);
}

static int64_t size_of(const struct equation *q, const struct labels *labels)
{
    int64_t size = 1;
    for (int k = 0; k < labels->count; k++)
        size *= q->e.size[labels->label[k]];
    return size;
}

/* Without those of one element, whose place does not matter. */
static struct labels long_ones(const struct equation *q, const struct labels *labels)
{
    struct labels some = {0};
    for (int k = 0; k < labels->count; k++)
        if (q->e.size[labels->label[k]] != 1)
            append(&some, labels->label[k]);
    return some;
}

/* How much it costs to bring a tensor's axes into another order, in elements; runs of one element
 * count twice. */
static double moved(const struct equation *q, const struct labels *from, const struct labels *to)
{
    struct labels have = long_ones(q, from), want = long_ones(q, to);
    int last = have.count - 1;
    for (int k = 0; k <= last; k++)
        if (have.label[k] != want.label[k])
            return (double)size_of(q, from) * (have.label[last] == want.label[last] ? 1 : 2);
    return 0;
}

/* An axis for each label: of one element where the factor lacks it, none if that comes first. */
static void add_axes(const struct equation *q, const struct labels *labels,
                     const struct labels *present, struct shape *shape)
{
    for (int k = 0; k < labels->count; k++) {
        bool in = has(present, labels->label[k]);
        if (in || shape->rank > 0)
            shape->dim[shape->rank++] = in ? q->e.size[labels->label[k]] : 1;
    }
}

static int arranged(const struct equation *q, const struct factor *f, const struct labels *order,
                    const struct shape *shape)
{
    int64_t perm[RANK_MAX];
    int value = f->value;
    for (int k = 0; k < order->count; k++)
        perm[k] = place_of(&f->axes, order->label[k]);
    if (moved(q, &f->axes, order) > 0)
        value = make_permuted(q->g, value, order->count, perm);
    return make_reshaped(q->g, value, shape);
}

/* ---- products of two factors ---- */

enum kind { ABSENT, BATCH, ROWS, COLUMNS, SUMMED };

/* A row or column that the result has before a label of the batch is made one of the batch, which
 * the other factor then lacks: the result is in order. Not where this leaves narrow matrices. */
enum { MATRIX_LEAST = 32 };

struct pair {
    const struct equation *q;
    const struct factor *factor[2];
    bool last, promoted;
    enum kind kind[EINSUM_LABELS_MAX];
};

/* An order of the labels; turned: the last two axes of a factor are exchanged in reading. */
struct way {
    struct labels batch, rows, columns, summed;
    bool turned[2];
};

/* Whether a label outlives the product of factors a and b. */
static bool is_kept(const struct equation *q, int label, int a, int b)
{
    bool kept = label < q->e.out_labels;
    for (int k = 0; k < q->count; k++)
        kept = kept || (k != a && k != b && has(&q->factor[k].axes, label));
    return kept;
}

static struct labels pick(const struct pair *p, enum kind kind, const struct labels *order)
{
    struct labels some = {0};
    for (int k = 0; k < order->count; k++)
        if (p->kind[order->label[k]] == kind)
            append(&some, order->label[k]);
    return some;
}

static struct pair pair_from(const struct equation *q, int a, int b)
{
    struct pair p = {.q = q, .factor = {&q->factor[a], &q->factor[b]}, .last = q->count == 2};
    for (int label = 0; label < q->e.labels; label++) {
        bool left = has(&p.factor[0]->axes, label), right = has(&p.factor[1]->axes, label);
        if (left || right)
            p.kind[label] = !is_kept(q, label, a, b) ? SUMMED
                            : left && right          ? BATCH
                            : left                   ? ROWS
                                                     : COLUMNS;
    }
    return p;
}

static int64_t size_of_kind(const struct pair *p, enum kind kind)
{
    struct labels labels = pick(p, kind, &p->q->all);
    return size_of(p->q, &labels);
}

/* False where it would change nothing, or nothing for the better. */
static bool promote(struct pair *p)
{
    int last = p->q->e.labels - 1;
    int64_t rows = size_of_kind(p, ROWS), columns = size_of_kind(p, COLUMNS);
    while (last >= 0 && p->kind[last] != BATCH)
        last--;
    for (int label = 0; label < last; label++)
        if (p->kind[label] == ROWS || p->kind[label] == COLUMNS) {
            p->kind[label] = BATCH;
            p->promoted = true;
        }
    int64_t rows_left = size_of_kind(p, ROWS), columns_left = size_of_kind(p, COLUMNS);
    return p->promoted && (rows_left == rows || rows_left >= MATRIX_LEAST) &&
           (columns_left == columns || columns_left >= MATRIX_LEAST);
}

static int digit(int *code, int base)
{
    int value = *code % base;
    *code /= base;
    return value;
}

enum { WAYS = 3 * 2 * 2 * 2 * 2 * 2 };

/* Each group of labels in the order of one of the factors, or in that of the result. */
static struct way way_from(const struct pair *p, int code)
{
    const struct labels *const order[] = {&p->q->all, &p->factor[0]->axes, &p->factor[1]->axes};
    int batch = digit(&code, 3);
    struct way w = {
        .batch = pick(p, BATCH, order[p->promoted ? 0 : batch]),
        .turned[0] = digit(&code, 2),
        .turned[1] = digit(&code, 2),
    };
    w.rows = pick(p, ROWS, order[digit(&code, 2)]);
    w.columns = pick(p, COLUMNS, order[2 * digit(&code, 2)]);
    w.summed = pick(p, SUMMED, order[1 + digit(&code, 2)]);
    return w;
}

static struct labels order_of(const struct pair *p, const struct way *w, int side)
{
    const struct labels *own = side ? &w->columns : &w->rows;
    bool summed_first = (side == 1) != w->turned[side];
    struct labels order = {0};
    for (int k = 0; k < w->batch.count; k++)
        if (has(&p->factor[side]->axes, w->batch.label[k]))
            append(&order, w->batch.label[k]);
    append_all(&order, summed_first ? &w->summed : own);
    append_all(&order, summed_first ? own : &w->summed);
    return order;
}

static struct labels order_of_product(const struct way *w)
{
    struct labels order = w->batch;
    append_all(&order, &w->rows);
    append_all(&order, &w->columns);
    return order;
}

static double cost_of(const struct pair *p, const struct way *w)
{
    double cost = w->turned[0] + w->turned[1]; /* of two ways that are alike the plain one */
    for (int side = 0; side < 2; side++) {
        struct labels order = order_of(p, w, side);
        double own = moved(p->q, &p->factor[side]->axes, &order);
        cost += p->factor[side]->fixed ? own / 64 : own;
    }
    struct labels product = order_of_product(w), result = {0};
    for (int label = 0; p->last && label < p->q->e.out_labels; label++)
        append(&result, label);
    return p->last ? cost + moved(p->q, &product, &result) : cost;
}

static void cheapest(const struct equation *q, int a, int b, struct pair *pair, struct way *way)
{
    double least = -1;
    for (int kind = 0; kind < 4; kind++) {
        struct pair p = kind & 1 ? pair_from(q, b, a) : pair_from(q, a, b);
        if (kind & 2 && !promote(&p))
            continue;
        for (int code = 0; code < WAYS; code++) {
            struct way w = way_from(&p, code);
            double cost = cost_of(&p, &w);
            if (least >= 0 && cost >= least)
                continue;
            least = cost;
            *pair = p;
            *way = w;
        }
    }
}

static int matrices(const struct pair *p, const struct way *w, int side)
{
    const struct equation *q = p->q;
    const struct labels *own = side ? &w->columns : &w->rows;
    struct labels order = order_of(p, w, side);
    struct shape shape = {0};
    int64_t sizes[2] = {size_of(q, own), size_of(q, &w->summed)};
    int own_at = (side == 1) != w->turned[side];
    add_axes(q, &w->batch, &p->factor[side]->axes, &shape);
    /* [batch, steps, width] stays so, as with MatMul elsewhere. */
    if (side == 0 && own_at == 0 && w->batch.count == 0 && own->count > 0)
        add_axes(q, own, own, &shape);
    else
        shape.dim[shape.rank++] = sizes[own_at];
    shape.dim[shape.rank++] = sizes[!own_at];
    int value = arranged(q, p->factor[side], &order, &shape);
    return w->turned[side] ? make_transposed(q->g, value) : value;
}

static bool multiply_matrices(struct equation *q, int a, int b, const char *name, struct factor *f)
{
    struct pair p;
    struct way w;
    cheapest(q, a, b, &p, &w);
    f->axes = order_of_product(&w);
    if (f->axes.count > RANK_MAX || w.batch.count + 2 > RANK_MAX)
        return false;
    struct shape shape = {0};
    add_axes(q, &f->axes, &f->axes, &shape);
    int left = matrices(&p, &w, 0), right = matrices(&p, &w, 1);
    int y = graph_node(q->g, op_mat_mul.name, name, INPUTS(left, right), NO_ATTRS);
    f->value = make_reshaped(q->g, y, &shape);
    return true;
}

/* A stack of products of one row and one column is faster as sums of elements while these are
 * short: 4096 of 64 take 64 us instead of 138 (two CPUs of a Zen 4), 64 of 4096 45 instead
 * of 15. */
enum { SUM_SHORT = 256 };

static bool is_of_elements(const struct pair *p)
{
    int64_t summed = size_of_kind(p, SUMMED);
    return summed == 1 ||
           (p->q->dtype == DTYPE_F32 && summed <= SUM_SHORT && size_of_kind(p, BATCH) > 1 &&
            size_of_kind(p, ROWS) * size_of_kind(p, COLUMNS) == 1);
}

static bool multiply_elements(struct equation *q, const struct pair *p, const char *name,
                              struct factor *f)
{
    struct labels summed = pick(p, SUMMED, &q->all);
    int64_t each = size_of(q, &summed), last;
    int parts[2];
    f->axes = (struct labels){0};
    for (int label = 0; label < q->e.labels; label++)
        if (p->kind[label] != ABSENT && p->kind[label] != SUMMED)
            append(&f->axes, label);
    last = f->axes.count;
    if (last + (each > 1) > RANK_MAX)
        return false;
    for (int side = 0; side < 2; side++) {
        const struct labels *axes = &p->factor[side]->axes;
        struct labels order = {0};
        struct shape shape = {0};
        for (int k = 0; k < f->axes.count; k++)
            if (has(axes, f->axes.label[k]))
                append(&order, f->axes.label[k]);
        add_axes(q, &f->axes, axes, &shape);
        append_all(&order, &summed);
        if (each > 1)
            shape.dim[shape.rank++] = each;
        parts[side] = arranged(q, p->factor[side], &order, &shape);
    }
    int y = graph_node(q->g, op_mul.name, name, INPUTS(parts[0], parts[1]), NO_ATTRS);
    f->value = make_sum(q->g, y, each > 1, &last, false);
    return true;
}

/* The factors of the least product, NONE when the least is too large. */
static int choose(const struct equation *q, int *other)
{
    int best = NONE;
    int64_t least = q->most + 1;
    for (int a = 0; a < q->count; a++) {
        for (int b = a + 1; b < q->count; b++) {
            struct pair p = pair_from(q, a, b);
            int64_t size = size_of_kind(&p, BATCH) * size_of_kind(&p, ROWS);
            size *= size_of_kind(&p, COLUMNS);
            if (size >= least)
                continue;
            least = size;
            best = a;
            *other = b;
        }
    }
    return best;
}

static bool multiply(struct equation *q, const char *name)
{
    while (q->count > 1) {
        int b = 0, a = choose(q, &b);
        if (a == NONE)
            return false;
        struct pair p = pair_from(q, a, b);
        struct factor f = {.fixed = q->factor[a].fixed && q->factor[b].fixed};
        if (!(is_of_elements(&p) ? multiply_elements(q, &p, name, &f)
                                 : multiply_matrices(q, a, b, name, &f)))
            return false;
        q->factor[a] = f;
        q->factor[b] = q->factor[--q->count];
    }
    return true;
}

/* ---- one factor ---- */

/* Axes of one element along which it is repeated are taken out; false: it is a diagonal. */
static bool read_factor(struct equation *q, const unsigned char *label, struct factor *f)
{
    const struct shape from = q->g->values[f->value].shape;
    struct shape shape = {0};
    for (int d = 0; d < from.rank; d++) {
        bool again = has(&f->axes, label[d]);
        if (from.dim[d] == 1 && (again || q->e.size[label[d]] != 1))
            continue;
        if (again)
            return false;
        append(&f->axes, label[d]);
        shape.dim[shape.rank++] = from.dim[d];
    }
    f->value = make_reshaped(q->g, f->value, &shape);
    return true;
}

/* Labels that neither the result nor another factor has. */
static void sum_alone(struct equation *q, int k)
{
    struct factor *f = &q->factor[k];
    struct labels left = {0};
    int64_t axes[RANK_MAX];
    int count = 0;
    for (int d = 0; d < f->axes.count; d++) {
        if (is_kept(q, f->axes.label[d], k, k))
            append(&left, f->axes.label[d]);
        else
            axes[count++] = d;
    }
    f->value = make_sum(q->g, f->value, count, axes, false);
    f->axes = left;
}

/* ---- the pass ---- */

/* Whether something is rounded on the way that Einsum does not round, which matters in 16 bits. */
static bool rounds_once(const struct equation *q)
{
    bool sums = false;
    for (int k = 0; k < q->count; k++)
        for (int d = 0; d < q->factor[k].axes.count; d++)
            sums = sums || !is_kept(q, q->factor[k].axes.label[d], k, k);
    return q->count == 1 || (q->count == 2 && !sums);
}

static bool read_equation(struct graph *g, const struct node *node, struct equation *q)
{
    const struct shape *shapes[EINSUM_OPERANDS_MAX];
    enum dtype dtype = g->values[node->outputs[0]].dtype;
    *q = (struct equation){.g = g, .dtype = dtype, .count = node->op_inputs};
    for (int k = 0; k < q->count; k++) {
        const struct value *v = &g->values[node->inputs[k]];
        q->factor[k] = (struct factor){.value = node->inputs[k], .fixed = value_is_fixed(v)};
        q->most += shape_count(&v->shape);
        shapes[k] = &v->shape;
        if (v->dtype != dtype)
            return false;
    }
    if ((dtype != DTYPE_F32 && dtype != DTYPE_F16 && dtype != DTYPE_BF16) ||
        einsum_from(node, shapes, q->count, &q->e, NULL) != STATUS_OK ||
        einsum_span(&q->e, 0, q->e.labels) == 0)
        return false;
    q->most += einsum_span(&q->e, 0, q->e.out_labels);
    for (int label = 0; label < q->e.labels; label++)
        append(&q->all, label);
    for (int k = 0; k < q->count; k++)
        if (!read_factor(q, q->e.label[k], &q->factor[k]))
            return false;
    return dtype == DTYPE_F32 || rounds_once(q);
}

/* NONE: it stays as it is. */
static int turned(struct graph *g, int n)
{
    struct equation q;
    const char *name = g->nodes[n].name;
    int first = g->nodes[n].inputs[0];
    if (!read_equation(g, &g->nodes[n], &q))
        return NONE;
    for (int k = 0; k < q.count; k++)
        sum_alone(&q, k);
    if (!multiply(&q, name))
        return NONE;
    struct labels result = {0};
    for (int label = 0; label < q.e.out_labels; label++)
        append(&result, label);
    struct shape shape = shape_from(q.e.out_labels, q.e.size);
    int fresh = arranged(&q, &q.factor[0], &result, &shape);
    return fresh == first ? make_unary(g, &op_identity, fresh) : fresh;
}

enum status pass_turn_einsum(struct graph *g, struct error *err)
{
    enum phase phase = g->phase;
    for (int n = 0, count = g->node_count; n < count; n++) {
        if (g->nodes[n].dead || g->nodes[n].op != &op_einsum)
            continue;
        g->phase = g->nodes[n].phase;
        int old = g->nodes[n].outputs[0], fresh = turned(g, n);
        TRY(graph_failed(g, err));
        if (fresh != NONE)
            rewrite_replace(g, old, fresh);
    }
    g->phase = phase;
    return STATUS_OK;
}
