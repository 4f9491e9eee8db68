/* SPDX-License-Identifier: Apache-2.0
 * SpaceToDepth: blocks of pixels become channels [block row, block column, channel]. */
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"blocksize", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t block = node_int(c->node, "blocksize", 0);
    struct shape y = c->in[0]->shape;
    if (y.rank != 4 || block < 1 || y.dim[2] % block || y.dim[3] % block)
        return FAIL(err, STATUS_FAILED,
                    "SpaceToDepth of rank %d with blocksize %lld; it takes [N,C,H,W] with H and W "
                    "multiples of blocksize",
                    y.rank, (long long)block);
    y.dim[1] *= block * block;
    y.dim[2] /= block;
    y.dim[3] /= block;
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status move(const struct op_args *args, int part, struct move *m, struct error *err)
{
    (void)part;
    (void)err;
    const struct shape *x = args_in(args, 0), *y = args_out(args, 0);
    int64_t block = node_int(args->node, "blocksize", 0), channels = x->dim[1];
    *m = (struct move){.loop_count = 6};
    m->loops[0] = (struct move_loop){x->dim[0], 0, 0, 1, 1};
    m->loops[1] = (struct move_loop){block, 2, 1, 1, block * channels};
    m->loops[2] = (struct move_loop){block, 3, 1, 1, channels};
    m->loops[3] = (struct move_loop){channels, 1, 1, 1, 1};
    m->loops[4] = (struct move_loop){y->dim[2], 2, 2, block, 1};
    m->loops[5] = (struct move_loop){y->dim[3], 3, 3, block, 1};
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "two", .inputs = "f32[2,3,6,8]", .attrs = "blocksize=2"},
    {.name = "three", .inputs = "i32[1,2,3,6]", .attrs = "blocksize=3"},
};

REGISTER(op, space_to_depth) = {
    .name = "SpaceToDepth",
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
