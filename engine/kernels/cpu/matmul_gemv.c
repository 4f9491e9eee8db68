/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with few rows or few columns, without packing: a handful of vectors against a matrix
 * that is read once. In the "dot" form the matrix lies along the reduction (weights [N, K], or many
 * rows against one column), in the "sum" form across it ([K, N]). Both run at the speed at which
 * the matrix arrives; constant weights are packed better still (matmul_packed), which the tuner
 * finds out, but packing what comes at run time would cost more than the product. */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/gemm_steps.h"
#include "engine/kernels/lib/matmul_product.h"

enum {
    FEW_MAX = 8,
    FEW_STEP = 4,
    LINES = 4,
    WIDE = 4,
    TASKS_PER_THREAD = 4,
    TASK_BYTES = 64 << 10
};

struct kernel_state {
    struct matmul_product product;
    bool dot;           /* the matrix lies along the reduction */
    bool columns;       /* few columns (dot form): lines are rows of A, vectors are columns of B */
    int64_t few, lines; /* vectors; lines (dot) or columns (sum) of the matrix */
    int64_t chunk, chunks; /* lines per task, tasks per batch */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(matmul_product_from(q, &s->product, why));
    const struct matmul_shape *m = &s->product.shape;
    bool a_dense = m->a_col == 1 || m->k == 1;
    if (a_dense && m->n <= FEW_MAX && m->n < m->m && (m->b_row == 1 || m->k == 1)) {
        s->dot = s->columns = true;
        s->few = m->n;
        s->lines = m->m;
    } else if (a_dense && m->m <= FEW_MAX) {
        s->dot = m->b_row == 1 && (m->b_col != 1 || m->n == 1);
        s->few = s->dot || m->b_col == 1 ? m->m : 0;
        s->lines = m->n;
    }
    if (!s->few)
        return UNSUPPORTED(why, "more than %d rows and columns, or not dense", FEW_MAX);
    int64_t unit = s->dot ? LINES : WIDE * VL, bytes = m->k * (int64_t)sizeof(float);
    int64_t least = TASK_BYTES / bytes / unit + 1; /* units in a task */
    int64_t units = divide_up(s->lines, unit), wanted = (int64_t)q->threads * TASKS_PER_THREAD;
    int64_t even = (units * m->batch + wanted - 1) / wanted;
    even = larger(even, least);
    s->chunk = (even < units ? even : units) * unit;
    s->chunks = divide_up(s->lines, s->chunk);
    s->product.post.light = 0; /* all steps run over what was stored */
    return STATUS_OK;
}

/* ---- the two forms ---- */

/* A block of the result; vectors and lines by their distance. */
struct part {
    const float *vectors, *matrix;
    int64_t vector_step, line_step, k; /* line_step: between lines (dot) or rows of B (sum) */
    float *y;
    int64_t y_vector, y_line; /* distances in the result */
    float alpha;
};

SIMD_INLINE void dot_block(const struct part *p, int few, int lines)
{
    vf sums[FEW_STEP][LINES];
    UNROLLED (i, few)
        UNROLLED (l, lines)
            sums[i][l] = vf_zero();
    int64_t k = 0;
    for (; k + VL <= p->k; k += VL) {
        UNROLLED (l, lines) {
            vf line = vf_load(p->matrix + l * p->line_step + k);
            UNROLLED (i, few)
                sums[i][l] = vf_fma(line, vf_load(p->vectors + i * p->vector_step + k), sums[i][l]);
        }
    }
    vm rest = vm_first(p->k - k);
    for (; k < p->k; k += VL) {
        UNROLLED (l, lines) {
            vf line = vf_load_m(p->matrix + l * p->line_step + k, rest);
            UNROLLED (i, few)
                sums[i][l] =
                    vf_fma(line, vf_load_m(p->vectors + i * p->vector_step + k, rest), sums[i][l]);
        }
    }
    UNROLLED (i, few)
        UNROLLED (l, lines)
            p->y[i * p->y_vector + l * p->y_line] = p->alpha * vf_sum(sums[i][l]);
}

static void dot_lines(const struct part *p, int few, int lines)
{
    bool whole = lines == LINES;
    switch (few) {
    case 1:
        whole ? dot_block(p, 1, LINES) : dot_block(p, 1, 1);
        break;
    case 2:
        whole ? dot_block(p, 2, LINES) : dot_block(p, 2, 1);
        break;
    case 3:
        whole ? dot_block(p, 3, LINES) : dot_block(p, 3, 1);
        break;
    default:
        whole ? dot_block(p, 4, LINES) : dot_block(p, 4, 1);
        break;
    }
}

static void dot_form(struct part p, int few, int64_t count)
{
    while (count > 0) {
        int lines = count >= LINES ? LINES : 1;
        dot_lines(&p, few, lines);
        p.matrix += lines * p.line_step;
        p.y += lines * p.y_line;
        count -= lines;
    }
}

