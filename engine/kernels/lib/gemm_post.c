/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/gemm_post.h"

#include <string.h>

#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/simd_math.h"

/* ---- translation ---- */

/* Stride of the operand along output dimension d; 0 where it is broadcast. */
static int64_t stride_along(const struct desc *operand, int rank, int d)
{
    int at = d - (rank - operand->shape.rank);
    return at < 0 || operand->shape.dim[at] == 1 ? 0 : operand->stride[at];
}

/* The common stride of all row dimensions together; false when there is none. */
static bool row_stride(const struct desc *operand, const struct desc *out,
                       const struct gemm_axes *axes, int64_t *stride)
{
    int64_t expected = 0, rows = 1;
    *stride = 0;
    for (int k = axes->row_count - 1; k >= 0; k--) {
        int64_t size = out->shape.dim[axes->row[k]];
        if (size == 1)
            continue;
        int64_t here = stride_along(operand, out->shape.rank, axes->row[k]);
        if (rows == 1)
            *stride = here;
        else if (here != expected)
            return false;
        expected = here * size;
        rows *= size;
    }
    return true;
}

static enum status place_operand(const struct kernel_query *q, const struct gemm_axes *axes,
                                 struct gemm_step *step, struct error *why)
{
    const struct desc *operand = query_in(q, step->input), *out = &q->out[0];
    if (!operand || (operand->dtype != DTYPE_F32 && operand->dtype != DTYPE_BF16))
        return UNSUPPORTED(why, "operand %d of the epilogue is not f32 or bf16", step->input);
    step->bf16 = operand->dtype == DTYPE_BF16;
    if (operand->shape.rank > out->shape.rank)
        return UNSUPPORTED(why, "operand %d of the epilogue has a larger rank", step->input);
    int rank = out->shape.rank;
    step->column = axes->column == NONE ? 0 : stride_along(operand, rank, axes->column);
    if (axes->column != NONE && out->shape.dim[axes->column] == 1)
        step->column = 0;
    if (step->column > 1 || !row_stride(operand, out, axes, &step->row))
        return UNSUPPORTED(why, "operand %d of the epilogue does not follow rows and columns",
                           step->input);
    for (int k = 0; k < axes->batch_count; k++)
        step->batch[k] = stride_along(operand, rank, axes->batch[k]);
    return STATUS_OK;
}

static void from_act(const struct post *post, struct gemm_step *step)
{
    step->act = post->act;
    step->a = post->a;
    step->b = post->b;
    step->kind = GEMM_ACT;
    if (post->act == FN_RELU)
        step->kind = GEMM_RELU;
    if (post->act == FN_CLIP)
        step->kind = GEMM_CLAMP;
    if (post->act == FN_LEAKY_RELU)
        step->kind = GEMM_LEAKY;
}

static void count_light(struct gemm_post *post)
{
    post->light = 0;
    while (post->light < post->count && post->steps[post->light].kind != GEMM_ACT)
        post->light++;
}

enum status gemm_post_from(const struct kernel_query *q, const struct gemm_axes *axes,
                           struct gemm_post *post, struct error *why)
{
    *post = (struct gemm_post){0};
    for (int k = 0; k < q->node->post_count; k++) {
        const struct post *from = &q->node->posts[k];
        struct gemm_step step = {.kind = GEMM_ADD, .a = 1.0f, .input = from->input};
        if (from->kind == POST_ACT) {
            if (from->act == FN_COPY)
                continue;
            from_act(from, &step);
            step.input = NONE;
        } else {
            step.kind = from->kind == POST_ADD ? GEMM_ADD : GEMM_MUL;
            TRY(place_operand(q, axes, &step, why));
        }
        post->steps[post->count++] = step;
    }
    count_light(post);
    return STATUS_OK;
}

enum status gemm_post_bias(const struct kernel_query *q, const struct gemm_axes *axes, int input,
                           float scale, struct gemm_post *post, struct error *why)
{
    struct gemm_step step = {.kind = GEMM_ADD, .a = scale, .input = input};
    TRY(place_operand(q, axes, &step, why));
    memmove(post->steps + 1, post->steps, (size_t)post->count * sizeof(step));
    post->steps[0] = step;
    post->count++;
    count_light(post);
    return STATUS_OK;
}

static float number_of(const struct gemm_step *step, const float *operand)
{
    return step->bf16 ? bfloat_to_float(*(const uint16_t *)(const void *)operand) : *operand;
}

bool gemm_post_take_bias(const struct kernel_query *q, struct gemm_post *post, float *bias,
                         int64_t columns)
{
    const struct gemm_step *first = &post->steps[0];
    if (!post->count || first->kind != GEMM_ADD || first->row || !q->fixed[first->input])
        return false;
    for (int k = 0; k < RANK_MAX; k++)
        if (first->batch[k])
            return false;
    const float *from = q->fixed[first->input];
    for (int64_t n = 0; n < columns; n++)
        bias[n] = first->a * number_of(first, gemm_operand_at(first, from, n * first->column));
    post->count--;
    memmove(post->steps, post->steps + 1, (size_t)post->count * sizeof(*first));
    count_light(post);
    return true;
}

