/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with few rows or few columns, without packing: a handful of vectors against a matrix
 * that is read once. In the "dot" form the matrix lies along the reduction (weights [N, K], or many
 * rows against one column), in the "sum" form across it ([K, N]). Both run at the speed at which
 * the matrix arrives; constant weights are packed better still (matmul_packed), which the tuner
 * finds out, but packing what comes at run time would cost more than the product.
 *
 * Numbers of bf16 are widened as they are read: half the bytes arrive in half the time. Their
 * results are floats in a thread's scratch until the epilogue is through. */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/gemm_steps.h"
#include "engine/kernels/lib/matmul_product.h"

enum {
    FEW_MAX = 8,
    FEW_STEP = 4,
    LINES = 4,
    ROWS = 4,              /* of B at a time, in the sum form */
    COLUMNS = 4 * VL,      /* least of a task in the sum form */
    AHEAD_BYTES = 8 << 10, /* of B, that are prefetched */
    TASKS_PER_THREAD = 4,
    TASK_BYTES = 64 << 10,
    SUM_FLOATS = 4096,
};

struct kernel_state {
    struct matmul_product product;
    bool dot;           /* the matrix lies along the reduction */
    bool columns;       /* few columns (dot form): lines are rows of A, vectors are columns of B */
    int64_t few, lines; /* vectors; lines (dot) or columns (sum) of the matrix */
    int64_t chunk, chunks; /* lines per task, tasks per batch */
    bool bf16;             /* all tensors are; else f32 */
    int threads;
};

/* Lines in a task, whole units of the inner loops. */
static int64_t chunk_of(const struct kernel_state *s, int threads)
{
    const struct matmul_shape *m = &s->product.shape;
    int64_t unit = s->dot ? LINES : COLUMNS, bytes = m->k * (s->bf16 ? 2 : 4);
    int64_t least = TASK_BYTES / bytes / unit + 1; /* units in a task */
    int64_t units = divide_up(s->lines, unit), wanted = (int64_t)threads * TASKS_PER_THREAD;
    int64_t even = (units * m->batch + wanted - 1) / wanted;
    even = larger(even, least);
    if (s->bf16 || !s->dot) /* in the first cache */
        even = larger(smaller(even, SUM_FLOATS / (s->few * unit)), 1);
    return (even < units ? even : units) * unit;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    s->bf16 = q->in[0].dtype == DTYPE_BF16;
    s->threads = q->threads;
    TRY(matmul_product_of(q, s->bf16 ? DTYPE_BF16 : DTYPE_F32, &s->product, why));
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
    s->chunk = chunk_of(s, q->threads);
    s->chunks = divide_up(s->lines, s->chunk);
    s->product.post.light = 0; /* all steps run over what was stored */
    return STATUS_OK;
}

/* Of one thread. */
static int64_t scratch_floats(const struct kernel_state *s)
{
    return s->bf16 ? round_up(s->few * s->chunk, ALIGN_TENSOR / (int64_t)sizeof(float)) : 0;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(scratch_floats(s) * s->threads) * sizeof(float);
}

/* ---- the two forms ---- */

/* A block of the result; vectors and lines by their distance. */
struct part {
    const void *vectors, *matrix;      /* of f32 or bf16 */
    int64_t vector_step, line_step, k; /* line_step: between lines (dot) or rows of B (sum) */
    float *y;
    int64_t y_vector, y_line; /* distances in the result */
    float alpha;
};

SIMD_INLINE void dot_block(const struct part *p, int few, int lines, bool bf16)
{
    vf sums[FEW_STEP][LINES];
    UNROLLED (i, few)
        UNROLLED (l, lines)
            sums[i][l] = vf_zero();
    int64_t k = 0;
    for (; k + VL <= p->k; k += VL) {
        UNROLLED (l, lines) {
            vf line = vf_read(p->matrix, l * p->line_step + k, bf16);
            UNROLLED (i, few)
                sums[i][l] =
                    vf_fma(line, vf_read(p->vectors, i * p->vector_step + k, bf16), sums[i][l]);
        }
    }
    vm rest = vm_first(p->k - k);
    for (; k < p->k; k += VL) {
        UNROLLED (l, lines) {
            vf line = vf_read_m(p->matrix, l * p->line_step + k, rest, bf16);
            UNROLLED (i, few)
                sums[i][l] = vf_fma(line, vf_read_m(p->vectors, i * p->vector_step + k, rest, bf16),
                                    sums[i][l]);
        }
    }
    UNROLLED (i, few)
        UNROLLED (l, lines)
            p->y[i * p->y_vector + l * p->y_line] = p->alpha * vf_sum(sums[i][l]);
}

