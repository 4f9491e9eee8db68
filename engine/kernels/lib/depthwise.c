/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/depthwise.h"

static const int32_t lane_numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* Lane i reads the first lane of its group; adding j gives channel j of the group. */
SIMD_INLINE vi group_lanes(const struct depthwise *d)
{
    return vi_and(vi_load(lane_numbers), vi_set1(-d->depth));
}

typedef gemm_sums row_sums[DEPTHWISE_ROWS_MAX];

/* Constants of one instance. side 0: any kernel, stride and dilation, one row. */
struct run_shape {
    int side, step, rows, count;
    bool ahead, deep; /* deep: more than one channel a group */
    bool bf16;
};

/* Input channel j of each group, for one vector of channels, through a square kernel; stride 1
 * where there are two rows. */
SIMD_INLINE void sum_square(const struct depthwise *d, int64_t c, struct run_shape k, int j,
                            row_sums sums)
{
    vi lanes = vi_add(group_lanes(d), vi_set1(j));
    const float *first = d->weights + j * k.side * k.side * d->weights_row + c;
    int side = k.side, step = k.step, rows = k.rows, count = k.count;
    int columns = (count - 1) * step + side;
    UNROLLED (y, side + rows - 1) {
        const void *const *row = d->pixels + y * columns;
        UNROLLED (column, columns) {
            vf x = vf_read(row[column], c, k.bf16);
            if (k.deep)
                x = vf_permute(x, lanes);
            if (k.ahead && y >= side - step && column >= columns - count * step)
                __builtin_prefetch(float_at(row[column], c + d->ahead, k.bf16));
            UNROLLED (r, rows) {
                const float *weights = first + (y - r) * side * d->weights_row;
                UNROLLED (p, count) {
                    int tap = column - p * step;
                    if (tap >= 0 && tap < side && y >= r && y - r < side)
                        sums[r][p][0] =
                            vf_fma(x, vf_load(weights + tap * d->weights_row), sums[r][p][0]);
                }
            }
        }
    }
}

SIMD_INLINE void sum_any(const struct depthwise *d, int64_t c, int64_t last, struct run_shape k,
                         int j, gemm_sums sums)
{
    vi lanes = vi_add(group_lanes(d), vi_set1(j));
    struct gemm_operand kind = {false, k.bf16};
    const float *weights = d->weights + j * d->kernel_y * d->kernel_x * d->weights_row + c;
    for (int y = 0; y < d->kernel_y; y++) {
        const void *const *row = d->pixels + y * d->columns;
        for (int tap = 0; tap < d->kernel_x; tap++, weights += d->weights_row) {
            vf w = vf_load(weights);
            UNROLLED (p, k.count) {
                const void *pixel = row[p * d->step + tap * d->tap];
                vf x = gemm_operand(kind, float_at(pixel, c, k.bf16), last, 0, 1);
                if (k.deep)
                    x = vf_permute(x, lanes);
                sums[p][0] = vf_fma(x, w, sums[p][0]);
            }
        }
    }
}

/* Any epilogue, one pixel at a time: kept out of the instances, of which there are many. */
static __attribute__((noinline)) void finish_any(const struct gemm_pixels *to, int64_t c,
                                                 int64_t last, int count, gemm_sums sums)
{
    const float *operands[GEMM_STEP_MAX];
    struct gemm_pixels one = *to;
    one.operands = operands;
    for (int p = 0; p < count; p++) {
        gemm_sums sum = {{sums[p][0]}};
        one.y = (float *)to->y + p * to->y_pixel;
        for (int k = 0; k < to->post->light; k++)
            operands[k] = to->operands[k] ? to->operands[k] + p * to->post->steps[k].row : NULL;
        gemm_finish_pixels(&one, c, last, 1, false, sum);
    }
}

/* The same to bf16: all pixels at once, since calls for single vectors would take their time. */
static __attribute__((noinline)) void finish_bf16(const struct gemm_pixels *to, int64_t c,
                                                  int64_t last, int count, gemm_sums sums)
{
    switch (count) {
    case 1:
        gemm_finish_pixels(to, c, last, 1, true, sums);
        break;
    case 2:
        gemm_finish_pixels(to, c, last, 2, true, sums);
        break;
    case 3:
        gemm_finish_pixels(to, c, last, 3, true, sums);
        break;
    default:
        gemm_finish_pixels(to, c, last, 4, true, sums);
        break;
    }
}

