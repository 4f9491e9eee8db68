/* SPDX-License-Identifier: Apache-2.0
 *
 * ConnectedComponents in ONNX, as a Loop. Labels begin as the nodes' own numbers. Nodes of one
 * label are a tree, its root the node of that number; a round hooks each root to the least root
 * that any node of its tree is linked with, and gives all nodes the labels of their new roots.
 * Without a scatter that takes the least (opset 18), that is the first in its root's part of a
 * sorted list.
 *
 * A tree that is left after two rounds has taken in another one: a root that hooked to nothing has
 * neighbours with greater roots only; either one of them hooked to it, or all hooked to lesser
 * ones, which it sees in the second round. So two rounds per bit of the nodes' number are enough;
 * the loop ends when nothing has changed. */
#include <stdlib.h>

#include "engine/graph/op.h"
#include "workloads/onnx/export/inner.h"
#include "workloads/onnx/export/parts.h"

enum { ACTIVE, LINKS, EDGES };

/* For each node the edges at it and the nodes at their other ends, padded to the most there are. */
struct incidence {
    int64_t nodes, edges, width;
    int64_t *edge, *other; /* [nodes, width]; padding: edges, nodes */
};

static bool is_edge(const struct incidence *n, const int64_t *end)
{
    return end[0] >= 0 && end[1] >= 0 && end[0] < n->nodes && end[1] < n->nodes;
}

static enum status incidence_from(struct incidence *n, struct arena *arena, const int64_t *ends,
                                  struct error *err)
{
    int64_t *degree = arena_array(arena, (size_t)n->nodes + 1, sizeof(*degree));
    if (!degree)
        return FAIL_NO_MEMORY(err);
    n->width = 1;
    for (int64_t e = 0; e < 2 * n->edges; e++)
        if (is_edge(n, ends + e / 2 * 2) && ++degree[ends[e]] > n->width)
            n->width = degree[ends[e]];
    size_t count = (size_t)(n->nodes * n->width) + 1;
    n->edge = arena_array(arena, count, sizeof(*n->edge));
    n->other = arena_array(arena, count, sizeof(*n->other));
    if (!n->edge || !n->other)
        return FAIL_NO_MEMORY(err);
    for (size_t k = 0; k < count; k++) {
        n->edge[k] = n->edges;
        n->other[k] = n->nodes;
    }
    for (int64_t e = 0; e < 2 * n->edges; e++) {
        if (!is_edge(n, ends + e / 2 * 2))
            continue;
        int64_t at = ends[e] * n->width + --degree[ends[e]];
        n->edge[at] = e / 2;
        n->other[at] = ends[e ^ 1];
    }
    return STATUS_OK;
}

/* x with one column more, filled with `value`. */
static const char *widened(struct parts *p, const char *x, int64_t rows, enum dtype dtype,
                           int64_t value)
{
    struct shape shape = shape_of(rows, 1);
    int64_t *column = arena_array(&p->form->x->arena, (size_t)rows + 1, sizeof(*column));
    uint8_t *flags = (uint8_t *)column;
    if (column)
        for (int64_t k = 0; k < rows; k++) {
            if (dtype == DTYPE_I64)
                column[k] = value;
            else
                flags[k] = value != 0;
        }
    if (!column && p->status == STATUS_OK)
        p->status = FAIL_NO_MEMORY(p->err);
    if (p->status != STATUS_OK)
        return "";
    return part(p, "Concat", NAMES(x, part_const(p, dtype, &shape, column)),
                ATTRS(attr_int("axis", 1)));
}

static const char *numbers_from_zero(struct parts *p, int64_t nodes)
{
    struct shape shape = shape_of(1, nodes);
    int64_t *numbers = arena_array(&p->form->x->arena, (size_t)nodes + 1, sizeof(*numbers));
    if (numbers)
        for (int64_t k = 0; k < nodes; k++)
            numbers[k] = k;
    if (!numbers && p->status == STATUS_OK)
        p->status = FAIL_NO_MEMORY(p->err);
    return numbers ? part_const(p, DTYPE_I64, &shape, numbers) : "";
}