SIMD_INLINE void dot_lines(const struct part *p, int few, int lines, bool bf16)
{
    bool whole = lines == LINES;
    switch (few) {
    case 1:
        whole ? dot_block(p, 1, LINES, bf16) : dot_block(p, 1, 1, bf16);
        break;
    case 2:
        whole ? dot_block(p, 2, LINES, bf16) : dot_block(p, 2, 1, bf16);
        break;
    case 3:
        whole ? dot_block(p, 3, LINES, bf16) : dot_block(p, 3, 1, bf16);
        break;
    default:
        whole ? dot_block(p, 4, LINES, bf16) : dot_block(p, 4, 1, bf16);
        break;
    }
}

SIMD_INLINE void dot_form(struct part p, int few, int64_t count, bool bf16)
{
    while (count > 0) {
        int lines = count >= LINES ? LINES : 1;
        dot_lines(&p, few, lines, bf16);
        p.matrix = float_at(p.matrix, lines * p.line_step, bf16);
        p.y += lines * p.y_line;
        count -= lines;
    }
}

/* A few rows of B, times some vectors' elements of these rows. */
struct sweep {
    const struct part *p;
    int64_t k, columns;
    int64_t ahead; /* elements to what is prefetched */
};

/* The sums of `few` vectors over `rows` rows of B, of one vector of columns; lanes NULL: all of it.
 * few, rows and lanes are constants. */
SIMD_INLINE void add_columns(const struct sweep *s, const void *b, vf (*x)[ROWS], float *y, int few,
                             int rows, const vm *lanes, bool bf16)
{
    const struct part *p = s->p;
    vf row[ROWS];
    UNROLLED (r, rows) {
        int64_t at = r * p->line_step;
        simd_prefetch(float_at(b, at + s->ahead, bf16));
        row[r] = lanes ? vf_read_m(b, at, *lanes, bf16) : vf_read(b, at, bf16);
    }
    UNROLLED (i, few) {
        float *to = y + i * p->y_vector;
        vf sum = vf_zero(); /* of these rows first: so sums of thousands lose less */
        UNROLLED (r, rows)
            sum = vf_fma(x[i][r], row[r], sum);
        if (s->k)
            sum = vf_add(sum, lanes ? vf_load_m(to, *lanes) : vf_load(to));
        if (lanes)
            vf_store_m(to, *lanes, sum);
        else
            vf_store(to, sum);
    }
}

/* The same of all columns of the task; the vectors are those from `first` on. */
SIMD_INLINE void add_rows(const struct sweep *s, int64_t first, int few, int rows, bool bf16)
{
    const struct part *p = s->p;
    const void *b = float_at(p->matrix, s->k * p->line_step, bf16);
    float *y = p->y + first * p->y_vector;
    vf x[FEW_STEP][ROWS];
    UNROLLED (i, few)
        UNROLLED (r, rows)
            x[i][r] = vf_set1(
                p->alpha * float_read(p->vectors, (first + i) * p->vector_step + s->k + r, bf16));
    int64_t n = 0;
    for (; n + VL <= s->columns; n += VL)
        add_columns(s, float_at(b, n, bf16), x, y + n, few, rows, NULL, bf16);
    vm rest = vm_first(s->columns - n);
    if (n < s->columns)
        add_columns(s, float_at(b, n, bf16), x, y + n, few, rows, &rest, bf16);
}

SIMD_INLINE void add_rows_of(const struct sweep *s, int64_t first, int64_t few, int rows, bool bf16)
{
    switch (few) {
    case 1:
        add_rows(s, first, 1, rows, bf16);
        break;
    case 2:
        add_rows(s, first, 2, rows, bf16);
        break;
    case 3:
        add_rows(s, first, 3, rows, bf16);
        break;
    default:
        add_rows(s, first, FEW_STEP, rows, bf16);
        break;
    }
}

/* Some rows of B at a time, as wide as the task is, for all vectors: their sums stay in the first
 * cache, and memory is read in runs that are long enough to arrive at its speed. */
SIMD_INLINE void sum_form(const struct part *p, int64_t few, int64_t columns, bool bf16)
{
    int64_t row_bytes = columns * (bf16 ? 2 : 4);
    int64_t rows_ahead = round_up(AHEAD_BYTES / row_bytes + 1, ROWS);
    struct sweep s = {.p = p, .columns = columns, .ahead = rows_ahead * p->line_step};
    for (; s.k + ROWS <= p->k; s.k += ROWS)
        for (int64_t i = 0; i < few; i += FEW_STEP)
            add_rows_of(&s, i, smaller(few - i, FEW_STEP), ROWS, bf16);
    for (; s.k < p->k; s.k++)
        for (int64_t i = 0; i < few; i += FEW_STEP)
            add_rows_of(&s, i, smaller(few - i, FEW_STEP), 1, bf16);
    for (int64_t i = 0; p->k == 0 && i < few; i += FEW_STEP)
        add_rows_of(&s, i, smaller(few - i, FEW_STEP), 0, bf16);
}

/* ---- launch ---- */

struct job {
    const struct kernel_state *state;
    const struct kernel_args *args;
};

