/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/matmul_codes.h"

#include "base/numbers/integers.h"

static bool is_there(const struct kernel_query *q, int input)
{
    return input < q->node->op_inputs && query_in(q, input);
}

static enum status check_tensors(const struct kernel_query *q, bool bf16, struct error *why)
{
    enum dtype floats = bf16 ? DTYPE_BF16 : DTYPE_F32;
    if (q->in[CODES_A].dtype != floats || q->in[CODES_SCALES].dtype != floats ||
        q->out[0].dtype != floats)
        return UNSUPPORTED(why, "only f32, or only bf16");
    if (shape_count(&q->out[0].shape) == 0)
        return UNSUPPORTED(why, "an empty product");
    for (int k = 0; k < q->node->op_inputs; k++)
        if (query_in(q, k) && !desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    return desc_is_plain(&q->out[0]) ? STATUS_OK : UNSUPPORTED(why, "the result is not plain");
}

enum status matmul_codes_from(const struct kernel_query *q, struct matmul_codes *m,
                              struct error *why)
{
    struct matmul_posts posts;
    const struct shape *y = &q->out[0].shape;
    int64_t n = y->dim[y->rank - 1], k = q->in[CODES_A].shape.dim[y->rank - 1];
    m->bf16 = q->in[CODES_A].dtype == DTYPE_BF16;
    TRY(check_tensors(q, m->bf16, why));
    TRY(block_codes_from(q->node, n, k, &m->codes, why));
    m->has_zeros = is_there(q, CODES_ZEROS);
    m->rows = shape_count(y) / n;
    m->shape = (struct matmul_shape){
        .batch = 1, .m = m->rows, .n = n, .k = k, .a_row = k, .a_col = 1, .c_row = n, .c_col = 1};
    TRY(matmul_posts_from(q, &m->shape, &posts, why));
    if (is_there(q, CODES_BIAS))
        TRY(gemm_post_bias(q, &posts.axes, CODES_BIAS, 1, &posts.post, why));
    m->post = posts.post;
    return STATUS_OK;
}

/* Where step `step` finds what belongs to a row of the result, in elements. */
static int64_t operand_of_row(const struct matmul_shape *s, const struct gemm_step *step,
                              int64_t row)
{
    return row % s->m * step->row +
           gemm_step_of_batch(step, s->batch_rank, s->batch_dim, row / s->m);
}

void matmul_codes_steps(const struct matmul_codes *m, const struct kernel_args *args,
                        const struct matmul_codes_area *area, float *y, int64_t y_row)
{
    const struct gemm_post *post = &m->post;
    int64_t row = area->row, stop = area->row + area->rows;
    while (post->count && row < stop) {
        int64_t rows = smaller(stop, (row / m->shape.m + 1) * m->shape.m) - row; /* of a batch */
        const float *operands[GEMM_STEP_MAX] = {0};
        for (int k = 0; k < post->count; k++) {
            const struct gemm_step *step = &post->steps[k];
            int64_t at = operand_of_row(&m->shape, step, row) + area->column * step->column;
            if (step->input >= 0)
                operands[k] = gemm_operand_at(step, args->in[step->input], at);
        }
        gemm_post_heavy(post, operands, y + (row - area->row) * y_row, y_row, rows, area->columns);
        row += rows;
    }
}
