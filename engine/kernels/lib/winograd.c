/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/winograd.h"

#include "engine/kernels/lib/gemm_steps.h"

/* ---- weights ---- */

/* The points of F(4x4) are 0, A, -A, B, -B and infinity. */
#define A 0.75
#define B 1.5

/* Of the points x and -x: scale (w0 + x^2 w2) +- scale x w1, scale being 1 / (2 x^2 (x^2 - y^2)).
 */
#define SCALE(x, y) (1 / (2 * (x) * (x) * ((x) * (x) - (y) * (y))))

SIMD_INLINE void weight_pair(double x, double y, const vf *w, int stride, vf *u, int step)
{
    vf even = vf_fma(vf_set1((float)(SCALE(x, y) * x * x)), w[2 * stride],
                     vf_mul(vf_set1((float)SCALE(x, y)), w[0]));
    vf odd = vf_mul(vf_set1((float)(SCALE(x, y) * x)), w[stride]);
    u[0] = vf_add(even, odd);
    u[step] = vf_sub(even, odd);
}

/* u = G w along one line of three taps, `stride` vectors apart; step: between those of u. */
SIMD_INLINE void weight_line(int out, const vf *w, int stride, vf *u, int step)
{
    if (out == 4) {
        u[0] = vf_mul(vf_set1((float)(1 / (A * A * B * B))), w[0]);
        weight_pair(A, B, w, stride, u + step, step);
        weight_pair(B, A, w, stride, u + 3 * step, step);
    } else {
        vf half = vf_set1(0.5f), even = vf_mul(half, vf_add(w[0], w[2 * stride]));
        u[0] = w[0];
        u[step] = vf_fma(half, w[stride], even);
        u[2 * step] = vf_fnma(half, w[stride], even);
    }
    u[(out + 1) * step] = w[2 * stride];
}

SIMD_INLINE void weight_tile(int out, const float *taps, float *u, int64_t step)
{
    vf w[WINOGRAD_TAPS], columns[3 * WINOGRAD_SIDE_MAX], line[WINOGRAD_SIDE_MAX];
    UNROLLED (t, WINOGRAD_TAPS)
        w[t] = vf_load(taps + t * VL);
    UNROLLED (x, 3)
        weight_line(out, w + x, 3, columns + x, 3);
    UNROLLED (y, out + 2) {
        weight_line(out, columns + 3 * y, 1, line, 1);
        UNROLLED (x, out + 2)
            vf_store(u + (y * (out + 2) + x) * step, line[x]);
    }
}

void winograd_weights(int out, const float *taps, float *u, int64_t step)
{
    if (out == 4)
        weight_tile(4, taps, u, step);
    else
        weight_tile(2, taps, u, step);
}

/* ---- input ---- */

/* v = B^T d along one line of a tile; from and to may lie `stride` vectors apart. */
SIMD_INLINE void input_line_4(const vf *d, int stride, vf *v)
{
    vf d0 = d[0], d1 = d[stride], d2 = d[2 * stride], d3 = d[3 * stride], d4 = d[4 * stride],
       d5 = d[5 * stride];
    vf a = vf_set1((float)A), b = vf_set1((float)B), a2 = vf_set1((float)(A * A)),
       b2 = vf_set1((float)(B * B)), sum = vf_set1((float)(A * A + B * B)),
       product = vf_set1((float)(A * A * B * B));
    vf even_a = vf_fnma(b2, d2, d4), odd_a = vf_fnma(b2, d1, d3);
    vf even_b = vf_fnma(a2, d2, d4), odd_b = vf_fnma(a2, d1, d3);
    v[0] = vf_fma(product, d0, vf_fnma(sum, d2, d4));
    v[stride] = vf_fma(a, odd_a, even_a);
    v[2 * stride] = vf_fnma(a, odd_a, even_a);
    v[3 * stride] = vf_fma(b, odd_b, even_b);
    v[4 * stride] = vf_fnma(b, odd_b, even_b);
    v[5 * stride] = vf_fma(product, d1, vf_fnma(sum, d3, d5));
}

