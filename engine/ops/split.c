/* SPDX-License-Identifier: Apache-2.0
 * Split: the reverse of Concat. Sizes are an attribute before opset 13, then an input; without
 * them the parts are equal, the last one smaller if need be (num_outputs, opset 18). */
#include "base/numbers/integers.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"axis", "split", "num_outputs", NULL};
static const struct attr_input attr_inputs[] = {{"split", 1, 13}, {NULL, 0, 0}};

/* First index and size of a part along axis. */
struct part {
    int axis;
    int64_t start, size;
};

static enum status find(const struct op_args *args, int index, struct part *part, struct error *err)
{
    struct int_list sizes;
    const struct shape *x = args_in(args, 0);
    TRY(args_axis(args, x, 0, &part->axis, err));
    TRY(args_ints(args, 1, "split", &sizes, err));
    int64_t total = x->dim[part->axis], sum = 0;
    if (sizes.count < 0) {
        int count = args->out_count;
        if (total % count && !node_attr(args->node, "num_outputs"))
            return FAIL(err, STATUS_FAILED, "%lld cannot be split into %d equal parts",
                        (long long)total, count);
        int64_t each = divide_up(total, count);
        part->start = index * each < total ? index * each : total;
        part->size = total - part->start < each ? total - part->start : each;
        return STATUS_OK;
    }
    for (int k = 0; k < sizes.count; k++) {
        if (k == index)
            *part = (struct part){.axis = part->axis, .start = sum, .size = sizes.at[k]};
        if (sizes.at[k] < 0)
            return FAIL(err, STATUS_FAILED, "part %d of Split has a negative size", k);
        sum += sizes.at[k];
    }
    if (sum != total || sizes.count != args->out_count)
        return FAIL(err, STATUS_FAILED, "%d parts of %lld in all for %d outputs and size %lld",
                    sizes.count, (long long)sum, args->out_count, (long long)total);
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    for (int k = 0; k < c->out_count; k++) {
        struct part part;
        struct shape y = c->in[0]->shape;
        TRY(find(&args, k, &part, err));
        y.dim[part.axis] = part.size;
        infer_set(c, k, c->in[0]->dtype, &y);
    }
    return STATUS_OK;
}

static enum status move(const struct op_args *args, int index, struct move *m, struct error *err)
{
    struct part part;
    TRY(find(args, index, &part, err));
    move_over(m, args_in(args, 0));
    m->output = index;
    m->in_start[part.axis] = part.start;
    m->loops[part.axis].extent = part.size;
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    const struct node *node = gradient_node(c);
    enum { PARTS = 64 };
    int parts[PARTS], count = node->output_count, axis;
    struct shape x = gradient_shape(g, gradient_in(c, 0));
    struct gradient_inputs inputs;
    struct op_args args = gradient_args(c, &inputs);
    TRY(args_axis(&args, &x, 0, &axis, err));
    if (count > PARTS)
        return UNSUPPORTED(err, "the gradient of a Split into %d parts; at most %d", count, PARTS);
    args.out_count = count;
    struct part part[PARTS];
    for (int k = 0; k < count; k++)
        TRY(find(&args, k, &part[k], err));
    for (int k = 0; k < count; k++) {
        struct shape shape = x;
        shape.dim[axis] = part[k].size;
        parts[k] =
            c->dy[k] != NONE ? c->dy[k] : make_zeros(g, g->values[gradient_in(c, 0)].dtype, &shape);
    }
    c->dx[0] = graph_node(g, op_concat.name, NULL, count, parts, ATTRS(attr_int("axis", axis)));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "equal", .inputs = "f32[2,6,3]", .attrs = "axis=1", .outputs = 3},
    {.name = "attribute", .inputs = "f32[2,6]", .attrs = "axis=-1 split=[1,5]", .outputs = 2},
    {.name = "input", .inputs = "f32[7,4] i64[3]=2,0,5", .outputs = 3},
    {.name = "channels", .inputs = "f32[2,48,3,5]", .attrs = "axis=1 split=[16,32]", .outputs = 2},
    {.name = "ragged", .inputs = "i64[7]", .attrs = "num_outputs=3", .outputs = 3},
};

REGISTER(op, split) = {
    .name = "Split",
    .moves_in_passing = true,
    .inputs_min = 1,
    .inputs_max = 2,
    .outputs_max = -1,
    .attrs = attrs,
    .const_inputs = 1u << 1,
    .layout = LAYOUT_RULE_AXIS,
    .attr_inputs = attr_inputs,
    .infer = infer,
    .move = move,
    .reference = reference_move,
    .gradient = gradient,
    OP_CASES(cases),
};
