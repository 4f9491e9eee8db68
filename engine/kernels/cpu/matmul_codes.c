/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulNBits of a few rows of A: weights are read once, as they lie, and multiplied as the bytes
 * that they are. A's numbers become integers of two bytes (bf16) or three (f32), each a part of the
 * largest one in its row: what is lost is less than a float's own rounding of that one. Their bytes
 * are digits, signed ones, and weights are unsigned: sums of products of bytes, digit by digit from
 * the highest on, are exact in the end, for wrapping round does no harm on the way.
 *
 * Memory's speed is reached by prefetching into the second cache: the first one waits for too few
 * lines at a time, and four rows at once are no stream that the hardware would follow. */
#include "engine/kernels/lib/matmul_codes.h"
#include "base/numbers/integers.h"
#include "engine/kernels/lib/gemm_steps.h"
#include "engine/kernels/lib/workspace.h"

enum {
    FEW_STEP = 4,
    LINES = 4,
    TASKS_PER_THREAD = 4,
    TASK_BYTES = 32 << 10,
    AHEAD_BYTES = 32 << 10, /* of B, and of its factors: what is prefetched */
    SCALES_AHEAD_BYTES = 2 << 10,
    SUM_FLOATS = 4096,
    BYTES = 4 * VL, /* of a vector: four to a lane */
    HALVES_MAX = 2,
    DIGITS_MAX = 3,
};

/* Of a row of A. */
struct factor {
    float value; /* of the integers */
    bool plain;  /* it has numbers that are no part of a largest one: infinities, NaN, tiny ones */
};

struct kernel_state {
    struct matmul_codes m;
    int digits, halves; /* halves: codes in a byte of B */
    int64_t vectors;    /* of a row of B */
    int64_t record;     /* bytes of the digits that belong to such a vector, and of their sum */
    int64_t chunk, chunks;
    int threads;
};

/* ---- sizes ---- */

static int64_t chunk_of(const struct kernel_state *s, int threads)
{
    int64_t least = TASK_BYTES / (s->m.codes.row_bytes * LINES) + 1; /* in LINES */
    int64_t units = divide_up(s->m.codes.rows, LINES);
    int64_t even = larger(divide_up(units, (int64_t)threads * TASKS_PER_THREAD), least);
    if (s->m.bf16) /* sums in the first cache */
        even = larger(smaller(even, SUM_FLOATS / (s->m.rows * LINES)), 1);
    return smaller(even, units) * LINES;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(matmul_codes_from(q, &s->m, why));
    if (s->m.rows > BLOCK_CODES_FEW_ROWS)
        return UNSUPPORTED(why, "more than %d rows", BLOCK_CODES_FEW_ROWS);
    s->digits = s->m.bf16 ? 2 : 3;
    s->halves = 8 / s->m.codes.bits;
    s->vectors = divide_up(s->m.codes.row_bytes, BYTES);
    s->record = (s->halves * s->digits + 1) * BYTES;
    s->threads = q->threads;
    s->chunk = chunk_of(s, q->threads);
    s->chunks = divide_up(s->m.codes.rows, s->chunk);
    s->m.post.light = 0; /* all steps run over what was stored */
    return STATUS_OK;
}

struct scratch {
    struct factor *factors;
    uint8_t *digits; /* [rows of A][vectors][record] */
    float *sums;     /* per thread, of bf16 */
    int64_t sums_floats;
};

static size_t lay_out(const struct kernel_state *s, void *base, struct scratch *scratch)
{
    size_t at = 0;
    size_t digits = (size_t)(s->m.rows * s->vectors * s->record);
    scratch->factors = take_bytes(base, &at, (size_t)s->m.rows * sizeof(struct factor));
    scratch->digits = take_bytes(base, &at, digits);
    int64_t line = ALIGN_TENSOR / (int64_t)sizeof(float);
    scratch->sums_floats = s->m.bf16 ? round_up(s->m.rows * s->chunk + VL, line) : 0;
    scratch->sums = take_floats(base, &at, scratch->sums_floats * s->threads);
    return at;
}

static size_t workspace(const struct kernel_state *s)
{
    struct scratch scratch;
    return lay_out(s, NULL, &scratch);
}

struct job {
    const struct kernel_state *state;
    const struct kernel_args *args;
    struct scratch scratch;
};

/* ---- A as digits ---- */

/* The largest integer: all digits hold it and what a quotient's rounding may add, and its products'
 * sum over a lane fits. */
static float largest_integer(const struct kernel_state *s)
{
    if (s->digits == 2)
        return 127 * 256;
    if (s->m.codes.bits == 4)
        return 127 * 65536;
    return (s->m.has_zeros ? 1 << 21 : 1 << 22) - 16;
}

