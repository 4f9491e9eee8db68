/* SPDX-License-Identifier: Apache-2.0
 *
 * NCF (NeuMF): He, Liao, Zhang, Nie, Hu, Chua, "Neural Collaborative Filtering", WWW 2017, on
 * MovieLens-1M. AI Matrix feeds one-hot vectors through dense layers with bias and ReLU; with
 * embedding=gather the same tables are looked up instead. The films with the best scores of a
 * batch are recommended. */
#include <string.h>

#include "workloads/lib/layers.h"
#include "workloads/workload.h"

enum { USERS = 6040, ITEMS = 3706, WIDTH = 16, BEST = 10 };

static const char *const forms[] = {"onehot", "gather", NULL};
static const struct param params[] = {
    {"embedding", "onehot", forms, "how ids become vectors: a product with one-hot rows, or rows"},
    {.name = NULL},
};

/* ReLU(table[id] + bias), [N, WIDTH] */
static int embed(struct graph *g, int ids, int hot, const char *name, int64_t rows)
{
    if (hot != NONE)
        return relu(g, dense(g, hot, name, WIDTH));
    int bias = graph_param(g, name_of(g, "%s.bias", name), DTYPE_F32, shape_of(WIDTH),
                           (struct fill){.kind = FILL_UNIFORM, .a = -0.05, .b = 0.05});
    return relu(g, add(g, embedding(g, ids, name, rows, WIDTH), bias));
}

/* The films of the BEST highest scores, the best first. */
static int recommend(struct graph *g, int score, int item, int64_t batch)
{
    const int64_t count = batch < BEST ? batch : BEST;
    int best[2], all = reshape(g, score, 1, &batch);
    graph_node_many(g, "TopK", NULL, INPUTS(all, graph_const_i64(g, 1, &count)), NO_ATTRS, 2, best);
    return gather(g, item, best[1], 0);
}

static void build(struct graph *g, const struct workload_config *config)
{
    bool dense_form = strcmp(config_text(config, "embedding"), "onehot") == 0;
    struct shape batch = shape_of(config->batch);
    int user = graph_input(g, "user", DTYPE_I32, batch,
                           (struct fill){.kind = FILL_ZIPF, .a = 0, .b = USERS});
    int item = graph_input(g, "item", DTYPE_I32, batch,
                           (struct fill){.kind = FILL_ZIPF, .a = 0, .b = ITEMS});
    int user_hot = dense_form ? one_hot(g, user, USERS) : NONE;
    int item_hot = dense_form ? one_hot(g, item, ITEMS) : NONE;

    int gmf = mul(g, embed(g, user, user_hot, "user_gmf", USERS),
                  embed(g, item, item_hot, "item_gmf", ITEMS));
    int pair[] = {embed(g, user, user_hot, "user_mlp", USERS),
                  embed(g, item, item_hot, "item_mlp", ITEMS)};
    int x = concat(g, 1, 2, pair);
    x = relu(g, dense(g, x, "mlp1", 32));
    x = relu(g, dense(g, x, "mlp2", 16));
    x = relu(g, dense(g, x, "mlp3", 8));
    x = concat(g, 1, 2, (int[]){gmf, x});
    x = sigmoid(g, dense(g, x, "prediction", 1));
    graph_rename(g, x, "score");
    graph_output(g, x);
    x = recommend(g, x, item, config->batch);
    graph_rename(g, x, "recommended");
    graph_output(g, x);
}

REGISTER(workload, ncf) = {
    .name = "ncf",
    .domain = "recommendation",
    .task = "implicit-feedback ranking",
    .summary = "NeuMF on MovieLens-1M: 6040 users, 3706 items",
    .source = "He et al., WWW 2017; AI Matrix NCF",
    .params = params,
    .table1_batch = 256,
    .batch = 256,
    .build = build,
};
