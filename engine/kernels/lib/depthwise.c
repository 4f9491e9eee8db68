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
};

/* Input channel j of each group, for one vector of channels, through a square kernel; stride 1
 * where there are two rows. */
SIMD_INLINE void sum_square(const struct depthwise *d, int64_t c, int64_t last, struct run_shape k,
                            int j, row_sums sums)
{
    vi lanes = vi_add(group_lanes(d), vi_set1(j));
    const float *first = d->weights + j * k.side * k.side * d->weights_row + c;
    int side = k.side, step = k.step, rows = k.rows, count = k.count;
    int columns = (count - 1) * step + side;
    GEMM_UNROLL for (int y = 0; y < side + rows - 1; y++)
    {
        const float *const *row = d->pixels + y * columns;
        GEMM_UNROLL for (int column = 0; column < columns; column++)
        {
            vf x = gemm_load(row[column] + c, last, 0, 1);
            if (k.deep)
                x = vf_permute(x, lanes);
            if (k.ahead && y >= side - step && column >= columns - count * step)
                __builtin_prefetch(row[column] + c + d->ahead);
            GEMM_UNROLL for (int r = 0; r < rows; r++)
            {
                const float *weights = first + (y - r) * side * d->weights_row;
                GEMM_UNROLL for (int p = 0; p < count; p++)
                {
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
    const float *weights = d->weights + j * d->kernel_y * d->kernel_x * d->weights_row + c;
    for (int y = 0; y < d->kernel_y; y++) {
        const float *const *row = d->pixels + y * d->columns;
        for (int tap = 0; tap < d->kernel_x; tap++, weights += d->weights_row) {
            vf w = vf_load(weights);
            GEMM_UNROLL for (int p = 0; p < k.count; p++)
            {
                vf x = gemm_load(row[p * d->step + tap * d->tap] + c, last, 0, 1);
                if (k.deep)
                    x = vf_permute(x, lanes);
                sums[p][0] = vf_fma(x, w, sums[p][0]);
            }
        }
    }
}

SIMD_INLINE void run(const struct depthwise *d, struct run_shape k,
                     const struct gemm_pixels *pixels)
{
    for (int64_t c = d->first; c < d->end; c += VL) {
        row_sums sums;
        int64_t last = d->end - c < VL ? d->end - c : VL;
        vf bias = vf_load(d->bias + c);
        GEMM_UNROLL for (int r = 0; r < k.rows; r++) GEMM_UNROLL for (int p = 0; p < k.count; p++)
            sums[r][p][0] = bias;
        for (int j = 0; j < (k.deep ? d->depth : 1); j++) {
            if (k.side)
                sum_square(d, c, last, k, j, sums);
            else
                sum_any(d, c, last, k, j, sums[0]);
        }
        GEMM_UNROLL for (int r = 0; r < k.rows; r++)
            gemm_finish_pixels(&pixels[r], c, last, k.count, sums[r]);
    }
}

typedef void run_fn(const struct depthwise *d, const struct gemm_pixels *pixels);

/* kind: 0 plain, 1 with prefetch, 2 deep. */
#define RUN(side, step, rows, count, kind)                                                         \
    static void run_##side##_##step##_##rows##_##count##_##kind(const struct depthwise *d,         \
                                                                const struct gemm_pixels *pixels)  \
    {                                                                                              \
        run(d, (struct run_shape){side, step, rows, count, kind == 1, kind == 2}, pixels);         \
    }
#define RUNS(side, step, rows, kind)                                                               \
    RUN(side, step, rows, 1, kind)                                                                 \
    RUN(side, step, rows, 2, kind)                                                                 \
    RUN(side, step, rows, 3, kind) RUN(side, step, rows, 4, kind)
#define ROW(side, step, rows, kind)                                                                \
    {                                                                                              \
        run_##side##_##step##_##rows##_1_##kind, run_##side##_##step##_##rows##_2_##kind,          \
            run_##side##_##step##_##rows##_3_##kind, run_##side##_##step##_##rows##_4_##kind       \
    }
#define BOTH(side, step, rows) RUNS(side, step, rows, 0) RUNS(side, step, rows, 1)
#define ROWS(side, step, rows)                                                                     \
    {                                                                                              \
        ROW(side, step, rows, 0), ROW(side, step, rows, 1)                                         \
    }

RUNS(0, 0, 1, 0)
RUNS(0, 0, 1, 2)
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

typedef run_fn *const run_row[DEPTHWISE_PIXELS_MAX];

static run_row any_runs[2] = {ROW(0, 0, 1, 0), ROW(0, 0, 1, 2)};
static run_row square_runs[3][2][2] = {
    {ROWS(3, 1, 1), ROWS(3, 2, 1)}, {ROWS(5, 1, 1), ROWS(5, 2, 1)}, {ROWS(7, 1, 1), ROWS(7, 2, 1)}};
static run_row two_row_runs[2][2] = {ROWS(3, 1, 2), ROWS(5, 1, 2)};
static run_row deep_runs[2] = {ROW(3, 1, 1, 2), ROW(3, 2, 1, 2)};
static run_row deep_two_row_runs = ROW(3, 1, 2, 2);

static bool is_square(const struct depthwise *d)
{
    int side = d->kernel_y;
    return side == d->kernel_x && (side == 3 || ((side == 5 || side == 7) && d->depth == 1)) &&
           d->step <= 2 && d->tap == 1;
}

bool depthwise_two_rows(const struct depthwise *d)
{
    return is_square(d) && d->kernel_y < 7 && d->step == 1;
}

void depthwise_run(const struct depthwise *d, int rows, int count, const struct gemm_pixels *pixels)
{
    run_row *runs = &any_runs[d->depth > 1];
    int size = (d->kernel_y - 3) / 2, ahead = d->ahead != 0;
    if (is_square(d) && d->depth > 1)
        runs = rows == 2 ? &deep_two_row_runs : &deep_runs[d->step - 1];
    else if (is_square(d))
        runs = rows == 2 ? &two_row_runs[size][ahead] : &square_runs[size][d->step - 1][ahead];
    (*runs)[count - 1](d, pixels);
}
