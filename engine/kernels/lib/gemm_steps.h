/* SPDX-License-Identifier: Apache-2.0
 *
 * The light steps of an epilogue on sums that are still in registers: mr rows of nv vectors, both
 * constants where this is inlined. */
#ifndef ENGINE_KERNELS_LIB_GEMM_STEPS_H
#define ENGINE_KERNELS_LIB_GEMM_STEPS_H

#include "engine/kernels/lib/gemm_tile.h"
#include "engine/kernels/lib/simd_floats.h"

/* A loop over a constant count, gone after compilation. Under a sanitizer, where every access is
 * several instructions and unrolled tiles took minutes to compile, it stays a loop. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNROLLED(i, count) for (int i = 0; i < (count); i++)
#else
#define UNROLLED(i, count) _Pragma("GCC unroll 16") for (int i = 0; i < (count); i++)
#endif

typedef vf gemm_sums[GEMM_ROWS_MAX][GEMM_VECTORS_MAX];

/* Vector n of nv; the last one has `last` columns. */
SIMD_INLINE vf gemm_load(const float *p, int64_t last, int n, int nv)
{
    return n < nv - 1 || last == VL ? vf_load(p) : vf_load_m(p, vm_first(last));
}

/* What an operand is, constants where the steps are inlined. */
struct gemm_operand {
    bool one, bf16; /* the same number for all columns; not f32 */
};

/* Vector n of a row of it. */
SIMD_INLINE vf gemm_operand(struct gemm_operand is, const void *row, int64_t last, int n, int nv)
{
    if (is.one)
        return vf_set1(float_read(row, 0, is.bf16));
    return n < nv - 1 || last == VL ? vf_read(row, n * VL, is.bf16)
                                    : vf_read_m(row, n * VL, vm_first(last), is.bf16);
}

SIMD_INLINE void gemm_pair_rows(const struct gemm_step *s, struct gemm_operand is,
                                const void *operand, int64_t last, int mr, int nv, gemm_sums acc)
{
    vf scale = vf_set1(s->a);
    if (s->kind == GEMM_ADD) {
        UNROLLED (m, mr) {
            UNROLLED (n, nv)
                acc[m][n] = vf_fma(scale, gemm_operand(is, operand, last, n, nv), acc[m][n]);
            operand = float_at(operand, s->row, is.bf16);
        }
        return;
    }
    UNROLLED (m, mr) {
        UNROLLED (n, nv)
            acc[m][n] = vf_mul(gemm_operand(is, operand, last, n, nv), acc[m][n]);
        operand = float_at(operand, s->row, is.bf16);
    }
}

SIMD_INLINE void gemm_pair_step(const struct gemm_step *s, const float *operand, bool bf16,
                                int64_t last, int mr, int nv, gemm_sums acc)
{
    struct gemm_operand row = {false, bf16}, one = {true, bf16};
    if (s->column)
        gemm_pair_rows(s, row, operand, last, mr, nv, acc);
    else
        gemm_pair_rows(s, one, operand, last, mr, nv, acc);
}

SIMD_INLINE void gemm_bend_step(const struct gemm_step *s, int mr, int nv, gemm_sums acc)
{
    vf a = vf_set1(s->a), b = vf_set1(s->b);
    if (s->kind == GEMM_RELU) {
        UNROLLED (m, mr)
            UNROLLED (n, nv)
                acc[m][n] = vf_max(vf_zero(), acc[m][n]);
        return;
    }
    if (s->kind == GEMM_CLAMP) {
        UNROLLED (m, mr)
            UNROLLED (n, nv)
                acc[m][n] = vf_min(b, vf_max(a, acc[m][n]));
        return;
    }
    UNROLLED (m, mr)
        UNROLLED (n, nv)
            acc[m][n] = vf_select(vf_lt(acc[m][n], vf_zero()), vf_mul(a, acc[m][n]), acc[m][n]);
}

/* bf16: all operands are, else f32. */
SIMD_INLINE void gemm_light_steps(const struct gemm_post *post, const float *const *operands,
                                  bool bf16, int64_t last, int mr, int nv, gemm_sums acc)
{
    for (int k = 0; k < post->light; k++) {
        const struct gemm_step *step = &post->steps[k];
        if (step->kind == GEMM_ADD || step->kind == GEMM_MUL)
            gemm_pair_step(step, operands[k], bf16, last, mr, nv, acc);
        else
            gemm_bend_step(step, mr, nv, acc);
    }
}

/* Where a run of output pixels of one vector of channels goes. */
struct gemm_pixels {
    const struct gemm_post *post;
    const float *const *operands; /* per step, for the first pixel and channel 0 */
    void *y;                      /* the same; f32 or bf16 */
    int64_t y_pixel;
    bool stream; /* past the caches: whole aligned vectors of f32 only */
};

/* The steps that need memory, by way of the first cache. */
SIMD_INLINE void gemm_heavy_pixels(const struct gemm_post *post, const float *const *operands,
                                   int64_t last, int count, gemm_sums sums)
{
    _Alignas(ALIGN_TENSOR) float tile[GEMM_ROWS_MAX * VL];
    UNROLLED (x, count)
        vf_store(tile + x * VL, sums[x][0]);
    gemm_post_heavy(post, operands, tile, VL, count, last);
    UNROLLED (x, count)
        sums[x][0] = vf_load(tile + x * VL);
}

/* Channels [c, c + last) of `count` pixels through the light steps to memory. bf16: results and
 * operands, which no later pass could round: then it is through all steps. */
SIMD_INLINE void gemm_finish_pixels(const struct gemm_pixels *p, int64_t c, int64_t last, int count,
                                    bool bf16, gemm_sums sums)
{
    const float *operands[GEMM_STEP_MAX];
    for (int k = 0; k < (bf16 ? p->post->count : p->post->light); k++) {
        operands[k] = p->operands[k];
        if (operands[k])
            operands[k] = float_at(operands[k], c * p->post->steps[k].column, bf16);
    }
    gemm_light_steps(p->post, operands, bf16, last, count, 1, sums);
    if (bf16 && p->post->light < p->post->count)
        gemm_heavy_pixels(p->post, operands, last, count, sums);
    UNROLLED (x, count) {
        int64_t at = c + x * p->y_pixel;
        if (p->stream && !bf16)
            vf_stream((float *)p->y + at, sums[x][0]);
        else if (last == VL)
            vf_write(p->y, at, sums[x][0], bf16);
        else
            vf_write_m(p->y, at, vm_first(last), sums[x][0], bf16);
    }
}

#endif