static struct factor factor_of(const struct kernel_state *s, const void *a)
{
    vf most = vf_zero(), odd = vf_zero();
    int64_t count = s->m.codes.k;
    for (int64_t k = 0; k < count; k += VL) {
        vf x = vf_read_m(a, k, vm_first(count - k), s->m.bf16);
        most = vf_max(most, vf_abs(x));
        odd = vf_fma(x, vf_zero(), odd); /* NaN once x is no number */
    }
    const float tiny = 1e-30f, huge = 1e38f;
    float largest = vf_max_of(most);
    struct factor factor = {.value = largest / largest_integer(s)};
    factor.plain = vf_sum(odd) != 0.0f || (largest > 0 && largest < tiny) || largest > huge;
    return factor;
}

/* The digits of VL integers, lowest first, as bytes at to, to + apart ... */
SIMD_INLINE void store_digits(vi x, uint8_t *to, int64_t apart, int digits)
{
    for (int d = 0; d < digits; d++) {
        vi_store_bytes(to + d * apart, VL, x);
        x = vi_shift_right(vi_add(x, vi_set1(128)), 8);
    }
}

SIMD_INLINE vi vi_of(const uint8_t *bytes)
{
    return vi_load((const int32_t *)(const void *)bytes);
}

SIMD_INLINE vi dot_bytes(vi sum, vi codes, vi digits, bool dots)
{
    if (dots)
        return vi_dot_bytes(sum, codes, digits);
    for (int odd = 0; odd < 2; odd++)
        sum = vi_dot_shorts(sum, word_unsigned(codes, odd), word_signed(digits, odd));
    return sum;
}

/* Sums of codes times integers over each lane; digits without their last vector. */
SIMD_INLINE vi lane_sums(const vi *codes, const uint8_t *record, int halves, int digits, bool dots)
{
    vi sum = vi_set1(0);
    for (int d = digits - 1; d >= 0; d--) {
        sum = vi_shift_left(sum, d < digits - 1 ? 8 : 0);
        for (int h = 0; h < halves; h++)
            sum = dot_bytes(sum, codes[h], vi_of(record + (d * halves + h) * BYTES), dots);
    }
    return sum;
}

/* Digits of the elements that a vector of B meets: for each digit those of the lower halves of its
 * bytes, then of the upper ones. A last vector is to be added to the sums, since the codes' zero is
 * in their middle; where blocks have zero points of their own, it is the sums of the integers. */
SIMD_INLINE void make_record(const struct kernel_state *s, const void *a, int64_t first,
                             float inverse, uint8_t *record, int halves)
{
    uint8_t bytes[DIGITS_MAX][HALVES_MAX * BYTES];
    int64_t count = s->m.codes.k;
    for (int i = 0; i < halves * BYTES; i += VL) {
        vf x = vf_read_m(a, smaller(first + i, count), vm_first(count - first - i), s->m.bf16);
        store_digits(vi_from_vf(vf_mul(x, vf_set1(inverse))), bytes[0] + i, sizeof(bytes[0]),
                     s->digits);
    }
    for (int d = 0; d < s->digits; d++)
        for (int h = 0; h < halves; h++) {
            uint8_t *to = record + (d * halves + h) * BYTES;
            for (int i = 0; i < BYTES; i++)
                to[i] = bytes[d][i * halves + h];
        }
    const vi ones[HALVES_MAX] = {vi_set1(0x01010101), vi_set1(0x01010101)};
    vi sum = lane_sums(ones, record, halves, s->digits, false);
    if (!s->m.has_zeros)
        sum = vi_sub(vi_set1(0), vi_shift_left(sum, s->m.codes.bits - 1));
    vi_store((int32_t *)(void *)(record + s->record - BYTES), sum);
}

static void digits_of_row(void *context, int64_t row, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    struct factor *factor = &job->scratch.factors[row];
    const void *a = float_at(job->args->in[CODES_A], row * s->m.codes.k, s->m.bf16);
    uint8_t *record = job->scratch.digits + row * s->vectors * s->record;
    (void)thread;
    *factor = factor_of(s, a);
    float inverse = factor->value > 0 ? 1 / factor->value : 0;
    for (int64_t v = 0; v < s->vectors && !factor->plain; v++, record += s->record) {
        if (s->halves == 2)
            make_record(s, a, v * BYTES * 2, inverse, record, 2);
        else
            make_record(s, a, v * BYTES, inverse, record, 1);
    }
}

/* ---- products ---- */

/* Some rows of B, times some of A. */
struct part {
    const uint8_t *codes;
    const void *scales;
    const uint8_t *zeros;
    int64_t row_bytes, blocks, vectors, zero_bytes;
    int64_t per_vector; /* blocks in a vector; 0: a block has 2^block_shift vectors */
    int block_shift;
    vi from;  /* per lane, which block of its vector it is in */
    vi shift; /* and where the zero point of that lies among those of the vector, in bits */
    const uint8_t *digits;
    int64_t record, digits_row;
    float *y; /* [A][B] */
    int64_t y_row;
    const struct factor *factors;
};