/* ---- a round ---- */

static int number(struct graph *g, int64_t value)
{
    return graph_const_i64(g, -1, &value);
}

static int elements_at(struct graph *g, int x, int index)
{
    return graph_node(g, "GatherElements", NULL, INPUTS(x, index), ATTRS(attr_int("axis", 1)));
}

/* [rows, count]: from, from + 1, ...; with step 0 all the same. */
static int numbers(struct graph *g, int64_t rows, int64_t count, int64_t from, int64_t step)
{
    int64_t *data = malloc((size_t)(rows * count + 1) * sizeof(*data));
    if (data)
        for (int64_t k = 0; k < rows * count; k++)
            data[k] = from + k % count * step;
    int value = data ? graph_const(g, NULL, DTYPE_I64, shape_of(rows, count), data) : NONE;
    free(data);
    return value;
}

struct round {
    struct graph *g; /* the body */
    int64_t rows, nodes, bits;
    int labels, usable, other;
};

/* For each node the least label at hand, its own among them. */
static int least_near(const struct round *r)
{
    struct graph *g = r->g;
    int all = graph_node(g, "Concat", NULL, INPUTS(r->labels, numbers(g, r->rows, 1, r->nodes, 0)),
                         ATTRS(attr_int("axis", 1)));
    int near = graph_node(g, "Gather", NULL, INPUTS(all, r->other), ATTRS(attr_int("axis", 1)));
    near = op3(g, "Where", r->usable, near, number(g, r->nodes));
    near = graph_node(g, "ReduceMin", NULL, INPUTS(near),
                      ATTRS(attr_ints_of("axes", 2), attr_int("keepdims", 0)));
    return op2(g, "Min", r->labels, near);
}

/* [rows, nodes + 2]: for each root the least of `near` in its tree, for other numbers themselves;
 * the last column takes what is not the first of its root. */
static int hooked(const struct round *r, int near)
{
    struct graph *g = r->g;
    int64_t one = 1, zero = 0, last = r->nodes - 1;
    int base = number(g, r->nodes + 1), pair[2];
    int key = op2(g, "Add", op2(g, "Mul", r->labels, base), near);
    graph_node_many(g, "TopK", NULL, INPUTS(key, graph_const_i64(g, 1, &r->nodes)),
                    ATTRS(attr_int("axis", 1), attr_int("largest", 0)), 2, pair);
    int root = op2(g, "Div", pair[0], base);
    int least = op2(g, "Sub", pair[0], op2(g, "Mul", root, base));
    int shifted = graph_node(g, "Slice", NULL,
                             INPUTS(root, graph_const_i64(g, 1, &zero),
                                    graph_const_i64(g, 1, &last), graph_const_i64(g, 1, &one)),
                             NO_ATTRS);
    int before = graph_node(g, "Concat", NULL, INPUTS(numbers(g, r->rows, 1, -1, 0), shifted),
                            ATTRS(attr_int("axis", 1)));
    int place = op3(g, "Where", op2(g, "Equal", root, before), number(g, r->nodes + 1), root);
    return graph_node(g, "ScatterElements", NULL,
                      INPUTS(numbers(g, r->rows, r->nodes + 2, 0, 1), place, least),
                      ATTRS(attr_int("axis", 1)));
}

static void build_round(const struct round *r)
{
    struct graph *g = r->g;
    int parents = hooked(r, least_near(r));
    for (int64_t k = 0; k < r->bits; k++) /* chains of hooks become one */
        parents = elements_at(g, parents, parents);
    int labels = elements_at(g, parents, r->labels);
    int same = graph_node(g, "Cast", NULL, INPUTS(op2(g, "Equal", labels, r->labels)),
                          ATTRS(attr_int("to", 6))); /* i32 */
    int all = graph_node(g, "ReduceMin", NULL, INPUTS(same), ATTRS(attr_int("keepdims", 0)));
    graph_output(
        g, op1(g, "Not",
               graph_node(g, "Cast", NULL, INPUTS(all), ATTRS(attr_int("to", 9))))); /* bool */
    graph_output(g, labels);
}

