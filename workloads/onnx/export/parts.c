/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/onnx/export/parts.h"

static const char *fresh(struct parts *p)
{
    const char *name =
        arena_printf(&p->form->x->arena, "%s:part%d",
                     p->form->x->g->values[p->form->node->outputs[0]].name, ++p->made);
    if (!name && p->status == STATUS_OK)
        p->status = FAIL_NO_MEMORY(p->err);
    return name ? name : "";
}

struct outputs {
    const char *names[2];
    int count;
};

static void emit(struct parts *p, const struct outputs *out, const char *op, int input_count,
                 const char *const *inputs, const struct attr *attrs, int attr_count)
{
    struct arena *arena = &p->form->x->arena;
    if (p->status != STATUS_OK)
        return;
    const char **in = arena_copy(arena, inputs, (size_t)input_count * sizeof(*in));
    const char **names = arena_copy(arena, out->names, sizeof(out->names));
    struct attr *own = arena_array(arena, (size_t)attr_count + FORM_SLACK, sizeof(*own));
    if (!in || !names || !own) {
        p->status = FAIL_NO_MEMORY(p->err);
        return;
    }
    for (int k = 0; k < attr_count; k++)
        own[k] = attrs[k];
    struct form f = {.x = p->form->x,
                     .node = p->form->node,
                     .inputs = in,
                     .outputs = names,
                     .input_count = input_count,
                     .output_count = out->count,
                     .attrs = own,
                     .attr_count = attr_count};
    p->status = export_form(&f, op, p->err);
}

const char *part(struct parts *p, const char *op, int input_count, const char *const *inputs,
                 int attr_count, const struct attr *attrs)
{
    struct outputs out = {{fresh(p)}, 1};
    emit(p, &out, op, input_count, inputs, attrs, attr_count);
    return out.names[0];
}

struct part_pair part_pair(struct parts *p, const char *op, int input_count,
                           const char *const *inputs, int attr_count, const struct attr *attrs)
{
    struct outputs out = {{fresh(p), fresh(p)}, 2};
    emit(p, &out, op, input_count, inputs, attrs, attr_count);
    return (struct part_pair){out.names[0], out.names[1]};
}

void part_last(struct parts *p, int output, const char *op, int input_count,
               const char *const *inputs, int attr_count, const struct attr *attrs)
{
    if (output >= p->form->output_count || !p->form->outputs[output][0])
        return;
    struct outputs out = {{p->form->outputs[output]}, 1};
    emit(p, &out, op, input_count, inputs, attrs, attr_count);
}

const char *part_const(struct parts *p, enum dtype dtype, const struct shape *shape,
                       const void *data)
{
    const char *name = export_const(p->form->x, fresh(p), dtype, shape, data);
    if (!name && p->status == STATUS_OK)
        p->status = FAIL_NO_MEMORY(p->err);
    return name ? name : "";
}

const char *part_i64(struct parts *p, int64_t number)
{
    struct shape scalar = shape_scalar();
    return part_const(p, DTYPE_I64, &scalar, &number);
}

const char *part_list(struct parts *p, int64_t number)
{
    struct shape one = shape_of(1);
    return part_const(p, DTYPE_I64, &one, &number);
}

const char *part_ints(struct parts *p, int count, const int64_t *numbers)
{
    struct shape shape = shape_of(count);
    return part_const(p, DTYPE_I64, &shape, numbers);
}

const char *part_f32(struct parts *p, double number)
{
    struct shape one = shape_of(1);
    float single = (float)number;
    return part_const(p, DTYPE_F32, &one, &single);
}
