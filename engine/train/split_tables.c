/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/split_tables.h"

#include <stdlib.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/rank_parts.h"

/* A node that reads rows of a table which is split. */
struct lookup {
    int node, table, index;
    int64_t width;      /* of the table when it was whole */
    struct shape shape; /* of the vectors */
    int rows;           /* the indices of all ranks */
    int vectors;        /* of all ranks' samples in this rank's columns, [ranks, ...] */
};

struct tables {
    struct graph *g;
    int ranks;
    bool *split;   /* per value */
    bool *follows; /* per value: from some lookup */
    struct lookup *lookups;
    int count;
};

/* ---- which tables ---- */

static bool reads_rows(const struct node *node)
{
    return !node->dead && node->post_count == 0 &&
           (node->op == &op_embedding_bag ||
            (node->op == &op_gather && node_int(node, "axis", 0) == 0));
}

static bool is_table(const struct tables *t, int v)
{
    const struct value *value = &t->g->values[v];
    return value->kind == VALUE_PARAM && !value->data && dtype_is_float(value->dtype) &&
           value->shape.rank == 2 && value->shape.dim[1] >= t->ranks;
}

/* Lookups are exchanged together, so none may wait for another one's result. */
static bool may_read(const struct tables *t, const struct node *node, int table)
{
    int index = node->inputs[1];
    return reads_rows(node) && node->inputs[0] == table && index != NONE && index != table &&
           !t->follows[index] && t->g->values[index].shape.rank > 0;
}

static bool only_looked_up(const struct tables *t, int table)
{
    const struct graph *g = t->g;
    bool read = false;
    for (int k = 0; k < g->output_count; k++)
        if (g->outputs[k] == table)
            return false;
    for (int n = 0; n < g->node_count; n++)
        for (int k = 0; k < g->nodes[n].input_count; k++) {
            if (g->nodes[n].inputs[k] != table)
                continue;
            if (k != 0 || !may_read(t, &g->nodes[n], table))
                return false;
            read = true;
        }
    return read;
}

static void mark_followers(struct tables *t)
{
    const struct graph *g = t->g;
    for (int n = 0; n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        bool follows = reads_rows(node) && dtype_is_float(g->values[node->inputs[0]].dtype);
        for (int k = 0; k < node->input_count && !follows; k++)
            follows = node->inputs[k] != NONE && t->follows[node->inputs[k]];
        for (int k = 0; follows && k < node->output_count; k++)
            if (node->outputs[k] != NONE)
                t->follows[node->outputs[k]] = true;
    }
}

static void find_lookups(struct tables *t)
{
    for (int n = 0; n < t->g->node_count; n++) {
        const struct node *node = &t->g->nodes[n];
        if (!reads_rows(node) || !t->split[node->inputs[0]])
            continue;
        t->lookups[t->count++] =
            (struct lookup){.node = n,
                            .table = node->inputs[0],
                            .index = node->inputs[1],
                            .width = t->g->values[node->inputs[0]].shape.dim[1],
                            .shape = gradient_shape(t->g, node->outputs[0])};
    }
}

/* The table becomes this rank's columns of it. */
static enum status cut_table(struct tables *t, int table, struct shards *shards, struct error *err)
{
    struct value *value = &t->g->values[table];
    struct shard shard = {.state = value->name,
                          .whole = *value,
                          .rows = value->shape.dim[0],
                          .width = value->shape.dim[1],
                          .columns = rank_part(value->shape.dim[1], t->ranks)};
    value->shape.dim[1] = shard.columns;
    value->fill = (struct fill){.kind = FILL_CONST};
    return shards_add(shards, &shard, err);
}

/* ---- how they are read ---- */

static int exchange(struct graph *g, const struct op *op, int x, int ranks)
{
    enum phase phase = g->phase;
    g->phase = PHASE_COMMUNICATION;
    int y = graph_node(g, op->name, NULL, INPUTS(x), ATTRS(attr_int("ranks", ranks)));
    g->phase = phase;
    return y;
}

static int indices_of_all(struct tables *t, int lookup)
{
    for (int k = 0; k < lookup; k++)
        if (t->lookups[k].index == t->lookups[lookup].index)
            return t->lookups[k].rows;
    return exchange(t->g, &op_all_gather, t->lookups[lookup].index, t->ranks);
}

static void look_up(struct tables *t, int k)
{
    struct lookup *l = &t->lookups[k];
    struct node node = t->g->nodes[l->node]; /* its lists stay where they are */
    l->rows = indices_of_all(t, k);
    int all = graph_node(t->g, node.op->name, NULL, INPUTS(l->table, l->rows), node.attr_count,
                         node.attrs);
    if (t->g->failed)
        return;
    struct shape shape = gradient_shape(t->g, all);
    struct shape flat = shape_of(t->ranks, shape_count(&shape) / t->ranks);
    l->vectors = make_reshaped(t->g, all, &flat);
}

