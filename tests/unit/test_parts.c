/* SPDX-License-Identifier: Apache-2.0
 * Ranks that have parts of tables and of an optimiser's state learn what ranks with whole ones do,
 * whatever the optimiser; what needs whole ones is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "collective/communicator.h"
#include "collective/local_ranks.h"
#include "engine/compile/compile.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/train/train.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"

enum { RANKS = 3, ROWS = 6, TABLE = 23, VECTOR = 7, WIDTH = 5, STEPS = 4, BAG = 3 };

/* Two tables, of which one is read twice, and two layers; no size is a multiple of RANKS. */
static struct graph *network(int64_t rows)
{
    struct fill uniform = {.kind = FILL_UNIFORM, .a = -0.5, .b = 0.5};
    struct fill index = {.kind = FILL_INDEX, .a = 0, .b = TABLE};
    struct graph *g = graph_new("tables");
    int one = graph_input(g, "one", DTYPE_I32, shape_of(ROWS), index);
    int bag = graph_input(g, "bag", DTYPE_I64, shape_of(ROWS, BAG), index);
    int a = graph_param(g, "a", DTYPE_F32, shape_of(rows, VECTOR), uniform);
    int b = graph_param(g, "b", DTYPE_F32, shape_of(rows, VECTOR), uniform);
    int x = graph_node(g, op_gather.name, NULL, INPUTS(a, one), NO_ATTRS);
    int y = graph_node(g, op_embedding_bag.name, NULL, INPUTS(a, bag),
                       ATTRS(attr_string("mode", "mean")));
    int z = graph_node(g, op_gather.name, NULL, INPUTS(b, one), NO_ATTRS);
    int w = graph_param(g, "w", DTYPE_F32, shape_of(VECTOR, WIDTH), uniform);
    int bias = graph_param(g, "bias", DTYPE_F32, shape_of(WIDTH), uniform);
    x = make_add(g, make_mul(g, x, z), y);
    x = make_unary(g, &op_tanh, make_add(g, make_mat_mul(g, x, w), bias));
    int squares = make_mul(g, x, x);
    graph_output(g, graph_node(g, op_reduce_mean.name, "loss", INPUTS(squares),
                               ATTRS(attr_int("keepdims", 0))));
    return g;
}

static struct recipe recipe_of(const struct op *op)
{
    return (struct recipe){.optimiser = op->update->name,
                           .decay = 0.01,
                           .clip_norm = 0.02,
                           .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.01}};
}

struct job {
    const struct op *op; /* the optimiser */
};

/* What ranks have learnt, as rank 0 gathers it. */
enum { AT_B = TABLE * VECTOR, AT_W = 2 * AT_B, AT_BIAS = AT_W + VECTOR * WIDTH };
struct learnt {
    float weights[AT_BIAS + WIDTH];
    int64_t state_bytes;
};

static enum status gather(struct exe *exe, const struct shards *shards, struct learnt *out,
                          struct error *err)
{
    const struct {
        const char *name;
        int at, count;
    } all[] = {
        {"a", 0, AT_B}, {"b", AT_B, AT_B}, {"w", AT_W, AT_BIAS - AT_W}, {"bias", AT_BIAS, WIDTH}};
    const struct graph *g = exe_graph(exe);
    bool first = exe_options(exe)->comm->rank == 0;
    for (int k = 0; k < ARRAY_COUNT(all); k++) {
        float *to = out->weights + all[k].at;
        if (!shards_in(shards, all[k].name))
            memcpy(to, exe_input_named(exe, all[k].name), (size_t)all[k].count * sizeof(*to));
        for (int s = 0; s < shards->count; s++)
            if (strcmp(shards->of[s].whole.name, all[k].name) == 0)
                TRY(shard_gather(&shards->of[s], exe, first ? to : NULL, err));
    }
    for (int s = 0; s < g->state_count; s++) {
        const struct value *value = &g->values[g->states[s].before];
        out->state_bytes += (int64_t)value_size(value);
    }
    return STATUS_OK;
}