/* ---- the second pass ---- */

/* One step over all rows; kind and act are constants, so that no test is left in the loops. */
SIMD_INLINE vf one_step(const struct gemm_step *s, enum gemm_step_kind kind, enum function act,
                        vf other, vf x)
{
    switch (kind) {
    case GEMM_ADD:
        return vf_fma(vf_set1(s->a), other, x);
    case GEMM_MUL:
        return vf_mul(other, x);
    case GEMM_RELU:
        return vf_max(vf_zero(), x);
    case GEMM_CLAMP:
        return vf_min(vf_set1(s->b), vf_max(vf_set1(s->a), x));
    case GEMM_LEAKY:
        return vf_select(vf_lt(x, vf_zero()), vf_mul(vf_set1(s->a), x), x);
    case GEMM_ACT:
        break;
    }
    return vf_act(x, act, s->a, s->b);
}

struct area {
    float *c;
    int64_t c_row, rows, columns;
};

/* `count` columns, VL at most, of a row of an operand. */
SIMD_INLINE vf operand_part(const struct gemm_step *s, const float *row, int64_t column,
                            int64_t count)
{
    if (s->bf16)
        return count < VL ? vf_read_m(row, column, vm_first(count), true)
                          : vf_read(row, column, true);
    return count < VL ? vf_load_m(row + column, vm_first(count)) : vf_load(row + column);
}

SIMD_INLINE void step_over(const struct gemm_step *s, enum gemm_step_kind kind, enum function act,
                           const float *operand, const struct area *area)
{
    vm mask = vm_first(area->columns % VL);
    int64_t full = area->columns - area->columns % VL;
    for (int64_t m = 0; m < area->rows; m++) {
        float *c = area->c + m * area->c_row;
        const float *row = gemm_operand_at(s, operand, m * s->row);
        vf other = row && !s->column ? vf_set1(number_of(s, row)) : vf_zero();
        for (int64_t n = 0; n < full; n += VL) {
            if (kind <= GEMM_MUL && s->column)
                other = operand_part(s, row, n, VL);
            vf_store(c + n, one_step(s, kind, act, other, vf_load(c + n)));
        }
        if (full == area->columns)
            continue;
        if (kind <= GEMM_MUL && s->column)
            other = operand_part(s, row, full, area->columns - full);
        vf_store_m(c + full, mask, one_step(s, kind, act, other, vf_load_m(c + full, mask)));
    }
}

#define ACT_OVER(code, ...)                                                                        \
    case FN_##code:                                                                                \
        step_over(s, GEMM_ACT, FN_##code, NULL, area);                                             \
        break;
#define NOT_FUSED(...)

static void act_over(const struct gemm_step *s, const struct area *area)
{
    switch (s->act) {
        FUNCTIONS(ACT_OVER, NOT_FUSED, NOT_FUSED)
    default:
        break;
    }
}

/* Rows without gaps are one long row, if the operand goes along. */
static struct area flattened(const struct gemm_step *s, bool operand, struct area area,
                             struct gemm_step *flat)
{
    *flat = *s;
    bool one_column = area.columns == 1;
    if (area.c_row != area.columns || area.rows == 1)
        return area;
    if (operand && one_column)
        flat->column = s->row;
    else if (operand && (s->row != s->column * area.columns))
        return area;
    if (operand && flat->column > 1)
        return area;
    flat->row = 0;
    return (struct area){area.c, area.rows * area.columns, 1, area.rows * area.columns};
}

void gemm_post_heavy(const struct gemm_post *post, const float *const *operands, float *c,
                     int64_t c_row, int64_t rows, int64_t columns)
{
    struct area whole = {c, c_row, rows, columns};
    for (int k = post->light; k < post->count; k++) {
        struct gemm_step step;
        struct area area = flattened(&post->steps[k], operands[k] != NULL, whole, &step);
        const struct gemm_step *s = &step;
        switch (s->kind) {
        case GEMM_ADD:
            step_over(s, GEMM_ADD, FN_COPY, operands[k], &area);
            break;
        case GEMM_MUL:
            step_over(s, GEMM_MUL, FN_COPY, operands[k], &area);
            break;
        case GEMM_RELU:
            step_over(s, GEMM_RELU, FN_COPY, NULL, &area);
            break;
        case GEMM_CLAMP:
            step_over(s, GEMM_CLAMP, FN_COPY, NULL, &area);
            break;
        case GEMM_LEAKY:
            step_over(s, GEMM_LEAKY, FN_COPY, NULL, &area);
            break;
        case GEMM_ACT:
            act_over(s, &area);
            break;
        }
    }
}

void gemm_round_rows(const float *from, int64_t from_row, uint16_t *to, int64_t to_row,
                     int64_t rows, int64_t columns)
{
    for (int64_t m = 0; m < rows; m++, from += from_row, to += to_row) {
        int64_t n = 0;
        for (; n + VL <= columns; n += VL)
            vf_write(to, n, vf_load(from + n), true);
        if (n < columns)
            vf_write_m(to, n, vm_first(columns - n), vf_load(from + n), true);
    }
}