/* One exchange for all lookups. parts[k] becomes [ranks, ...], from each rank its columns. */
static void swap(struct tables *t, int *parts, int64_t *sizes)
{
    struct graph *g = t->g;
    for (int k = 0; k < t->count; k++) {
        parts[k] = t->lookups[k].vectors;
        sizes[k] = g->failed ? 0 : gradient_shape(g, parts[k]).dim[1];
    }
    int all = t->count == 1 ? parts[0]
                            : graph_node(g, op_concat.name, NULL, t->count, parts,
                                         ATTRS(attr_int("axis", 1)));
    all = exchange(g, &op_all_to_all, all, t->ranks);
    if (t->count == 1)
        parts[0] = all;
    else
        graph_node_many(g, op_split.name, NULL, INPUTS(all, graph_const_i64(g, t->count, sizes)),
                        ATTRS(attr_int("axis", 1)), t->count, parts);
}

/* [ranks, ..., columns] as the vectors that the network reads, [..., width]. */
static int put_together(struct tables *t, const struct lookup *l, int part)
{
    struct graph *g = t->g;
    struct shape by_rank = {.rank = l->shape.rank + 1, .dim = {t->ranks}}, wide = l->shape;
    int64_t perm[RANK_MAX], start[RANK_MAX] = {0}, columns = rank_part(l->width, t->ranks);
    int last = l->shape.rank - 1;
    for (int k = 0; k < last; k++) {
        by_rank.dim[1 + k] = l->shape.dim[k];
        perm[k] = 1 + k;
    }
    by_rank.dim[1 + last] = columns;
    perm[last] = 0;
    perm[last + 1] = last + 1;
    wide.dim[last] = t->ranks * columns;
    int x = make_permuted(g, make_reshaped(g, part, &by_rank), by_rank.rank, perm);
    x = make_reshaped(g, x, &wide);
    return wide.dim[last] == l->width ? x : make_slice(g, x, start, &l->shape);
}

static enum status rewrite_lookups(struct tables *t, struct error *err)
{
    struct graph *g = t->g;
    int *parts = calloc((size_t)t->count + 1, sizeof(*parts));
    int64_t *sizes = calloc((size_t)t->count + 1, sizeof(*sizes));
    for (int k = 0; parts && sizes && k < t->count; k++)
        look_up(t, k);
    if (parts && sizes)
        swap(t, parts, sizes);
    for (int k = 0; parts && sizes && k < t->count && !g->failed; k++) {
        int fresh = put_together(t, &t->lookups[k], parts[k]);
        if (g->failed)
            break;
        rewrite_replace(g, g->nodes[t->lookups[k].node].outputs[0], fresh);
        g->nodes[t->lookups[k].node].dead = true;
    }
    bool fine = parts && sizes;
    free(parts);
    free(sizes);
    TRY(fine ? graph_failed(g, err) : FAIL_NO_MEMORY(err));
    graph_compact(g);
    return graph_check(g, err);
}

static enum status split_all(struct tables *t, int count, const int *weights, bool *split,
                             struct shards *shards, struct error *err)
{
    int found = 0;
    mark_followers(t);
    for (int k = 0; k < count; k++) {
        split[k] = is_table(t, weights[k]) && only_looked_up(t, weights[k]);
        t->split[weights[k]] = split[k];
        found += split[k];
    }
    if (!found)
        return UNSUPPORTED(err,
                           "no embedding table of at least %d columns that only lookups read: "
                           "tables cannot be split over %d ranks",
                           t->ranks, t->ranks);
    find_lookups(t);
    for (int k = 0; k < count; k++)
        if (split[k])
            TRY(cut_table(t, weights[k], shards, err));
    return rewrite_lookups(t, err);
}

enum status split_tables(struct graph *g, int ranks, int count, const int *weights, bool *split,
                         struct shards *shards, struct error *err)
{
    struct tables t = {.g = g,
                       .ranks = ranks,
                       .split = calloc((size_t)g->value_count + 1, sizeof(bool)),
                       .follows = calloc((size_t)g->value_count + 1, sizeof(bool)),
                       .lookups = calloc((size_t)g->node_count + 1, sizeof(*t.lookups))};
    enum status status = t.split && t.follows && t.lookups
                             ? split_all(&t, count, weights, split, shards, err)
                             : FAIL_NO_MEMORY(err);
    free(t.split);
    free(t.follows);
    free(t.lookups);
    return status;
}
