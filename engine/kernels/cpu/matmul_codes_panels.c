/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulNBits with weights of 4 bits, whose rows are packed into panels: a lane of a vector is a
 * row of weights, and holds eight of its codes. For some rows of A at a time codes become floats in
 * registers, by a table: exact ones, for the factor of a block is applied to the sum over it. That
 * costs the same for one row of A as for eight, so products of a few rows and of hundreds run at
 * almost the speed that floats do, and read a quarter or an eighth of the bytes.
 *
 * A is turned first, so that what eight rows need next lies side by side; bf16 is widened where the
 * CPU does not multiply pairs of it. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers/integers.h"
#include "engine/kernels/lib/gemm_steps.h"
#include "engine/kernels/lib/matmul_codes.h"
#include "engine/kernels/lib/simd_codes.h"
#include "engine/kernels/lib/workspace.h"

enum {
    GROUP = 8,                   /* codes in a lane */
    ROWS_MAX = VL == 16 ? 8 : 4, /* of A at a time: their sums and a block's fill the registers */
    TASKS_PER_THREAD = 4,
    TASK_BYTES = 32 << 10,  /* of codes, where there are few rows of A */
    ROWS_BYTES = 256 << 10, /* of A in a task: in the second cache */
    TURN = 64 * GROUP,      /* elements of A that are turned at a time */
    SUM_FLOATS = 8192,      /* of a task */
    AHEAD_BYTES = 16 << 10, /* of codes: what is prefetched */
};

/* What is constant where a loop over it is compiled. */
struct form {
    int rows;
    bool words, zeros;
};

#if defined(__AVX512F__)

#define HAS_WORDS cpu_has_bf16()

/* The next eight elements of each row. */
SIMD_INLINE void add_words(vi table, vi codes, vi zero, const uint16_t *a, vf *sums, struct form f)
{
    UNROLLED (p, GROUP / 2) {
        vi pair = vi_shift_right(codes, 4 * p);
        if (f.zeros)
            pair = vi_add(vi_and(pair, vi_set1(0x000f000f)), zero);
        vf weights = vf_bits(vi_words_at(table, pair));
        UNROLLED (r, f.rows)
            sums[r] = vf_dot_bf16_pair(sums[r], weights, a + 2 * (p * f.rows + r));
    }
}

#else

#define HAS_WORDS                                 false
#define add_words(table, codes, zero, a, sums, f) ((void)(zero)) /* never reached */

#endif

struct kernel_state {
    struct matmul_codes m;
    bool words;                   /* products of pairs of bf16; else of floats */
    bool changing;                /* weights come with each launch */
    int64_t groups, block_groups; /* of a row; of a block */
    int64_t a_row;                /* elements of a row of A, to whole groups */
    int64_t rows, row_tasks;      /* of A in a task */
    int64_t panels, columns, column_tasks;
    int threads;
    uint8_t *packed; /* NULL: in the workspace */
};

/* ---- sizes ---- */

static void divide_work(struct kernel_state *s)
{
    int64_t element = s->words ? 2 : 4, bytes = s->groups * GROUP * element, rows = s->m.rows;
    int64_t most = larger(ROWS_BYTES / bytes / ROWS_MAX, 1) * ROWS_MAX;
    s->row_tasks = divide_up(rows, most);
    s->rows = s->row_tasks == 1 ? rows : round_up(divide_up(rows, s->row_tasks), ROWS_MAX);
    s->row_tasks = divide_up(rows, s->rows);
    int64_t panel_bytes = s->groups * VL * GROUP / 2;
    int64_t even = divide_up(s->panels * s->row_tasks, (int64_t)s->threads * TASKS_PER_THREAD);
    int64_t least = divide_up(TASK_BYTES, panel_bytes * s->rows);
    int64_t panels = smaller(larger(even, least), larger(SUM_FLOATS / s->rows / VL, 1));
    s->columns = smaller(panels, s->panels) * VL;
    s->column_tasks = divide_up(s->panels * VL, s->columns);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(matmul_codes_from(q, &s->m, why));
    if (s->m.codes.bits != 4)
        return UNSUPPORTED(why, "codes of %d bits", s->m.codes.bits);
    s->words = s->m.bf16 && HAS_WORDS;
    s->groups = divide_up(s->m.codes.k, GROUP);
    s->block_groups = s->m.codes.block / GROUP;
    s->a_row = s->groups * GROUP;
    for (int k = CODES_B; k <= (s->m.has_zeros ? CODES_ZEROS : CODES_SCALES); k++)
        s->changing = s->changing || !query_fixed(q, k);
    s->panels = divide_up(s->m.codes.rows, VL);
    s->threads = q->threads;
    divide_work(s);
    s->m.post.light = 0; /* all steps run over what was stored */
    return STATUS_OK;
}

