/* SPDX-License-Identifier: Apache-2.0
 *
 * Neighbouring elementwise nodes of floats become one Chain, whose intermediate results never
 * leave the first cache. A group grows from its last node upwards: a producer joins when its
 * result has the shape of the group's and is read inside the group alone. So the group has one
 * result, and no path leaves it and comes back. */
#include <stdlib.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

enum { GROUP_MAX = CHAIN_STEPS };

struct group {
    int nodes[GROUP_MAX]; /* ascending: execution order */
    int count;
};

static bool is_candidate(const struct graph *g, int n)
{
    const struct node *node = &g->nodes[n];
    if (node->dead || node->post_count || node->output_count != 1 || !op_is_expression(node->op))
        return false;
    if (g->values[node->outputs[0]].dtype != DTYPE_F32)
        return false;
    for (int k = 0; k < node->input_count; k++)
        if (node->inputs[k] != NONE && g->values[node->inputs[k]].dtype != DTYPE_F32)
            return false;
    return true;
}

static bool contains(const struct group *group, int n)
{
    for (int k = 0; k < group->count; k++)
        if (group->nodes[k] == n)
            return true;
    return false;
}

static bool read_inside_alone(const struct graph *g, const struct group *group, int value)
{
    int inside = 0;
    for (int k = 0; k < group->count; k++) {
        const struct node *node = &g->nodes[group->nodes[k]];
        for (int i = 0; i < node->input_count; i++)
            inside += node->inputs[i] == value;
    }
    return inside == graph_uses(g, value);
}

static void insert(struct group *group, int n)
{
    int at = group->count++;
    for (; at > 0 && group->nodes[at - 1] > n; at--)
        group->nodes[at] = group->nodes[at - 1];
    group->nodes[at] = n;
}

static void remove_node(struct group *group, int n)
{
    int to = 0;
    for (int k = 0; k < group->count; k++)
        if (group->nodes[k] != n)
            group->nodes[to++] = group->nodes[k];
    group->count = to;
}

/* ---- the expression of a group ---- */

struct builder {
    const struct graph *g;
    struct chain chain;       /* operands: inputs as they are, results from CHAIN_INPUTS on */
    int inputs[CHAIN_INPUTS]; /* values */
    int result_of[GROUP_MAX]; /* per node of the group: its operand */
};

static int operand_of(struct builder *b, const struct group *group, int value)
{
    int producer = b->g->values[value].producer;
    for (int k = 0; k < group->count; k++)
        if (group->nodes[k] == producer)
            return b->result_of[k];
    for (int k = 0; k < b->chain.inputs; k++)
        if (b->inputs[k] == value)
            return k;
    if (b->chain.inputs == CHAIN_INPUTS)
        return NONE;
    b->inputs[b->chain.inputs] = value;
    return b->chain.inputs++;
}

/* Operand k of a step of one node, as an operand of the group's chain. */
static int translate(struct builder *b, const struct group *group, const struct node *node, int k,
                     int first_step)
{
    if (k >= node->input_count)
        return CHAIN_INPUTS + first_step + k - node->input_count;
    return operand_of(b, group, node->inputs[k]);
}

/* False when the chain is full. */
static bool append(struct builder *b, const struct group *group, int member)
{
    const struct node *node = &b->g->nodes[group->nodes[member]];
    struct chain own;
    int first_step = b->chain.count;
    if (!rewrite_expression(b->g, node, &own) || first_step + own.count > CHAIN_STEPS)
        return false;
    for (int s = 0; s < own.count; s++) {
        struct chain_step step = own.steps[s];
        bool two = function_info(step.code)->operands == 2;
        step.a = translate(b, group, node, step.a, first_step);
        step.b = two ? translate(b, group, node, step.b, first_step) : step.a;
        if (step.a == NONE || step.b == NONE)
            return false;
        b->chain.steps[b->chain.count++] = step;
    }
    b->result_of[member] = CHAIN_INPUTS + b->chain.count - 1;
    return true;
}

