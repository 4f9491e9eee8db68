/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/move.h"

int move_parts(const struct op_args *args)
{
    return args->node->op->inputs_max < 0 ? args->in_count : args->out_count;
}

enum status move_flat(const struct op_args *args, int part, struct move *move, struct error *err)
{
    (void)part;
    (void)err;
    *move = (struct move){.loop_count = 1};
    move->loops[0] = (struct move_loop){.extent = shape_count(args_in(args, 0)),
                                        .in_axis = MOVE_FLAT,
                                        .out_axis = MOVE_FLAT,
                                        .in_step = 1,
                                        .out_step = 1};
    return STATUS_OK;
}

void move_over(struct move *move, const struct shape *shape)
{
    *move = (struct move){.loop_count = shape->rank};
    for (int k = 0; k < shape->rank; k++)
        move->loops[k] = (struct move_loop){
            .extent = shape->dim[k], .in_axis = k, .out_axis = k, .in_step = 1, .out_step = 1};
}

enum status move_same(const struct op_args *args, int part, struct move *move, struct error *err)
{
    (void)part;
    (void)err;
    move_over(move, args_in(args, 0));
    return STATUS_OK;
}

static int64_t start_of(const struct desc *desc, const int64_t *start)
{
    int64_t at = 0;
    for (int k = 0; k < desc->shape.rank; k++)
        at += start[k] * desc->stride[k];
    return at;
}

static bool stride_of(const struct desc *desc, int axis, int64_t step, int64_t *stride)
{
    if (axis == MOVE_FLAT && step && !desc_is_plain(desc))
        return false;
    *stride = axis == MOVE_FLAT ? step : step * desc->stride[axis];
    return true;
}

enum status move_flatten(const struct move *move, const struct desc *in, const struct desc *out,
                         struct flat_move *flat, struct error *err)
{
    *flat = (struct flat_move){.loop_count = move->loop_count,
                               .in_start = start_of(in, move->in_start),
                               .out_start = start_of(out, move->out_start)};
    for (int k = 0; k < move->loop_count; k++) {
        const struct move_loop *loop = &move->loops[k];
        struct flat_loop *to = &flat->loops[k];
        to->extent = loop->extent;
        if (!stride_of(in, loop->in_axis, loop->in_step, &to->in_stride))
            return UNSUPPORTED(err, "input %d is not plain", move->input);
        if (!stride_of(out, loop->out_axis, loop->out_step, &to->out_stride))
            return UNSUPPORTED(err, "output %d is not plain", move->output);
    }
    return STATUS_OK;
}

int move_count_of_query(const struct kernel_query *q)
{
    struct op_args args = args_of_query(q);
    return move_parts(&args);
}

enum status move_of_args(const struct op_args *args, int part, struct move *move, struct error *why)
{
    if (args->node->op->move)
        return args->node->op->move(args, part, move, why);
    if (!args->node->op->alias || args->out_count != 1)
        return UNSUPPORTED(why, "more than a copy of input 0");
    return shape_equal(args_in(args, 0), args_out(args, 0)) ? move_same(args, part, move, why)
                                                            : move_flat(args, part, move, why);
}

enum status move_of_query(const struct kernel_query *q, int part, struct move *move,
                          struct flat_move *flat, struct error *why)
{
    struct op_args args = args_of_query(q);
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(move_of_args(&args, part, move, why));
    const struct desc *in = &q->in[move->input], *out = &q->out[move->output];
    *flat = (struct flat_move){.loop_count = -1};
    if (out->dtype == DTYPE_NONE)
        return STATUS_OK;
    if (in->dtype == DTYPE_NONE || in->dtype != out->dtype)
        return UNSUPPORTED(why, "input %d and output %d differ in type", move->input, move->output);
    return move_flatten(move, in, out, flat, why);
}

void ref_copy(const struct ref_tensor *out, int64_t to, const struct ref_tensor *in, int64_t from)
{
    if (out->f)
        out->f[to] = in->f[from];
    else
        out->i[to] = in->i[from];
}

static void run_flat(const struct flat_move *m, const struct ref_tensor *in,
                     const struct ref_tensor *out)
{
    int64_t index[MOVE_LOOPS] = {0}, count = 1, from = m->in_start, to = m->out_start;
    for (int k = 0; k < m->loop_count; k++)
        count *= m->loops[k].extent;
    for (int64_t n = 0; n < count; n++) {
        ref_copy(out, to, in, from);
        for (int k = m->loop_count - 1; k >= 0; k--) {
            const struct flat_loop *loop = &m->loops[k];
            from += loop->in_stride;
            to += loop->out_stride;
            if (++index[k] < loop->extent)
                break;
            from -= loop->in_stride * loop->extent;
            to -= loop->out_stride * loop->extent;
            index[k] = 0;
        }
    }
}

enum status reference_move(const struct ref_call *call, struct error *err)
{
    struct op_args args = args_of_ref(call);
    int parts = move_parts(&args);
    for (int part = 0; part < parts; part++) {
        struct move move;
        struct flat_move flat;
        TRY(call->node->op->move(&args, part, &move, err));
        const struct ref_tensor *in = call->in[move.input], *out = call->out[move.output];
        if (!out)
            continue;
        struct desc from = desc_dense(in->dtype, &in->shape, LAYOUT_PLAIN);
        struct desc to = desc_dense(out->dtype, &out->shape, LAYOUT_PLAIN);
        TRY(move_flatten(&move, &from, &to, &flat, err));
        run_flat(&flat, in, out);
    }
    return STATUS_OK;
}
