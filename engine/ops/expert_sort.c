/* SPDX-License-Identifier: Apache-2.0
 * ExpertSort (ridge): choice holds the number of an expert for each place of each token, [T, k].
 * `order` lists these places, counted through all tokens, by their expert; those of one expert keep
 * their order. Those of expert e are entries offsets[e] to offsets[e + 1] of it. So there are T k
 * entries whatever was chosen. */
#include <string.h>

#include "engine/graph/op.h"

static const char *const attrs[] = {"experts", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t experts = node_int(c->node, "experts", 0);
    if (c->in[0]->dtype != DTYPE_I64)
        return FAIL(err, STATUS_FAILED, "ExpertSort of %s, not i64", dtype_name(c->in[0]->dtype));
    if (experts < 1 || experts > INT32_MAX)
        return FAIL(err, STATUS_FAILED, "ExpertSort: %lld experts", (long long)experts);
    struct shape order = shape_of(shape_count(&c->in[0]->shape)), offsets = shape_of(experts + 1);
    infer_set(c, 0, DTYPE_I64, &order);
    infer_set(c, 1, DTYPE_I64, &offsets);
    return STATUS_OK;
}

/* How many places each expert has, summed up: where they begin. */
static enum status count_places(const struct ref_call *call, int64_t *begin, int64_t experts,
                                struct error *err)
{
    const struct ref_tensor *choice = call->in[0];
    for (int64_t i = 0; i < choice->count; i++) {
        int64_t expert = choice->i[i];
        if (expert < 0 || expert >= experts)
            return FAIL(err, STATUS_FAILED, "ExpertSort: expert %lld of %lld", (long long)expert,
                        (long long)experts);
        begin[expert + 1]++;
    }
    for (int64_t e = 0; e < experts; e++)
        begin[e + 1] += begin[e];
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    int64_t experts = node_int(call->node, "experts", 0);
    const struct ref_tensor *choice = call->in[0];
    struct ref_tensor *order = call->out[0], *offsets = call->out_count > 1 ? call->out[1] : NULL;
    struct ref_tensor next;
    struct shape shape = shape_of(experts + 1);
    TRY(ref_alloc(&next, DTYPE_I64, &shape, err));
    enum status status = count_places(call, next.i, experts, err);
    if (status == STATUS_OK && offsets)
        memcpy(offsets->i, next.i, (size_t)(experts + 1) * sizeof(*next.i));
    for (int64_t i = 0; status == STATUS_OK && order && i < choice->count; i++)
        order->i[next.i[choice->i[i]]++] = i;
    ref_release(&next);
    return status;
}

static const struct op_case cases[] = {
    {.name = "two_of_eight", .inputs = "i64[5,2]{0:8}", .attrs = "experts=8", .outputs = 2},
    {.name = "one_token", .inputs = "i64[1,4]=6,0,3,2", .attrs = "experts=9", .outputs = 2},
    {.name = "equal_ones_keep_their_order",
     .inputs = "i64[4,2]=2,0,2,1,2,0,0,2",
     .attrs = "experts=4",
     .outputs = 2},
    {.name = "all_of_one", .inputs = "i64[7,1]=3", .attrs = "experts=5", .outputs = 2},
    {.name = "first_and_last",
     .inputs = "i64[3,2]=0,6,6,0,0,6",
     .attrs = "experts=7",
     .outputs = 2},
    {.name = "one_expert", .inputs = "i64[6]=0", .attrs = "experts=1", .outputs = 2},
    {.name = "many", .inputs = "i64[300,8]{0:128}", .attrs = "experts=128", .outputs = 2},
    {.name = "more_experts_than_places",
     .inputs = "i64[2,3]{0:1000}",
     .attrs = "experts=1000",
     .outputs = 2},
    {.name = "no_token", .inputs = "i64[0,2]", .attrs = "experts=3", .outputs = 2},
    {.name = "order_alone", .inputs = "i64[2,9,2]{0:6}", .attrs = "experts=6"},
};

REGISTER(op, expert_sort) = {
    .name = "ExpertSort",
    .domain = "ridge",
    .inputs_min = 1,
    .outputs_max = 2,
    .int_inputs = 1u << 0,
    .attrs = attrs,
    .exact_inputs = 1u << 0,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its results are indices",
    OP_CASES(cases),
};