/* Rows [row, row + rows), columns [column, column + columns) of one batch. */
struct area {
    int64_t batch, row, rows, column, columns;
    float *sums; /* of the first one */
    int64_t sums_row;
};

/* Epilogue. */
static void run_steps(const struct job *job, const struct area *area)
{
    const struct gemm_post *post = &job->state->product.post;
    const struct matmul_shape *s = &job->state->product.shape;
    const float *operands[GEMM_STEP_MAX] = {0};
    for (int k = 0; k < post->count; k++) {
        const struct gemm_step *step = &post->steps[k];
        int64_t at = area->row * step->row + area->column * step->column +
                     gemm_step_of_batch(step, s->batch_rank, s->batch_dim, area->batch);
        if (step->input >= 0)
            operands[k] = gemm_operand_at(step, job->args->in[step->input], at);
    }
    gemm_post_heavy(post, operands, area->sums, area->sums_row, area->rows, area->columns);
}

static void round_sums(const struct area *area, uint16_t *c, int64_t c_row)
{
    int64_t rows = area->rows, columns = area->columns;
    if (area->sums_row == columns && c_row == columns) {
        columns *= rows;
        rows = 1;
    }
    for (int64_t m = 0; m < rows; m++) {
        const float *from = area->sums + m * area->sums_row;
        uint16_t *to = c + m * c_row;
        int64_t n = 0;
        for (; n + VL <= columns; n += VL)
            vf_store_bf16(to + n, vf_load(from + n));
        vm rest = vm_first(columns - n);
        if (n < columns)
            vf_store_bf16_m(to + n, rest, vf_load_m(from + n, rest));
    }
}

static struct area area_of(const struct kernel_state *state, const struct kernel_args *args,
                           int64_t task, int thread)
{
    const struct matmul_shape *s = &state->product.shape;
    int64_t first = task % state->chunks * state->chunk;
    int64_t count = smaller(state->lines - first, state->chunk);
    struct area area = {.batch = task / state->chunks,
                        .rows = state->few,
                        .column = first,
                        .columns = count,
                        .sums_row = s->c_row};
    if (state->columns) {
        area.row = first;
        area.rows = count;
        area.column = 0;
        area.columns = state->few;
    }
    if (state->bf16) {
        area.sums = (float *)args->workspace + thread * scratch_floats(state);
        area.sums_row = area.columns;
    } else {
        area.sums = (float *)args->out[0] + matmul_offset_of(s, area.batch).c +
                    area.row * s->c_row + area.column;
    }
    return area;
}

SIMD_INLINE void run_form(const struct kernel_state *state, const struct part *part, int64_t count,
                          bool bf16)
{
    if (!state->dot) {
        sum_form(part, state->few, count, bf16);
        return;
    }
    for (int64_t i = 0; i < state->few; i += FEW_STEP) {
        struct part group = *part;
        group.vectors = float_at(part->vectors, i * part->vector_step, bf16);
        group.y += i * part->y_vector;
        dot_form(group, (int)smaller(state->few - i, FEW_STEP), count, bf16);
    }
}

static void run_task(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct kernel_state *state = job->state;
    const struct matmul_shape *s = &state->product.shape;
    struct area area = area_of(state, job->args, task, thread);
    struct matmul_offset at = matmul_offset_of(s, area.batch);
    const void *a = float_at(job->args->in[0], at.a, state->bf16);
    const void *b = float_at(job->args->in[1], at.b, state->bf16);
    struct part part = {.vectors = a,
                        .matrix = float_at(b, area.column * s->b_col, state->bf16),
                        .vector_step = s->a_row,
                        .line_step = state->dot ? s->b_col : s->b_row,
                        .k = s->k,
                        .y = area.sums,
                        .y_vector = area.sums_row,
                        .y_line = 1,
                        .alpha = state->product.alpha};
    if (state->columns) {
        part.vectors = b;
        part.matrix = float_at(a, area.row * s->a_row, state->bf16);
        part.vector_step = s->b_col;
        part.line_step = s->a_row;
        part.y_vector = 1;
        part.y_line = area.sums_row;
    }
    if (state->bf16)
        run_form(state, &part, state->columns ? area.rows : area.columns, true);
    else
        run_form(state, &part, state->columns ? area.rows : area.columns, false);
    if (state->product.post.count)
        run_steps(job, &area);
    if (state->bf16)
        round_sums(&area, (uint16_t *)job->args->out[0] + at.c + area.row * s->c_row + area.column,
                   s->c_row);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args};
    pool_run(args->pool, state->product.shape.batch * state->chunks, run_task, &job);
}

REGISTER_KERNEL(matmul_gemv) = {
    NATIVE(matmul_gemv), .ops = OPS("MatMul", "Gemm"), .state_size = sizeof(struct kernel_state),
    .plan = plan,        .workspace = workspace,       .launch = launch,
};
