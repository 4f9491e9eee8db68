/* SPDX-License-Identifier: Apache-2.0
 * CutForRanks (ridge): row r of the result [ranks, S] has the r-th part of each input, one after
 * another. An input of n elements, in row-major order, has parts of ceil(n / ranks) elements; where
 * it ends early the rest of a part is 0. With an attribute `rank` the result is that row alone,
 * [S]. */
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"
#include "engine/ops/lib/rank_parts.h"

static const char *const attrs[] = {"ranks", "rank", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t ranks = node_int(c->node, "ranks", 1), rank = node_int(c->node, "rank", 0), sum = 0;
    bool alone = node_attr(c->node, "rank");
    if (ranks < 1 || rank < 0 || rank >= ranks)
        return FAIL(err, STATUS_FAILED, "CutForRanks: rank=%lld of ranks=%lld does not exist",
                    (long long)rank, (long long)ranks);
    for (int k = 0; k < c->in_count; k++) {
        if (!c->in[k] || c->in[k]->dtype != c->in[0]->dtype)
            return FAIL(err, STATUS_FAILED, "CutForRanks: input %d is missing or of another type",
                        k);
        sum += rank_part(shape_count(&c->in[k]->shape), ranks);
    }
    struct shape y = alone ? shape_of(sum) : shape_of(ranks, sum);
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *y = call->out[0];
    int64_t ranks = node_int(call->node, "ranks", 1), before = 0;
    bool alone = node_attr(call->node, "rank");
    int64_t first = alone ? node_int(call->node, "rank", 0) : 0, rows = alone ? 1 : ranks;
    (void)err;
    for (int k = 0; k < call->in_count; k++) {
        const struct ref_tensor *x = call->in[k];
        int64_t part = rank_part(x->count, ranks);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t e = 0; e < rank_part_there(x->count, ranks, first + r); e++)
                ref_copy(call->out[0], r * (y->count / rows) + before + e, x,
                         (first + r) * part + e);
        before += part;
    }
    return STATUS_OK;
}

/* Of all rows only: of one alone nobody needs it. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    int count = gradient_node(c)->op_inputs;
    int64_t ranks = node_int(gradient_node(c), "ranks", 1);
    if (node_attr(gradient_node(c), "rank"))
        return UNSUPPORTED(err, "CutForRanks: one rank's row alone has no gradient");
    int *inputs = arena_array(&c->g->arena, (size_t)count + 1, sizeof(*inputs));
    if (!inputs)
        return FAIL_NO_MEMORY(err);
    inputs[0] = c->dy[0];
    for (int k = 0; k < count; k++)
        inputs[1 + k] = gradient_in(c, k);
    graph_node_many(c->g, op_join_of_ranks.name, NULL, count + 1, inputs,
                    ATTRS(attr_int("ranks", ranks)), count, c->dx);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "even", .inputs = "f32[8,3] f32[4]", .attrs = "ranks=4"},
    {.name = "ragged", .inputs = "f32[7,5] f32[1] f32[] f32[13]", .attrs = "ranks=3"},
    {.name = "few", .inputs = "f32[2] f32[3,7]", .attrs = "ranks=5"},
    {.name = "one_rank", .inputs = "f32[7,5] f32[3]"},
    {.name = "large", .inputs = "f32[300,301] f32[70000]", .attrs = "ranks=2"},
    {.name = "first", .inputs = "i32[7,5] i32[1] i32[] i32[13]", .attrs = "ranks=3 rank=0"},
    {.name = "last", .inputs = "i64[7,5] i64[1] i64[13]", .attrs = "ranks=3 rank=2"},
    {.name = "beyond", .inputs = "i32[2] i32[21]", .attrs = "ranks=5 rank=4"},
    {.name = "empty", .inputs = "f32[0] f32[4]", .attrs = "ranks=2"},
};

REGISTER(op, cut_for_ranks) = {
    .name = "CutForRanks",
    .domain = "ridge",
    .inputs_min = 1,
    .inputs_max = -1,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