/* Steps that are bounds alone, or none, happen here. */
SIMD_INLINE void finish(const struct depthwise *d, const struct gemm_pixels *to, int64_t c,
                        int64_t last, struct run_shape k, gemm_sums sums)
{
    if (!d->bounded || last < VL) {
        if (k.bf16)
            finish_bf16(to, c, last, k.count, sums);
        else
            finish_any(to, c, last, k.count, sums);
        return;
    }
    vf low = vf_set1(d->low), high = vf_set1(d->high);
    UNROLLED (p, k.count) {
        vf y = vf_min(high, vf_max(low, sums[p][0]));
        int64_t at = p * to->y_pixel + c;
        if (k.bf16)
            vf_write(to->y, at, y, true);
        else if (to->stream)
            vf_stream((float *)to->y + at, y);
        else
            vf_store((float *)to->y + at, y);
    }
}

SIMD_INLINE void start(const struct depthwise *d, int64_t c, int count, gemm_sums sums)
{
    vf bias = vf_load(d->bias + c);
    UNROLLED (p, count)
        sums[p][0] = bias;
}

/* Square kernels: the whole vectors of [first, end). */
SIMD_INLINE void run_square(const struct depthwise *d, struct run_shape k,
                            const struct gemm_pixels *pixels)
{
    for (int64_t c = d->first; c + VL <= d->end; c += VL) {
        row_sums sums;
        UNROLLED (r, k.rows)
            start(d, c, k.count, sums[r]);
        if (k.deep)
            for (int j = 0; j < d->depth; j++)
                sum_square(d, c, k, j, sums);
        else
            sum_square(d, c, k, 0, sums);
        UNROLLED (r, k.rows)
            finish(d, &pixels[r], c, VL, k, sums[r]);
    }
}

/* All channels, also where they end in the middle of a vector. */
SIMD_INLINE void run_any(const struct depthwise *d, struct run_shape k,
                         const struct gemm_pixels *pixels)
{
    for (int64_t c = d->first; c < d->end; c += VL) {
        gemm_sums sums;
        int64_t last = d->end - c < VL ? d->end - c : VL;
        start(d, c, k.count, sums);
        for (int j = 0; j < (k.deep ? d->depth : 1); j++)
            sum_any(d, c, last, k, j, sums);
        finish(d, pixels, c, last, k, sums);
    }
}

SIMD_INLINE void run(const struct depthwise *d, struct run_shape k,
                     const struct gemm_pixels *pixels)
{
    if (k.side)
        run_square(d, k, pixels);
    else
        run_any(d, k, pixels);
}

typedef void run_fn(const struct depthwise *d, const struct gemm_pixels *pixels);

/* kind: 0 plain, 1 with prefetch, 2 deep. */
#define RUN(side, step, rows, count, kind, bf16)                                                   \
    static void run_##side##_##step##_##rows##_##count##_##kind##_##bf16(                          \
        const struct depthwise *d, const struct gemm_pixels *pixels)                               \
    {                                                                                              \
        run(d, (struct run_shape){side, step, rows, count, kind == 1, kind == 2, bf16}, pixels);   \
    }
#define RUNS_OF(side, step, rows, kind, bf16)                                                      \
    RUN(side, step, rows, 1, kind, bf16)                                                           \
    RUN(side, step, rows, 2, kind, bf16)                                                           \
    RUN(side, step, rows, 3, kind, bf16) RUN(side, step, rows, 4, kind, bf16)
#define ROW_OF(side, step, rows, kind, bf16)                                                       \
    {                                                                                              \
        run_##side##_##step##_##rows##_1_##kind##_##bf16,                                          \
            run_##side##_##step##_##rows##_2_##kind##_##bf16,                                      \
            run_##side##_##step##_##rows##_3_##kind##_##bf16,                                      \
            run_##side##_##step##_##rows##_4_##kind##_##bf16                                       \
    }
/* Any kernel in both; square ones in bf16 only where that is no emulation. */
#define ANY_RUNS(kind) RUNS_OF(0, 0, 1, kind, 0) RUNS_OF(0, 0, 1, kind, 1)
#define ANY_ROW(kind)                                                                              \
    {                                                                                              \
        ROW_OF(0, 0, 1, kind, 0), ROW_OF(0, 0, 1, kind, 1)                                         \
    }
#if defined(__AVX512F__)
enum { SQUARES_OF_BF16 = 1 };
#define RUNS(side, step, rows, kind)                                                               \
    RUNS_OF(side, step, rows, kind, 0) RUNS_OF(side, step, rows, kind, 1)
#define ROW(side, step, rows, kind)                                                                \
    {                                                                                              \
        ROW_OF(side, step, rows, kind, 0), ROW_OF(side, step, rows, kind, 1)                       \
    }
#define AHEAD_ROW(side, step, rows)                                                                \
    {                                                                                              \
        ROW_OF(side, step, rows, 1, 0), ROW_OF(side, step, rows, 0, 1)                             \
    }
