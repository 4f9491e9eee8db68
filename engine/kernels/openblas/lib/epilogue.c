/* SPDX-License-Identifier: Apache-2.0
 *
 * BLAS ends with C = alpha A B; bias, residual and cheap activations take a second pass. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/kernels/openblas/lib/openblas.h"

enum { ROWS_PER_TILE_COUNT = 16384, SERIAL_COUNT = 65536 };

/* ---- building ---- */

static enum status add_operand(const struct kernel_query *q, const struct post *post, float scale,
                               struct epilogue *e, struct error *why)
{
    const struct desc *operand = &q->in[post->input];
    const struct shape *out = &q->out[0].shape, *in = &operand->shape;
    struct epilogue_op *op = &e->ops[e->op_count++];
    *op = (struct epilogue_op){.post = *post, .scale = scale};
    if (operand->dtype != DTYPE_F32 || !openblas.host->desc_is_plain(operand))
        return REFUSE(why, "operand of the epilogue is not plain f32");
    bool row_full = in->rank == out->rank, row_single = true;
    for (int k = 0; k < in->rank - 1; k++) {
        int at = k + out->rank - in->rank;
        row_full = row_full && in->dim[k] == out->dim[at];
        row_single = row_single && in->dim[k] == 1;
    }
    bool col_full = in->rank > 0 && in->dim[in->rank - 1] != 1;
    if (in->rank > out->rank || (!row_full && !row_single))
        return REFUSE(why, "operand of the epilogue is broadcast in part");
    op->col = col_full;
    op->row = row_single ? 0 : (col_full ? e->cols : 1);
    return STATUS_OK;
}

static enum status add_act(const struct post *post, struct epilogue *e, struct error *why)
{
    if (post->act != FN_COPY && post->act != FN_RELU && post->act != FN_LEAKY_RELU &&
        post->act != FN_CLIP)
        return REFUSE(why, "no fast form of the fused activation");
    e->ops[e->op_count++] = (struct epilogue_op){.post = *post};
    return STATUS_OK;
}

static enum status add_gemm_c(const struct kernel_query *q, struct epilogue *e, struct error *why)
{
    float beta = (float)openblas.host->node_float(q->node, "beta", 1);
    struct post post = {.kind = POST_ADD, .input = 2};
    if (q->node->op_inputs < 3 || q->in[2].dtype == DTYPE_NONE || beta == 0)
        return STATUS_OK;
    return add_operand(q, &post, beta, e, why);
}

enum status epilogue_from_query(const struct kernel_query *q, struct epilogue *epilogue,
                                struct error *why)
{
    const struct shape *out = &q->out[0].shape;
    *epilogue = (struct epilogue){.rows = 1, .cols = out->rank ? out->dim[out->rank - 1] : 1};
    for (int k = 0; k < out->rank - 1; k++)
        epilogue->rows *= out->dim[k];
    if (strcmp(openblas.host->node_op(q->node), "Gemm") == 0)
        TRY(add_gemm_c(q, epilogue, why));
    for (int k = 0; k < q->node->post_count; k++) {
        const struct post *post = &q->node->posts[k];
        TRY(post->kind == POST_ACT ? add_act(post, epilogue, why)
                                   : add_operand(q, post, 1, epilogue, why));
    }
    return STATUS_OK;
}

/* ---- running ---- */

struct pass {
    const struct epilogue *epilogue;
    const struct kernel_args *args;
    int64_t rows_per_tile;
};

static void combine_row(const struct epilogue_op *op, const float *operand, int64_t cols, float *c)
{
    if (op->post.kind == POST_ADD && op->col)
        for (int64_t k = 0; k < cols; k++)
            c[k] += op->scale * operand[k];
    else if (op->post.kind == POST_ADD)
        for (int64_t k = 0; k < cols; k++)
            c[k] += op->scale * operand[0];
    else if (op->col)
        for (int64_t k = 0; k < cols; k++)
            c[k] *= operand[k];
    else
        for (int64_t k = 0; k < cols; k++)
            c[k] *= operand[0];
}

/* Comparisons are written so that NaN stays NaN. */
static void act_row(const struct post *post, int64_t cols, float *c)
{
    float slope = post->act == FN_LEAKY_RELU ? post->a : 0;
    if (post->act == FN_CLIP)
        for (int64_t k = 0; k < cols; k++) {
            float x = c[k] < post->a ? post->a : c[k];
            c[k] = x > post->b ? post->b : x;
        }
    else if (post->act != FN_COPY)
        for (int64_t k = 0; k < cols; k++)
            c[k] = c[k] < 0 ? slope * c[k] : c[k];
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct pass *pass = context;
    const struct epilogue *e = pass->epilogue;
    int64_t first = tile * pass->rows_per_tile, end = first + pass->rows_per_tile;
    for (int64_t row = first; row < end && row < e->rows; row++) {
        float *c = (float *)pass->args->out[0] + row * e->cols;
        for (int k = 0; k < e->op_count; k++) {
            const struct epilogue_op *op = &e->ops[k];
            if (op->post.kind == POST_ACT) {
                act_row(&op->post, e->cols, c);
                continue;
            }
            const float *operand = pass->args->in[op->post.input];
            combine_row(op, operand + row * op->row, e->cols, c);
        }
    }
}

/* The pool's threads sleep while OpenBLAS runs; waking them takes some 50 us. */
void epilogue_run(const struct epilogue *epilogue, const struct kernel_args *args)
{
    if (!epilogue->op_count)
        return;
    int64_t rows = ROWS_PER_TILE_COUNT / epilogue->cols + 1;
    struct pass pass = {epilogue, args, rows};
    bool small = epilogue->rows * epilogue->cols < SERIAL_COUNT;
    openblas.host->pool_run(small ? NULL : args->pool, divide_up(epilogue->rows, rows), run_tile,
                            &pass);
}