/* Whether what the chain reads has the shape of the group together: a scalar that became a
 * parameter, such as an exponent of shape [1, 1, 1], is no longer there to raise the rank. */
static bool keeps_shape(const struct builder *b, const struct shape *whole)
{
    struct shape shape = {0};
    for (int k = 0; k < b->chain.inputs; k++)
        if (!shape_broadcast(&shape, &b->g->values[b->inputs[k]].shape, &shape))
            return false;
    return shape_equal(&shape, whole);
}

static bool build(struct builder *b, const struct graph *g, const struct group *group)
{
    const struct node *last = &g->nodes[group->nodes[group->count - 1]];
    *b = (struct builder){.g = g};
    for (int k = 0; k < group->count; k++)
        if (!append(b, group, k))
            return false;
    return keeps_shape(b, &g->values[last->outputs[0]].shape);
}

/* ---- growing ---- */

static bool may_join(const struct graph *g, const struct group *group, const struct shape *shape,
                     int value)
{
    int producer = value == NONE ? NONE : g->values[value].producer;
    return producer != NONE && !contains(group, producer) && is_candidate(g, producer) &&
           shape_equal(&g->values[value].shape, shape) && read_inside_alone(g, group, value);
}

/* One more node, if there is one that the chain has room for. */
static bool grow(const struct graph *g, struct group *group, const struct shape *shape)
{
    struct builder b;
    for (int k = group->count - 1; k >= 0; k--) {
        const struct node *node = &g->nodes[group->nodes[k]];
        for (int i = 0; i < node->input_count; i++) {
            int value = node->inputs[i];
            if (group->count == GROUP_MAX || !may_join(g, group, shape, value))
                continue;
            insert(group, g->values[value].producer);
            if (build(&b, g, group))
                return true;
            remove_node(group, g->values[value].producer);
        }
    }
    return false;
}

static enum status replace(struct graph *g, const struct group *group, struct error *err)
{
    struct builder b;
    int64_t code[3 * CHAIN_STEPS];
    double params[2 * CHAIN_STEPS];
    if (!build(&b, g, group))
        return STATUS_OK;
    for (int s = 0; s < b.chain.count; s++) {
        struct chain_step step = b.chain.steps[s];
        int shift = CHAIN_INPUTS - b.chain.inputs;
        code[3 * s] = step.code;
        code[3 * s + 1] = step.a >= CHAIN_INPUTS ? step.a - shift : step.a;
        code[3 * s + 2] = step.b >= CHAIN_INPUTS ? step.b - shift : step.b;
        params[2 * s] = (double)step.p;
        params[2 * s + 1] = (double)step.q;
    }
    struct attr floats = {
        .name = "params", .kind = ATTR_FLOATS, .count = 2 * b.chain.count, .floats = params};
    const struct node *last = &g->nodes[group->nodes[group->count - 1]];
    int old = last->outputs[0];
    g->phase = last->phase;
    int fresh = graph_node(g, op_chain.name, NULL, b.chain.inputs, b.inputs,
                           ATTRS(attr_ints("code", 3 * b.chain.count, code), floats));
    if (fresh == NONE)
        return graph_check(g, err);
    rewrite_replace(g, old, fresh);
    for (int k = 0; k < group->count; k++)
        g->nodes[group->nodes[k]].dead = true;
    return STATUS_OK;
}

enum status pass_fuse_chain(struct graph *g, struct error *err)
{
    for (int n = g->node_count - 1; n >= 0; n--) {
        if (!is_candidate(g, n))
            continue;
        struct group group = {.nodes = {n}, .count = 1};
        struct shape shape = g->values[g->nodes[n].outputs[0]].shape;
        while (grow(g, &group, &shape))
            continue;
        if (group.count > 1)
            TRY(replace(g, &group, err));
    }
    return STATUS_OK;
}