/* ---- panels ---- */

/* [panels][groups][VL] words of codes, [panels][blocks][VL] factors, and as many zero points, which
 * are kept as 16 less each: that is added. */
struct panels {
    uint8_t *codes, *zeros; /* zeros NULL: there are none */
    void *scales;           /* bf16 where products are of words, else floats */
    size_t bytes;
};

static struct panels panels_at(const struct kernel_state *s, void *base)
{
    struct panels p;
    size_t at = 0, lanes = (size_t)(s->panels * VL), blocks = (size_t)s->m.codes.blocks * lanes;
    p.codes = take_bytes(base, &at, (size_t)s->groups * lanes * GROUP / 2);
    p.scales = take_bytes(base, &at, blocks * (s->words ? 2 : 4));
    p.zeros = s->m.has_zeros ? take_bytes(base, &at, blocks) : NULL;
    p.bytes = at;
    return p;
}

struct scratch {
    void *a;     /* turned */
    float *sums; /* per thread, of bf16 */
    int64_t sums_floats;
    uint8_t *packed; /* weights that come with each launch */
};

static size_t lay_out(const struct kernel_state *s, void *base, struct scratch *scratch)
{
    size_t at = 0, element = s->words ? 2 : 4;
    int64_t line = ALIGN_TENSOR / (int64_t)sizeof(float);
    scratch->packed = take_bytes(base, &at, s->changing ? panels_at(s, NULL).bytes : 0);
    scratch->a = take_bytes(base, &at, (size_t)(s->m.rows * s->a_row) * element);
    scratch->sums_floats = s->m.bf16 ? round_up(s->rows * s->columns, line) : 0;
    scratch->sums = take_floats(base, &at, scratch->sums_floats * s->threads);
    return at;
}

