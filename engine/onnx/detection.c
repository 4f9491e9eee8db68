/* SPDX-License-Identifier: Apache-2.0
 *
 * DetectionOutput as operators of opset 17. Everything but the list that NonMaxSuppression gives
 * has a size known before: what it kept is scattered into an array with a place for each candidate
 * of each class, from which TopK takes the rows. */
#include "engine/detection.h"
#include "engine/onnx/export.h"

struct parts {
    const struct form *form;
    struct detection d;
    int made;
    struct error *err;
    enum status status;
};

#define NAMES(...)                                                                                 \
    (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)), (const char *[])          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static const char *new_name(struct parts *p)
{
    const char *name =
        arena_printf(&p->form->x->arena, "%s:part%d", p->form->outputs[0], ++p->made);
    if (!name && p->status == STATUS_OK)
        p->status = FAIL_NO_MEMORY(p->err);
    return name ? name : "";
}

/* Adds a node with so many new outputs. */
static void nodes(struct parts *p, const char *op, int input_count, const char **inputs,
                  struct attr attr, int output_count, const char **outputs)
{
    for (int k = 0; k < output_count; k++)
        outputs[k] = outputs[k] ? outputs[k] : new_name(p);
    struct form f = {.x = p->form->x,
                     .inputs = inputs,
                     .outputs = outputs,
                     .input_count = input_count,
                     .output_count = output_count,
                     .attrs = &attr,
                     .attr_count = attr.name ? 1 : 0};
    if (p->status == STATUS_OK)
        p->status = export_form(&f, op, p->err);
}

static const char *node(struct parts *p, const char *op, int input_count, const char **inputs,
                        struct attr attr)
{
    const char *output = NULL;
    nodes(p, op, input_count, inputs, attr, 1, &output);
    return output;
}

static const struct attr no_attr = {.name = NULL};

static const char *plain(struct parts *p, const char *op, const char *a, const char *b)
{
    return node(p, op, b ? 2 : 1, (const char *[]){a, b}, no_attr);
}

static const char *ints(struct parts *p, int count, const int64_t *data)
{
    const char *name = export_i64(p->form->x, new_name(p), count, data);
    return name ? name : "";
}

static const char *integer(struct parts *p, int64_t number)
{
    return ints(p, 1, &number);
}

static const char *number(struct parts *p, double value)
{
    struct shape one = shape_of(1);
    float single = (float)value;
    const char *name = export_const(p->form->x, new_name(p), DTYPE_F32, &one, &single);
    return name ? name : "";
}

static const char *slice(struct parts *p, const char *x, int64_t from, int64_t to, int64_t axis)
{
    return node(p, "Slice", NAMES(x, integer(p, from), integer(p, to), integer(p, axis)), no_attr);
}

static const char *reshaped(struct parts *p, const char *x, int rank, const int64_t *dim)
{
    return plain(p, "Reshape", x, ints(p, rank, dim));
}

/* Rows of x [N, rows, 4] at places [N, count]. */
static const char *rows_at(struct parts *p, const char *x, const char *places, int64_t count)
{
    places = reshaped(p, places, 3, (int64_t[]){p->d.images, count, 1});
    return node(p, "GatherND", NAMES(x, places), attr_int("batch_dims", 1));
}

/* [N, P, 4]: x1, y1, x2, y2 */
static const char *boxes(struct parts *p)
{
    const char *at = p->form->inputs[DETECTION_LOCATIONS];
    const char *priors = p->form->inputs[DETECTION_PRIORS];
    const char *sides = slice(p, priors, 2, 4, 1), *middle = slice(p, priors, 0, 2, 1);
    const char *shift = plain(p, "Mul", slice(p, at, 0, 2, 2), number(p, p->d.variance_xy));
    const char *growth = plain(p, "Mul", slice(p, at, 2, 4, 2), number(p, p->d.variance_size));
    middle = plain(p, "Add", middle, plain(p, "Mul", shift, sides));
    sides = plain(p, "Mul", sides, plain(p, "Exp", growth, NULL));
    sides = plain(p, "Mul", sides, number(p, 0.5));
    const char *low = plain(p, "Sub", middle, sides), *high = plain(p, "Add", middle, sides);
    return node(p, "Concat", NAMES(low, high), attr_int("axis", 2));
}

