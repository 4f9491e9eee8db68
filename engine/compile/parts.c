/* SPDX-License-Identifier: Apache-2.0
 *
 * Concatenations without a copy: what only a Concat reads is computed where the Concat would put
 * it, inside the result. A part that is one piece of the result keeps its layout. The rows of any
 * other part lie apart, and then every native kernel that computes it must be able to write it so,
 * which its plan is asked: no part pays for its place with a slower kernel. A Concat whose inputs
 * all lie inside is no step any more; of another one the kernel copies the rest. Later ones come
 * first, so that a concatenation of concatenations becomes one. */
#include <string.h>

#include "engine/compile/stages.h"
#include "engine/graph/op_list.h"
#include "engine/reference/reference.h"
#include "engine/run/kernels.h"
#include "engine/run/provider.h"

struct part {
    int value, owner; /* an input, and the value in whose memory it lies */
    int whole;        /* the result */
    size_t shift;     /* bytes from the beginning of the result */
    struct desc desc; /* of the input, inside the result */
    bool apart;       /* its rows lie apart there */
};

static struct part part_at(const struct exe *exe, const struct node *join, int k, int64_t start)
{
    const struct place *at = &exe->places[join->inputs[k]];
    const struct desc *whole = &exe->places[join->outputs[0]].desc;
    int axis = shape_axis(&whole->shape, node_int(join, "axis", 1));
    struct part part = {.value = join->inputs[k],
                        .owner = at->root,
                        .whole = join->outputs[0],
                        .shift = (size_t)(start * whole->stride[axis]) * dtype_size(whole->dtype),
                        .desc = at->desc};
    part.desc.layout = whole->layout;
    memcpy(part.desc.stride, whole->stride, sizeof(part.desc.stride));
    part.apart = !desc_same_memory(&part.desc, &at->desc);
    return part;
}

/* How often steps read the memory of a value, under whatever name. */
static int count_readers(const struct exe *exe, int owner)
{
    int count = 0;
    for (int s = 0; s < exe->step_count; s++) {
        const struct node *node = exe->steps[s].query.node;
        for (int k = 0; k < node->input_count; k++)
            count += node->inputs[k] != NONE && exe->places[node->inputs[k]].root == owner;
    }
    return count;
}

static bool is_output(const struct exe *exe, int owner)
{
    for (int k = 0; k < exe->g->output_count; k++)
        if (exe->places[exe->g->outputs[k]].root == owner)
            return true;
    return false;
}

/* A result that is all there is in its memory, and nobody's outside. */
static bool is_movable(const struct exe *exe, const struct part *part)
{
    const struct value *made = &exe->g->values[part->owner];
    return made->kind == VALUE_RESULT && !exe->g->nodes[made->producer].op->between_ranks &&
           exe->places[part->owner].bytes == exe->places[part->value].bytes &&
           !is_output(exe, part->owner);
}

/* ---- rows that lie apart ---- */

static const struct step *producer_of(const struct exe *exe, int value)
{
    for (int s = 0; s < exe->step_count; s++)
        if (exe->steps[s].node == exe->g->values[value].producer)
            return &exe->steps[s];
    return NULL;
}

static bool is_one_piece_per_item(const struct exe *exe, const struct part *part)
{
    const struct desc *alone = &exe->places[part->value].desc;
    for (int d = 1; d < alone->shape.rank; d++)
        if (alone->shape.dim[d] > 1 && part->desc.stride[d] != alone->stride[d])
            return false;
    return true;
}

/* What a name of the part's memory is there; false where that cannot be said by strides: another
 * shape of it has to have the same items, each in one piece. */
static bool desc_apart(const struct exe *exe, const struct part *part, int name, struct desc *desc)
{
    *desc = name == part->value ? part->desc : exe->places[name].desc;
    if (name == part->value)
        return true;
    desc->stride[0] = part->desc.stride[0];
    return desc->shape.rank > 0 && desc->shape.dim[0] == part->desc.shape.dim[0] &&
           is_one_piece_per_item(exe, part);
}

/* Whose acceptance counts: all native kernels of this machine, or where those may not compute,
 * all others. */
static bool is_asked(const struct exe *exe, const struct kernel *kernel, const struct op *op)
{
    const char *allowed = exe->options.providers;
    bool native = strcmp(kernel->provider, "native") == 0;
    if (kernel == &kernel_reference || kernel->device || !kernel_computes(kernel, op))
        return false;
    return provider_allowed(allowed, "native") ? native && kernel->isa == exe->options.isa
                                               : provider_allowed(allowed, kernel->provider);
}

