/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/kernel_case.h"

#include <stdlib.h>
#include <string.h>

#include "engine/graph/op.h"
#include "engine/ops/family/update.h"
#include "engine/run/device.h"
#include "tests/lib/rows_apart.h"

/* Memory between two guard zones. */
struct guarded {
    unsigned char *base, *data;
    size_t bytes;
    unsigned char *there; /* of the same size on the device */
};

struct tensor_memory {
    struct guarded memory;
    void *original;     /* inputs: contents in memory order; outputs: those of the first run */
    void *plain;        /* outputs: row-major contents */
    struct apart apart; /* outputs whose rows lie apart */
};

struct kernel_case {
    struct kernel_setup setup;
    struct arena arena;
    struct kernel_query query;
    struct desc *in_desc, *out_desc;
    struct tensor_memory *in, *out;
    const void **fixed, **in_args;
    void **out_args;
    struct guarded workspace;
    int variants;
    bool in_place; /* what comes after a state is written where it lies */
};

/* ---- guarded memory ---- */

static enum status guarded_new(struct guarded *g, size_t bytes, struct error *err)
{
    size_t size = (bytes + 2 * GUARD_BYTES + 63) / 64 * 64;
    g->base = aligned_alloc(64, size);
    if (!g->base)
        return FAIL_NO_MEMORY(err);
    memset(g->base, GUARD_BYTE, size);
    g->data = g->base + GUARD_BYTES;
    g->bytes = bytes;
    return STATUS_OK;
}

static void guarded_free(struct guarded *g, const struct device *device)
{
    free(g->base);
    if (g->there)
        device->kind->free(device, g->there);
    *g = (struct guarded){0};
}

static enum status guarded_copy(struct guarded *g, const struct device *device,
                                enum device_copy direction, struct error *err)
{
    size_t bytes = g->bytes + 2 * GUARD_BYTES;
    void *memory = g->there;
    if (!g->base || !device)
        return STATUS_OK;
    if (!memory)
        TRY(device->kind->alloc(device, bytes, &memory, err));
    g->there = memory;
    bool up = direction == COPY_TO_DEVICE;
    return device->kind->copy(device, up ? g->there : g->base, up ? g->base : g->there, bytes,
                              direction, NULL, err);
}

/* What a launch is given. */
static void *guarded_address(const struct guarded *g)
{
    return g->there ? g->there + GUARD_BYTES : g->data;
}

static void guards_paint(const struct guarded *g)
{
    if (!g->base)
        return;
    memset(g->base, GUARD_BYTE, GUARD_BYTES);
    memset(g->data + g->bytes, GUARD_BYTE, GUARD_BYTES);
}

static enum status guards_intact(const struct guarded *g, const char *what, int index,
                                 struct error *err)
{
    for (int k = 0; g->base && k < GUARD_BYTES; k++) {
        if (g->base[GUARD_BYTES - 1 - k] != GUARD_BYTE)
            return FAIL(err, STATUS_INVALID, "wrote before the start of %s %d, %d bytes away", what,
                        index, k + 1);
        if (g->data[g->bytes + (size_t)k] != GUARD_BYTE)
            return FAIL(err, STATUS_INVALID, "wrote after the end of %s %d, %d bytes away", what,
                        index, k);
    }
    return STATUS_OK;
}

/* ---- layouts ---- */

const char *plan_name(enum layout_plan plan)
{
    static const char *const names[PLAN_COUNT] = {"plain", "nhwc", "stem"};
    return names[plan];
}

static bool is_image(const struct shape *shape)
{
    struct desc desc = desc_dense(DTYPE_F32, shape, shape->rank >= 3 ? LAYOUT_NHWC : LAYOUT_PLAIN);
    return shape->rank >= 3 && !desc_is_plain(&desc);
}

