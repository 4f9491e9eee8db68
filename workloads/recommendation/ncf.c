/* SPDX-License-Identifier: Apache-2.0
 *
 * NCF (NeuMF): He, Liao, Zhang, Nie, Hu, Chua, "Neural Collaborative Filtering", WWW 2017, on
 * MovieLens-1M. AI Matrix feeds one-hot vectors through dense layers with bias and ReLU; with
 * embedding=gather the same tables are looked up instead. The films with the best scores of a
 * batch are recommended.
 *
 * It learns whether a user has seen a film: binary cross-entropy by Adam (He et al., section 3.3;
 * AI Matrix's rate). */
#include <math.h>
#include <string.h>

#include "base/numbers/random.h"
#include "base/system/hash.h"
#include "workloads/lib/layers.h"
#include "workloads/lib/lessons.h"
#include "workloads/lib/losses.h"
#include "workloads/training.h"

enum { WIDTH = 16, BEST = 10 };

static const char *const forms[] = {"onehot", "gather", NULL};
static const struct param params[] = {
    {"embedding", "onehot", forms, "how ids become vectors: a product with one-hot rows, or rows"},
    {"users", "6040", NULL, "rows of the users' tables"},
    {"items", "3706", NULL, "rows of the films' tables"},
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

/* How sure the network is that a user has seen a film: log odds, [N, 1]. */
static int log_odds(struct graph *g, const struct workload_config *config, int user, int item)
{
    int64_t users = config_int(config, "users"), items = config_int(config, "items");
    bool dense_form = strcmp(config_text(config, "embedding"), "onehot") == 0;
    int user_hot = dense_form ? one_hot(g, user, users) : NONE;
    int item_hot = dense_form ? one_hot(g, item, items) : NONE;

    int gmf = mul(g, embed(g, user, user_hot, "user_gmf", users),
                  embed(g, item, item_hot, "item_gmf", items));
    int pair[] = {embed(g, user, user_hot, "user_mlp", users),
                  embed(g, item, item_hot, "item_mlp", items)};
    int x = concat(g, 1, 2, pair);
    x = relu(g, dense(g, x, "mlp1", 32));
    x = relu(g, dense(g, x, "mlp2", 16));
    x = relu(g, dense(g, x, "mlp3", 8));
    x = concat(g, 1, 2, (int[]){gmf, x});
    return dense(g, x, "prediction", 1);
}

static int ids(struct graph *g, const struct workload_config *config, const char *name,
               const char *rows)
{
    struct fill zipf = {.kind = FILL_ZIPF, .a = 0, .b = (double)config_int(config, rows)};
    return graph_input(g, name, DTYPE_I32, shape_of(config->batch), zipf);
}

static void build(struct graph *g, const struct workload_config *config)
{
    int user = ids(g, config, "user", "users"), item = ids(g, config, "item", "items");
    int x = sigmoid(g, log_odds(g, config, user, item));
    graph_rename(g, x, "score");
    graph_output(g, x);
    x = recommend(g, x, item, config->batch);
    graph_rename(g, x, "recommended");
    graph_output(g, x);
}

/* ---- training ---- */

static void build_loss(struct graph *g, const struct workload_config *config)
{
    int user = ids(g, config, "user", "users"), item = ids(g, config, "item", "items");
    int seen = graph_input(g, "seen", DTYPE_F32, shape_of(config->batch, 1),
                           (struct fill){.kind = FILL_INDEX, .a = 0, .b = 2});
    int x = log_odds(g, config, user, item);
    graph_output(g, binary_cross_entropy_with_logits(g, x, seen));
    graph_rename(g, x, "log_odds");
    graph_output(g, x);
}

/* A user's and a film's four hidden factors say how likely it is that the one has seen the other.
 */
static double likelihood(uint64_t seed, int64_t user, int64_t item)
{
    uint32_t of_user[4], of_item[4];
    double taste = 0;
    random_words(seed, (uint64_t)user, of_user);
    random_words(~seed, (uint64_t)item, of_item);
    for (int k = 0; k < 4; k++)
        taste += ((double)of_user[k] * 0x1p-31 - 1) * ((double)of_item[k] * 0x1p-31 - 1);
    return 1 / (1 + exp(-18 * taste));
}

static void fill(const struct batch *batch)
{
    int32_t *user = batch_input(batch, "user"), *item = batch_input(batch, "item");
    float *seen = batch_input(batch, "seen");
    int64_t users = batch_range(batch, "user"), items = batch_range(batch, "item");
    uint64_t world = hash_fnv1a("ncf"); /* the same whatever the seed of the samples */
    for (int64_t n = 0; n < batch->size; n++) {
        struct draw draw = draw_begin(batch, n);
        for (int tries = 0; tries < 1000; tries++) { /* one pair in eight is held out */
            user[n] = (int32_t)draw_index(&draw, users);
            item[n] = (int32_t)draw_index(&draw, items);
            double share = random_uniform(world, (uint64_t)(user[n] * items + item[n]));
            if ((share < 0.125) == batch->held_out)
                break;
        }
        double likely = likelihood(world, user[n], item[n]);
        seen[n] = draw_uniform(&draw) < likely;
        if (batch->bayes)
            batch->bayes[n] = (float)likely;
    }
}

static const struct recipe recipe = {
    .optimiser = "adam",
    .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 1e-3},
    .source = "He et al., WWW 2017; AI Matrix NCF",
};

static const struct training training = {
    .build = build_loss,
    .recipe = &recipe,
    .fill = fill,
    .quality = &quality_auc,
    .answers = "log_odds",
    .targets = "seen",
    .bayes = true,
    .lesson = "which user has seen which film, by hidden factors of 4 dimensions",
    .tiny = "users=64,items=48",
    .tiny_batch = 256,
    .tiny_rate = 0.01,
    .tiny_steps = 400,
};

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
    .training = &training,
};
