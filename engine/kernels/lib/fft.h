/* SPDX-License-Identifier: Apache-2.0
 *
 * Fast Fourier transforms of VL lines at once, f32. Scratch holds a row per element: VL real parts,
 * then VL imaginary parts, one lane per line, so that every step is made of whole vectors whatever
 * the length. Stages of radix 4, 2, 3, 5 and further primes to FFT_PRIME join transforms in place
 * (Cooley and Tukey 1965, decimation in time): elements are put where fft_row says, the result is
 * in order. Lengths with a larger prime become a convolution of a power of two (Bluestein 1970).
 *
 * Twiddles are computed in double and rounded once. Relative to the norm the error grows with the
 * logarithm of the length: some 3e-7 for a thousand elements, twice that for a convolution. For the
 * inverse transform give real parts as imaginary ones and the other way round, in and out.
 */
#ifndef ENGINE_KERNELS_LIB_FFT_H
#define ENGINE_KERNELS_LIB_FFT_H

#include "base/error.h"
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"

enum { FFT_PRIME = 31, FFT_STAGES = 24, FFT_LONGEST = 1 << 20, FFT_ROW = 2 * VL };

/* Joins `radix` transforms of `before` elements each. */
struct fft_stage {
    int radix;
    int64_t before;
    const float *twiddles; /* [before, radix - 1, 2] */
    const float *roots;    /* [radix, 2]: cosine and sine of k turns / radix */
};

struct fft {
    int64_t length;
    int64_t work;    /* elements that the stages transform: length, or of the convolution */
    int stage_count, /* from the shortest transforms to the whole */
        leaf;        /* that many first ones are done for a block that stays in the L1 cache */
    struct fft_stage stages[FFT_STAGES];
    float *tables;  /* owned: all twiddles, roots, chirp and filter */
    int32_t *place; /* owned: [work] */
    float *chirp;   /* [length, 2]; NULL: no convolution */
    float *filter;  /* [work, 2] */
    bool convolves;
};

#define fft_plan    SIMD_FN(fft_plan)
#define fft_floats  SIMD_FN(fft_floats)
#define fft_prepare SIMD_FN(fft_prepare)
#define fft_release SIMD_FN(fft_release)
#define fft_run     SIMD_FN(fft_run)

/* Sizes and stages; UNSUPPORTED: too long. */
enum status fft_plan(struct fft *fft, int64_t length, struct error *why);
/* Scratch for one run. */
int64_t fft_floats(const struct fft *fft);
/* Tables. *bytes: how large they are. Release in any case. */
enum status fft_prepare(struct fft *fft, size_t *bytes, struct error *err);
void fft_release(struct fft *fft);
/* Scratch holds `length` rows where fft_row says. The result: rows in order, in scratch. */
float *fft_run(const struct fft *fft, float *scratch);

/* Where element k of the lines belongs. */
SIMD_INLINE float *fft_row(const struct fft *fft, float *scratch, int64_t k)
{
    return scratch + (int64_t)fft->place[k] * FFT_ROW;
}

/* Many lines: blocks of VL that threads take, and the scratch that they need together. */
struct fft_blocks {
    struct fft fft;
    int64_t blocks;
    int64_t slots, slot; /* how many blocks' scratch there is, and its floats */
};

static inline enum status fft_blocks_plan(struct fft_blocks *b, int64_t length, int64_t lines,
                                          int threads, struct error *why)
{
    TRY(fft_plan(&b->fft, length, why));
    b->blocks = divide_up(lines, VL);
    b->slots = smaller(threads, b->blocks);
    b->slot = round_up(fft_floats(&b->fft), ALIGN_TENSOR);
    return STATUS_OK;
}

static inline size_t fft_blocks_bytes(const struct fft_blocks *b)
{
    return (size_t)b->slot * sizeof(float) * (size_t)b->slots;
}

/* Any thread may take any block: with fewer blocks than threads each block has a place of its own.
 */
static inline float *fft_blocks_scratch(const struct fft_blocks *b, float *workspace, int64_t block,
                                        int thread)
{
    return workspace + (b->slots == b->blocks ? block : thread) * b->slot;
}

#endif