/* input NONE: an output. */
static enum layout layout_of(const struct graph *g, enum layout_plan plan, int value, int input)
{
    const struct value *v = &g->values[value];
    const struct op *op = g->nodes[0].op;
    bool plain = plan == PLAN_PLAIN || v->shape.rank < 3 || value_is_fixed(v) ||
                 (plan == PLAN_STEM && input == 0) ||
                 (input == NONE && op->layout == LAYOUT_RULE_CHANNELS_READ) ||
                 (input >= 0 && input < 32 && op->plain_inputs >> input & 1);
    return plain ? LAYOUT_PLAIN : LAYOUT_NHWC;
}

static bool gives_more_images(const struct graph *g, const struct node *node)
{
    for (int k = 1; k < node->output_count; k++)
        if (node->outputs[k] != NONE && g->values[node->outputs[k]].shape.rank >= 3)
            return true;
    return false;
}

bool plan_applies(const struct graph *g, enum layout_plan plan)
{
    const struct node *node = &g->nodes[0];
    const struct value *x =
        node->input_count && node->inputs[0] != NONE ? &g->values[node->inputs[0]] : NULL;
    bool channels_last = node->op->layout == LAYOUT_RULE_CHANNELS_LAST ||
                         node->op->layout == LAYOUT_RULE_CHANNELS_READ;
    if (plan == PLAN_PLAIN)
        return true;
    if (!x || node->op->layout == LAYOUT_RULE_PLAIN || x->shape.rank < 3)
        return false;
    if (channels_last && (gives_more_images(g, node) || value_is_fixed(x)))
        return false;
    if (plan == PLAN_STEM)
        return channels_last && x->shape.dim[1] <= 4;
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NONE && is_image(&g->values[node->outputs[k]].shape))
            return true;
    return !value_is_fixed(x) && is_image(&x->shape);
}

static bool decides_shape(const struct node *node, int input)
{
    return input < 32 && node->op->const_inputs >> input & 1;
}

bool has_constants(const struct graph *g)
{
    const struct node *node = &g->nodes[0];
    for (int k = 0; k < node->input_count; k++)
        if (node->inputs[k] != NONE && value_is_fixed(&g->values[node->inputs[k]]) &&
            !decides_shape(node, k))
            return true;
    return false;
}

/* Copies between row-major memory and a layout, element by element. */
static void convert(const struct desc *desc, void *strided, void *plain, bool to_plain)
{
    size_t size = dtype_size(desc->dtype);
    int64_t count = shape_count(&desc->shape);
    for (int64_t k = 0; k < count; k++) {
        int64_t at = 0, rest = k;
        for (int d = desc->shape.rank - 1; d >= 0; d--) {
            at += rest % desc->shape.dim[d] * desc->stride[d];
            rest /= desc->shape.dim[d];
        }
        char *s = (char *)strided + (size_t)at * size, *p = (char *)plain + (size_t)k * size;
        memcpy(to_plain ? p : s, to_plain ? s : p, size);
    }
}

/* ---- making ---- */

static enum status make_input(struct kernel_case *c, int k, struct error *err)
{
    const struct graph *g = c->setup.graph;
    const struct node *node = &g->nodes[0];
    int v = node->inputs[k];
    if (v == NONE)
        return STATUS_OK;
    const struct value *value = &g->values[v];
    struct desc *desc = &c->in_desc[k];
    *desc = desc_dense(value->dtype, &value->shape, layout_of(g, c->setup.plan, v, k));
    size_t bytes = desc_bytes(desc);
    void *plain = arena_alloc(&c->arena, bytes + 1);
    c->in[k].original = arena_alloc(&c->arena, bytes + 1);
    if (!plain || !c->in[k].original)
        return FAIL_NO_MEMORY(err);
    TRY(guarded_new(&c->in[k].memory, bytes, err));
    value_materialise(value, plain);
    convert(desc, c->in[k].original, plain, false);
    memcpy(c->in[k].memory.data, c->in[k].original, bytes);
    if (value_is_fixed(value) && (!c->setup.at_run_time || decides_shape(node, k)))
        c->fixed[k] = c->in[k].memory.data;
    return STATUS_OK;
}

