/* SPDX-License-Identifier: Apache-2.0
 *
 * VL lines of real or complex elements in memory, and the rows of a transform that they become
 * (engine/kernels/lib/fft.h).
 */
#ifndef ENGINE_KERNELS_LIB_FFT_LANES_H
#define ENGINE_KERNELS_LIB_FFT_LANES_H

#include <stdbool.h>

#include "base/numbers/integers.h"
#include "engine/kernels/lib/fft.h"
#include "engine/kernels/lib/simd_pairs.h"
#include "engine/kernels/lib/simd_square.h"

struct fft_lanes {
    int64_t at[VL]; /* where each line begins, in elements; after the last line: it again */
    int count;      /* lines, at most VL */
    bool side_by_side;
};

SIMD_INLINE void fft_lanes_end(struct fft_lanes *lanes)
{
    for (int j = lanes->count; j < VL; j++)
        lanes->at[j] = lanes->at[lanes->count - 1];
    lanes->side_by_side = lanes->count == VL;
    for (int j = 1; j < VL; j++)
        lanes->side_by_side = lanes->side_by_side && lanes->at[j] == lanes->at[0] + j;
}

/* How the elements of lines lie, and which half of a row takes the real parts. */
struct fft_elements {
    int64_t count;
    int64_t step;  /* from one to the next, in floats */
    int64_t parts; /* 1: real, 2: complex */
    int re, im;    /* 0 and VL, the other way round for the inverse transform */
};

/* Elements of one line that are moved before the next: line by line, since lines that lie a power
 * of two apart share a set of the L1 cache. */
enum { FFT_BATCH = 8 };

/* ---- lines side by side: an element of each is a vector ---- */

SIMD_INLINE void fft_load_beside(const struct fft_lanes *lanes, const struct fft_elements *e,
                                 const float *x, const struct fft *fft, float *scratch)
{
    const float *from = x + lanes->at[0] * e->parts;
    for (int64_t k = 0; k < e->count; k++, from += e->step) {
        float *row = fft_row(fft, scratch, k);
        vf re = vf_zero(), im = vf_zero();
        if (e->parts == 2)
            vf_split(from, &re, &im);
        else
            re = vf_load(from);
        vf_store(row + e->re, re);
        vf_store(row + e->im, im);
    }
}

SIMD_INLINE void fft_store_beside(const struct fft_lanes *lanes, const struct fft_elements *e,
                                  const float *rows, float *y)
{
    float *to = y + lanes->at[0] * e->parts;
    for (int64_t k = 0; k < e->count; k++, to += e->step, rows += FFT_ROW) {
        if (e->parts == 2)
            vf_merge(to, vf_load(rows + e->re), vf_load(rows + e->im));
        else
            vf_store(to, vf_load(rows + e->re));
    }
}

/* ---- elements side by side: VL floats of each line make a square ---- */

/* The rows of VL / parts elements from element k on. */
SIMD_INLINE void fft_load_square(const struct fft_lanes *lanes, const struct fft_elements *e,
                                 const float *x, float *const *rows)
{
    vf r[VL];
    for (int j = 0; j < VL; j++)
        r[j] = vf_load(x + lanes->at[j] * e->parts);
    transpose_square(r);
    for (int j = 0; j < VL; j++)
        if (e->parts == 2) {
            vf_store(rows[j / 2] + (j % 2 ? e->im : e->re), r[j]);
        } else {
            vf_store(rows[j] + e->re, r[j]);
            vf_store(rows[j] + e->im, vf_zero());
        }
}

SIMD_INLINE void fft_store_square(const struct fft_lanes *lanes, const struct fft_elements *e,
                                  const float *rows, float *y)
{
    vf r[VL];
    for (int j = 0; j < VL; j++)
        r[j] = e->parts == 2 ? vf_load(rows + j / 2 * FFT_ROW + (j % 2 ? e->im : e->re))
                             : vf_load(rows + j * FFT_ROW + e->re);
    transpose_square(r);
    for (int j = 0; j < VL; j++)
        if (j < lanes->count)
            vf_store(y + lanes->at[j] * e->parts, r[j]);
}

/* ---- neither: float by float ---- */

SIMD_INLINE void fft_load_batch(const struct fft_lanes *lanes, const struct fft_elements *e,
                                const float *x, int count, float *const *rows)
{
    for (int j = 0; j < VL; j++) {
        const float *from = x + lanes->at[j] * e->parts;
        for (int k = 0; k < count; k++) {
            rows[k][e->re + j] = from[k * e->step];
            rows[k][e->im + j] = e->parts == 2 ? from[k * e->step + 1] : 0;
        }
    }
}

SIMD_INLINE void fft_store_batch(const struct fft_lanes *lanes, const struct fft_elements *e,
                                 const float *rows, int count, float *y)
{
    for (int j = 0; j < lanes->count; j++) {
        float *to = y + lanes->at[j] * e->parts;
        for (int k = 0; k < count; k++) {
            to[k * e->step] = rows[k * FFT_ROW + e->re + j];
            if (e->parts == 2)
                to[k * e->step + 1] = rows[k * FFT_ROW + e->im + j];
        }
    }
}

/* ---- all elements of VL lines ---- */

/* The rows of `count` elements from x, which is where a line at 0 begins. */
SIMD_INLINE void fft_lanes_load(const struct fft_lanes *lanes, const struct fft_elements *e,
                                const float *x, const struct fft *fft, float *scratch)
{
    if (lanes->side_by_side) {
        fft_load_beside(lanes, e, x, fft, scratch);
        return;
    }
    int64_t square = e->step == e->parts ? VL / e->parts : 0, n;
    for (int64_t k = 0; k < e->count; k += n) {
        float *rows[VL + FFT_BATCH];
        bool whole = square && e->count - k >= square;
        n = whole ? square : smaller(FFT_BATCH, e->count - k);
        for (int64_t i = 0; i < n; i++)
            rows[i] = fft_row(fft, scratch, k + i);
        if (whole)
            fft_load_square(lanes, e, x + k * e->step, rows);
        else
            fft_load_batch(lanes, e, x + k * e->step, (int)n, rows);
    }
}

/* The other way round, from rows in order. */
SIMD_INLINE void fft_lanes_store(const struct fft_lanes *lanes, const struct fft_elements *e,
                                 const float *rows, float *y)
{
    if (lanes->side_by_side) {
        fft_store_beside(lanes, e, rows, y);
        return;
    }
    int64_t square = e->step == e->parts ? VL / e->parts : 0, n;
    for (int64_t k = 0; k < e->count; k += n) {
        bool whole = square && e->count - k >= square;
        n = whole ? square : smaller(FFT_BATCH, e->count - k);
        if (whole)
            fft_store_square(lanes, e, rows + k * FFT_ROW, y + k * e->step);
        else
            fft_store_batch(lanes, e, rows + k * FFT_ROW, (int)n, y + k * e->step);
    }
}

#endif