/* What is constant where a loop over it is compiled. */
struct form {
    int few, lines, halves, digits;
    bool bf16, dots;
};

/* The factors of vector v of line l; `there` are the lanes that have blocks. */
SIMD_INLINE vf scales_of(const struct part *p, int l, int64_t v, vm there, bool bf16)
{
    int64_t row = l * p->blocks, first = v * p->per_vector;
    if (p->per_vector == 0)
        return vf_set1(float_read(p->scales, row + (v >> p->block_shift), bf16));
    simd_prefetch((const char *)float_at(p->scales, row + first, bf16) + SCALES_AHEAD_BYTES);
    return vf_permute(vf_read_m(p->scales, row + first, there, bf16), p->from);
}

/* The zero points of vector v of line l. */
SIMD_INLINE vi zeros_of(const struct part *p, int l, int64_t v, int halves)
{
    const uint8_t *row = p->zeros + l * p->zero_bytes;
    int bits = 8 / halves;
    uint32_t all = 0;
    if (p->per_vector == 0)
        return vi_set1(block_code(row, v >> p->block_shift, bits));
    int64_t bytes = p->per_vector * bits / 8, at = v * bytes;
    for (int i = 0; i < 4; i++)
        if (i < bytes && at + i < p->zero_bytes)
            all |= (uint32_t)row[at + i] << 8 * i;
    return vi_and(vi_shift_by(vi_set1((int32_t)all), p->shift), vi_set1((1 << bits) - 1));
}

/* Vector v of all lines. */
SIMD_INLINE void add_vector(const struct part *p, int64_t v, vf (*sums)[LINES], struct form f)
{
    const uint8_t *record = p->digits + v * p->record;
    const vi nibble = vi_set1(0x0f0f0f0f);
    int64_t bytes = p->row_bytes - v * BYTES; /* that are there */
    vm there = vm_first(smaller(p->blocks - v * p->per_vector, p->per_vector));
    UNROLLED (l, f.lines) {
        const uint8_t *from = p->codes + l * p->row_bytes + v * BYTES;
        vi all = vi_load_all(from, bytes);
        vi codes[HALVES_MAX] = {all, all};
        simd_prefetch_second(from + AHEAD_BYTES);
        if (f.halves == 2) {
            codes[0] = vi_and(all, nibble);
            codes[1] = vi_and(vi_shift_right(all, 4), nibble);
        }
        vf scale = scales_of(p, l, v, there, f.bf16);
        vi zeros = p->zeros ? zeros_of(p, l, v, f.halves) : vi_set1(0);
        UNROLLED (i, f.few) {
            const uint8_t *of_row = record + i * p->digits_row;
            vi sum = lane_sums(codes, of_row, f.halves, f.digits, f.dots);
            vi whole = vi_of(of_row + f.digits * f.halves * BYTES);
            sum = p->zeros ? vi_sub(sum, vi_mul(zeros, whole)) : vi_add(sum, whole);
            sums[i][l] = vf_fma(vf_from_vi(sum), scale, sums[i][l]);
        }
    }
}

SIMD_INLINE void block_of(const struct part *p, struct form f)
{
    vf sums[FEW_STEP][LINES];
    UNROLLED (i, f.few)
        UNROLLED (l, f.lines)
            sums[i][l] = vf_zero();
    for (int64_t v = 0; v < p->vectors; v++)
        add_vector(p, v, sums, f);
    UNROLLED (i, f.few)
        UNROLLED (l, f.lines)
            p->y[i * p->y_row + l] = p->factors[i].value * vf_sum(sums[i][l]);
}

/* All rows of A, four at a time where there is an instruction for it; of one line one by one. Few
 * forms, for each is compiled for every instruction set. */
SIMD_INLINE void all_rows(struct part p, struct form f, int64_t rows)
{
    struct form four = f, one = f;
    bool fours = f.dots && f.lines == LINES;
    four.few = FEW_STEP;
    one.few = 1;
    while (rows > 0) {
        int few = fours && rows >= FEW_STEP ? FEW_STEP : 1;
        if (fours && few == FEW_STEP)
            block_of(&p, four);
        else
            block_of(&p, one);
        p.digits += few * p.digits_row;
        p.y += few * p.y_row;
        p.factors += few;
        rows -= few;
    }
}

SIMD_INLINE void columns_of(struct part p, struct form f, int64_t rows, int64_t count)
{
    while (count > 0) {
        int lines = count >= LINES ? LINES : 1;
        if (lines == LINES) {
            f.lines = LINES;
            all_rows(p, f, rows);
        } else {
            f.lines = 1;
            all_rows(p, f, rows);
        }
        p.codes += lines * p.row_bytes;
        p.scales = float_at(p.scales, lines * p.blocks, f.bf16);
        p.zeros += p.zeros ? lines * p.zero_bytes : 0;
        p.y += lines;
        count -= lines;
    }
}

