/* SPDX-License-Identifier: Apache-2.0
 *
 * MergeSegments in ONNX. Sums per label are ScatterElements with addition into one bin per label
 * and one for segments without. The extreme projections come from a sort: segments are ranked by
 * projection, then sorted by label x S + rank; a group's first and last are its extremes. */
#include <stdlib.h>

#include "engine/graph/op.h"
#include "workloads/onnx/export/parts.h"

enum { X, Y, WIDTH, HEIGHT, SINE, COSINE, FIELDS, BOX_FIELDS = 5 };

struct merge {
    struct parts *p;
    int64_t images, n; /* N, S */
    const char *bin;   /* [N, S] i64: label, S where there is none */
    const char *zeros; /* [N, S + 1] */
    const char *none;  /* i64 scalar S */
};

static const char *filled(struct merge *m, int64_t columns, int64_t depth, float value)
{
    struct shape shape = shape_of(m->images, columns, depth);
    shape.rank = depth ? 3 : 2;
    int64_t count = m->images * columns * (depth ? depth : 1);
    float *data = arena_array(&m->p->form->x->arena, (size_t)count + 1, sizeof(*data));
    if (data)
        for (int64_t k = 0; k < count; k++)
            data[k] = value;
    if (!data && m->p->status == STATUS_OK)
        m->p->status = FAIL_NO_MEMORY(m->p->err);
    return data ? part_const(m->p, DTYPE_F32, &shape, data) : "";
}

static const char *binary(struct merge *m, const char *op, const char *a, const char *b)
{
    return part(m->p, op, NAMES(a, b), NO_ATTRS);
}

/* Column `field` of the last axis of [N, K, fields]. */
static const char *field(struct merge *m, const char *x, int64_t index)
{
    return part(m->p, "Gather", NAMES(x, part_i64(m->p, index)), ATTRS(attr_int("axis", 2)));
}

static const char *scatter(struct merge *m, const char *to, const char *index, const char *x,
                           bool sum)
{
    return part(m->p, "ScatterElements", NAMES(to, index, x),
                ATTRS(attr_int("axis", 1), attr_string("reduction", sum ? "add" : "none")));
}

/* What each segment's bin holds. */
static const char *of_bin(struct merge *m, const char *bins)
{
    return part(m->p, "GatherElements", NAMES(bins, m->bin), ATTRS(attr_int("axis", 1)));
}

/* [N, S] i64 spread over `depth` columns. */
static const char *spread(struct merge *m, const char *index, int64_t depth)
{
    const int64_t dim[3] = {m->images, m->n, depth};
    struct shape three = shape_of(3);
    index = part(m->p, "Unsqueeze", NAMES(index, part_list(m->p, 2)), NO_ATTRS);
    return part(m->p, "Expand", NAMES(index, part_const(m->p, DTYPE_I64, &three, dim)), NO_ATTRS);
}

static const char *scalar(struct merge *m, float number)
{
    struct shape shape = shape_scalar();
    return part_const(m->p, DTYPE_F32, &shape, &number);
}

/* ---- the line of each bin ---- */

struct line {
    const char *mean[FIELDS], *count; /* [N, S + 1] */
    const char *ux, *uy, *angle;
};

static struct line lines(struct merge *m, const char *segments)
{
    struct line l;
    const char *sums =
        scatter(m, filled(m, m->n + 1, FIELDS, 0), spread(m, m->bin, FIELDS), segments, true);
    l.count = scatter(m, m->zeros, m->bin, filled(m, m->n, 0, 1), true);
    const char *some = binary(m, "Max", l.count, scalar(m, 1));
    for (int f = 0; f < FIELDS; f++)
        l.mean[f] = binary(m, "Div", field(m, sums, f), some);
    const char *zero = scalar(m, 0);
    const char *flat = binary(m, "And", binary(m, "Equal", l.mean[SINE], zero),
                              binary(m, "Equal", l.mean[COSINE], zero));
    const char *cosine = part(m->p, "Where", NAMES(flat, scalar(m, 1), l.mean[COSINE]), NO_ATTRS);
    l.angle = part(m->p, "Atan", NAMES(binary(m, "Div", l.mean[SINE], cosine)), NO_ATTRS);
    l.ux = part(m->p, "Cos", NAMES(l.angle), NO_ATTRS);
    l.uy = part(m->p, "Sin", NAMES(l.angle), NO_ATTRS);
    return l;
}

/* Signed distance of each centre from the mean centre, along the line. */
static const char *projections(struct merge *m, const char *segments, const struct line *l)
{
    const char *x = binary(m, "Sub", field(m, segments, X), of_bin(m, l->mean[X]));
    const char *y = binary(m, "Sub", field(m, segments, Y), of_bin(m, l->mean[Y]));
    x = binary(m, "Mul", x, of_bin(m, l->ux));
    y = binary(m, "Mul", y, of_bin(m, l->uy));
    return binary(m, "Add", x, y);
}

/* ---- extremes ---- */

static const char *order(struct merge *m, const char *keys)
{
    return part_pair(m->p, "TopK", NAMES(keys, part_list(m->p, m->n)),
                     ATTRS(attr_int("axis", 1), attr_int("largest", 0), attr_int("sorted", 1)))
        .second;
}

static const char *numbers(struct merge *m)
{
    struct shape shape = shape_of(m->images, m->n);
    int64_t count = m->images * m->n;
    int64_t *data = arena_array(&m->p->form->x->arena, (size_t)count + 1, sizeof(*data));
    if (data)
        for (int64_t k = 0; k < count; k++)
            data[k] = k % m->n;
    if (!data && m->p->status == STATUS_OK)
        m->p->status = FAIL_NO_MEMORY(m->p->err);
    return data ? part_const(m->p, DTYPE_I64, &shape, data) : "";
}

