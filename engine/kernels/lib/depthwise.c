/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/depthwise.h"

typedef gemm_sums row_sums[DEPTHWISE_ROWS_MAX];

/* One vector of channels through a square kernel; stride 1 where there are two rows. All sizes are
 * constants. */
SIMD_INLINE void sum_square(const struct depthwise *d, int64_t c, int64_t last, int side, int step,
                            int rows, int count, row_sums sums)
{
    int columns = (count - 1) * step + side;
    GEMM_UNROLL for (int y = 0; y < side + rows - 1; y++) {
        const float *const *row = d->pixels + y * columns;
        GEMM_UNROLL for (int column = 0; column < columns; column++) {
            vf x = gemm_load(row[column] + c, last, 0, 1);
            GEMM_UNROLL for (int r = 0; r < rows; r++) {
                const float *weights = d->weights + (y - r) * side * d->weights_row + c;
                GEMM_UNROLL for (int p = 0; p < count; p++) {
                    int tap = column - p * step;
                    if (tap >= 0 && tap < side && y >= r && y - r < side)
                        sums[r][p][0] = vf_fma(x, vf_load(weights + tap * d->weights_row),
                                               sums[r][p][0]);
                }
            }
        }
    }
}

SIMD_INLINE void sum_any(const struct depthwise *d, int64_t c, int64_t last, int count,
                         gemm_sums sums)
{
    const float *weights = d->weights + c;
    for (int y = 0; y < d->kernel_y; y++) {
        const float *const *row = d->pixels + y * d->columns;
        for (int tap = 0; tap < d->kernel_x; tap++, weights += d->weights_row) {
            vf w = vf_load(weights);
            GEMM_UNROLL for (int p = 0; p < count; p++) {
                vf x = gemm_load(row[p * d->step + tap * d->tap] + c, last, 0, 1);
                sums[p][0] = vf_fma(x, w, sums[p][0]);
            }
        }
    }
}

/* side 0: any kernel, stride and dilation; one row. */
SIMD_INLINE void run(const struct depthwise *d, int side, int step, int rows, int count,
                     const struct gemm_pixels *pixels)
{
    for (int64_t c = d->first; c < d->end; c += VL) {
        row_sums sums;
        int64_t last = d->end - c < VL ? d->end - c : VL;
        vf bias = vf_load(d->bias + c);
        GEMM_UNROLL for (int r = 0; r < rows; r++)
            GEMM_UNROLL for (int p = 0; p < count; p++)
                sums[r][p][0] = bias;
        if (side)
            sum_square(d, c, last, side, step, rows, count, sums);
        else
            sum_any(d, c, last, count, sums[0]);
        GEMM_UNROLL for (int r = 0; r < rows; r++)
            gemm_finish_pixels(&pixels[r], c, last, count, sums[r]);
    }
}

typedef void run_fn(const struct depthwise *d, const struct gemm_pixels *pixels);

#define RUN(side, step, rows, count)                                                               \
    static void run_##side##_##step##_##rows##_##count(const struct depthwise *d,                  \
                                                       const struct gemm_pixels *pixels)           \
    {                                                                                              \
        run(d, side, step, rows, count, pixels);                                                   \
    }
#define RUNS(side, step, rows)                                                                     \
    RUN(side, step, rows, 1)                                                                       \
    RUN(side, step, rows, 2) RUN(side, step, rows, 3) RUN(side, step, rows, 4)
#define ROW(side, step, rows)                                                                      \
    {                                                                                              \
        run_##side##_##step##_##rows##_1, run_##side##_##step##_##rows##_2,                        \
            run_##side##_##step##_##rows##_3, run_##side##_##step##_##rows##_4                     \
    }

RUNS(0, 0, 1)
RUNS(3, 1, 1)
RUNS(3, 2, 1)
RUNS(5, 1, 1)
RUNS(5, 2, 1)
RUNS(7, 1, 1)
RUNS(7, 2, 1)
RUNS(3, 1, 2)
RUNS(5, 1, 2)

static run_fn *const any_runs[DEPTHWISE_PIXELS_MAX] = ROW(0, 0, 1);
static run_fn *const square_runs[3][2][DEPTHWISE_PIXELS_MAX] = {
    {ROW(3, 1, 1), ROW(3, 2, 1)}, {ROW(5, 1, 1), ROW(5, 2, 1)}, {ROW(7, 1, 1), ROW(7, 2, 1)}};
static run_fn *const two_row_runs[2][DEPTHWISE_PIXELS_MAX] = {ROW(3, 1, 2), ROW(5, 1, 2)};

static bool is_square(const struct depthwise *d)
{
    int side = d->kernel_y;
    return side == d->kernel_x && (side == 3 || side == 5 || side == 7) && d->step <= 2 &&
           d->tap == 1;
}

bool depthwise_two_rows(const struct depthwise *d)
{
    return is_square(d) && d->kernel_y < 7 && d->step == 1;
}

void depthwise_run(const struct depthwise *d, int rows, int count,
                   const struct gemm_pixels *pixels)
{
    run_fn *const *runs = any_runs;
    int side = d->kernel_y;
    if (is_square(d))
        runs = rows == 2 ? two_row_runs[(side - 3) / 2] : square_runs[(side - 3) / 2][d->step - 1];
    runs[count - 1](d, pixels);
}
