/* SPDX-License-Identifier: Apache-2.0
 * Broadcast (ridge): the input of rank `root` on every rank. `rank` is this one; nothing but the
 * gradient depends on it. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/between_ranks.h"
#include "engine/ops/family/gradient.h"

static const char *const attrs[] = {"ranks", "root", "rank", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t ranks, root = node_int(c->node, "root", 0), rank = node_int(c->node, "rank", 0);
    TRY(between_ranks_infer(c, &ranks, err));
    if (root < 0 || root >= ranks || rank < 0 || rank >= ranks)
        return FAIL(err, STATUS_FAILED, "Broadcast: root=%lld rank=%lld, must be 0 to %lld",
                    (long long)root, (long long)rank, (long long)ranks - 1);
    infer_set(c, 0, c->in[0]->dtype, &c->in[0]->shape);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    if (node_int(call->node, "root", 0) == 0)
        between_ranks_copy(call, call->out[0]->count);
    return STATUS_OK;
}

/* What the root gives is read on all ranks; what the others have is read on none. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    const struct node *node = gradient_node(c);
    bool root = node_int(node, "root", 0) == node_int(node, "rank", 0);
    (void)err;
    between_ranks_gradient(c, &op_all_reduce);
    if (!root)
        c->dx[0] = make_scaled(c->g, c->dx[0], 0);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "one", .inputs = "f32[33]"},
    {.name = "scalar", .inputs = "f32[]", .attrs = "ranks=1 root=0"},
    {.name = "rows", .inputs = "f32[7,5,3]"},
    {.name = "large", .inputs = "f32[70000]"},
    {.name = "integers", .inputs = "i64[4,3]"},
    {.name = "empty", .inputs = "f32[0,4]"},
};

REGISTER(op, broadcast) = {
    .name = "Broadcast",
    .domain = "ridge",
    .between_ranks = true,
    .inputs_min = 1,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
