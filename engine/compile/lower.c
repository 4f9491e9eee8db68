/* SPDX-License-Identifier: Apache-2.0
 *
 * From a graph to steps: every value gets a layout, Reorder nodes are put where two neighbours
 * disagree, nodes that only rename memory become aliases, all others become steps.
 *
 * Unless they are to be plain (images.c), images run channels-last from the first operator that
 * wants it to the last; elementwise operators follow their inputs (engine/graph/op.h, enum
 * layout_rule). */
#include <string.h>

#include "engine/compile/stages.h"
#include "engine/graph/cost.h"
#include "engine/graph/op_list.h"
#include "engine/ops/lib/reduce.h"
#include "engine/run/device.h"

struct lowering {
    struct graph *g;
    enum layout *layout; /* per value */
    int *reordered[2];   /* per value: its copy in that layout, or NONE */
    size_t capacity;
    struct arena *arena;
    bool plain; /* images, too */
    bool on_device;
};

static bool is_plain_and_nhwc(const struct shape *shape)
{
    struct desc desc = desc_dense(DTYPE_F32, shape, LAYOUT_NHWC);
    return desc_is_plain(&desc);
}

static enum status reserve(struct lowering *l, struct error *err)
{
    size_t need = (size_t)l->g->value_count + 1, old = l->capacity;
    if (need <= old)
        return STATUS_OK;
    size_t cap = need * 2 + 16;
    enum layout *layout = arena_array(l->arena, cap, sizeof(*layout));
    int *copies[2] = {arena_array(l->arena, cap, sizeof(int)),
                      arena_array(l->arena, cap, sizeof(int))};
    if (!layout || !copies[0] || !copies[1])
        return FAIL_NO_MEMORY(err);
    if (old)
        memcpy(layout, l->layout, old * sizeof(*layout));
    for (size_t k = 0; k < cap; k++)
        for (int c = 0; c < 2; c++)
            copies[c][k] = k < old ? l->reordered[c][k] : NONE;
    l->layout = layout;
    l->reordered[0] = copies[0];
    l->reordered[1] = copies[1];
    l->capacity = cap;
    return STATUS_OK;
}

/* The value in the wanted layout: itself, or a Reorder of it. */
static enum status in_layout(struct lowering *l, int *value, enum layout wanted, struct error *err)
{
    int v = *value;
    const struct value *source = &l->g->values[v];
    if (value_is_fixed(source) || source->kind == VALUE_STATE || source->shape.rank < 3 ||
        l->layout[v] == wanted || is_plain_and_nhwc(&source->shape))
        return STATUS_OK;
    if (l->reordered[wanted][v] == NONE) {
        int copy = graph_node(l->g, op_reorder.name, NULL, INPUTS(v), NO_ATTRS);
        if (l->g->failed)
            return graph_check(l->g, err);
        TRY(reserve(l, err));
        l->layout[copy] = wanted;
        l->reordered[wanted][v] = copy;
    }
    *value = l->reordered[wanted][v];
    return STATUS_OK;
}

static enum status inputs_in_layout(struct lowering *l, int n, enum layout wanted,
                                    struct error *err)
{
    /* graph_node may move the node array: take the list of inputs, which stays. */
    int *inputs = l->g->nodes[n].inputs, count = l->g->nodes[n].input_count;
    for (int k = 0; k < count; k++)
        if (inputs[k] != NONE)
            TRY(in_layout(l, &inputs[k], wanted, err));
    return STATUS_OK;
}

static void outputs_get_layout(struct lowering *l, int n, enum layout layout)
{
    const struct node *node = &l->g->nodes[n];
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NONE && l->g->values[node->outputs[k]].shape.rank >= 3)
            l->layout[node->outputs[k]] = layout;
}

/* Operators of LAYOUT_RULE_ANY and _AXIS run channels-last when a full-sized input does. */
static bool follows_nhwc(const struct lowering *l, int n)
{
    const struct node *node = &l->g->nodes[n];
    const struct shape *out = &l->g->values[node->outputs[0]].shape;
    bool axis = node->op->layout == LAYOUT_RULE_AXIS;
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k];
        if (v == NONE || value_is_fixed(&l->g->values[v]) || l->layout[v] != LAYOUT_NHWC)
            continue;
        const struct shape *in = &l->g->values[v].shape;
        if (is_plain_and_nhwc(in))
            continue;
        if (axis ? in->rank == out->rank : shape_equal(in, out))
            return true;
    }
    return false;
}

/* Beside its first result: indices of a pooling, but no statistics of channels. */
static bool gives_more_images(const struct graph *g, const struct node *node)
{
    for (int k = 1; k < node->output_count; k++)
        if (node->outputs[k] != NONE && g->values[node->outputs[k]].shape.rank >= 3)
            return true;
    return false;
}