SIMD_INLINE void input_line_2(const vf *d, int stride, vf *v)
{
    vf d0 = d[0], d1 = d[stride], d2 = d[2 * stride], d3 = d[3 * stride];
    v[0] = vf_sub(d0, d2);
    v[stride] = vf_add(d1, d2);
    v[2 * stride] = vf_sub(d2, d1);
    v[3 * stride] = vf_sub(d1, d3);
}

SIMD_INLINE void input_line(int out, const vf *d, int stride, vf *v)
{
    if (out == 4)
        input_line_4(d, stride, v);
    else
        input_line_2(d, stride, v);
}

SIMD_INLINE void input_vector(int out, bool bf16, const float *const *pixels, int64_t c, vm mask,
                              bool whole, float *v, int64_t step)
{
    vf d[WINOGRAD_POINTS_MAX];
    int side = out + 2;
    UNROLLED (x, side) {
        UNROLLED (y, side) {
            const float *p = pixels[y * side + x];
            d[y * side + x] = whole ? vf_read(p, c, bf16) : vf_read_m(p, c, mask, bf16);
        }
        input_line(out, d + x, side, d + x);
    }
    UNROLLED (y, side) {
        input_line(out, d + y * side, 1, d + y * side);
        UNROLLED (x, side)
            vf_store(v + (y * side + x) * step + c, d[y * side + x]);
    }
}

SIMD_INLINE void input_tile(int out, bool bf16, const float *const *pixels, int64_t channels,
                            float *v, int64_t step)
{
    int64_t c = 0;
    for (; c + VL <= channels; c += VL)
        input_vector(out, bf16, pixels, c, vm_first(VL), true, v, step);
    if (c < channels)
        input_vector(out, bf16, pixels, c, vm_first(channels - c), false, v, step);
}

void winograd_input(int out, const float *const *pixels, int64_t channels, float *v, int64_t step)
{
    if (out == 4)
        input_tile(4, false, pixels, channels, v, step);
    else
        input_tile(2, false, pixels, channels, v, step);
}

void winograd_input_bf16(int out, const float *const *pixels, int64_t channels, float *v,
                         int64_t step)
{
    if (out == 4)
        input_tile(4, true, pixels, channels, v, step);
    else
        input_tile(2, true, pixels, channels, v, step);
}

/* ---- output ---- */

/* y = A^T m along one line. */
SIMD_INLINE void output_line_4(const vf *m, int stride, vf *y)
{
    vf m1 = m[stride], m2 = m[2 * stride], m3 = m[3 * stride], m4 = m[4 * stride];
    vf sum = vf_add(m1, m2), difference = vf_sub(m1, m2);
    vf sum2 = vf_add(m3, m4), difference2 = vf_sub(m3, m4);
    vf first = vf_add(vf_add(m[0], sum), sum2);
    vf a = vf_set1((float)A), b = vf_set1((float)B), a2 = vf_set1((float)(A * A)),
       b2 = vf_set1((float)(B * B)), a3 = vf_set1((float)(A * A * A)),
       b3 = vf_set1((float)(B * B * B));
    vf last = vf_fma(a3, difference, vf_fma(b3, difference2, m[5 * stride]));
    y[0] = first;
    y[stride] = vf_fma(b, difference2, vf_mul(a, difference));
    y[2 * stride] = vf_fma(b2, sum2, vf_mul(a2, sum));
    y[3 * stride] = last;
}

SIMD_INLINE void output_line_2(const vf *m, int stride, vf *y)
{
    vf m1 = m[stride], m2 = m[2 * stride];
    vf first = vf_add(m[0], vf_add(m1, m2));
    y[stride] = vf_sub(vf_sub(m1, m2), m[3 * stride]);
    y[0] = first;
}

SIMD_INLINE void output_line(int out, const vf *m, int stride, vf *y)
{
    if (out == 4)
        output_line_4(m, stride, y);
    else
        output_line_2(m, stride, y);
}

