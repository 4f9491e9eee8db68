/* SPDX-License-Identifier: Apache-2.0
 * The timed part of engine/kernels/lib/fft.h. */
#include "engine/kernels/lib/fft.h"

struct pair {
    vf re, im;
};

SIMD_INLINE struct pair pair_load(const float *row)
{
    return (struct pair){vf_load(row), vf_load(row + VL)};
}

SIMD_INLINE void pair_store(float *row, vf re, vf im)
{
    vf_store(row, re);
    vf_store(row + VL, im);
}

SIMD_INLINE struct pair pair_times(struct pair a, const float *w)
{
    vf re = vf_set1(w[0]), im = vf_set1(w[1]);
    return (struct pair){vf_fnma(a.im, im, vf_mul(a.re, re)), vf_fma(a.im, re, vf_mul(a.re, im))};
}

SIMD_INLINE struct pair pair_add(struct pair a, struct pair b)
{
    return (struct pair){vf_add(a.re, b.re), vf_add(a.im, b.im)};
}

SIMD_INLINE struct pair pair_sub(struct pair a, struct pair b)
{
    return (struct pair){vf_sub(a.re, b.re), vf_sub(a.im, b.im)};
}

/* Element q of a butterfly, turned by its twiddle. */
SIMD_INLINE struct pair pair_take(const float *at, int64_t step, int q, const float *twiddles)
{
    struct pair a = pair_load(at + q * step);
    return q && twiddles ? pair_times(a, twiddles + 2 * (q - 1)) : a;
}

/* A butterfly joins one element of each transform: at[0], at[step] ... twiddles NULL: all are 1. */
SIMD_INLINE void butterfly_2(float *at, int64_t step, const float *twiddles)
{
    struct pair a = pair_take(at, step, 0, twiddles), b = pair_take(at, step, 1, twiddles);
    pair_store(at, vf_add(a.re, b.re), vf_add(a.im, b.im));
    pair_store(at + step, vf_sub(a.re, b.re), vf_sub(a.im, b.im));
}

SIMD_INLINE void butterfly_4(float *at, int64_t step, const float *twiddles)
{
    struct pair a = pair_take(at, step, 0, twiddles), b = pair_take(at, step, 1, twiddles);
    struct pair c = pair_take(at, step, 2, twiddles), d = pair_take(at, step, 3, twiddles);
    struct pair even = pair_add(a, c), across = pair_sub(a, c);
    struct pair odd = pair_add(b, d), turned = pair_sub(b, d);
    pair_store(at, vf_add(even.re, odd.re), vf_add(even.im, odd.im));
    pair_store(at + step, vf_add(across.re, turned.im), vf_sub(across.im, turned.re));
    pair_store(at + 2 * step, vf_sub(even.re, odd.re), vf_sub(even.im, odd.im));
    pair_store(at + 3 * step, vf_sub(across.re, turned.im), vf_add(across.im, turned.re));
}

/* Elements q and radix - q meet the same cosine and opposite sines. */
SIMD_INLINE void butterfly_odd(float *at, int64_t step, const float *twiddles,
                               const struct fft_stage *stage, int radix)
{
    struct pair first = pair_load(at), all = first;
    struct pair sum[FFT_PRIME / 2], difference[FFT_PRIME / 2];
    int half = radix / 2;
    for (int q = 1; q <= half; q++) {
        struct pair a = pair_take(at, step, q, twiddles);
        struct pair b = pair_take(at, step, radix - q, twiddles);
        sum[q - 1] = pair_add(a, b);
        difference[q - 1] = pair_sub(a, b);
        all = pair_add(all, sum[q - 1]);
    }
    pair_store(at, all.re, all.im);
    for (int k = 1; k <= half; k++) {
        struct pair c = first, s = {vf_zero(), vf_zero()};
        for (int q = 1, turns = k; q <= half; q++) {
            vf cosine = vf_set1(stage->roots[2 * turns]);
            vf sine = vf_set1(stage->roots[2 * turns + 1]);
            c.re = vf_fma(cosine, sum[q - 1].re, c.re);
            c.im = vf_fma(cosine, sum[q - 1].im, c.im);
            s.re = vf_fma(sine, difference[q - 1].re, s.re);
            s.im = vf_fma(sine, difference[q - 1].im, s.im);
            turns = turns + k >= radix ? turns + k - radix : turns + k;
        }
        pair_store(at + k * step, vf_add(c.re, s.im), vf_sub(c.im, s.re));
        pair_store(at + (radix - k) * step, vf_sub(c.re, s.im), vf_add(c.im, s.re));
    }
}

