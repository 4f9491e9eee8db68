/* SPDX-License-Identifier: Apache-2.0
 *
 * ConnectedComponents in ONNX: labels start as the nodes' own numbers; a round takes the least
 * label among linked neighbours, then the label of that node (shortcuts double how far labels have
 * come). ROUNDS rounds reach the end in components of some hundred nodes, whatever their form. */
#include <stdlib.h>

#include "engine/onnx/parts.h"
#include "engine/op.h"

enum { ROUNDS = 32, ACTIVE = 0, LINKS, EDGES };

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
    for (int64_t k = 0; column && k < rows; k++) {
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

/* labels [N, S], S where there is none: the least label at hand, then that node's own label. */
static const char *round_of(struct parts *p, const char *labels, const char *usable,
                            const char *other, const struct shape *shape)
{
    const char *none = part_i64(p, shape->dim[1]);
    const char *all = widened(p, labels, shape->dim[0], DTYPE_I64, shape->dim[1]);
    const char *near = part(p, "Gather", NAMES(all, other), ATTRS(attr_int("axis", 1)));
    near = part(p, "Where", NAMES(usable, near, none), NO_ATTRS);
    near =
        part(p, "ReduceMin", NAMES(near), ATTRS(attr_ints_of("axes", 2), attr_int("keepdims", 0)));
    labels = part(p, "Min", NAMES(labels, near), NO_ATTRS);
    all = widened(p, labels, shape->dim[0], DTYPE_I64, shape->dim[1]);
    return part(p, "GatherElements", NAMES(all, labels), ATTRS(attr_int("axis", 1)));
}

static const char *own_numbers(struct parts *p, int64_t nodes)
{
    struct shape shape = shape_of(1, nodes);
    int64_t *numbers = arena_array(&p->form->x->arena, (size_t)nodes + 1, sizeof(*numbers));
    for (int64_t k = 0; numbers && k < nodes; k++)
        numbers[k] = k;
    if (!numbers && p->status == STATUS_OK)
        p->status = FAIL_NO_MEMORY(p->err);
    return numbers ? part_const(p, DTYPE_I64, &shape, numbers) : "";
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
    const char *labels = part(&p, "Where", NAMES(active, own_numbers(&p, n.nodes), none), NO_ATTRS);
    for (int k = 0; k < ROUNDS; k++)
        labels = round_of(&p, labels, usable, other, shape);
    part_last(&p, 0, "Where", NAMES(active, labels, part_i64(&p, -1)), NO_ATTRS);
    return p.status;
}
