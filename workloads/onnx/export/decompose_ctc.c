/* SPDX-License-Identifier: Apache-2.0
 *
 * CTCGreedyDecoder in ONNX: the labels that stay get their places from a running sum of ones;
 * those that are dropped are all put into one column after the last, which is cut off. */
#include <stdlib.h>

#include "engine/graph/op.h"
#include "workloads/onnx/export/parts.h"

static const char *filled(struct parts *p, int64_t rows, int64_t columns)
{
    struct shape shape = shape_of(rows, columns);
    int64_t *data = arena_array(&p->form->x->arena, (size_t)(rows * columns) + 1, sizeof(*data));
    if (data)
        for (int64_t k = 0; k < rows * columns; k++)
            data[k] = -1;
    if (!data && p->status == STATUS_OK)
        p->status = FAIL_NO_MEMORY(p->err);
    return data ? part_const(p, DTYPE_I64, &shape, data) : "";
}

static const char *columns_of(struct parts *p, const char *x, int64_t last)
{
    return part(p, "Slice", NAMES(x, part_list(p, 0), part_list(p, last), part_list(p, 1)),
                NO_ATTRS);
}

/* [N, T] bool: neither blank nor, when repeats are merged, the label before. */
static const char *kept(struct parts *p, const char *best, const struct shape *x)
{
    int64_t blank = node_int(p->form->node, "blank", -1);
    blank = blank < 0 ? x->dim[2] - 1 : blank;
    const char *drop = part(p, "Equal", NAMES(best, part_i64(p, blank)), NO_ATTRS);
    if (node_int(p->form->node, "merge_repeated", 1)) {
        const char *before = columns_of(p, best, x->dim[0] - 1);
        before =
            part(p, "Concat", NAMES(filled(p, x->dim[1], 1), before), ATTRS(attr_int("axis", 1)));
        drop =
            part(p, "Or", NAMES(drop, part(p, "Equal", NAMES(best, before), NO_ATTRS)), NO_ATTRS);
    }
    return part(p, "Not", NAMES(drop), NO_ATTRS);
}

enum status export_ctc_greedy_decoder(const struct form *f, struct error *err)
{
    struct parts p = {.form = f, .err = err};
    const struct shape *x = &f->x->g->values[f->node->inputs[0]].shape;
    int64_t steps = x->dim[0], n = x->dim[1];
    const char *best = part(&p, "ArgMax", NAMES(f->inputs[0]),
                            ATTRS(attr_int("axis", 2), attr_int("keepdims", 0)));
    best = part(&p, "Transpose", NAMES(best), ATTRS(attr_ints_of("perm", 1, 0)));
    const char *keep = kept(&p, best, x);
    const char *ones = part(&p, "Cast", NAMES(keep), ATTRS(attr_int("to", 7))); /* int64 */
    const char *place = part(&p, "CumSum", NAMES(ones, part_i64(&p, 1)), NO_ATTRS);
    place = part(&p, "Sub", NAMES(place, part_i64(&p, 1)), NO_ATTRS);
    place = part(&p, "Where", NAMES(keep, place, part_i64(&p, steps)), NO_ATTRS);
    const char *row = part(&p, "ScatterElements", NAMES(filled(&p, n, steps + 1), place, best),
                           ATTRS(attr_int("axis", 1)));
    part_last(&p, 0, "Slice", NAMES(row, part_list(&p, 0), part_list(&p, steps), part_list(&p, 1)),
              NO_ATTRS);
    part_last(&p, 1, "ReduceSum", NAMES(ones, part_list(&p, 1)), ATTRS(attr_int("keepdims", 0)));
    return p.status;
}
