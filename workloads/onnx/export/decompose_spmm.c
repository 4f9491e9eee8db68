/* SPDX-License-Identifier: Apache-2.0
 *
 * SpMM in ONNX: a row of the dense matrix per entry, scaled, and added to the entry's row. */
#include <stdlib.h>

#include "engine/graph/op.h"
#include "workloads/onnx/export/inner.h"

enum { VALUES, COLUMNS, OFFSETS, DENSE };

static int64_t offset_at(const struct value *offsets, int64_t row)
{
    return offsets->dtype == DTYPE_I64 ? ((const int64_t *)offsets->data)[row]
                                       : ((const int32_t *)offsets->data)[row];
}

/* The row of every entry, [Z, 1]; NONE: out of memory. */
static int rows_of(struct graph *g, const struct value *offsets, int64_t entries)
{
    int64_t *row = calloc((size_t)entries + 1, sizeof(*row));
    if (!row)
        return NONE;
    for (int64_t r = 0; r < shape_count(&offsets->shape) - 1; r++)
        for (int64_t z = offset_at(offsets, r); z < offset_at(offsets, r + 1); z++)
            if (z >= 0 && z < entries)
                row[z] = r;
    int value = graph_const(g, NULL, DTYPE_I64, shape_of(entries, 1), row);
    free(row);
    return value;
}

enum status export_spmm(const struct form *f, struct error *err)
{
    const struct graph *from = f->x->g;
    const int *inputs = f->node->inputs;
    const struct value *offsets = &from->values[inputs[OFFSETS]];
    int64_t entries = shape_count(&from->values[inputs[VALUES]].shape), last = 1;
    const struct shape *y = &from->values[f->node->outputs[0]].shape;
    struct graph *g = inner_new(f->x, arena_printf(&f->x->arena, "%s:csr", f->outputs[0]));
    float *zeros = calloc((size_t)shape_count(y) + 1, sizeof(*zeros));
    if (!g || !zeros || !offsets->data) {
        free(zeros);
        return !g || !zeros ? FAIL_NO_MEMORY(err)
                            : UNSUPPORTED(err, "SpMM whose offsets are known only at run time");
    }
    int dense = inner_capture(g, from, inputs[DENSE]);
    int columns = inner_capture(g, from, inputs[COLUMNS]);
    int values = inner_capture(g, from, inputs[VALUES]);
    int picked = graph_node(g, "Gather", NULL, INPUTS(dense, columns), ATTRS(attr_int("axis", 0)));
    int factor =
        graph_node(g, "Unsqueeze", NULL, INPUTS(values, graph_const_i64(g, 1, &last)), NO_ATTRS);
    int scaled = graph_node(g, "Mul", NULL, INPUTS(picked, factor), NO_ATTRS);
    int start = graph_const(g, NULL, DTYPE_F32, *y, zeros);
    free(zeros);
    graph_output(g, graph_node(g, "ScatterND", NULL,
                               INPUTS(start, rows_of(g, offsets, entries), scaled),
                               ATTRS(attr_string("reduction", "add"))));
    return inner_inline(f->x, g, f->outputs, err);
}