static size_t workspace(const struct kernel_state *s)
{
    struct scratch scratch;
    return lay_out(s, NULL, &scratch);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    (void)q;
    if (s->changing)
        return STATUS_OK;
    *packed_bytes = panels_at(s, NULL).bytes;
    s->packed = memory_alloc(*packed_bytes);
    return s->packed ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static void release(struct kernel_state *s)
{
    memory_free(s->packed);
}

static struct panels panels_of(const struct kernel_state *s, const struct kernel_args *args)
{
    struct scratch scratch;
    if (s->packed)
        return panels_at(s, s->packed);
    lay_out(s, args->workspace, &scratch);
    return panels_at(s, scratch.packed);
}

/* Four halves of bytes, side by side. */
static uint32_t gather_halves(uint32_t halves)
{
    halves = (halves | halves >> 4) & 0x00ff00ff;
    return (halves | halves >> 8) & 0xffff;
}

/* Eight codes as a lane holds them: those with even numbers, then the odd ones, so that a word
 * shifted by 4 p has pair p at the ends of its halves. */
static uint32_t word_of_group(const uint8_t *codes, int64_t bytes)
{
    uint32_t word = 0;
    for (int64_t k = 0; k < 4 && k < bytes; k++)
        word |= (uint32_t)codes[k] << 8 * k;
    return gather_halves(word & 0x0f0f0f0f) | gather_halves(word >> 4 & 0x0f0f0f0f) << 16;
}

struct packing {
    const struct kernel_state *state;
    struct block_code_arrays from;
    struct panels to;
};

/* Lane `lane` of a panel; those without a row are factors of 0. */
static void pack_lane(const struct packing *p, int64_t panel, int64_t lane)
{
    const struct kernel_state *s = p->state;
    const struct block_codes *c = &s->m.codes;
    int64_t row = panel * VL + lane;
    bool is_there = row < c->rows;
    uint32_t *codes = (uint32_t *)(void *)p->to.codes + panel * s->groups * VL + lane;
    for (int64_t g = 0; g < s->groups; g++) {
        int64_t at = g * GROUP / 2;
        codes[g * VL] =
            is_there ? word_of_group(p->from.codes + row * c->row_bytes + at, c->row_bytes - at)
                     : 0;
    }
    for (int64_t b = 0; b < c->blocks; b++) {
        int64_t to = (panel * c->blocks + b) * VL + lane;
        float scale = is_there ? float_read(p->from.scales, row * c->blocks + b, s->m.bf16) : 0.0f;
        float_write(p->to.scales, to, scale, s->words);
        if (p->to.zeros)
            p->to.zeros[to] =
                is_there
                    ? (uint8_t)(16 - block_code(p->from.zeros + row * c->zero_bytes, b, c->bits))
                    : 0;
    }
}

static void pack_panel(void *context, int64_t panel, int thread)
{
    (void)thread;
    for (int64_t lane = 0; lane < VL; lane++)
        pack_lane(context, panel, lane);
}

static void pack(struct kernel_state *s, const struct kernel_args *args)
{
    struct packing packing = {
        .state = s, .from = matmul_codes_arrays(&s->m, args), .to = panels_of(s, args)};
    pool_run(args->pool, s->panels, pack_panel, &packing);
}

/* ---- products ---- */

/* Rows of A times a panel. */
struct tile {
    const int32_t *codes;
    const uint8_t *zeros;
    const void *scales, *a;
    int64_t groups, block_groups;
    int64_t
        a_row; /* elements of a row of A, which is turned: the rows of a tile lie side by side */
    vi table;  /* of words: what 5 bits stand for */
    float *y;
    int64_t y_row, columns;
};

SIMD_INLINE void add_floats(vi codes, vf zero, const float *a, vf *sums, struct form f)
{
    UNROLLED (p, GROUP / 2)
        UNROLLED (odd, 2) {
            vf weights = vf_from_code(vi_shift_right(codes, 4 * p + 16 * odd));
            if (f.zeros)
                weights = vf_add(weights, zero);
            UNROLLED (r, f.rows)
                sums[r] = vf_fma(weights, vf_set1(a[(2 * p + odd) * f.rows + r]), sums[r]);
        }
}

/* A block from group `first` on. */
SIMD_INLINE void add_block(const struct tile *t, int64_t first, int64_t groups, vi zero, vf *sums,
                           struct form f)
{
    vf zero_float = vf_from_vi(vi_sub(zero, vi_set1(8)));
    vi zero_words = vi_or(zero, vi_shift_left(zero, 16));
    for (int64_t g = first; g < first + groups; g++) {
        vi codes = vi_load(t->codes + g * VL);
        const void *a = float_at(t->a, g * GROUP * f.rows, f.words);
        simd_prefetch_second((const char *)(t->codes + g * VL) + AHEAD_BYTES);
        if (f.words)
            add_words(t->table, codes, zero_words, a, sums, f);
        else
            add_floats(codes, zero_float, a, sums, f);
    }
}

SIMD_INLINE void multiply_tile(const struct tile *t, struct form f)
{
    vf sums[ROWS_MAX], part[ROWS_MAX];
    vm lanes = vm_first(t->columns);
    UNROLLED (r, f.rows)
        sums[r] = vf_zero();
    for (int64_t b = 0, first = 0; first < t->groups; b++, first += t->block_groups) {
        vi zero = f.zeros ? vi_load_u8(t->zeros + b * VL, VL) : vi_set1(0);
        UNROLLED (r, f.rows)
            part[r] = vf_zero();
        add_block(t, first, smaller(t->groups - first, t->block_groups), zero, part, f);
        vf scale = vf_read(t->scales, b * VL, f.words);
        UNROLLED (r, f.rows)
            sums[r] = vf_fma(part[r], scale, sums[r]);
    }
    UNROLLED (r, f.rows)
        vf_store_m(t->y + r * t->y_row, lanes, sums[r]);
}

/* Of so many rows that are left: as many as there is a form for. */
static int rows_of_tile(int64_t rows)
{
    return rows >= ROWS_MAX ? ROWS_MAX : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
}

SIMD_INLINE void multiply_rows(struct tile t, int64_t rows, struct form f)
{
    while (rows > 0) {
        f.rows = rows_of_tile(rows);
        switch (f.rows) {
        case 1:
            multiply_tile(&t, (struct form){1, f.words, f.zeros});
            break;
        case 2:
            multiply_tile(&t, (struct form){2, f.words, f.zeros});
            break;
        case ROWS_MAX:
            multiply_tile(&t, (struct form){ROWS_MAX, f.words, f.zeros});
            break;
        default:
            multiply_tile(&t, (struct form){4, f.words, f.zeros});
            break;
        }
        t.a = float_at(t.a, f.rows * t.a_row, f.words);
        t.y += f.rows * t.y_row;
        rows -= f.rows;
    }
}

static void multiply_panel(const struct tile *t, int64_t rows, bool words)
{
    if (HAS_WORDS && words && t->zeros)
        multiply_rows(*t, rows, (struct form){.words = true, .zeros = true});
    else if (HAS_WORDS && words)
        multiply_rows(*t, rows, (struct form){.words = true});
    else if (t->zeros)
        multiply_rows(*t, rows, (struct form){.zeros = true});
    else
        multiply_rows(*t, rows, (struct form){.zeros = false});
}

/* ---- launch ---- */

struct job {
    const struct kernel_state *state;
    const struct kernel_args *args;
    struct panels panels;
    struct scratch scratch;
    vi table;
};

/* In place of a code of 4 bits, whatever is above them, or of a code and what is added to it. */
static vi word_table(bool zeros)
{
    uint16_t table[2 * VL] = {0};
    for (int i = 0; i < 2 * VL; i++)
        table[i] = bfloat_from_float((float)(zeros ? i - 16 : i % 16 - 8));
    return vi_load((const int32_t *)(const void *)table);
}

/* Elements [k, stop) of `rows` rows, those of each k side by side. */
static void turn_floats(const struct kernel_state *s, const void *from, float *to, int64_t rows,
                        int64_t k, int64_t stop)
{
    int64_t count = s->m.codes.k;
    for (; k < stop; k++)
        for (int64_t r = 0; r < rows; r++)
            to[k * rows + r] = k < count ? float_read(from, r * count + k, s->m.bf16) : 0.0f;
}

/* The same in pairs of bf16. */
static void turn_words(const struct kernel_state *s, const uint16_t *from, uint16_t *to,
                       int64_t rows, int64_t k, int64_t stop)
{
    int64_t count = s->m.codes.k;
    for (; k < stop; k += 2)
        for (int64_t r = 0; r < rows; r++) {
            uint16_t pair[2] = {0, 0};
            if (k + 1 < count)
                memcpy(pair, from + r * count + k, sizeof(pair));
            else if (k < count)
                pair[0] = from[r * count + k];
            memcpy(to + (k * rows + 2 * r), pair, sizeof(pair));
        }
}

/* A piece of a tile's rows. */
static void turn_rows(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t pieces = divide_up(s->a_row, TURN), row = task / pieces * ROWS_MAX;
    int64_t k = task % pieces * TURN, stop = smaller(k + TURN, s->a_row);
    (void)thread;
    for (int64_t end = smaller(row + ROWS_MAX, s->m.rows); row < end;) {
        int64_t rows = rows_of_tile(end - row);
        const void *from = float_at(job->args->in[CODES_A], row * s->m.codes.k, s->m.bf16);
        void *to = out_at(job->scratch.a, row * s->a_row, s->words);
        if (s->words)
            turn_words(s, from, to, rows, k, stop);
        else
            turn_floats(s, from, to, rows, k, stop);
        row += rows;
    }
}

static void run_task(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const struct block_codes *c = &s->m.codes;
    int64_t row = task % s->row_tasks * s->rows, column = task / s->row_tasks * s->columns;
    int64_t rows = smaller(s->rows, s->m.rows - row);
    int64_t columns = smaller(s->columns, c->rows - column);
    int64_t y_row = s->m.bf16 ? columns : c->rows;
    float *y = s->m.bf16 ? job->scratch.sums + thread * job->scratch.sums_floats
                         : (float *)job->args->out[0] + row * y_row + column;
    for (int64_t n = 0; n < columns; n += VL) {
        int64_t panel = (column + n) / VL;
        struct tile tile = {
            .codes = (const int32_t *)(const void *)job->panels.codes + panel * s->groups * VL,
            .scales = float_at(job->panels.scales, panel * c->blocks * VL, s->words),
            .zeros = job->panels.zeros ? job->panels.zeros + panel * c->blocks * VL : NULL,
            .a = float_at(job->scratch.a, row * s->a_row, s->words),
            .groups = s->groups,
            .block_groups = s->block_groups,
            .a_row = s->a_row,
            .table = job->table,
            .y = y + n,
            .y_row = y_row,
            .columns = smaller(columns - n, VL)};
        multiply_panel(&tile, rows, s->words);
    }
    struct matmul_codes_area area = {row, rows, column, columns};
    matmul_codes_steps(&s->m, job->args, &area, y, y_row);
    if (s->m.bf16)
        gemm_round_rows(y, y_row, (uint16_t *)job->args->out[0] + row * c->rows + column, c->rows,
                        rows, columns);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.state = s,
                      .args = args,
                      .panels = panels_of(s, args),
                      .table = word_table(s->m.has_zeros)};
    lay_out(s, args->workspace, &job.scratch);
    pool_run(args->pool, divide_up(s->m.rows, ROWS_MAX) * divide_up(s->a_row, TURN), turn_rows,
             &job);
    pool_run(args->pool, s->row_tasks * s->column_tasks, run_task, &job);
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    snprintf(text, size, "%s, tasks of %lld x %lld", s->words ? "pairs of bf16" : "floats",
             (long long)s->rows, (long long)s->columns);
}

REGISTER_KERNEL(matmul_codes_panels) = {
    NATIVE(matmul_codes_panels),
    .ops = OPS("MatMulNBits"),
    .packs = 1u << CODES_B | 1u << CODES_SCALES | 1u << CODES_ZEROS,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .describe = describe,
    .workspace = workspace,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .release = release,
};