#else
enum { SQUARES_OF_BF16 = 0 };
#define AHEAD_ROW(side, step, rows)  ROW(side, step, rows, 1)
#define RUNS(side, step, rows, kind) RUNS_OF(side, step, rows, kind, 0)
#define ROW(side, step, rows, kind)                                                                \
    {                                                                                              \
        ROW_OF(side, step, rows, kind, 0)                                                          \
    }
#endif
/* Plain and with prefetch, of f32 alone. Without vectors that would be a prefetch for each channel.
 */
#if defined(__AVX2__)
#define BOTH(side, step, rows) RUNS(side, step, rows, 0) RUNS_OF(side, step, rows, 1, 0)
#define ROWS(side, step, rows)                                                                     \
    {                                                                                              \
        ROW(side, step, rows, 0), AHEAD_ROW(side, step, rows)                                      \
    }
#else
#define BOTH(side, step, rows) RUNS(side, step, rows, 0)
#define ROWS(side, step, rows)                                                                     \
    {                                                                                              \
        ROW(side, step, rows, 0), ROW(side, step, rows, 0)                                         \
    }
#endif

ANY_RUNS(0)
ANY_RUNS(2)
BOTH(3, 1, 1)
BOTH(3, 2, 1)
BOTH(5, 1, 1)
BOTH(5, 2, 1)
BOTH(7, 1, 1)
BOTH(7, 2, 1)
BOTH(3, 1, 2)
BOTH(5, 1, 2)
RUNS(3, 1, 1, 2)
RUNS(3, 2, 1, 2)
RUNS(3, 1, 2, 2)

typedef run_fn *const run_row[2][DEPTHWISE_PIXELS_MAX]; /* by d->bf16 */

static run_row any_runs[2] = {ANY_ROW(0), ANY_ROW(2)};
static run_row square_runs[3][2][2] = {
    {ROWS(3, 1, 1), ROWS(3, 2, 1)}, {ROWS(5, 1, 1), ROWS(5, 2, 1)}, {ROWS(7, 1, 1), ROWS(7, 2, 1)}};
static run_row two_row_runs[2][2] = {ROWS(3, 1, 2), ROWS(5, 1, 2)};
static run_row deep_runs[2] = {ROW(3, 1, 1, 2), ROW(3, 2, 1, 2)};
static run_row deep_two_row_runs = ROW(3, 1, 2, 2);

static bool is_square(const struct depthwise *d)
{
    int side = d->kernel_y;
    return (SQUARES_OF_BF16 || !d->bf16) && side == d->kernel_x &&
           (side == 3 || ((side == 5 || side == 7) && d->depth == 1)) && d->step <= 2 &&
           d->tap == 1;
}

bool depthwise_two_rows(const struct depthwise *d)
{
    return is_square(d) && d->kernel_y < 7 && d->step == 1;
}

void depthwise_set_bounds(struct depthwise *d, const struct gemm_post *post)
{
    d->low = -INFINITY;
    d->high = INFINITY;
    const struct gemm_step *step = &post->steps[0];
    d->bounded = post->light == 0 ||
                 (post->light == 1 && (step->kind == GEMM_RELU || step->kind == GEMM_CLAMP));
    if (d->bf16 && post->light < post->count)
        d->bounded = false;
    if (post->light == 1 && d->bounded) {
        d->low = step->kind == GEMM_RELU ? 0.0f : step->a;
        d->high = step->kind == GEMM_RELU ? INFINITY : step->b;
    }
}

static void run_tail(const struct depthwise *d, int rows, int count,
                     const struct gemm_pixels *pixels)
{
    struct depthwise rest = *d;
    for (int r = 0; r < rows; r++, rest.pixels += d->columns)
        any_runs[d->depth > 1][d->bf16][count - 1](&rest, &pixels[r]);
}

void depthwise_run(const struct depthwise *d, int rows, int count, const struct gemm_pixels *pixels)
{
    if (!is_square(d)) {
        run_tail(d, rows, count, pixels);
        return;
    }
    int size = (d->kernel_y - 3) / 2, ahead = d->ahead != 0;
    run_row *runs = rows == 2 ? &two_row_runs[size][ahead] : &square_runs[size][d->step - 1][ahead];
    if (d->depth > 1)
        runs = rows == 2 ? &deep_two_row_runs : &deep_runs[d->step - 1];
    (*runs)[d->bf16][count - 1](d, pixels);
    struct depthwise rest = *d;
    rest.first += (d->end - d->first) / VL * VL;
    if (rest.first < rest.end)
        run_tail(&rest, rows, count, pixels);
}