static const char *cut(struct merge *m, const char *x, int64_t first, int64_t last)
{
    return part(m->p, "Slice",
                NAMES(x, part_list(m->p, first), part_list(m->p, last), part_list(m->p, 1)),
                NO_ATTRS);
}

/* Per sorted segment its bin when it is the group's first (last) one, else S. */
static const char *ends(struct merge *m, const char *sorted, bool first)
{
    struct shape shape = shape_of(m->images, 1);
    int64_t *data = arena_array(&m->p->form->x->arena, (size_t)m->images, sizeof(*data));
    if (data)
        for (int64_t k = 0; k < m->images; k++)
            data[k] = -1;
    if (!data && m->p->status == STATUS_OK)
        m->p->status = FAIL_NO_MEMORY(m->p->err);
    const char *column = data ? part_const(m->p, DTYPE_I64, &shape, data) : "";
    const char *rest = first ? cut(m, sorted, 0, m->n - 1) : cut(m, sorted, 1, m->n);
    const char *beside = part(m->p, "Concat", NAMES(first ? column : rest, first ? rest : column),
                              ATTRS(attr_int("axis", 1)));
    return part(m->p, "Where", NAMES(binary(m, "Equal", sorted, beside), m->none, sorted),
                NO_ATTRS);
}

struct extreme {
    const char *at, *width; /* [N, S + 1] */
};

static struct extreme extreme(struct merge *m, const char *sorted, const char *at,
                              const char *width, bool first)
{
    const char *bin = ends(m, sorted, first);
    return (struct extreme){scatter(m, m->zeros, bin, at, false),
                            scatter(m, m->zeros, bin, width, false)};
}

/* low and high: per bin. */
static void extremes(struct merge *m, const char *segments, const char *at, struct extreme *low,
                     struct extreme *high)
{
    const char *zeros = binary(m, "Sub", numbers(m), numbers(m));
    const char *rank = scatter(m, zeros, order(m, at), numbers(m), false);
    const char *key = binary(m, "Add", binary(m, "Mul", m->bin, m->none), rank);
    const char *from = order(m, key);
    const char *sorted =
        part(m->p, "GatherElements", NAMES(m->bin, from), ATTRS(attr_int("axis", 1)));
    at = part(m->p, "GatherElements", NAMES(at, from), ATTRS(attr_int("axis", 1)));
    const char *width = part(m->p, "GatherElements", NAMES(field(m, segments, WIDTH), from),
                             ATTRS(attr_int("axis", 1)));
    *low = extreme(m, sorted, at, width, true);
    *high = extreme(m, sorted, at, width, false);
}

/* ---- boxes ---- */

static const char *boxes_of(struct merge *m, const struct line *l, const struct extreme *low,
                            const struct extreme *high)
{
    const char *half = scalar(m, 0.5f);
    const char *middle = binary(m, "Mul", binary(m, "Add", low->at, high->at), half);
    const char *width = binary(m, "Mul", binary(m, "Add", low->width, high->width), half);
    const char *fields[BOX_FIELDS] = {binary(m, "Add", l->mean[X], binary(m, "Mul", middle, l->ux)),
                                      binary(m, "Add", l->mean[Y], binary(m, "Mul", middle, l->uy)),
                                      binary(m, "Add", binary(m, "Sub", high->at, low->at), width),
                                      l->mean[HEIGHT], l->angle};
    for (int k = 0; k < BOX_FIELDS; k++)
        fields[k] = part(m->p, "Unsqueeze", NAMES(fields[k], part_list(m->p, 2)), NO_ATTRS);
    return part(m->p, "Concat", BOX_FIELDS, fields, ATTRS(attr_int("axis", 2)));
}

/* Bins that have members move to the front. */
static void compact(struct merge *m, const char *boxes, const char *count)
{
    const char *real = binary(m, "Greater", cut(m, count, 0, m->n), scalar(m, 0));
    const char *ones = part(m->p, "Cast", NAMES(real), ATTRS(attr_int("to", 7))); /* int64 */
    const char *place = binary(m, "CumSum", ones, part_i64(m->p, 1));
    place = binary(m, "Sub", place, part_i64(m->p, 1));
    place = part(m->p, "Where", NAMES(real, place, m->none), NO_ATTRS);
    boxes = scatter(m, filled(m, m->n + 1, BOX_FIELDS, 0), spread(m, place, BOX_FIELDS),
                    cut(m, boxes, 0, m->n), false);
    part_last(m->p, 0, "Slice",
              NAMES(boxes, part_list(m->p, 0), part_list(m->p, m->n), part_list(m->p, 1)),
              NO_ATTRS);
    part_last(m->p, 1, "ReduceSum", NAMES(ones, part_list(m->p, 1)),
              ATTRS(attr_int("keepdims", 0)));
}

enum status export_merge_segments(const struct form *f, struct error *err)
{
    struct parts p = {.form = f, .err = err};
    const struct shape *labels = &f->x->g->values[f->node->inputs[1]].shape;
    struct merge m = {.p = &p, .images = labels->dim[0], .n = labels->dim[1]};
    struct extreme low, high;
    m.none = part_i64(&p, m.n);
    m.zeros = filled(&m, m.n + 1, 0, 0);
    const char *real = part(&p, "GreaterOrEqual", NAMES(f->inputs[1], part_i64(&p, 0)), NO_ATTRS);
    m.bin = part(&p, "Where", NAMES(real, f->inputs[1], m.none), NO_ATTRS);
    struct line l = lines(&m, f->inputs[0]);
    extremes(&m, f->inputs[0], projections(&m, f->inputs[0], &l), &low, &high);
    compact(&m, boxes_of(&m, &l, &low, &high), l.count);
    return p.status;
}