static enum status make_output(struct kernel_case *c, int k, struct error *err)
{
    const struct graph *g = c->setup.graph;
    struct tensor_memory *out = &c->out[k];
    int v = g->nodes[0].outputs[k];
    if (v == NONE)
        return STATUS_OK;
    struct desc *desc = &c->out_desc[k];
    *desc =
        desc_dense(g->values[v].dtype, &g->values[v].shape, layout_of(g, c->setup.plan, v, NONE));
    if (c->setup.apart)
        TRY(rows_apart(&c->arena, desc, &out->apart, err));
    size_t bytes = out->apart.mask ? out->apart.bytes : desc_bytes(desc);
    out->original = arena_alloc(&c->arena, bytes + 1);
    out->plain = arena_alloc(&c->arena, bytes + 1);
    if (!out->original || !out->plain)
        return FAIL_NO_MEMORY(err);
    return guarded_new(&out->memory, bytes, err);
}

static enum status make(struct kernel_case *c, struct error *err)
{
    const struct node *node = &c->setup.graph->nodes[0];
    size_t ins = (size_t)node->input_count + 1, outs = (size_t)node->output_count + 1;
    c->in_desc = arena_array(&c->arena, ins, sizeof(*c->in_desc));
    c->out_desc = arena_array(&c->arena, outs, sizeof(*c->out_desc));
    c->in = arena_array(&c->arena, ins, sizeof(*c->in));
    c->out = arena_array(&c->arena, outs, sizeof(*c->out));
    c->fixed = arena_array(&c->arena, ins, sizeof(*c->fixed));
    c->in_args = arena_array(&c->arena, ins, sizeof(*c->in_args));
    c->out_args = arena_array(&c->arena, outs, sizeof(*c->out_args));
    if (!c->in_desc || !c->out_desc || !c->in || !c->out || !c->fixed || !c->in_args ||
        !c->out_args)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < node->input_count; k++)
        TRY(make_input(c, k, err));
    for (int k = 0; k < node->output_count; k++)
        TRY(make_output(c, k, err));
    c->query = (struct kernel_query){.node = node,
                                     .in_count = node->input_count,
                                     .out_count = node->output_count,
                                     .in = c->in_desc,
                                     .out = c->out_desc,
                                     .fixed = c->fixed,
                                     .threads = pool_threads(c->setup.pool),
                                     .device = c->setup.device,
                                     .tf32 = c->setup.tf32};
    struct kernel_state *state;
    TRY(kernel_plan(c->setup.kernel, &c->query, 0, &state, err));
    c->variants = kernel_variants(c->setup.kernel, state);
    kernel_release(c->setup.kernel, state);
    return STATUS_OK;
}

enum status kernel_case_new(const struct kernel_setup *setup, struct kernel_case **out,
                            struct error *err)
{
    *out = NULL;
    struct kernel_case *c = calloc(1, sizeof(*c));
    if (!c)
        return FAIL_NO_MEMORY(err);
    c->setup = *setup;
    enum status status = make(c, err);
    if (status == STATUS_OK)
        *out = c;
    else
        kernel_case_free(c);
    return status;
}

void kernel_case_free(struct kernel_case *c)
{
    if (!c)
        return;
    const struct node *node = &c->setup.graph->nodes[0];
    for (int k = 0; c->in && k < node->input_count; k++)
        guarded_free(&c->in[k].memory, c->setup.device);
    for (int k = 0; c->out && k < node->output_count; k++)
        guarded_free(&c->out[k].memory, c->setup.device);
    guarded_free(&c->workspace, c->setup.device);
    arena_release(&c->arena);
    free(c);
}

int kernel_case_variants(const struct kernel_case *c)
{
    return c->variants;
}

const void *kernel_case_output(const struct kernel_case *c, int k)
{
    return c->out[k].plain;
}

/* ---- running ---- */

static enum status copy_all(struct kernel_case *c, enum device_copy direction, struct error *err)
{
    const struct device *device = c->setup.device;
    for (int k = 0; k < c->query.in_count; k++)
        TRY(guarded_copy(&c->in[k].memory, device, direction, err));
    for (int k = 0; k < c->query.out_count; k++)
        TRY(guarded_copy(&c->out[k].memory, device, direction, err));
    TRY(guarded_copy(&c->workspace, device, direction, err));
    return device ? device->kind->wait(device, NULL, err) : STATUS_OK;
}