/* ---- the loop ---- */

static int outside(struct graph *g, const char *name, enum dtype dtype, struct shape shape)
{
    return graph_input(g, name, dtype, shape, (struct fill){.kind = FILL_NONE});
}

struct links {
    int64_t rows, nodes, width;
    const char *usable, *other; /* [rows, nodes, width], [nodes, width] */
};

/* The name of the labels at the end. */
static const char *repeat_rounds(struct parts *p, const struct links *l, const char *labels)
{
    struct exporter *x = p->form->x;
    const char *result = arena_printf(&x->arena, "%s:labels", p->form->outputs[0]);
    struct round r = {.g = inner_new(x, p->form->outputs[0]), .rows = l->rows, .nodes = l->nodes};
    if (!r.g || !result) {
        p->status = FAIL_NO_MEMORY(p->err);
        return "";
    }
    for (r.bits = 1; (int64_t)1 << r.bits < r.nodes;)
        r.bits++;
    outside(r.g, "round", DTYPE_I64, shape_scalar());
    outside(r.g, "on", DTYPE_BOOL, shape_scalar());
    r.labels = outside(r.g, "labels", DTYPE_I64, shape_of(r.rows, r.nodes));
    r.usable = outside(r.g, l->usable, DTYPE_BOOL, shape_of(r.rows, r.nodes, l->width));
    r.other = outside(r.g, l->other, DTYPE_I64, shape_of(r.nodes, l->width));
    build_round(&r);
    static const bool yes = true;
    struct shape scalar = shape_scalar();
    const char *inputs[] = {part_i64(p, 2 * r.bits), part_const(p, DTYPE_BOOL, &scalar, &yes),
                            labels};
    struct form loop = {.x = x,
                        .inputs = inputs,
                        .outputs = &result,
                        .input_count = ARRAY_COUNT(inputs),
                        .output_count = 1};
    if (p->status == STATUS_OK)
        p->status = inner_body(x, r.g, ARRAY_COUNT(inputs), &loop.body, p->err);
    if (p->status == STATUS_OK)
        p->status = export_form(&loop, "Loop", p->err);
    return result;
}

enum status export_connected_components(const struct form *f, struct error *err)
{
    struct parts p = {.form = f, .err = err};
    const struct value *values = f->x->g->values;
    const struct shape *shape = &values[f->node->inputs[ACTIVE]].shape;
    const struct value *edges = &values[f->node->inputs[EDGES]];
    if (!value_is_fixed(edges) || !edges->data)
        return UNSUPPORTED(err, "ConnectedComponents without constant edges has no form in ONNX");
    struct incidence n = {.nodes = shape->dim[1], .edges = edges->shape.dim[0]};
    TRY(incidence_from(&n, &f->x->arena, edges->data, err));
    struct shape table = shape_of(n.nodes, n.width);
    const char *edge = part_const(&p, DTYPE_I64, &table, n.edge);
    const char *other = part_const(&p, DTYPE_I64, &table, n.other);
    const char *active = f->inputs[ACTIVE];
    const char *on = widened(&p, active, shape->dim[0], DTYPE_BOOL, 0);
    const char *links = widened(&p, f->inputs[LINKS], shape->dim[0], DTYPE_BOOL, 0);
    on = part(&p, "Gather", NAMES(on, other), ATTRS(attr_int("axis", 1)));
    links = part(&p, "Gather", NAMES(links, edge), ATTRS(attr_int("axis", 1)));
    const char *usable = part(&p, "And", NAMES(on, links), NO_ATTRS);
    const char *none = part_i64(&p, n.nodes);
    const char *labels =
        part(&p, "Where", NAMES(active, numbers_from_zero(&p, n.nodes), none), NO_ATTRS);
    struct links l = {shape->dim[0], n.nodes, n.width, usable, other};
    if (p.status == STATUS_OK)
        labels = repeat_rounds(&p, &l, labels);
    part_last(&p, 0, "Where", NAMES(active, labels, part_i64(&p, -1)), NO_ATTRS);
    return p.status;
}
