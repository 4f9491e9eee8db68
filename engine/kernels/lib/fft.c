/* SPDX-License-Identifier: Apache-2.0
 * Plan and tables of engine/kernels/lib/fft.h. */
#include "engine/kernels/lib/fft.h"

#include <stdlib.h>

enum { LEAF_BYTES = 24 << 10 };

static const double turn = 6.28318530717958647692;

/* The smallest radix that divides n. */
static int radix_of(int64_t n)
{
    if (n % 4 == 0)
        return 4;
    for (int r = 2; r <= FFT_PRIME; r++)
        if (n % r == 0)
            return r;
    return 0;
}

/* Radices from the last stage to the first, so that the costly ones of few twiddles, the large
 * primes, come first; 0: one prime is too large. */
static int find_radices(int64_t n, int radix[FFT_STAGES])
{
    int count = 0;
    for (; n > 1 && count < FFT_STAGES; count++) {
        radix[count] = radix_of(n);
        if (!radix[count])
            return 0;
        n /= radix[count];
    }
    return count;
}

enum status fft_plan(struct fft *fft, int64_t length, struct error *why)
{
    int radix[FFT_STAGES];
    *fft = (struct fft){.length = length, .work = length};
    if (length > FFT_LONGEST)
        return UNSUPPORTED(why, "a transform of %lld elements", (long long)length);
    fft->stage_count = find_radices(length, radix);
    fft->convolves = length > 1 && !fft->stage_count;
    if (fft->convolves) {
        for (fft->work = 4; fft->work < 2 * length - 1;)
            fft->work *= 2;
        fft->stage_count = find_radices(fft->work, radix);
    }
    int64_t joined = 1;
    for (int s = 0; s < fft->stage_count; s++) {
        int r = radix[fft->stage_count - 1 - s];
        fft->stages[s] = (struct fft_stage){.radix = r, .before = joined};
        joined *= r;
        if (joined * FFT_ROW * (int64_t)sizeof(float) <= LEAF_BYTES)
            fft->leaf = s + 1;
    }
    return STATUS_OK;
}

int64_t fft_floats(const struct fft *fft)
{
    return fft->work * FFT_ROW * (fft->convolves ? 2 : 1);
}

/* ---- tables ---- */

static void root(int64_t k, int64_t n, double at[2])
{
    double angle = turn * (double)(k % n) / (double)n;
    at[0] = cos(angle);
    at[1] = sin(angle);
}

/* The transform of n = 2^k complex numbers in place, in double. */
static void transform_double(double *z, int64_t n)
{
    for (int64_t i = 1, j = 0; i < n; i++) {
        int64_t bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        for (int part = 0; part < 2 && i < j; part++) {
            double kept = z[2 * i + part];
            z[2 * i + part] = z[2 * j + part];
            z[2 * j + part] = kept;
        }
    }
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t k = 0; k < half; k++) {
            double w[2];
            root(k, 2 * half, w);
            for (int64_t i = k; i < n; i += 2 * half) {
                double *a = z + 2 * i, *b = z + 2 * (i + half);
                double re = b[0] * w[0] + b[1] * w[1], im = b[1] * w[0] - b[0] * w[1];
                b[0] = a[0] - re;
                b[1] = a[1] - im;
                a[0] += re;
                a[1] += im;
            }
        }
}

/* exp(-pi i k^2 / length), and the transform of its conjugate over both signs of k, divided by
 * the length of the convolution. */
static enum status make_chirp(struct fft *fft, struct error *err)
{
    int64_t n = fft->length, work = fft->work;
    double *z = calloc((size_t)work * 2, sizeof(*z));
    if (!z)
        return FAIL_NO_MEMORY(err);
    for (int64_t k = 0; k < n; k++) {
        double w[2];
        root(k * k, 2 * n, w);
        fft->chirp[2 * k] = (float)w[0];
        fft->chirp[2 * k + 1] = (float)-w[1];
        for (int part = 0; part < 2; part++)
            z[2 * k + part] = z[2 * ((work - k) % work) + part] = w[part] / (double)work;
    }
    transform_double(z, work);
    for (int64_t k = 0; k < 2 * work; k++)
        fft->filter[k] = (float)z[k];
    free(z);
    return STATUS_OK;
}

/* Twiddles and roots of one stage; returns the end of them. */
static float *make_stage(struct fft_stage *stage, float *at)
{
    int64_t radix = stage->radix, length = stage->before * radix;
    double w[2];
    stage->twiddles = at;
    for (int64_t j = 0; j < stage->before; j++)
        for (int64_t q = 1; q < radix; q++, at += 2) {
            root(j * q, length, w);
            at[0] = (float)w[0];
            at[1] = (float)-w[1];
        }
    stage->roots = at;
    for (int64_t k = 0; k < radix; k++, at += 2) {
        root(k, radix, w);
        at[0] = (float)w[0];
        at[1] = (float)w[1];
    }
    return at;
}

/* The last stage of radix r joins transforms of the elements k, k + r, k + 2 r ... and so on. */
static int32_t place_of(const struct fft *fft, int64_t k)
{
    int64_t at = 0;
    for (int s = fft->stage_count - 1; s >= 0; s--) {
        const struct fft_stage *stage = &fft->stages[s];
        at += k % stage->radix * stage->before;
        k /= stage->radix;
    }
    return (int32_t)at;
}

enum status fft_prepare(struct fft *fft, size_t *bytes, struct error *err)
{
    int64_t floats = fft->convolves ? 2 * (fft->length + fft->work) : 0;
    for (int s = 0; s < fft->stage_count; s++)
        floats += 2 * (fft->stages[s].before * (fft->stages[s].radix - 1) + fft->stages[s].radix);
    size_t table_bytes = (size_t)floats * sizeof(float);
    size_t place_bytes = (size_t)fft->work * sizeof(*fft->place);
    *bytes = table_bytes + place_bytes;
    fft->tables = malloc(table_bytes + 1);
    fft->place = malloc(place_bytes + 1);
    if (!fft->tables || !fft->place)
        return FAIL_NO_MEMORY(err);
    float *at = fft->tables;
    for (int s = 0; s < fft->stage_count; s++)
        at = make_stage(&fft->stages[s], at);
    for (int64_t k = 0; k < fft->work; k++)
        fft->place[k] = place_of(fft, k);
    if (!fft->convolves)
        return STATUS_OK;
    fft->chirp = at;
    fft->filter = at + 2 * fft->length;
    return make_chirp(fft, err);
}

void fft_release(struct fft *fft)
{
    free(fft->tables);
    free(fft->place);
}
