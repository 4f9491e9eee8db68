/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/reference/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/pool.h"

void ref_posts(const struct node *node, const struct ref_tensor *const *in,
               const struct ref_tensor *out)
{
    for (int p = 0; p < node->post_count; p++) {
        const struct post *post = &node->posts[p];
        const struct ref_tensor *operand = post->kind == POST_ACT ? NULL : in[post->input];
        for (int64_t k = 0; k < out->count; k++) {
            double x = out->f[k], a = (double)post->a, b = (double)post->b;
            double y =
                operand ? operand->f[ref_broadcast_index(&out->shape, k, &operand->shape)] : 0;
            out->f[k] = post->kind == POST_ACT   ? function_value(post->act, a, b, x, 0)
                        : post->kind == POST_ADD ? x + y
                                                 : x * y;
        }
    }
}

/* ---- the reference as a kernel ---- */

struct kernel_state {
    const struct kernel_query *q;
    size_t head_bytes, bytes; /* of the workspace: the tensors and pointers to them; all */
};

static size_t slot_bytes(const struct desc *desc)
{
    return ((size_t)shape_count(&desc->shape) * 8 + 63) & ~(size_t)63;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    size_t count = (size_t)(q->in_count + q->out_count);
    (void)variant;
    (void)why;
    state->q = q;
    state->head_bytes = (count * (sizeof(struct ref_tensor) + sizeof(void *)) + 63) & ~(size_t)63;
    state->bytes = state->head_bytes;
    for (int k = 0; k < q->in_count; k++)
        state->bytes += slot_bytes(&q->in[k]);
    for (int k = 0; k < q->out_count; k++)
        state->bytes += slot_bytes(&q->out[k]);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    return state->bytes;
}

static char *place_all(const struct desc *descs, int count, struct ref_tensor *tensors,
                       struct ref_tensor **pointers, char *memory)
{
    for (int k = 0; k < count; k++) {
        pointers[k] = descs[k].dtype == DTYPE_NONE ? NULL : &tensors[k];
        tensors[k] = (struct ref_tensor){.dtype = descs[k].dtype,
                                         .shape = descs[k].shape,
                                         .count = shape_count(&descs[k].shape)};
        ref_place(&tensors[k], memory);
        memory += slot_bytes(&descs[k]);
    }
    return memory;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const struct kernel_query *q = state->q;
    int total = q->in_count + q->out_count;
    struct ref_tensor *tensors = args->workspace;
    struct ref_tensor **pointers = (void *)(tensors + total);
    struct ref_tensor **in = pointers, **out = pointers + q->in_count;
    char *memory = (char *)args->workspace + state->head_bytes;
    memory = place_all(q->in, q->in_count, tensors, in, memory);
    place_all(q->out, q->out_count, tensors + q->in_count, out, memory);
    for (int k = 0; k < q->in_count; k++)
        if (in[k])
            ref_load(in[k], &q->in[k], args->in[k]);
    for (int k = 0; k < q->out_count; k++) {
        void *data = !out[k] ? NULL : out[k]->f ? (void *)out[k]->f : out[k]->i;
        if (data)
            memset(data, 0, (size_t)out[k]->count * 8);
    }
    struct ref_call call = {.node = q->node,
                            .in = (const struct ref_tensor *const *)in,
                            .out = out,
                            .in_count = q->node->op_inputs,
                            .out_count = q->out_count,
                            .pool = args->pool};
    struct error err;
    enum status status = q->node->op->reference(&call, &err);
    if (status == STATUS_NO_MEMORY && args->err && args->err->code == STATUS_OK)
        *args->err = err;
    if (status != STATUS_OK)
        for (int64_t k = 0; out[0]->f && k < out[0]->count; k++)
            out[0]->f[k] = (double)NAN; /* seen by every check; the error is the caller's to ask */
    if (q->node->post_count)
        ref_posts(q->node, call.in, out[0]);
    for (int k = 0; k < q->out_count; k++)
        if (out[k])
            ref_store(out[k], &q->out[k], args->out[k]);
}

const struct kernel kernel_reference = {
    .name = "reference",
    .provider = "reference",
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};