/* Convolutions whose images CPU kernels read in planes: of lines, of one group. */
static bool has_dense_lines(const struct node *node, const struct shape *x)
{
    int64_t dilations[RANK_MAX];
    int count = node_ints(node, "dilations", dilations, RANK_MAX);
    return x->rank <= 4 && node_int(node, "group", 1) == 1 &&
           (count == 0 || dilations[count - 1] == 1);
}

/* Whose kernels read plain images and write others: those of convolutions, on a device of all
 * windows, and of what leaves one position. Norms lie as what they read. */
static bool reads_either_order(const struct lowering *l, const struct node *node)
{
    const struct op *op = node->op;
    if (op == &op_conv_bytes)
        return node_int(node, "group", 1) == 1; /* copied in any order */
    if (op == &op_conv)
        return l->on_device || has_dense_lines(node, &l->g->values[node->inputs[0]].shape);
    return op->layout == LAYOUT_RULE_CHANNELS_READ ||
           (l->on_device &&
            (op == &op_conv_transpose || op == &op_max_pool || op == &op_average_pool)) ||
           is_plain_and_nhwc(&l->g->values[node->outputs[0]].shape);
}

/* A network's own images, of few channels: kernels read them as they come. They may have become
 * bytes or narrow floats before, whose kernels copy them from either order. */
static bool is_stem(const struct lowering *l, const struct value *x)
{
    const struct node *made = x->producer == NONE ? NULL : &l->g->nodes[x->producer];
    bool narrowed = made && (made->op == &op_quantize_linear || made->op == &op_cast);
    const struct value *from = narrowed ? &l->g->values[made->inputs[0]] : x;
    return from->kind == VALUE_INPUT && x->shape.dim[1] <= 4;
}

static enum status channels_last(struct lowering *l, int n, struct error *err)
{
    int *inputs = l->g->nodes[n].inputs;
    const struct value *x = &l->g->values[inputs[0]];
    if (l->plain || gives_more_images(l->g, &l->g->nodes[n]) || x->shape.rank < 3)
        return inputs_in_layout(l, n, LAYOUT_PLAIN, err);
    const struct op *op = l->g->nodes[n].op;
    bool stem = reads_either_order(l, &l->g->nodes[n]) && is_stem(l, x);
    if (op->layout == LAYOUT_RULE_CHANNELS_LAST)
        outputs_get_layout(l, n, LAYOUT_NHWC);
    int count = l->g->nodes[n].input_count;
    for (int k = stem ? 1 : 0; k < count; k++) {
        bool plain = k < 32 && op->plain_inputs >> k & 1;
        if (inputs[k] != NONE)
            TRY(in_layout(l, &inputs[k], plain ? LAYOUT_PLAIN : LAYOUT_NHWC, err));
    }
    return STATUS_OK;
}

static bool transposes_images(const struct lowering *l, int n, const int64_t wanted[4])
{
    const struct node *node = &l->g->nodes[n];
    int64_t perm[RANK_MAX];
    return node->op == &op_transpose && node->post_count == 0 &&
           l->g->values[node->inputs[0]].shape.rank == 4 &&
           node_ints(node, "perm", perm, RANK_MAX) == 4 &&
           memcmp(perm, wanted, 4 * sizeof(*wanted)) == 0;
}

/* Channels-last memory read as [N, H, W, C] is plain: such a Transpose moves nothing. */
static bool transposes_to_plain(const struct lowering *l, int n)
{
    static const int64_t to_last[] = {0, 2, 3, 1};
    return transposes_images(l, n, to_last) && l->layout[l->g->nodes[n].inputs[0]] == LAYOUT_NHWC;
}

/* Nor does the one by which images of TensorFlow become those of ONNX: plain memory of [N, H, W, C]
 * is that of [N, C, H, W] channels-last. */
static bool transposes_to_channels_last(const struct lowering *l, int n)
{
    static const int64_t to_second[] = {0, 3, 1, 2};
    return !l->plain && transposes_images(l, n, to_second) &&
           l->layout[l->g->nodes[n].inputs[0]] == LAYOUT_PLAIN;
}

/* Whether a reduction takes the axes from `first` on together, and no others. */
static bool reduces_from(const struct graph *g, const struct node *node, int first)
{
    const struct shape *in = &g->values[node->inputs[0]].shape;
    const struct value *axes =
        node->op_inputs > 1 && node->inputs[1] != NONE ? &g->values[node->inputs[1]] : NULL;
    int64_t given[RANK_MAX], count = axes ? shape_count(&axes->shape) : 0;
    bool reduced[RANK_MAX];
    struct error ignored;
    if (axes && (!value_is_fixed(axes) || axes->dtype != DTYPE_I64 || count > RANK_MAX))
        return false;
    if (axes)
        value_materialise(axes, given);
    if (reduce_axes(node, in, (int)count, axes ? given : NULL, reduced, &ignored) != STATUS_OK)
        return false;
    for (int d = 0; d < in->rank; d++)
        if (reduced[d] != (d >= first))
            return false;
    return true;
}