SIMD_INLINE void butterfly(const struct fft_stage *stage, int radix, float *at, int64_t step,
                           const float *twiddles)
{
    if (radix == 2)
        butterfly_2(at, step, twiddles);
    else if (radix == 4)
        butterfly_4(at, step, twiddles);
    else
        butterfly_odd(at, step, twiddles, stage, radix);
}

/* `blocks` transforms that follow one another; radix is a constant where the caller knows it. */
SIMD_INLINE void run_radix(const struct fft_stage *stage, float *z, int64_t blocks, int radix)
{
    int64_t step = stage->before * FFT_ROW;
    if (stage->before == 1) {
        for (int64_t b = 0; b < blocks; b++, z += radix * step)
            butterfly(stage, radix, z, step, NULL);
        return;
    }
    for (int64_t b = 0; b < blocks; b++, z += radix * step)
        for (int64_t j = 0; j < stage->before; j++)
            butterfly(stage, radix, z + j * FFT_ROW, step, stage->twiddles + j * (radix - 1) * 2);
}

static void run_stage(const struct fft_stage *stage, float *z, int64_t blocks)
{
    switch (stage->radix) {
    case 2:
        run_radix(stage, z, blocks, 2);
        return;
    case 3:
        run_radix(stage, z, blocks, 3);
        return;
    case 4:
        run_radix(stage, z, blocks, 4);
        return;
    case 5:
        run_radix(stage, z, blocks, 5);
        return;
    default:
        run_radix(stage, z, blocks, stage->radix);
    }
}

/* All first stages of a leaf, then those later ones whose elements are complete by now. */
static void run_stages(const struct fft *fft, float *z)
{
    int64_t leaf = 1;
    for (int s = 0; s < fft->leaf; s++)
        leaf *= fft->stages[s].radix;
    for (int64_t b = 0; b < fft->work / leaf; b++) {
        int64_t length = 1, done = b + 1;
        for (int s = 0; s < fft->leaf; s++) {
            length *= fft->stages[s].radix;
            run_stage(&fft->stages[s], z + b * leaf * FFT_ROW, leaf / length);
        }
        for (int s = fft->leaf; s < fft->stage_count; s++) {
            const struct fft_stage *stage = &fft->stages[s];
            if (done % stage->radix)
                break;
            done /= stage->radix;
            run_stage(stage, z + (done - 1) * stage->before * stage->radix * FFT_ROW, 1);
        }
    }
}

/* The convolution of the chirped signal with a chirp; what follows on the signal is 0. The inverse
 * transform is the conjugate of that of the conjugate. */
static float *convolve(const struct fft *fft, float *z)
{
    float *back = z + fft->work * FFT_ROW;
    for (int64_t k = 0; k < fft->work; k++) {
        float *row = fft_row(fft, z, k);
        struct pair a = {vf_zero(), vf_zero()};
        if (k < fft->length)
            a = pair_times(pair_load(row), fft->chirp + 2 * k);
        pair_store(row, a.re, a.im);
    }
    run_stages(fft, z);
    for (int64_t k = 0; k < fft->work; k++) {
        struct pair a = pair_times(pair_load(z + k * FFT_ROW), fft->filter + 2 * k);
        pair_store(fft_row(fft, back, k), a.re, vf_neg(a.im));
    }
    run_stages(fft, back);
    for (int64_t k = 0; k < fft->length; k++) {
        struct pair a = pair_load(back + k * FFT_ROW);
        a = pair_times((struct pair){a.re, vf_neg(a.im)}, fft->chirp + 2 * k);
        pair_store(back + k * FFT_ROW, a.re, a.im);
    }
    return back;
}

float *fft_run(const struct fft *fft, float *scratch)
{
    if (fft->convolves)
        return convolve(fft, scratch);
    run_stages(fft, scratch);
    return scratch;
}