/* ---- whole graphs in double ---- */

struct run {
    const struct graph *g;
    struct ref_tensor *values; /* per value; count < 0: not there */
    bool *lent;                /* per value: it is the caller's */
    int *last_use;             /* node that reads it last; node_count for outputs */
    struct ref_tensor *given;  /* the outputs, for the caller */
    struct ref_tensor **slots; /* room for the arguments of the widest node */
    const struct reference_watch *watch;
    struct pool *pool;
};

struct contents {
    const struct value *value;
    const struct ref_tensor *tensor;
};

static void load_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct contents *c = context;
    int64_t first = tile * MATERIALISE_TILE, left = c->tensor->count - first;
    int64_t raw[MATERIALISE_TILE]; /* of any type */
    value_materialise_tile(c->value, tile, raw);
    ref_load_part(c->tensor, first, left < MATERIALISE_TILE ? left : MATERIALISE_TILE, raw);
}

static enum status fill_tensor(const struct value *value, struct ref_tensor *t, struct pool *pool,
                               struct error *err)
{
    if (t->f || t->i)
        return STATUS_OK;
    TRY(ref_alloc(t, value->dtype, &value->shape, err));
    struct contents contents = {.value = value, .tensor = t};
    pool_run(pool, value_tiles(value), load_tile, &contents);
    return STATUS_OK;
}

static enum status materialise(struct run *run, int v, struct error *err)
{
    return fill_tensor(&run->g->values[v], &run->values[v], run->pool, err);
}

enum status reference_inputs(const struct graph *graph, struct ref_tensor *inputs,
                             struct pool *pool, struct error *err)
{
    memset(inputs, 0, (size_t)graph->input_count * sizeof(*inputs));
    for (int k = 0; k < graph->input_count; k++)
        TRY(fill_tensor(&graph->values[graph->inputs[k]], &inputs[k], pool, err));
    return STATUS_OK;
}

static int index_of(const int *list, int count, int value)
{
    int k = 0;
    while (k < count && list[k] != value)
        k++;
    return k;
}

void reference_carry(const struct graph *graph, struct ref_tensor *inputs,
                     const struct ref_tensor *outputs)
{
    for (int s = 0; s < graph->state_count; s++) {
        const struct state *state = &graph->states[s];
        int from = index_of(graph->outputs, graph->output_count, state->after);
        int to = index_of(graph->inputs, graph->input_count, state->before);
        if (state->after == NONE || from == graph->output_count || to == graph->input_count)
            continue;
        void *memory = inputs[to].f ? (void *)inputs[to].f : inputs[to].i;
        const void *next = outputs[from].f ? (void *)outputs[from].f : outputs[from].i;
        memcpy(memory, next, (size_t)inputs[to].count * 8);
    }
}

static void release(const struct run *run, int v)
{
    if (v != NONE && !run->lent[v])
        ref_release(&run->values[v]);
}

static enum status compute_node(struct run *run, const struct node *node, struct error *err)
{
    struct ref_tensor **in = run->slots, **out = run->slots + node->input_count;
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k];
        in[k] = v == NONE ? NULL : &run->values[v];
        if (v != NONE)
            TRY(materialise(run, v, err));
    }
    for (int k = 0; k < node->output_count; k++) {
        int v = node->outputs[k];
        out[k] = v == NONE ? NULL : &run->values[v];
        if (v != NONE)
            TRY(ref_alloc(out[k], run->g->values[v].dtype, &run->g->values[v].shape, err));
    }
    struct ref_call call = {.node = node,
                            .in = (const struct ref_tensor *const *)in,
                            .out = out,
                            .in_count = node->op_inputs,
                            .out_count = node->output_count,
                            .pool = run->pool};
    if (node->op->reference(&call, err) != STATUS_OK)
        return error_context(err, "node \"%s\" (%s)", node->name, node->op->name);
    if (node->post_count)
        ref_posts(node, call.in, out[0]);
    for (int k = 0; k < node->output_count; k++)
        if (out[k])
            ref_wrap(out[k]);
    return STATUS_OK;
}