/* Nor is anything to be moved for a reduction over all positions of an image that leaves [N, C]. */
static bool reduces_positions(const struct lowering *l, int n)
{
    static const struct op *const ops[] = {&op_reduce_l1,   &op_reduce_l2,        &op_reduce_max,
                                           &op_reduce_mean, &op_reduce_min,       &op_reduce_prod,
                                           &op_reduce_sum,  &op_reduce_sum_square};
    const struct node *node = &l->g->nodes[n];
    bool found = false;
    for (int k = 0; k < ARRAY_COUNT(ops); k++)
        found = found || node->op == ops[k];
    if (!found || l->on_device || node->post_count || l->layout[node->inputs[0]] != LAYOUT_NHWC)
        return false;
    const struct shape *in = &l->g->values[node->inputs[0]].shape;
    const struct shape *out = &l->g->values[node->outputs[0]].shape;
    return in->rank > 2 && out->rank == 2 && reduces_from(l->g, node, 2);
}

static enum status layout_node(struct lowering *l, int n, struct error *err)
{
    l->g->phase = l->g->nodes[n].phase; /* of what is put before it */
    if (transposes_to_plain(l, n) || reduces_positions(l, n))
        return STATUS_OK;
    if (transposes_to_channels_last(l, n)) {
        outputs_get_layout(l, n, LAYOUT_NHWC);
        return STATUS_OK;
    }
    switch (l->g->nodes[n].op->layout) {
    case LAYOUT_RULE_CHANNELS_LAST:
    case LAYOUT_RULE_CHANNELS_READ:
        return channels_last(l, n, err);
    case LAYOUT_RULE_ANY:
    case LAYOUT_RULE_AXIS:
        if (!follows_nhwc(l, n))
            break;
        outputs_get_layout(l, n, LAYOUT_NHWC);
        return inputs_in_layout(l, n, LAYOUT_NHWC, err);
    case LAYOUT_RULE_PLAIN:
        break;
    }
    return inputs_in_layout(l, n, LAYOUT_PLAIN, err);
}

static enum status assign_layouts(struct lowering *l, struct error *err)
{
    int count = l->g->node_count; /* Reorders are added at the end and need no visit */
    TRY(reserve(l, err));
    for (int n = 0; n < count; n++)
        TRY(layout_node(l, n, err));
    for (int k = 0; k < l->g->output_count; k++)
        TRY(in_layout(l, &l->g->outputs[k], LAYOUT_PLAIN, err));
    return STATUS_OK;
}

/* ---- places ---- */

static bool transposes_nothing(const struct exe *exe, const struct node *node,
                               const struct desc *out)
{
    const struct desc *in = &exe->places[node->inputs[0]].desc;
    int64_t perm[RANK_MAX];
    int rank = in->shape.rank;
    if (node_ints(node, "perm", perm, RANK_MAX) != rank)
        return false;
    struct desc moved = *in;
    for (int k = 0; k < rank; k++) {
        moved.shape.dim[k] = in->shape.dim[perm[k]];
        moved.stride[k] = in->stride[perm[k]];
    }
    return desc_same_memory(&moved, out);
}

/* Whether the node's output can be its input's memory under another name. */
static bool is_alias(const struct exe *exe, const struct node *node)
{
    int in = node->input_count ? node->inputs[0] : NONE, out = node->outputs[0];
    if (in == NONE || node->post_count || node->output_count > 1 || exe->options.keep_values)
        return false;
    const struct place *from = &exe->places[in], *to = &exe->places[out];
    const struct value *root = &exe->g->values[from->root];
    for (int k = 0; k < exe->g->output_count; k++)
        if (exe->g->outputs[k] == out && root->kind != VALUE_RESULT)
            return false; /* outputs have memory of their own */
    if (node->op == &op_reorder)
        return desc_same_memory(&from->desc, &to->desc);
    if (node->op == &op_transpose)
        return transposes_nothing(exe, node, &to->desc);
    if (!node->op->alias)
        return false;
    return desc_same_memory(&from->desc, &to->desc) ||
           (desc_is_plain(&from->desc) && desc_is_plain(&to->desc));
}

static void set_places(struct exe *exe, const enum layout *layout)
{
    for (int v = 0; v < exe->g->value_count; v++) {
        struct place *place = &exe->places[v];
        const struct value *value = &exe->g->values[v];
        place->desc = desc_dense(value->dtype, &value->shape, layout[v]);
        place->root = v;
        place->bytes = desc_bytes(&place->desc);
        place->offset = -1;
        place->first = place->last = NONE;
    }
}