SIMD_INLINE void sum_block(const struct part *p, int few, int wide, int64_t last)
{
    vf sums[FEW_STEP][WIDE];
    UNROLLED (i, few)
        UNROLLED (n, wide)
            sums[i][n] = vf_zero();
    for (int64_t k = 0; k < p->k; k++) {
        UNROLLED (n, wide) {
            vf row = gemm_load(p->matrix + k * p->line_step + n * VL, last, n, wide);
            UNROLLED (i, few)
                sums[i][n] = vf_fma(vf_set1(p->vectors[i * p->vector_step + k]), row, sums[i][n]);
        }
    }
    vf alpha = vf_set1(p->alpha);
    UNROLLED (i, few) {
        UNROLLED (n, wide) {
            vm mask = vm_first(n < wide - 1 ? VL : last);
            vf_store_m(p->y + i * p->y_vector + n * VL, mask, vf_mul(alpha, sums[i][n]));
        }
    }
}

static void sum_columns(const struct part *p, int few, bool whole, int64_t last)
{
    switch (few) {
    case 1:
        whole ? sum_block(p, 1, WIDE, VL) : sum_block(p, 1, 1, last);
        break;
    case 2:
        whole ? sum_block(p, 2, WIDE, VL) : sum_block(p, 2, 1, last);
        break;
    case 3:
        whole ? sum_block(p, 3, WIDE, VL) : sum_block(p, 3, 1, last);
        break;
    default:
        whole ? sum_block(p, 4, WIDE, VL) : sum_block(p, 4, 1, last);
        break;
    }
}

static void sum_form(struct part p, int few, int64_t count)
{
    while (count > 0) {
        bool whole = count >= WIDE * VL;
        int64_t done = whole ? WIDE * VL : count < VL ? count : VL;
        sum_columns(&p, few, whole, done);
        p.matrix += done;
        p.y += done;
        count -= done;
    }
}

/* ---- launch ---- */

struct job {
    const struct kernel_state *state;
    const struct kernel_args *args;
};

/* Epilogue over rows [row, row + rows), columns [column, column + columns) of one batch. */
static void run_steps(const struct job *job, int64_t batch, float *c, const int64_t *first,
                      const int64_t *count)
{
    const struct gemm_post *post = &job->state->product.post;
    const struct matmul_shape *s = &job->state->product.shape;
    const float *operands[GEMM_STEP_MAX] = {0};
    for (int k = 0; k < post->count; k++) {
        const struct gemm_step *step = &post->steps[k];
        int64_t left = batch, at = first[0] * step->row + first[1] * step->column;
        for (int d = s->batch_rank - 1; d >= 0; d--) {
            at += left % s->batch_dim[d] * step->batch[d];
            left /= s->batch_dim[d];
        }
        if (step->input >= 0)
            operands[k] = (const float *)job->args->in[step->input] + at;
    }
    gemm_post_heavy(post, operands, c + first[0] * s->c_row + first[1], s->c_row, count[0],
                    count[1]);
}

static void run_task(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct kernel_state *state = job->state;
    const struct matmul_shape *s = &state->product.shape;
    int64_t batch = task / state->chunks, first = task % state->chunks * state->chunk;
    int64_t count = state->lines - first < state->chunk ? state->lines - first : state->chunk;
    struct matmul_offset at = matmul_offset_of(s, batch);
    const float *a = (const float *)job->args->in[0] + at.a;
    const float *b = (const float *)job->args->in[1] + at.b;
    float *c = (float *)job->args->out[0] + at.c;
    struct part part = {.vectors = a,
                        .matrix = b + first * s->b_col,
                        .vector_step = s->a_row,
                        .line_step = state->dot ? s->b_col : s->b_row,
                        .k = s->k,
                        .y = c + first,
                        .y_vector = s->c_row,
                        .y_line = 1,
                        .alpha = state->product.alpha};
    if (state->columns)
        part = (struct part){
            b,        a + first * s->a_row, s->b_col, s->a_row, s->k, c + first * s->c_row, 1,
            s->c_row, state->product.alpha};
    (void)thread;
    for (int64_t i = 0; i < state->few; i += FEW_STEP) {
        struct part group = part;
        group.vectors += i * part.vector_step;
        group.y += i * part.y_vector;
        int few = (int)(state->few - i < FEW_STEP ? state->few - i : FEW_STEP);
        if (state->dot)
            dot_form(group, few, count);
        else
            sum_form(group, few, count);
    }
    int64_t corner[2] = {0, first}, size[2] = {state->few, count};
    if (state->columns) {
        corner[0] = first;
        corner[1] = 0;
        size[0] = count;
        size[1] = state->few;
    }
    if (state->product.post.count)
        run_steps(job, batch, c, corner, size);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args};
    pool_run(args->pool, state->product.shape.batch * state->chunks, run_task, &job);
}

REGISTER_KERNEL(matmul_gemv) = {
    NATIVE(matmul_gemv),
    .ops = OPS("MatMul", "Gemm"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
