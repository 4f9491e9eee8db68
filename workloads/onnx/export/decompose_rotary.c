/* SPDX-License-Identifier: Apache-2.0
 *
 * RotaryEmbedding in ONNX before opset 23: the rows of the angles, the two elements of all pairs,
 * and four products. */
#include "engine/ops/lib/rotary.h"

#include "engine/graph/op_list.h"
#include "engine/ops/lib/op_args.h"
#include "workloads/onnx/export/parts.h"

enum { X, COSINES, SINES, POSITIONS, LAST_AXIS = 3 };

struct turning {
    struct parts *p;
    struct rotary r;
    int64_t outer, inner; /* axes 1 and 2 of x with a head's elements as its last axis */
    const char *x;        /* that */
    bool interleaved;
};

/* The cosines or sines of each token, as they are broadcast to its heads. */
static const char *angles(struct turning *t, int input)
{
    const struct form *f = t->p->form;
    const struct shape *shape = &f->x->g->values[f->node->inputs[input]].shape;
    const char *cache = f->inputs[input];
    if (shape->dim[shape->rank - 1] > t->r.half)
        cache = part(t->p, op_slice.name,
                     NAMES(cache, part_list(t->p, 0), part_list(t->p, t->r.half),
                           part_list(t->p, shape->rank - 1), part_list(t->p, 1)),
                     NO_ATTRS);
    if (f->input_count > POSITIONS && f->inputs[POSITIONS][0])
        cache = part(t->p, op_gather.name, NAMES(cache, f->inputs[POSITIONS]), NO_ATTRS);
    return part(t->p, op_unsqueeze.name, NAMES(cache, part_list(t->p, t->r.tokens_inside ? 1 : 2)),
                NO_ATTRS);
}

/* Elements first, first + step ... before `end` of each head. */
static const char *elements(struct turning *t, int64_t first, int64_t end, int64_t step)
{
    return part(t->p, op_slice.name,
                NAMES(t->x, part_list(t->p, first), part_list(t->p, end),
                      part_list(t->p, LAST_AXIS), part_list(t->p, step)),
                NO_ATTRS);
}

static const char *two(struct turning *t, const struct op *op, const char *a, const char *b)
{
    return part(t->p, op->name, NAMES(a, b), NO_ATTRS);
}

/* Pairs side by side again: [batches, outer, inner, 2 half]. */
static const char *side_by_side(struct turning *t, const char *first, const char *second)
{
    const int64_t shape[] = {t->r.batches, t->outer, t->inner, 2 * t->r.half};
    const char *axis = part_list(t->p, LAST_AXIS + 1);
    first = two(t, &op_unsqueeze, first, axis);
    second = two(t, &op_unsqueeze, second, axis);
    const char *pairs =
        part(t->p, op_concat.name, NAMES(first, second), ATTRS(attr_int("axis", LAST_AXIS + 1)));
    return two(t, &op_reshape, pairs, part_ints(t->p, ARRAY_COUNT(shape), shape));
}

/* What the heads consist of then, one after the other; how many. */
static int turned(struct turning *t, const char *heads[3])
{
    int64_t half = t->r.half, end = 2 * half;
    const char *cosine = angles(t, COSINES), *sine = angles(t, SINES);
    const char *a = t->interleaved ? elements(t, 0, end, 2) : elements(t, 0, half, 1);
    const char *b = t->interleaved ? elements(t, 1, end, 2) : elements(t, half, end, 1);
    const char *first = two(t, &op_sub, two(t, &op_mul, cosine, a), two(t, &op_mul, sine, b));
    const char *second = two(t, &op_add, two(t, &op_mul, sine, a), two(t, &op_mul, cosine, b));
    int count = 0;
    if (t->interleaved) {
        heads[count++] = side_by_side(t, first, second);
    } else {
        heads[count++] = first;
        heads[count++] = second;
    }
    if (end < t->r.size)
        heads[count++] = elements(t, end, t->r.size, 1);
    return count;
}

enum status export_rotary_embedding(const struct form *f, struct error *err)
{
    struct parts p = {.form = f, .err = err};
    const struct value *x = &f->x->g->values[f->node->inputs[X]];
    if (f->x->g->values[f->node->inputs[COSINES]].dtype != x->dtype)
        return UNSUPPORTED(err, "RotaryEmbedding of %s with caches of another type is not ONNX's",
                           dtype_name(x->dtype));
    struct turning t = {.p = &p,
                        .r = rotary_of(&x->shape, node_int(f->node, "num_heads", 0),
                                       node_int(f->node, "rotary_embedding_dim", 0)),
                        .x = f->inputs[X],
                        .interleaved = node_int(f->node, "interleaved", 0) != 0};
    bool rank_3 = !t.r.tokens_inside;
    t.outer = rank_3 ? t.r.tokens : t.r.heads;
    t.inner = rank_3 ? t.r.heads : t.r.tokens;
    const int64_t heads_apart[] = {t.r.batches, t.outer, t.inner, t.r.size};
    if (rank_3)
        t.x = two(&t, &op_reshape, t.x, part_ints(&p, ARRAY_COUNT(heads_apart), heads_apart));
    const char *heads[3];
    int count = turned(&t, heads);
    if (!rank_3) {
        part_last(&p, 0, op_concat.name, count, heads, ATTRS(attr_int("axis", LAST_AXIS)));
        return p.status;
    }
    const char *all = part(&p, op_concat.name, count, heads, ATTRS(attr_int("axis", LAST_AXIS)));
    part_last(&p, 0, op_reshape.name, NAMES(all, part_ints(&p, x->shape.rank, x->shape.dim)),
              NO_ATTRS);
    return p.status;
}
