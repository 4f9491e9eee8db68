/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm by sgemm, one call per batch; products with one row or one column also by sgemv.
 * Nothing is packed beforehand: BLAS does that in every call. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/kernels/openblas/lib/openblas.h"
#include "engine/ops/lib/matmul_shape.h"

enum { VARIANT_GEMM, VARIANT_GEMV };

/* One operand as BLAS sees a row-major matrix. */
struct operand {
    CBLAS_TRANSPOSE trans;
    blasint leading;
};

struct kernel_state {
    struct matmul_shape s;
    struct operand a, b;
    blasint ldc;
    float alpha;
    int variant, threads;
    struct epilogue epilogue;
};

static enum status operand_from(int64_t rows, int64_t cols, int64_t row, int64_t col,
                                struct operand *operand, struct error *why)
{
    if (col == 1 || cols == 1)
        *operand = (struct operand){CblasNoTrans, (blasint)larger(row, cols)};
    else if (row == 1 || rows == 1)
        *operand = (struct operand){CblasTrans, (blasint)larger(col, rows)};
    else
        return REFUSE(why, "a matrix has gaps between its elements");
    return STATUS_OK;
}

static enum status check_sizes(const struct kernel_query *q, const struct matmul_shape *s,
                               struct error *why)
{
    for (int k = 0; k < 2; k++)
        if (q->in[k].dtype != DTYPE_F32)
            return REFUSE(why, "only f32");
    if (!openblas.host->desc_is_plain(&q->out[0]))
        return REFUSE(why, "output is not plain");
    if (s->m < 1 || s->n < 1 || s->k < 1 || s->batch < 1)
        return REFUSE(why, "empty tensor");
    if (larger(s->m, larger(s->n, s->k)) > INT_MAX)
        return REFUSE(why, "sizes beyond 32 bits");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    struct matmul_shape s = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    *state = (struct kernel_state){
        .s = s, .ldc = (blasint)s.n, .alpha = 1, .variant = variant, .threads = q->threads};
    TRY(check_sizes(q, &s, why));
    TRY(operand_from(s.m, s.k, s.a_row, s.a_col, &state->a, why));
    TRY(operand_from(s.k, s.n, s.b_row, s.b_col, &state->b, why));
    if (strcmp(openblas.host->node_op(q->node), "Gemm") == 0)
        state->alpha = (float)openblas.host->node_float(q->node, "alpha", 1);
    return epilogue_from_query(q, &state->epilogue, why);
}

static int variants(const struct kernel_state *state)
{
    return state->s.m == 1 || state->s.n == 1 ? 2 : 1;
}

static void describe(const struct kernel_state *state, char *text, size_t size)
{
    snprintf(text, size, "%s", state->variant == VARIANT_GEMV ? "sgemv" : "sgemm");
}

static struct operand flipped(struct operand m)
{
    m.trans = m.trans == CblasNoTrans ? CblasTrans : CblasNoTrans;
    return m;
}

/* y = alpha M x for a matrix M of rows x cols (after its transposition); x has a stride. */
static void gemv(float alpha, struct operand m, const struct matmul_shape *s, const float *matrix,
                 const float *x, float *y)
{
    int64_t rows = s->m == 1 ? s->n : s->m, step = s->m == 1 ? s->a_col : s->b_row;
    bool plain = m.trans == CblasNoTrans;
    memset(y, 0, (size_t)rows * sizeof(*y)); /* what is there may be NaN, which 0 does not erase */
    openblas.sgemv(CblasRowMajor, m.trans, (blasint)(plain ? rows : s->k),
                   (blasint)(plain ? s->k : rows), alpha, matrix, m.leading, x,
                   (blasint)larger(step, 1), 1, y, 1);
}

static void multiply(const struct kernel_state *state, const float *a, const float *b, float *c)
{
    const struct matmul_shape *s = &state->s;
    if (state->variant == VARIANT_GEMM)
        openblas.sgemm(CblasRowMajor, state->a.trans, state->b.trans, (blasint)s->m, (blasint)s->n,
                       (blasint)s->k, state->alpha, a, state->a.leading, b, state->b.leading, 0, c,
                       state->ldc);
    else if (s->m == 1)
        gemv(state->alpha, flipped(state->b), s, b, a, c);
    else
        gemv(state->alpha, state->a, s, a, b, c);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const float *a = args->in[0], *b = args->in[1];
    float *c = args->out[0];
    openblas_threads(state->threads);
    for (int64_t k = 0; k < state->s.batch; k++) {
        struct matmul_offset at = matmul_offset_of(&state->s, k);
        multiply(state, a + at.a, b + at.b, c + at.c);
    }
    epilogue_run(&state->epilogue, args);
}

REGISTER(kernel, openblas_matmul) = {
    .name = "openblas_matmul",
    .provider = "openblas",
    .ops = OPS("MatMul", "Gemm"),
    .own_threads = true,
    .distrusted = true,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .variants = variants,
    .describe = describe,
    .launch = launch,
};
