/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorScatter in ONNX before opset 24: ScatterElements, told of each element of the update where
 * it goes along the axis; from the start on, the update and what comes after it. */
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/lib/op_args.h"
#include "workloads/onnx/export/parts.h"

enum { PAST, UPDATE, INDICES };

/* [1, .., count, .., 1]: 0, 1, ... along the axis. */
static const char *steps_along(struct parts *p, const struct shape *update, int axis)
{
    struct shape shape = {.rank = update->rank};
    int64_t count = update->dim[axis];
    int64_t *steps = arena_array(&p->form->x->arena, (size_t)count + 1, sizeof(*steps));
    if (!steps && p->status == STATUS_OK)
        p->status = FAIL_NO_MEMORY(p->err);
    if (!steps)
        return "";
    for (int k = 0; k < shape.rank; k++)
        shape.dim[k] = k == axis ? count : 1;
    for (int64_t k = 0; k < count; k++)
        steps[k] = k;
    return part_const(p, DTYPE_I64, &shape, steps);
}

/* Of the update's shape: the position that each element goes to. */
static const char *places(struct parts *p, const struct shape *past, const struct shape *update,
                          int axis)
{
    const struct form *f = p->form;
    int64_t per_sample[RANK_MAX];
    for (int k = 0; k < past->rank; k++)
        per_sample[k] = k == 0 ? past->dim[0] : 1;
    const char *from = f->inputs[INDICES];
    if (f->x->g->values[f->node->inputs[INDICES]].dtype != DTYPE_I64)
        from = part(p, op_cast.name, NAMES(from), ATTRS(attr_int("to", dtype_to_onnx(DTYPE_I64))));
    from = part(p, op_reshape.name, NAMES(from, part_ints(p, past->rank, per_sample)), NO_ATTRS);
    const char *at = part(p, op_add.name, NAMES(from, steps_along(p, update, axis)), NO_ATTRS);
    if (strcmp(node_string(f->node, "mode", "linear"), "circular") == 0)
        at = part(p, op_mod.name, NAMES(at, part_i64(p, past->dim[axis])), NO_ATTRS);
    return part(p, op_expand.name, NAMES(at, part_ints(p, update->rank, update->dim)), NO_ATTRS);
}

static void from_the_start(struct parts *p, const struct shape *past, const struct shape *update,
                           int axis)
{
    const char *const *inputs = p->form->inputs;
    int64_t count = update->dim[axis], size = past->dim[axis];
    if (count == size) {
        part_last(p, 0, op_identity.name, NAMES(inputs[UPDATE]), NO_ATTRS);
        return;
    }
    const char *rest = part(p, op_slice.name,
                            NAMES(inputs[PAST], part_list(p, count), part_list(p, size),
                                  part_list(p, axis), part_list(p, 1)),
                            NO_ATTRS);
    part_last(p, 0, op_concat.name, NAMES(inputs[UPDATE], rest), ATTRS(attr_int("axis", axis)));
}

enum status export_tensor_scatter(const struct form *f, struct error *err)
{
    struct parts p = {.form = f, .err = err};
    const struct shape *past = &f->x->g->values[f->node->inputs[PAST]].shape;
    const struct shape *update = &f->x->g->values[f->node->inputs[UPDATE]].shape;
    int axis = shape_axis(past, node_int(f->node, "axis", -2));
    if (f->input_count <= INDICES || !f->inputs[INDICES][0]) {
        from_the_start(&p, past, update, axis);
        return p.status;
    }
    part_last(&p, 0, op_scatter_elements.name,
              NAMES(f->inputs[PAST], places(&p, past, update, axis), f->inputs[UPDATE]),
              ATTRS(attr_int("axis", axis)));
    return p.status;
}