SIMD_INLINE void columns_with(const struct kernel_state *s, const struct part *p, int64_t count,
                              bool dots)
{
    int64_t rows = s->m.rows;
    if (s->halves == 2 && s->m.bf16)
        columns_of(*p, (struct form){.halves = 2, .digits = 2, .bf16 = true, .dots = dots}, rows,
                   count);
    else if (s->halves == 2)
        columns_of(*p, (struct form){.halves = 2, .digits = 3, .dots = dots}, rows, count);
    else if (s->m.bf16)
        columns_of(*p, (struct form){.halves = 1, .digits = 2, .bf16 = true, .dots = dots}, rows,
                   count);
    else
        columns_of(*p, (struct form){.halves = 1, .digits = 3, .dots = dots}, rows, count);
}

/* ---- rows of A that are no digits ---- */

static void plain_row(const struct job *job, int64_t row, int64_t first, int64_t count, float *y)
{
    const struct kernel_state *s = job->state;
    const struct block_codes *c = &s->m.codes;
    struct block_code_arrays in = matmul_codes_arrays(&s->m, job->args);
    const void *a = float_at(job->args->in[CODES_A], row * c->k, s->m.bf16);
    for (int64_t n = 0; n < count; n++) {
        const uint8_t *codes = in.codes + (first + n) * c->row_bytes;
        double sum = 0;
        for (int64_t k = 0; k < c->k; k++) {
            int code = block_code(codes, k, c->bits);
            float scale = float_read(in.scales, (first + n) * c->blocks + k / c->block, s->m.bf16);
            float zero = zero_of_block(c, &in, first + n, k / c->block);
            sum += (double)float_read(a, k, s->m.bf16) * (((float)code - zero) * (double)scale);
        }
        y[n] = (float)sum;
    }
}

/* ---- launch ---- */

static struct part part_of(const struct job *job, int64_t first, float *y, int64_t y_row)
{
    const struct kernel_state *s = job->state;
    const struct block_codes *c = &s->m.codes;
    struct block_code_arrays in = matmul_codes_arrays(&s->m, job->args);
    int64_t lanes = c->block / (s->halves * 4); /* in a block */
    int32_t from[VL], shift[VL];
    struct part p = {.codes = in.codes + first * c->row_bytes,
                     .scales = float_at(in.scales, first * c->blocks, s->m.bf16),
                     .zeros = in.zeros ? in.zeros + first * c->zero_bytes : NULL,
                     .zero_bytes = c->zero_bytes,
                     .row_bytes = c->row_bytes,
                     .blocks = c->blocks,
                     .vectors = s->vectors,
                     .per_vector = lanes > 0 && lanes < VL ? VL / lanes : 0,
                     .digits = job->scratch.digits,
                     .record = s->record,
                     .digits_row = s->vectors * s->record,
                     .y = y,
                     .y_row = y_row,
                     .factors = job->scratch.factors};
    while (VL << p.block_shift < lanes)
        p.block_shift++;
    for (int l = 0; l < VL; l++) {
        from[l] = (int32_t)(l / lanes);
        shift[l] = from[l] * c->bits;
    }
    p.from = vi_load(from);
    p.shift = vi_load(shift);
    return p;
}

static void run_task(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t n = s->m.codes.rows, first = task * s->chunk, count = smaller(n - first, s->chunk);
    float *y = s->m.bf16 ? job->scratch.sums + thread * job->scratch.sums_floats
                         : (float *)job->args->out[0] + first;
    int64_t y_row = s->m.bf16 ? count : n;
    struct part part = part_of(job, first, y, y_row);
    if (cpu_has_byte_dots())
        columns_with(s, &part, count, true);
    else
        columns_with(s, &part, count, false);
    for (int64_t row = 0; row < s->m.rows; row++)
        if (job->scratch.factors[row].plain)
            plain_row(job, row, first, count, y + row * y_row);
    struct matmul_codes_area area = {0, s->m.rows, first, count};
    matmul_codes_steps(&s->m, job->args, &area, y, y_row);
    if (s->m.bf16)
        gemm_round_rows(y, y_row, (uint16_t *)job->args->out[0] + first, n, s->m.rows, count);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.state = s, .args = args};
    lay_out(s, args->workspace, &job.scratch);
    pool_run(args->pool, s->m.rows, digits_of_row, &job);
    pool_run(args->pool, s->chunks, run_task, &job);
}

REGISTER_KERNEL(matmul_codes) = {
    NATIVE(matmul_codes), .ops = OPS("MatMulNBits"), .state_size = sizeof(struct kernel_state),
    .plan = plan,         .workspace = workspace,    .launch = launch,
};
