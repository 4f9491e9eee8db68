/* SPDX-License-Identifier: Apache-2.0
 * DepthToSpace: blocks of channels become blocks of pixels. Channel c of the input is
 * [block row, block column, channel] in mode DCR, [channel, block row, block column] in CRD. */
#include <string.h>

#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"blocksize", "mode", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t block = node_int(c->node, "blocksize", 0);
    struct shape y = c->in[0]->shape;
    if (y.rank != 4 || block < 1 || y.dim[1] % (block * block))
        return FAIL(err, STATUS_FAILED,
                    "DepthToSpace of rank %d with blocksize %lld; it takes [N,C,H,W] with C a "
                    "multiple of blocksize squared",
                    y.rank, (long long)block);
    y.dim[1] /= block * block;
    y.dim[2] *= block;
    y.dim[3] *= block;
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status move(const struct op_args *args, int part, struct move *m, struct error *err)
{
    (void)part;
    (void)err;
    const struct shape *x = args_in(args, 0);
    int64_t block = node_int(args->node, "blocksize", 0), channels = x->dim[1] / (block * block);
    bool crd = strcmp(node_string(args->node, "mode", "DCR"), "CRD") == 0;
    int64_t row_step = crd ? block : block * channels, column_step = crd ? 1 : channels;
    *m = (struct move){.loop_count = 6};
    m->loops[0] = (struct move_loop){x->dim[0], 0, 0, 1, 1};
    m->loops[1] = (struct move_loop){channels, 1, 1, crd ? block * block : 1, 1};
    m->loops[2] = (struct move_loop){x->dim[2], 2, 2, 1, block};
    m->loops[3] = (struct move_loop){block, 1, 2, row_step, 1};
    m->loops[4] = (struct move_loop){x->dim[3], 3, 3, 1, block};
    m->loops[5] = (struct move_loop){block, 1, 3, column_step, 1};
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "dcr", .inputs = "f32[2,12,3,4]", .attrs = "blocksize=2"},
    {.name = "crd", .inputs = "f32[2,12,3,4]", .attrs = "blocksize=2 mode=\"CRD\""},
    {.name = "three", .inputs = "u8[1,18,2,5]", .attrs = "blocksize=3 mode=\"CRD\""},
};

REGISTER(op, depth_to_space) = {
    .name = "DepthToSpace",
    .moves_in_passing = true,
    .inputs_min = 1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_AXIS,
    .infer = infer,
    .move = move,
    .reference = reference_move,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