/* One number per candidate, [N, candidates]: its score if it is kept, else 0. */
static const char *kept_scores(struct parts *p, const char *candidates, const char *scores)
{
    const struct detection *d = &p->d;
    int64_t lines = d->images * (d->classes - 1), k = d->top_k, all = lines * k;
    const char *chosen = node(p, "NonMaxSuppression",
                              NAMES(reshaped(p, candidates, 3, (int64_t[]){lines, k, 4}),
                                    reshaped(p, scores, 3, (int64_t[]){lines, 1, k}), integer(p, k),
                                    number(p, d->iou), number(p, d->score)),
                              no_attr);
    /* rows [line, 0, place in line] */
    const char *places = plain(p, "Mul", chosen, ints(p, 3, (int64_t[]){k, 0, 1}));
    places = node(p, "ReduceSum", NAMES(places, integer(p, 1)), attr_int("keepdims", 0));
    const char *flat = reshaped(p, scores, 1, &all);
    const char *zeros = plain(p, "Mul", flat, number(p, 0));
    const char *kept =
        node(p, "ScatterElements", NAMES(zeros, places, plain(p, "Gather", flat, places)), no_attr);
    return reshaped(p, kept, 2, (int64_t[]){d->images, all / d->images});
}

/* [N, keep, 1] each, of images: constants. */
static const char *image_column(struct parts *p)
{
    int64_t count = p->d.images * p->d.keep;
    struct shape shape = shape_of(p->d.images, p->d.keep, 1);
    float *data = arena_array(&p->form->x->arena, (size_t)count, sizeof(*data));
    for (int64_t k = 0; data && k < count; k++)
        data[k] = (float)(int64_t)(k / p->d.keep); /* the image of row k */
    const char *name = data ? export_const(p->form->x, new_name(p), DTYPE_F32, &shape, data) : NULL;
    if (!name && p->status == STATUS_OK)
        p->status = FAIL_NO_MEMORY(p->err);
    return name ? name : "";
}

static const char *as_column(struct parts *p, const char *x)
{
    return reshaped(p, x, 3, (int64_t[]){p->d.images, p->d.keep, 1});
}

static void result(struct parts *p, const char *candidates, const char *kept)
{
    const struct form *f = p->form;
    const char *best[2] = {NULL, NULL};
    struct attr to_float = attr_int("to", export_dtype(DTYPE_F32));
    nodes(p, "TopK", NAMES(kept, integer(p, p->d.keep)), no_attr, 2, best);
    const char *real = plain(p, "Greater", best[0], number(p, 0));
    const char *label = plain(p, "Div", best[1], integer(p, p->d.top_k));
    label = node(p, "Cast", NAMES(plain(p, "Add", label, integer(p, 1))), to_float);
    const char *rows = node(p, "Concat",
                            NAMES(image_column(p), as_column(p, label), as_column(p, best[0]),
                                  rows_at(p, candidates, best[1], p->d.keep)),
                            attr_int("axis", 2));
    const char *mask = as_column(p, node(p, "Cast", NAMES(real), to_float));
    nodes(p, "Mul", NAMES(rows, mask), no_attr, 1, &f->outputs[0]);
    if (f->output_count < 2 || !*f->outputs[1])
        return;
    const char *ones = node(p, "Cast", NAMES(real), attr_int("to", export_dtype(DTYPE_I64)));
    nodes(p, "ReduceSum", NAMES(ones, integer(p, 1)), attr_int("keepdims", 0), 1, &f->outputs[1]);
}

enum status export_detection_output(const struct form *f, struct error *err)
{
    const struct shape *shape = &f->x->g->values[f->node->inputs[DETECTION_SCORES]].shape;
    struct parts p = {.form = f, .d = detection_of(f->node, shape), .err = err};
    const struct detection *d = &p.d;
    int64_t candidates = (d->classes - 1) * d->top_k;
    const char *scores = slice(&p, f->inputs[DETECTION_SCORES], 1, d->classes, 2);
    scores = node(&p, "Transpose", NAMES(scores), attr_ints_of("perm", 0, 2, 1));
    const char *top[2] = {NULL, NULL}; /* [N, C - 1, top_k] */
    nodes(&p, "TopK", NAMES(scores, integer(&p, d->top_k)), no_attr, 2, top);
    const char *box = rows_at(&p, boxes(&p), top[1], candidates);
    result(&p, box, kept_scores(&p, box, top[0]));
    return p.status;
}