/* One line of output pixels through the light steps to memory; of bf16 through all of them. */
SIMD_INLINE void finish_line(int out, bool bf16, const struct winograd_tile *t, int row, int64_t c,
                             int64_t last, const vf *line)
{
    const float *operands[GEMM_STEP_MAX];
    int steps = bf16 ? t->post->count : t->post->light;
    int64_t element = bf16 ? 2 : 4;
    for (int k = 0; k < steps; k++)
        operands[k] =
            t->operands[k] ? float_at(t->operands[k], row * t->operand_row[k], bf16) : NULL;
    struct gemm_pixels pixels = {t->post, operands, (char *)t->y + row * t->y_row * element,
                                 t->y_pixel, t->stream};
    vf bias = vf_load(t->bias + c);
    gemm_sums sums;
    if (t->columns == out) {
        UNROLLED (x, out)
            sums[x][0] = vf_add(bias, line[x]);
        gemm_finish_pixels(&pixels, c, last, out, bf16, sums);
        return;
    }
    /* Pixels that do not exist have no operands either: one at a time. */
    for (int x = 0; x < t->columns; x++) {
        sums[0][0] = vf_add(bias, line[x]);
        gemm_finish_pixels(&pixels, c, last, 1, bf16, sums);
        pixels.y = (char *)pixels.y + t->y_pixel * element;
        for (int k = 0; k < steps; k++)
            if (operands[k])
                operands[k] = float_at(operands[k], t->post->steps[k].row, bf16);
    }
}

SIMD_INLINE void output_vector(int out, bool bf16, const struct winograd_tile *t, int64_t c,
                               int64_t last)
{
    vf m[WINOGRAD_POINTS_MAX];
    int side = out + 2;
    UNROLLED (x, side) {
        UNROLLED (y, side)
            m[y * side + x] = vf_load(t->m + (y * side + x) * t->step + c);
        output_line(out, m + x, side, m + x);
    }
    for (int y = 0; y < t->rows; y++) {
        output_line(out, m + y * side, 1, m + y * side);
        finish_line(out, bf16, t, y, c, last, m + y * side);
    }
}

SIMD_INLINE void output_tile(int out, bool bf16, const struct winograd_tile *t)
{
    int64_t c = 0;
    for (; c + VL <= t->channels; c += VL)
        output_vector(out, bf16, t, c, VL);
    if (c < t->channels)
        output_vector(out, bf16, t, c, t->channels - c);
}

static void heavy_steps(const struct winograd_tile *t)
{
    const float *operands[GEMM_STEP_MAX] = {0};
    for (int row = 0; row < t->rows; row++) {
        for (int k = t->post->light; k < t->post->count; k++)
            operands[k] = t->operands[k] ? t->operands[k] + row * t->operand_row[k] : NULL;
        gemm_post_heavy(t->post, operands, (float *)t->y + row * t->y_row, t->y_pixel, t->columns,
                        t->channels);
    }
}

void winograd_output(int out, const struct winograd_tile *tile)
{
    if (out == 4 && tile->bf16)
        output_tile(4, true, tile);
    else if (tile->bf16)
        output_tile(2, true, tile);
    else if (out == 4)
        output_tile(4, false, tile);
    else
        output_tile(2, false, tile);
    if (!tile->bf16 && tile->post->light < tile->post->count)
        heavy_steps(tile);
}

/* ---- gradients of weights ---- */

/* Of the points x and -x: y0 + x^2 y2 +- (x y1 + x^3 y3). */
SIMD_INLINE void gradient_pair(double x, const vf *y, int stride, vf *d, int step)
{
    vf even = vf_fma(vf_set1((float)(x * x)), y[2 * stride], y[0]);
    vf odd =
        vf_fma(vf_set1((float)(x * x * x)), y[3 * stride], vf_mul(vf_set1((float)x), y[stride]));
    d[0] = vf_add(even, odd);
    d[step] = vf_sub(even, odd);
}