static const struct tensor_memory *memory_of_output(const struct kernel_case *c, int k)
{
    const struct op *op = c->query.node->op;
    return c->in_place ? &c->in[op->update ? update_follows(op, k) : 0] : &c->out[k];
}

static void set_arguments(struct kernel_case *c)
{
    for (int k = 0; k < c->query.in_count; k++)
        c->in_args[k] =
            kernel_reads(c->setup.kernel, &c->query, k) ? guarded_address(&c->in[k].memory) : NULL;
    for (int k = 0; k < c->query.out_count; k++) {
        const struct tensor_memory *out = memory_of_output(c, k);
        char *address = guarded_address(&out->memory);
        c->out_args[k] = address ? address + out->apart.skew : NULL;
    }
}

/* Outputs and workspace hold what an earlier step left: another byte in each run, so that what a
 * kernel forgets to write, or reads before it writes, differs between the runs. */
static enum status launch(struct kernel_case *c, struct kernel_state *state, int left_over,
                          struct error *err)
{
    struct error refused = {0};
    for (int k = 0; k < c->query.out_count; k++)
        if (c->out[k].memory.base)
            memset(c->out[k].memory.data, left_over, c->out[k].memory.bytes);
    memset(c->workspace.data, left_over, c->workspace.bytes);
    TRY(copy_all(c, COPY_TO_DEVICE, err));
    set_arguments(c);
    struct kernel_args args = {.in = c->in_args,
                               .out = c->out_args,
                               .workspace = guarded_address(&c->workspace),
                               .pool = c->setup.pool,
                               .err = c->setup.device ? &refused : NULL};
    if (c->setup.kernel->own_threads)
        pool_park(c->setup.pool);
    kernel_launch(c->setup.kernel, &c->query, state, &args);
    if (refused.code != STATUS_OK)
        return FAIL(err, STATUS_FAILED, "%s", refused.message);
    TRY(copy_all(c, COPY_TO_HOST, err));
    for (int k = 0; k < c->query.out_count; k++)
        TRY(gaps_intact(&c->out[k].apart, c->out[k].memory.data, left_over, err));
    return STATUS_OK;
}

static enum status check_inputs(const struct kernel_case *c, struct error *err)
{
    for (int k = 0; k < c->query.in_count; k++) {
        const struct guarded *memory = &c->in[k].memory;
        TRY(guards_intact(memory, "input", k, err));
        if (memory->base && kernel_reads(c->setup.kernel, &c->query, k) &&
            memcmp(memory->data, c->in[k].original, memory->bytes) != 0)
            return FAIL(err, STATUS_INVALID, "changed input %d", k);
    }
    return STATUS_OK;
}

static enum status check_outputs(const struct kernel_case *c, struct error *err)
{
    for (int k = 0; k < c->query.out_count; k++) {
        const struct tensor_memory *out = &c->out[k];
        if (!out->memory.base)
            continue;
        TRY(guards_intact(&out->memory, "output", k, err));
        if (memcmp(out->memory.data, out->original, out->memory.bytes) != 0)
            return FAIL(err, STATUS_INVALID,
                        "output %d differs between two runs: something is not written, or memory "
                        "is read before it is written",
                        k);
        convert(&c->out_desc[k], out->memory.data + out->apart.skew, out->plain, true);
    }
    return guards_intact(&c->workspace, "workspace", 0, err);
}

static void reverse(void *elements, size_t size, size_t count)
{
    unsigned char *first = elements, *last = first + size * (count ? count - 1 : 0);
    for (; first < last; first += size, last -= size)
        for (size_t k = 0; k < size; k++) {
            unsigned char byte = first[k];
            first[k] = last[k];
            last[k] = byte;
        }
}

/* A launch with other weights where they are packed before each: nothing of them may be left when
 * the right ones come. */