static enum status run_node(struct run *run, int n, struct error *err)
{
    const struct node *node = &run->g->nodes[n];
    TRY(compute_node(run, node, err));
    if (run->watch)
        TRY(run->watch->after(run->watch->context, node, run->values, err));
    for (int k = 0; k < node->input_count; k++)
        if (node->inputs[k] != NONE && run->last_use[node->inputs[k]] == n)
            release(run, node->inputs[k]);
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NONE && run->last_use[node->outputs[k]] < n)
            ref_release(&run->values[node->outputs[k]]);
    return STATUS_OK;
}

void graph_last_uses(const struct graph *g, int *last)
{
    for (int v = 0; v < g->value_count; v++)
        last[v] = NONE;
    for (int n = 0; n < g->node_count; n++)
        for (int k = 0; k < g->nodes[n].input_count; k++)
            if (g->nodes[n].inputs[k] != NONE)
                last[g->nodes[n].inputs[k]] = n;
    for (int k = 0; k < g->output_count; k++)
        last[g->outputs[k]] = g->node_count;
}

/* The caller's from now on; a copy where it is lent, or another output as well. */
static enum status give_output(struct run *run, int k, struct error *err)
{
    const struct graph *g = run->g;
    int v = g->outputs[k];
    TRY(materialise(run, v, err));
    struct ref_tensor *t = &run->values[v], *out = &run->given[k];
    bool again = index_of(g->outputs + k + 1, g->output_count - k - 1, v) < g->output_count - k - 1;
    if (!again && !run->lent[v]) {
        *out = *t;
        *t = (struct ref_tensor){.dtype = DTYPE_NONE};
        return STATUS_OK;
    }
    TRY(ref_alloc(out, t->dtype, &t->shape, err));
    memcpy(out->f ? (void *)out->f : out->i, t->f ? (void *)t->f : t->i, (size_t)t->count * 8);
    return STATUS_OK;
}

static enum status run_graph(struct run *run, const struct ref_tensor *inputs, struct error *err)
{
    const struct graph *g = run->g;
    graph_last_uses(g, run->last_use);
    for (int k = 0; inputs && k < g->input_count; k++) {
        run->values[g->inputs[k]] = inputs[k];
        run->lent[g->inputs[k]] = true;
    }
    for (int n = 0; n < g->node_count; n++)
        if (!g->nodes[n].dead)
            TRY(run_node(run, n, err));
    for (int k = 0; k < g->output_count; k++)
        TRY(give_output(run, k, err));
    return STATUS_OK;
}

enum status reference_run(const struct graph *graph, const struct ref_tensor *inputs,
                          struct ref_tensor *outputs, struct pool *pool, struct error *err)
{
    return reference_run_watched(graph, inputs, outputs, NULL, pool, err);
}

enum status reference_run_watched(const struct graph *graph, const struct ref_tensor *inputs,
                                  struct ref_tensor *outputs, const struct reference_watch *watch,
                                  struct pool *pool, struct error *err)
{
    size_t values = (size_t)graph->value_count + 1, widest = 1;
    for (int n = 0; n < graph->node_count; n++) {
        size_t width = (size_t)(graph->nodes[n].input_count + graph->nodes[n].output_count);
        widest = width > widest ? width : widest;
    }
    struct run run = {.g = graph,
                      .pool = pool,
                      .watch = watch,
                      .values = calloc(values, sizeof(*run.values)),
                      .lent = calloc(values, sizeof(*run.lent)),
                      .given = outputs,
                      .last_use = calloc(values, sizeof(int)),
                      .slots = calloc(widest, sizeof(*run.slots))};
    memset(outputs, 0, (size_t)graph->output_count * sizeof(*outputs));
    bool fine = run.values && run.lent && run.last_use && run.slots;
    enum status status = fine ? run_graph(&run, inputs, err) : FAIL_NO_MEMORY(err);
    for (int v = 0; fine && v < graph->value_count; v++)
        release(&run, v);
    for (int k = 0; status != STATUS_OK && k < graph->output_count; k++)
        ref_release(&outputs[k]);
    free(run.values);
    free(run.lent);
    free(run.last_use);
    free(run.slots);
    return status;
}
