/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes that are known only at run time. NonZero, Compress, NonMaxSuppression and Unique give
 * tensors padded to their largest size, with the number of real entries beside them
 * (value->count). That number goes along with operators that treat entries one by one; anything
 * else would compute with the padding, and is refused. */

#include "engine/graph/op_list.h"
#include "workloads/onnx/import/import.h"

/* Where the entries of one input are found in the output. */
struct follow {
    const struct graph *g;
    const struct node *node;
    int input, axis; /* the input of unknown size, and along which axis */
};

static const struct shape *shape_at(const struct follow *f, int input)
{
    return &f->g->values[f->node->inputs[input]].shape;
}

static const struct shape *result(const struct follow *f)
{
    return &f->g->values[f->node->outputs[0]].shape;
}

static int64_t first_int(const struct graph *g, int value)
{
    const struct value *v = &g->values[value];
    return v->dtype == DTYPE_I32 ? *(const int32_t *)v->data : *(const int64_t *)v->data;
}

/* Broadcasting: the others must have one entry for all there, or the same unknown number. */
static int follow_elementwise(const struct follow *f)
{
    int rank = result(f)->rank, axis = f->axis + rank - shape_at(f, f->input)->rank;
    const struct value *own = &f->g->values[f->node->inputs[f->input]];
    for (int k = 0; k < f->node->op_inputs; k++) {
        if (f->node->inputs[k] == NONE || k == f->input)
            continue;
        const struct value *other = &f->g->values[f->node->inputs[k]];
        int at = axis - (rank - other->shape.rank);
        bool same = other->count == own->count && other->count_axis == at;
        if (!same && at >= 0 && other->shape.dim[at] != 1)
            return -1;
    }
    return axis;
}

static int follow_transpose(const struct follow *f)
{
    int64_t perm[RANK_MAX];
    int rank = result(f)->rank;
    if (node_ints(f->node, "perm", perm, RANK_MAX) != rank)
        return rank - 1 - f->axis;
    for (int k = 0; k < rank; k++)
        if (perm[k] == f->axis)
            return k;
    return -1;
}

static int follow_gather(const struct follow *f)
{
    int at = shape_axis(shape_at(f, 0), node_int(f->node, "axis", 0));
    int index_rank = shape_at(f, 1)->rank;
    if (f->input == 1)
        return at + f->axis;
    return f->axis == at ? -1 : f->axis < at ? f->axis : f->axis + index_rank - 1;
}

static int follow_gather_nd(const struct follow *f)
{
    bool rows = f->input == 1 && f->axis < shape_at(f, 1)->rank - 1;
    return rows && !node_int(f->node, "batch_dims", 0) ? f->axis : -1;
}

/* Slicing and splitting other axes. */
static int follow_same_axis(const struct follow *f)
{
    int rank = shape_at(f, 0)->rank;
    bool whole = f->input == 0 && result(f)->rank == rank &&
                 result(f)->dim[f->axis] == shape_at(f, 0)->dim[f->axis];
    return whole ? f->axis : -1;
}

/* A slice may keep the size and still turn the entries round. */
static int follow_slice(const struct follow *f)
{
    if (f->node->op_inputs <= 4 || f->node->inputs[4] == NONE)
        return follow_same_axis(f);
    const struct value *steps = &f->g->values[f->node->inputs[4]];
    for (int64_t k = 0; k < shape_count(&steps->shape); k++) {
        int64_t step = steps->dtype == DTYPE_I32 ? ((const int32_t *)steps->data)[k]
                                                 : ((const int64_t *)steps->data)[k];
        if (step < 0)
            return -1;
    }
    return follow_same_axis(f);
}

/* Squeeze and Unsqueeze of one axis. */
static int follow_rank_change(const struct follow *f)
{
    int64_t axis = 0, wide = result(f)->rank;
    bool grows = wide > shape_at(f, 0)->rank;
    if (node_ints(f->node, "axes", &axis, 1) == 0 && f->node->op_inputs > 1)
        axis = first_int(f->g, f->node->inputs[1]);
    wide = grows ? wide : shape_at(f, 0)->rank;
    int64_t change = wide - (grows ? shape_at(f, 0)->rank : result(f)->rank);
    axis = axis < 0 ? axis + wide : axis;
    if (change != 1)
        return -1;
    if (grows)
        return f->axis < axis ? f->axis : f->axis + 1;
    return f->axis == axis ? -1 : f->axis < axis ? f->axis : f->axis - 1;
}

struct rule {
    const struct op *op;
    int (*axis)(const struct follow *f); /* of the output; -1: refused */
};

static const struct rule rules[] = {
    {&op_transpose, follow_transpose}, {&op_gather, follow_gather},
    {&op_gather_nd, follow_gather_nd}, {&op_slice, follow_slice},
    {&op_squeeze, follow_rank_change}, {&op_unsqueeze, follow_rank_change},
};

static int follow(const struct follow *f)
{
    for (int k = 0; k < ARRAY_COUNT(rules); k++)
        if (f->node->op == rules[k].op)
            return rules[k].axis(f);
    bool each = f->node->op->layout == LAYOUT_RULE_ANY && f->node->output_count == 1;
    return each ? follow_elementwise(f) : -1;
}

static enum status follow_inputs(struct graph *g, int n, struct error *err)
{
    const struct node *node = &g->nodes[n];
    for (int k = 0; k < node->op_inputs; k++) {
        const struct value *in = node->inputs[k] == NONE ? NULL : &g->values[node->inputs[k]];
        if (!in || in->count == NONE)
            continue;
        struct follow f = {.g = g, .node = node, .input = k, .axis = in->count_axis};
        int axis = follow(&f);
        if (axis < 0)
            return UNSUPPORTED(err, "it works on \"%s\", whose size is known only at run time",
                               in->name);
        g->values[node->outputs[0]].count = in->count;
        g->values[node->outputs[0]].count_axis = axis;
    }
    return STATUS_OK;
}

enum status count_outputs(struct graph *g, int n, struct error *err)
{
    const struct node *node = &g->nodes[n];
    TRY(follow_inputs(g, n, err));
    if (!node->op->count_output)
        return STATUS_OK;
    const struct value *in[8] = {0};
    struct value *out[8] = {0};
    for (int k = 0; k < node->input_count && k < 8; k++)
        in[k] = node->inputs[k] == NONE ? NULL : &g->values[node->inputs[k]];
    for (int k = 0; k < node->output_count && k < 8; k++)
        out[k] = &g->values[node->outputs[k]];
    struct infer c = {.node = node,
                      .in = in,
                      .out = out,
                      .in_count = node->input_count,
                      .out_count = node->output_count};
    for (int k = 0; k < node->output_count && k < 8; k++) {
        int axis = node->op->count_axis ? node->op->count_axis(&c, k) : -1;
        if (axis < 0)
            continue;
        out[k]->count = node->outputs[node->op->count_output];
        out[k]->count_axis = axis;
    }
    return STATUS_OK;
}
