/* SPDX-License-Identifier: Apache-2.0
 * JoinOfRanks (ridge): the tensors of which CutForRanks made the first input [ranks, S]. The other
 * inputs have their shapes; what they contain is not read. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"
#include "engine/ops/lib/rank_parts.h"

static const char *const attrs[] = {"ranks", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t ranks = node_int(c->node, "ranks", 1), sum = 0;
    if (ranks < 1 || c->out_count != c->in_count - 1)
        return FAIL(err, STATUS_FAILED,
                    "JoinOfRanks: ranks=%lld, %d inputs and %d outputs do not fit",
                    (long long)ranks, c->in_count, c->out_count);
    for (int k = 0; k < c->out_count; k++) {
        if (!c->in[k + 1])
            return FAIL(err, STATUS_FAILED, "JoinOfRanks: input %d is missing", k + 1);
        sum += rank_part(shape_count(&c->in[k + 1]->shape), ranks);
        infer_set(c, k, c->in[0]->dtype, &c->in[k + 1]->shape);
    }
    if (shape_count(&c->in[0]->shape) != ranks * sum)
        return FAIL(err, STATUS_FAILED, "JoinOfRanks: parts of %lld elements, must be %lld",
                    (long long)shape_count(&c->in[0]->shape), (long long)(ranks * sum));
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0];
    int64_t ranks = node_int(call->node, "ranks", 1), row = x->count / ranks, before = 0;
    (void)err;
    for (int k = 0; k < call->out_count; k++) {
        int64_t count = call->in[k + 1]->count, part = rank_part(count, ranks);
        for (int64_t r = 0; call->out[k] && r < ranks; r++)
            for (int64_t e = 0; e < rank_part_there(count, ranks, r); e++)
                ref_copy(call->out[k], r * part + e, x, r * row + before + e);
        before += part;
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    int count = gradient_node(c)->output_count;
    int64_t ranks = node_int(gradient_node(c), "ranks", 1);
    int *inputs = arena_array(&c->g->arena, (size_t)count, sizeof(*inputs));
    if (!inputs)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < count; k++) {
        struct shape shape = gradient_shape(c->g, gradient_in(c, k + 1));
        enum dtype dtype = c->g->values[gradient_in(c, 0)].dtype;
        inputs[k] = c->dy[k] != NONE ? c->dy[k] : make_zeros(c->g, dtype, &shape);
        c->dx[k + 1] = NONE;
    }
    int cut = graph_node(c->g, op_cut_for_ranks.name, NULL, count, inputs,
                         ATTRS(attr_int("ranks", ranks)));
    c->dx[0] = make_reshaped_as(c->g, cut, gradient_in(c, 0));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "even", .inputs = "f32[4,7] f32[8,3] f32[4]", .attrs = "ranks=4", .outputs = 2},
    {.name = "ragged",
     .inputs = "f32[3,19] f32[7,5] f32[1] f32[] f32[13]",
     .attrs = "ranks=3",
     .outputs = 4},
    {.name = "few", .inputs = "f32[30] f32[2] f32[3,7]", .attrs = "ranks=5", .outputs = 2},
    {.name = "one_rank", .inputs = "f32[1,38] f32[7,5] f32[3]", .outputs = 2},
    {.name = "large",
     .inputs = "f32[2,80150] f32[300,301] f32[70000]",
     .attrs = "ranks=2",
     .outputs = 2},
    {.name = "integers", .inputs = "i64[3,5] i64[13]", .attrs = "ranks=3"},
    {.name = "empty", .inputs = "f32[2,2] f32[0] f32[4]", .attrs = "ranks=2", .outputs = 2},
};

REGISTER(op, join_of_ranks) = {
    .name = "JoinOfRanks",
    .domain = "ridge",
    .inputs_min = 2,
    .inputs_max = -1,
    .outputs_max = -1,
    .attrs = attrs,
    .in_place = ~0u,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