/* What decides shapes, such as where a Slice begins: without it most plans refuse. */
static void know_constants(const struct exe *exe, const struct step *step)
{
    const struct node *node = step->query.node;
    for (int k = 0; k < node->op_inputs && k < 32; k++) {
        const struct value *v = node->inputs[k] == NONE ? NULL : &exe->g->values[node->inputs[k]];
        if (v && node->op->const_inputs >> k & 1 && value_is_fixed(v))
            ((const void **)(uintptr_t)step->query.fixed)[k] = v->data;
    }
}

static bool can_be_computed(const struct exe *exe, const struct step *step, int output,
                            const struct desc *desc, struct desc *outs)
{
    bool any = false;
    know_constants(exe, step);
    struct kernel_query there = step->query;
    memcpy(outs, step->query.out, (size_t)step->query.out_count * sizeof(*outs));
    outs[output] = *desc;
    there.out = outs;
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        struct error why = {0};
        if (!is_asked(exe, kernel, step->query.node->op) ||
            kernel_accepts(kernel, &step->query, &why) != STATUS_OK)
            continue;
        if (kernel_accepts(kernel, &there, &why) != STATUS_OK)
            return false;
        any = true;
    }
    return any;
}

static bool can_lie_apart(struct exe *exe, const struct part *part, struct desc *outs)
{
    const struct step *step = producer_of(exe, part->owner);
    struct desc desc;
    if (!step || count_readers(exe, part->owner) != 1)
        return false;
    for (int v = 0; v < exe->g->value_count; v++)
        if (exe->places[v].root == part->owner && !desc_apart(exe, part, v, &desc))
            return false;
    desc_apart(exe, part, part->owner, &desc);
    return can_be_computed(exe, step, exe->g->values[part->owner].producer_out, &desc, outs);
}

/* ---- moving ---- */

static void move_inside(struct exe *exe, const struct part *part)
{
    const struct place whole = exe->places[part->whole];
    for (int v = 0; v < exe->g->value_count; v++) {
        struct place *place = &exe->places[v];
        struct desc desc;
        if (place->root != part->owner)
            continue;
        if (part->apart) {
            desc_apart(exe, part, v, &desc);
            place->desc = desc;
            place->bytes = desc_bytes(&desc);
        }
        place->root = whole.root;
        place->shift += whole.shift + part->shift;
    }
}

/* Moves what it can; true: nothing is left to be copied. */
static bool place_inputs(struct exe *exe, struct step *step, struct desc *outs)
{
    const struct node *join = step->query.node;
    const struct shape *y = &exe->places[join->outputs[0]].desc.shape;
    int axis = shape_axis(y, node_int(join, "axis", 1));
    int64_t start = 0;
    bool all = true;
    for (int k = 0; k < join->op_inputs; k++) {
        struct part part = part_at(exe, join, k, start);
        double bytes = (double)shape_count(&part.desc.shape) * (double)dtype_size(part.desc.dtype);
        start += part.desc.shape.dim[axis];
        bool moves = is_movable(exe, &part) && (!part.apart || can_lie_apart(exe, &part, outs));
        if (moves)
            move_inside(exe, &part);
        all = all && (moves || bytes == 0);
        step->bytes_in -= moves ? bytes : 0;
        step->bytes_out -= moves ? bytes : 0;
    }
    return all;
}

static int most_outputs(const struct exe *exe)
{
    int largest = 0;
    for (int s = 0; s < exe->step_count; s++)
        if (exe->steps[s].query.out_count > largest)
            largest = exe->steps[s].query.out_count;
    return largest;
}

enum status place_parts(struct exe *exe, struct error *err)
{
    const struct exe_options *options = &exe->options;
    if (options->keep_values || options->no_fuse || options->only ||
        !device_is_host(options->device))
        return STATUS_OK; /* each value has its own memory, or kernels are not to be chosen by it */
    struct desc *outs = arena_array(&exe->arena, (size_t)most_outputs(exe) + 1, sizeof(*outs));
    bool *done = arena_array(&exe->arena, (size_t)exe->step_count + 1, sizeof(*done));
    if (!outs || !done)
        return FAIL_NO_MEMORY(err);
    for (int s = exe->step_count - 1; s >= 0; s--) {
        const struct node *node = exe->steps[s].query.node;
        done[s] =
            node->op == &op_concat && !node->post_count && place_inputs(exe, &exe->steps[s], outs);
    }
    int kept = 0;
    for (int s = 0; s < exe->step_count; s++)
        if (!done[s])
            exe->steps[kept++] = exe->steps[s];
    exe->step_count = kept;
    return STATUS_OK;
}