static void fill(struct exe *exe, int rank, int step)
{
    const struct graph *g = exe_graph(exe);
    for (int k = 0; k < g->input_count; k++) {
        const struct value *value = &g->values[g->inputs[k]];
        int64_t count = shape_count(&value->shape);
        for (int64_t e = 0; e < count; e++) {
            int64_t index = (rank * 11 + step * 5 + e * e * 3 + e) % TABLE;
            if (strcmp(value->name, "one") == 0)
                ((int32_t *)exe_input(exe, k))[e] = (int32_t)index;
            if (strcmp(value->name, "bag") == 0)
                ((int64_t *)exe_input(exe, k))[e] = index;
        }
    }
}

static enum status learn(const struct job *job, enum table_strategy tables, bool moments,
                         struct comm *comm, struct learnt *out, struct error *err)
{
    struct shards shards = {.count = 0};
    struct recipe recipe = recipe_of(job->op);
    struct train_options options = {.ranks = comm->ranks,
                                    .rank = comm->rank,
                                    .unit_bytes = 64,
                                    .tables = tables,
                                    .part_updates = moments,
                                    .shards = &shards};
    struct exe_options how = {.threads = 1, .no_tune = true, .comm = comm};
    struct graph *g = network(TABLE);
    struct exe *exe = NULL;
    enum status status = train_step(g, &recipe, &options, err);
    *out = (struct learnt){.state_bytes = 0};
    if (status == STATUS_OK)
        status = exe_new(g, &how, &exe, err);
    if (status == STATUS_OK)
        status = shards_fill(&shards, exe, err);
    for (int step = 0; step < STEPS && status == STATUS_OK; step++) {
        fill(exe, comm->rank, step);
        exe_run(exe);
        status = exe_status(exe, err);
    }
    if (status == STATUS_OK)
        status = gather(exe, &shards, out, err);
    exe_graph_free(exe, g);
    shards_release(&shards);
    return status;
}

static enum status compare(const struct learnt *a, const struct learnt *b, const char *what,
                           struct error *err)
{
    for (int e = 0; e < ARRAY_COUNT(a->weights); e++)
        if (!(fabsf(a->weights[e] - b->weights[e]) <= 1e-6f))
            return FAIL(err, STATUS_INVALID, "%s: number %d is %.9g instead of %.9g", what, e,
                        (double)b->weights[e], (double)a->weights[e]);
    return STATUS_OK;
}

static enum status all_ways(const struct job *job, struct comm *comm, struct error *err)
{
    struct learnt whole, split;
    int slots = job->op->update->slots;
    TRY(learn(job, TABLES_WHOLE, false, comm, &whole, err));
    for (int way = 1; way < 4; way++) {
        bool tables = way & 1, moments = way & 2;
        TRY(learn(job, tables ? TABLES_SPLIT : TABLES_WHOLE, moments, comm, &split, err));
        if (comm->rank == 0)
            TRY(compare(&whole, &split, tables ? "tables split" : "moments split", err));
        /* Of columns and parts, the larger ones; a counter of steps stays whole. */
        int64_t table = 2 * TABLE * VECTOR, rest = VECTOR * WIDTH + WIDTH;
        int64_t columns = 2 * TABLE * divide_up(VECTOR, RANKS);
        int64_t parts = (TABLE * VECTOR + 2) / RANKS * 2 * !tables + (VECTOR * WIDTH + 2) / RANKS +
                        (WIDTH + 2) / RANKS;
        int64_t kept = tables ? columns * (1 + slots) : table;
        kept += moments ? parts * slots + rest : (tables ? 0 : table * slots) + rest * (1 + slots);
        if (split.state_bytes != kept * 4 + 8)
            return FAIL(err, STATUS_INVALID, "way %d keeps %lld bytes instead of %lld", way,
                        (long long)split.state_bytes, (long long)(kept * 4 + 8));
    }
    TRY(learn(job, TABLES_ROWS, false, comm, &split, err));
    return compare(&whole, &split, "gradients in rows", err);
}

static enum status one_rank(void *context, struct group *group, int rank, struct error *err)
{
    struct communicator_options options = {.algorithm = NULL};
    struct comm comm;
    TRY(communicator_open(backend_find("shm"), group, rank, &options, &comm, err));
    enum status status = all_ways(context, &comm, err);
    communicator_close(&comm);
    return status;
}