static void fill_descs(const struct exe *exe, const int *values, int count, struct desc *descs)
{
    for (int k = 0; k < count; k++) {
        descs[k] = (struct desc){0};
        if (values[k] != NONE)
            descs[k] = exe->places[values[k]].desc;
    }
}

static enum status add_step(struct exe *exe, int n, struct error *err)
{
    const struct node *node = &exe->g->nodes[n];
    struct step *step = &exe->steps[exe->step_count];
    struct node_cost cost;
    size_t ins = (size_t)node->input_count + 1, outs = (size_t)node->output_count + 1;
    struct desc *in = arena_array(&exe->arena, ins, sizeof(*in));
    struct desc *out = arena_array(&exe->arena, outs, sizeof(*out));
    const void **fixed = arena_array(&exe->arena, ins, sizeof(*fixed));
    step->in = arena_array(&exe->arena, ins, sizeof(*step->in));
    step->out = arena_array(&exe->arena, outs, sizeof(*step->out));
    if (!in || !out || !fixed || !step->in || !step->out)
        return FAIL_NO_MEMORY(err);
    fill_descs(exe, node->inputs, node->input_count, in);
    fill_descs(exe, node->outputs, node->output_count, out);
    step->node = n;
    step->workspace_offset = -1;
    step->query = (struct kernel_query){.node = node,
                                        .in_count = node->input_count,
                                        .out_count = node->output_count,
                                        .in = in,
                                        .out = out,
                                        .fixed = fixed,
                                        .threads = pool_threads(exe->pool),
                                        .device = exe_device(exe),
                                        .tf32 = exe->options.precision == PRECISION_TF32};
    step->bytes_in = node_bytes_read(exe->g, n);
    step->bytes_out = node_bytes_written(exe->g, n);
    exe->step_count++;
    node_cost(exe->g, n, &cost);
    step->cost = cost.work;
    return STATUS_OK;
}

/* Lifetimes: from the step that writes a root to the last step that reads it or an alias. */
static void touch(struct exe *exe, int value, int step)
{
    if (value == NONE)
        return;
    int owner = exe->places[value].root;
    struct place *root = &exe->places[owner];
    exe->places[value].used = root->used = true;
    if (owner != value && value_is_fixed(&exe->g->values[owner]))
        root->kept = true; /* kernels pack what they know to be fixed, not what only shows it */
    if (root->first == NONE)
        root->first = step;
    root->last = step;
}

static enum status make_steps(struct exe *exe, struct error *err)
{
    struct graph *g = exe->g;
    exe->steps = arena_array(&exe->arena, (size_t)g->node_count + 1, sizeof(*exe->steps));
    if (!exe->steps)
        return FAIL_NO_MEMORY(err);
    for (int n = 0; n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        if (is_alias(exe, node))
            exe->places[node->outputs[0]].root = exe->places[node->inputs[0]].root;
        else
            TRY(add_step(exe, n, err));
    }
    return STATUS_OK;
}

/* What each step reads and writes, where it lies from now on. */
static void settle_steps(struct exe *exe)
{
    for (int s = 0; s < exe->step_count; s++) {
        const struct kernel_query *q = &exe->steps[s].query;
        const struct node *node = q->node;
        fill_descs(exe, node->inputs, node->input_count, (struct desc *)(uintptr_t)q->in);
        fill_descs(exe, node->outputs, node->output_count, (struct desc *)(uintptr_t)q->out);
        for (int k = 0; k < node->input_count; k++) {
            touch(exe, node->inputs[k], s);
            if (node->inputs[k] != NONE)
                exe->places[node->inputs[k]].pending++;
        }
        for (int k = 0; k < node->output_count; k++)
            touch(exe, node->outputs[k], s);
    }
    for (int k = 0; k < exe->g->output_count; k++)
        touch(exe, exe->g->outputs[k], exe->step_count);
}

enum status lower_graph(struct exe *exe, struct error *err)
{
    struct lowering l = {.g = exe->g,
                         .arena = &exe->arena,
                         .plain = exe->options.images == IMAGES_PLAIN,
                         .on_device = !device_is_host(exe->options.device)};
    TRY(assign_layouts(&l, err));
    graph_compact(exe->g);
    TRY(graph_check(exe->g, err));
    exe->places = arena_array(&exe->arena, (size_t)exe->g->value_count + 1, sizeof(*exe->places));
    if (!exe->places)
        return FAIL_NO_MEMORY(err);
    set_places(exe, l.layout);
    TRY(make_steps(exe, err));
    TRY(place_parts(exe, err));
    settle_steps(exe);
    TRY(place_units(exe, err));
    return place_states(exe, err);
}
