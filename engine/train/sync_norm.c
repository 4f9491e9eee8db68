/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/sync_norm.h"

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

/* Of a channel over all ranks, whose batches are equally large. x: what it is the mean of. */
static int mean_of_ranks(struct graph *g, int x, int ranks, int like)
{
    int own = make_channel_mean(g, x, like);
    int sum = graph_node(g, op_all_reduce.name, NULL, INPUTS(own), ATTRS(attr_int("ranks", ranks)));
    return make_share(g, sum, ranks);
}

/* momentum old + (1 - momentum) new takes the place of what the node made of it. */
static void keep_running(struct graph *g, const struct node *node, int output, int old, int fresh)
{
    double momentum = node_float(node, "momentum", 0.9);
    if (output >= node->output_count || node->outputs[output] == NONE)
        return;
    int was = node->outputs[output];
    int now = make_add(g, make_scaled(g, old, momentum), make_scaled(g, fresh, 1 - momentum));
    if (!g->failed)
        rewrite_replace(g, was, now);
}

static enum status synchronise(struct graph *g, int n, int ranks, struct error *err)
{
    struct node node = g->nodes[n]; /* its lists stay where they are */
    const int *in = node.inputs;
    int x = in[0];
    if (gradient_shape(g, x).rank < 2)
        return UNSUPPORTED(err, "node \"%s\": no statistics over ranks of values without channels",
                           node.name);
    g->phase = node.phase;
    int mean = mean_of_ranks(g, x, ranks, in[3]);
    int off = make_sub(g, x, make_per_channel(g, mean, x));
    int variance = mean_of_ranks(g, make_mul(g, off, off), ranks, in[4]);
    int y =
        graph_node(g, op_batch_normalization.name, NULL, INPUTS(x, in[1], in[2], mean, variance),
                   ATTRS(attr_float("epsilon", node_float(&node, "epsilon", 1e-5))));
    keep_running(g, &node, 1, in[3], mean);
    keep_running(g, &node, 2, in[4], variance);
    TRY(graph_failed(g, err));
    rewrite_replace(g, node.outputs[0], y);
    g->nodes[n].dead = true;
    return STATUS_OK;
}

/* Over the samples, one for each feature. */
static bool is_mean_of_samples(const struct graph *g, const struct node *node)
{
    int64_t axes[RANK_MAX];
    return node->op == &op_reduce_mean && node_ints(node, "axes", axes, RANK_MAX) == 1 &&
           axes[0] == 0 && node_int(node, "keepdims", 1) &&
           gradient_shape(g, node->inputs[0]).rank > 1;
}

static enum status synchronise_mean(struct graph *g, int n, int ranks, struct error *err)
{
    struct node node = g->nodes[n];
    g->phase = node.phase;
    int own =
        graph_node(g, node.op->name, NULL, INPUTS(node.inputs[0]), node.attr_count, node.attrs);
    int sum = graph_node(g, op_all_reduce.name, NULL, INPUTS(own), ATTRS(attr_int("ranks", ranks)));
    int mean = make_share(g, sum, ranks);
    TRY(graph_failed(g, err));
    rewrite_replace(g, node.outputs[0], mean);
    g->nodes[n].dead = true;
    return STATUS_OK;
}

enum status synchronise_batch_norms(struct graph *g, int ranks, struct error *err)
{
    enum phase phase = g->phase;
    int count = g->node_count;
    for (int n = 0; n < count; n++)
        if (g->nodes[n].op == &op_batch_normalization && node_int(&g->nodes[n], "training_mode", 0))
            TRY(synchronise(g, n, ranks, err));
        else if (is_mean_of_samples(g, &g->nodes[n]))
            TRY(synchronise_mean(g, n, ranks, err));
    g->phase = phase;
    graph_compact(g);
    return graph_check(g, err);
}