/* The tables are long and the optimiser leaves other rows alone: of its columns of b a rank reads
 * and writes those rows that the indices of all ranks name. Of a, which is read in two modes,
 * nobody does, split or not. */
static enum status count_sparse(void *context, struct group *group, int rank, struct error *err)
{
    const struct recipe recipe = {.optimiser = "adagrad",
                                  .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.01}};
    struct communicator_options options = {.algorithm = NULL};
    struct shards shards = {.count = 0};
    struct comm comm;
    struct exe_options how = {.threads = 1, .no_tune = true, .comm = &comm};
    struct graph *g = network(100 * TABLE);
    struct exe *exe = NULL;
    int sparse = 0;
    (void)context;
    TRY(communicator_open(backend_find("shm"), group, rank, &options, &comm, err));
    struct train_options split = {
        .ranks = comm.ranks, .rank = rank, .tables = TABLES_SPLIT, .shards = &shards};
    enum status status = train_step(g, &recipe, &split, err);
    if (status == STATUS_OK)
        status = exe_new(g, &how, &exe, err);
    for (int s = 0; exe && s < exe_step_count(exe); s++)
        sparse += exe_step_at(exe, s).node->op == &op_update_rows;
    if (status == STATUS_OK && sparse != 1)
        status = FAIL(err, STATUS_INVALID, "%d tables are updated in rows", sparse);
    exe_graph_free(exe, g);
    shards_release(&shards);
    communicator_close(&comm);
    return status;
}

TEST(split_tables_are_updated_in_rows)
{
    struct local_ranks run = {.backend = backend_find("shm"),
                              .ranks = RANKS,
                              .options = {.deadline_ns = 60000000000u},
                              .body = count_sparse};
    MUST(local_ranks_run, &run);
}

static bool takes_norms(const struct op *op)
{
    return op == &op_lars || op == &op_lamb;
}

TEST(parts_learn_what_wholes_do)
{
    int met = 0;
    for (int k = 0; k < op_count(); k++) {
        struct error err = {0};
        struct job job = {.op = op_at(k)};
        if (!job.op->update || !job.op->update->name || takes_norms(job.op))
            continue;
        struct local_ranks run = {.backend = backend_find("shm"),
                                  .ranks = RANKS,
                                  .options = {.deadline_ns = 60000000000u},
                                  .body = one_rank,
                                  .context = &job};
        if (local_ranks_run(&run, &err) != STATUS_OK)
            fail_msg("%s: %s", job.op->name, err.message);
        met++;
    }
    assert_true(met >= 7);
}

static void check_refused(struct recipe recipe, bool tables, const char *why)
{
    struct shards shards = {.count = 0};
    struct train_options options = {.ranks = RANKS,
                                    .tables = tables ? TABLES_SPLIT : TABLES_WHOLE,
                                    .part_updates = !tables,
                                    .shards = &shards};
    struct graph *g = network(TABLE);
    FAILS(STATUS_UNSUPPORTED, why, train_step, g, &recipe, &options);
    graph_free(g);
    shards_release(&shards);
}

TEST(norms_of_whole_weights_are_refused)
{
    struct recipe each = recipe_of(&op_sgd);
    each.clip_each = 1;
    for (int tables = 0; tables < 2; tables++) {
        check_refused(recipe_of(&op_lamb), tables, "\"lamb\" takes norms of whole weights");
        check_refused(recipe_of(&op_lars), tables, "\"lars\" takes norms of whole weights");
        check_refused(each, tables, "clips each gradient");
    }
}

TEST(narrow_tables_are_not_split)
{
    struct shards shards = {.count = 0};
    struct recipe recipe = recipe_of(&op_sgd);
    struct train_options options = {.ranks = VECTOR + 1, .tables = TABLES_SPLIT, .shards = &shards};
    struct graph *g = network(TABLE);
    FAILS(STATUS_UNSUPPORTED, "no embedding table of at least 8 columns", train_step, g, &recipe,
          &options);
    graph_free(g);
    shards_release(&shards);
}
