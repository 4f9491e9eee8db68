/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/sum_counts.h"

#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

static int sum_of_ranks(struct graph *g, int x, int ranks)
{
    return graph_node(g, op_all_reduce.name, NULL, INPUTS(x), ATTRS(attr_int("ranks", ranks)));
}

static int sum_of_all(struct graph *g, int x)
{
    return graph_node(g, op_reduce_sum.name, NULL, INPUTS(x), ATTRS(attr_int("keepdims", 0)));
}

/* ---- cross-entropy ---- */

static bool leaves_labels_out(const struct node *node)
{
    bool entropy =
        node->op == &op_softmax_cross_entropy_loss || node->op == &op_negative_log_likelihood_loss;
    return entropy && node_attr(node, "ignore_index") &&
           strcmp(node_string(node, "reduction", "mean"), "mean") == 0;
}

/* How many labels are not the one that is left out. */
static int count_of_labels(struct graph *g, int labels, int64_t left_out)
{
    int64_t all = shape_count(&g->values[labels].shape);
    int none = graph_node(
        g, op_equal.name, NULL,
        INPUTS(make_cast(g, labels, DTYPE_I64), graph_const_i64(g, -1, &left_out)), NO_ATTRS);
    return make_sub(g, make_number(g, DTYPE_F32, (double)all),
                    sum_of_all(g, make_cast(g, none, DTYPE_F32)));
}

static enum status share_mean(struct graph *g, int n, int ranks, struct error *err)
{
    struct node node = g->nodes[n]; /* its lists stay where they are */
    int64_t left_out = node_int(&node, "ignore_index", 0);
    int out[2] = {NONE, NONE};
    if (node.op_inputs > 2 && node.inputs[2] != NONE)
        return UNSUPPORTED(err,
                           "node \"%s\": a mean by weights of classes over ranks, whose sums of "
                           "weights differ",
                           node.name);
    g->phase = node.phase;
    int counted = sum_of_ranks(g, count_of_labels(g, node.inputs[1], left_out), ranks);
    graph_node_many(g, node.op->name, NULL, INPUTS(node.inputs[0], node.inputs[1]),
                    ATTRS(attr_string("reduction", "sum"), attr_int("ignore_index", left_out)),
                    node.output_count, out);
    int loss = make_div(g, out[0], make_share(g, counted, ranks));
    TRY(graph_failed(g, err));
    rewrite_replace(g, node.outputs[0], loss);
    if (node.output_count > 1)
        rewrite_replace(g, node.outputs[1], out[1]);
    g->nodes[n].dead = true;
    return STATUS_OK;
}

/* ---- max(1, sum) ---- */

/* The sum over a whole value that is at least taken as 1; NONE: the node is something else. */
static int count_of(const struct graph *g, const struct node *node)
{
    double least;
    int sum = NONE;
    if (node->op != &op_max || node->op_inputs != 2 ||
        !rewrite_with_scalar(g, node, &least, &sum) || least != 1)
        return NONE;
    const struct node *from = rewrite_producer(g, sum, &op_reduce_sum);
    bool all = from && from->op_inputs == 1 && !node_attr(from, "axes");
    return all ? sum : NONE;
}

static enum status share_count(struct graph *g, int n, int sum, int ranks, struct error *err)
{
    g->phase = g->nodes[n].phase;
    int old = g->nodes[n].outputs[0];
    int one = make_number(g, g->values[sum].dtype, 1);
    int largest = make_binary(g, &op_max, sum_of_ranks(g, sum, ranks), one);
    int share = make_share(g, largest, ranks);
    TRY(graph_failed(g, err));
    rewrite_replace(g, old, share);
    g->nodes[n].dead = true;
    return STATUS_OK;
}

enum status sum_counts(struct graph *g, int ranks, struct error *err)
{
    enum phase phase = g->phase;
    int count = g->node_count;
    for (int n = 0; n < count; n++) {
        int sum = g->nodes[n].dead ? NONE : count_of(g, &g->nodes[n]);
        if (sum != NONE)
            TRY(share_count(g, n, sum, ranks, err));
        else if (!g->nodes[n].dead && leaves_labels_out(&g->nodes[n]))
            TRY(share_mean(g, n, ranks, err));
    }
    g->phase = phase;
    graph_compact(g);
    return graph_check(g, err);
}