/* d = A y along one line of `out` values, `stride` vectors apart; step: between those of d. */
SIMD_INLINE void gradient_line(int out, const vf *y, int stride, vf *d, int step)
{
    d[0] = y[0];
    if (out == 4) {
        gradient_pair(A, y, stride, d + step, step);
        gradient_pair(B, y, stride, d + 3 * step, step);
        d[5 * step] = y[3 * stride];
    } else {
        d[step] = vf_add(y[0], y[stride]);
        d[2 * step] = vf_sub(y[0], y[stride]);
        d[3 * step] = vf_neg(y[stride]);
    }
}

SIMD_INLINE void gradient_vector(int out, const float *const *pixels, int64_t c, vm mask,
                                 bool whole, float *d, int64_t step)
{
    vf column[WINOGRAD_SIDE_MAX], lines[WINOGRAD_POINTS_MAX], line[WINOGRAD_SIDE_MAX];
    int side = out + 2;
    UNROLLED (x, out) {
        UNROLLED (y, out) {
            const float *p = pixels[y * out + x] + c;
            column[y] = whole ? vf_load(p) : vf_load_m(p, mask);
        }
        gradient_line(out, column, 1, lines + x, out);
    }
    UNROLLED (y, side) {
        gradient_line(out, lines + y * out, 1, line, 1);
        UNROLLED (x, side)
            vf_store(d + (y * side + x) * step + c, line[x]);
    }
}

SIMD_INLINE void gradient_tile(int out, const float *const *pixels, int64_t channels, float *d,
                               int64_t step)
{
    int64_t c = 0;
    for (; c + VL <= channels; c += VL)
        gradient_vector(out, pixels, c, vm_first(VL), true, d, step);
    if (c < channels)
        gradient_vector(out, pixels, c, vm_first(channels - c), false, d, step);
}

void winograd_gradient(int out, const float *const *pixels, int64_t channels, float *d,
                       int64_t step)
{
    if (out == 4)
        gradient_tile(4, pixels, channels, d, step);
    else
        gradient_tile(2, pixels, channels, d, step);
}

/* w = G^T u along one line of points, `stride` vectors apart; step: between those of w. */
SIMD_INLINE void taps_line(int out, const vf *u, int stride, vf *w, int step)
{
    vf sum = vf_add(u[stride], u[2 * stride]), difference = vf_sub(u[stride], u[2 * stride]);
    if (out == 4) {
        vf sum2 = vf_add(u[3 * stride], u[4 * stride]);
        vf difference2 = vf_sub(u[3 * stride], u[4 * stride]);
        double a = SCALE(A, B), b = SCALE(B, A);
        vf even = vf_fma(vf_set1((float)a), sum, vf_mul(vf_set1((float)b), sum2));
        w[0] = vf_fma(vf_set1((float)(1 / (A * A * B * B))), u[0], even);
        w[step] = vf_fma(vf_set1((float)(a * A)), difference,
                         vf_mul(vf_set1((float)(b * B)), difference2));
        even = vf_fma(vf_set1((float)(b * B * B)), sum2, u[5 * stride]);
        w[2 * step] = vf_fma(vf_set1((float)(a * A * A)), sum, even);
    } else {
        vf half = vf_set1(0.5f);
        w[0] = vf_fma(half, sum, u[0]);
        w[step] = vf_mul(half, difference);
        w[2 * step] = vf_fma(half, sum, u[3 * stride]);
    }
}

SIMD_INLINE void taps_tile(int out, const float *u, int64_t step, float *taps)
{
    vf column[WINOGRAD_SIDE_MAX], lines[3 * WINOGRAD_SIDE_MAX], line[3];
    int side = out + 2;
    UNROLLED (x, side) {
        UNROLLED (y, side)
            column[y] = vf_load(u + (y * side + x) * step);
        taps_line(out, column, 1, lines + x, side);
    }
    UNROLLED (y, 3) {
        taps_line(out, lines + y * side, 1, line, 1);
        UNROLLED (x, 3)
            vf_store(taps + (y * 3 + x) * VL, line[x]);
    }
}

void winograd_taps(int out, const float *u, int64_t step, float *taps)
{
    if (out == 4)
        taps_tile(4, u, step, taps);
    else
        taps_tile(2, u, step, taps);
}
