/* SPDX-License-Identifier: Apache-2.0
 * AllReduce (ridge): each output is the sum of its input over all ranks. With wire="f16" or "bf16"
 * elements of f32 cross as these, and so is the result rounded (engine/run/comm.h). The reference,
 * like every executable without a communicator, is that of one rank: outputs are the inputs. */
#include <stdlib.h>
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/between_ranks.h"
#include "engine/ops/family/gradient.h"

static const char *const attrs[] = {"ranks", "wire", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    if (c->out_count != c->in_count)
        return FAIL(err, STATUS_FAILED, "AllReduce: %d inputs and %d outputs, must be as many",
                    c->in_count, c->out_count);
    if (node_int(c->node, "ranks", 1) < 1)
        return FAIL(err, STATUS_FAILED, "AllReduce: ranks=%lld, must be 1 or more",
                    (long long)node_int(c->node, "ranks", 1));
    for (int k = 0; k < c->in_count; k++) {
        if (!c->in[k] || c->in[k]->dtype != c->in[0]->dtype)
            return FAIL(err, STATUS_FAILED, "AllReduce: input %d is missing or of another type", k);
        infer_set(c, k, c->in[k]->dtype, &c->in[k]->shape);
    }
    return between_ranks_infer_wire(c, err);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    for (int k = 0; k < call->in_count; k++) {
        const struct ref_tensor *from = call->in[k];
        struct ref_tensor *to = call->out[k];
        if (to && from->f)
            memcpy(to->f, from->f, (size_t)from->count * sizeof(*to->f));
        else if (to)
            memcpy(to->i, from->i, (size_t)from->count * sizeof(*to->i));
    }
    return STATUS_OK;
}

/* What each rank gives goes into the result of all: the loss is the sum of theirs. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    int count = gradient_node(c)->output_count, *dx = calloc((size_t)count, sizeof(*dx));
    int *dy = calloc((size_t)count, sizeof(*dy)), used = 0;
    int64_t ranks = node_int(gradient_node(c), "ranks", 1);
    if (dx && dy) {
        for (int k = 0; k < count; k++)
            if (c->dy[k] != NONE)
                dy[used++] = c->dy[k];
        graph_node_many(c->g, op_all_reduce.name, NULL, used, dy, 1,
                        (const struct attr[]){attr_int("ranks", ranks)}, used, dx);
        for (int k = count - 1; k >= 0; k--)
            c->dx[k] = c->dy[k] == NONE ? NONE : dx[--used];
    }
    bool fine = dx && dy;
    free(dx);
    free(dy);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static const struct op_case cases[] = {
    {.name = "one", .inputs = "f32[33]"},
    {.name = "scalar", .inputs = "f32[]", .attrs = "ranks=1"},
    {.name = "several", .inputs = "f32[7,5] f32[1031] f32[1] f32[2,3,3,3]", .outputs = 4},
    {.name = "large", .inputs = "f32[70000] f32[300,40]", .outputs = 2},
    {.name = "empty", .inputs = "f32[0] f32[4]", .outputs = 2},
    {.name = "integers", .inputs = "i64[5] i64[3,2]", .outputs = 2},
};

REGISTER(op, all_reduce) = {
    .name = "AllReduce",
    .domain = "ridge",
    .between_ranks = true,
    .inputs_min = 1,
    .inputs_max = -1,
    .outputs_max = -1,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