static enum status launch_with_others(struct kernel_case *c, struct kernel_state *state,
                                      struct error *err)
{
    const struct kernel *kernel = c->setup.kernel;
    if (!kernel_packs_each_time(kernel, &c->query))
        return STATUS_OK;
    for (int k = 0; k < c->query.in_count; k++) {
        const struct guarded *memory = &c->in[k].memory;
        enum dtype dtype = c->in_desc[k].dtype;
        if ((kernel->packs >> k & 1) && !c->fixed[k] && memory->base && dtype_is_float(dtype))
            reverse(memory->data, dtype_size(dtype), memory->bytes / dtype_size(dtype));
    }
    TRY(launch(c, state, 0x33, err));
    for (int k = 0; k < c->query.in_count; k++)
        if (c->in[k].memory.base)
            memcpy(c->in[k].memory.data, c->in[k].original, c->in[k].memory.bytes);
    return STATUS_OK;
}

static bool has_rows_apart(const struct kernel_case *c)
{
    for (int k = 0; k < c->query.out_count; k++)
        if (c->out[k].apart.mask)
            return true;
    return false;
}

/* In the executable a weight and its moments are updated where they lie, and so is a cache of which
 * a part is replaced. A state's rows lie as those of what follows it. */
static enum status launch_in_place(struct kernel_case *c, struct kernel_state *state,
                                   struct error *err)
{
    const struct op *op = c->query.node->op;
    if ((!op->update && op->reads != READS_REPLACED_PART) || has_rows_apart(c))
        return STATUS_OK;
    c->in_place = true;
    enum status status = launch(c, state, 0x11, err);
    for (int k = 0; status == STATUS_OK && k < c->query.out_count; k++) {
        const struct guarded *memory = &memory_of_output(c, k)->memory;
        if (c->out[k].memory.base && memcmp(memory->data, c->out[k].original, memory->bytes) != 0)
            status = FAIL(err, STATUS_INVALID, "output %d is another one in place", k);
        if (status == STATUS_OK)
            status = guards_intact(memory, "state of output", k, err);
    }
    c->in_place = false;
    return status;
}

static enum status launch_twice(struct kernel_case *c, struct kernel_state *state,
                                struct error *err)
{
    TRY(launch_with_others(c, state, err));
    for (int k = 0; k < c->query.in_count; k++)
        if (!kernel_reads(c->setup.kernel, &c->query,
                          k)) /* the executable gives this memory back */
            memset(c->in[k].memory.data, 0xFF, c->in[k].memory.bytes);
    TRY(launch(c, state, 0xFF, err));
    for (int k = 0; k < c->query.out_count; k++)
        if (c->out[k].memory.base)
            memcpy(c->out[k].original, c->out[k].memory.data, c->out[k].memory.bytes);
    TRY(launch(c, state, 0x11, err));
    TRY(check_inputs(c, err));
    return check_outputs(c, err);
}

/* What an earlier variant broke must not count against this one. */
static void repair(struct kernel_case *c)
{
    for (int k = 0; k < c->query.in_count; k++) {
        guards_paint(&c->in[k].memory);
        if (c->in[k].memory.base)
            memcpy(c->in[k].memory.data, c->in[k].original, c->in[k].memory.bytes);
    }
    for (int k = 0; k < c->query.out_count; k++)
        guards_paint(&c->out[k].memory);
}

enum status kernel_case_run(struct kernel_case *c, int variant, struct error *err)
{
    const struct kernel *kernel = c->setup.kernel;
    struct kernel_state *state;
    size_t state_bytes;
    repair(c);
    guarded_free(&c->workspace, c->setup.device);
    TRY(kernel_plan(kernel, &c->query, variant, &state, err));
    enum status status = guarded_new(&c->workspace, kernel_workspace(kernel, state), err);
    if (status == STATUS_OK)
        status = kernel_prepare(kernel, &c->query, state, &state_bytes, err);
    if (status == STATUS_OK)
        status = launch_twice(c, state, err);
    if (status == STATUS_OK)
        status = launch_in_place(c, state, err);
    kernel_release(kernel, state);
    return status;
}
