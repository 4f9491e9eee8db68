/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/tile_fn.h"

#include <math.h>

#include "engine/kernels/lib/simd_dot.h"
#include "engine/kernels/lib/simd_math.h"

#define UNARY(code, name, flops, calls, value, vector)                                             \
    static void tile_##code(float *out, const struct tile_operands *t, int64_t n,                  \
                            const struct chain_step *step)                                         \
    {                                                                                              \
        const float *a = t->a, p = step->p, q = step->q;                                           \
        (void)p, (void)q;                                                                          \
        int64_t i = 0;                                                                             \
        for (; i + VL <= n; i += VL) {                                                             \
            vf x = vf_load(a + i);                                                                 \
            vf_store(out + i, vector);                                                             \
        }                                                                                          \
        if (i < n) {                                                                               \
            vm rest = vm_first(n - i);                                                             \
            vf x = vf_load_m(a + i, rest);                                                         \
            vf_store_m(out + i, rest, vector);                                                     \
        }                                                                                          \
    }

#define BINARY(code, name, flops, calls, value, vector)                                            \
    SIMD_INLINE void loop_##code(float *out, const struct tile_operands *t, int64_t n,             \
                                 const struct chain_step *step, unsigned scalars)                  \
    {                                                                                              \
        const float *a = t->a, *b = t->b, p = step->p, q = step->q;                                \
        (void)p, (void)q;                                                                          \
        vf all_x = scalars & TILE_A_SCALAR ? vf_set1(*a) : vf_zero();                              \
        vf all_y = scalars & TILE_B_SCALAR ? vf_set1(*b) : vf_zero();                              \
        int64_t i = 0;                                                                             \
        for (; i + VL <= n; i += VL) {                                                             \
            vf x = scalars & TILE_A_SCALAR ? all_x : vf_load(a + i);                               \
            vf y = scalars & TILE_B_SCALAR ? all_y : vf_load(b + i);                               \
            vf_store(out + i, vector);                                                             \
        }                                                                                          \
        if (i < n) {                                                                               \
            vm rest = vm_first(n - i);                                                             \
            vf x = scalars & TILE_A_SCALAR ? all_x : vf_load_m(a + i, rest);                       \
            vf y = scalars & TILE_B_SCALAR ? all_y : vf_load_m(b + i, rest);                       \
            vf_store_m(out + i, rest, vector);                                                     \
        }                                                                                          \
    }                                                                                              \
    static void tile_##code(float *out, const struct tile_operands *t, int64_t n,                  \
                            const struct chain_step *step)                                         \
    {                                                                                              \
        if (t->scalars == 0)                                                                       \
            loop_##code(out, t, n, step, 0);                                                       \
        else if (t->scalars == TILE_A_SCALAR)                                                      \
            loop_##code(out, t, n, step, TILE_A_SCALAR);                                           \
        else if (t->scalars == TILE_B_SCALAR)                                                      \
            loop_##code(out, t, n, step, TILE_B_SCALAR);                                           \
        else                                                                                       \
            loop_##code(out, t, n, step, TILE_A_SCALAR | TILE_B_SCALAR);                           \
    }

FUNCTIONS(UNARY, UNARY, BINARY)

#define TILE_FN(code, ...) tile_##code,
tile_fn *const SIMD_FN(tile_fns)[FN_COUNT] = {FUNCTIONS(TILE_FN, TILE_FN, TILE_FN)};

void SIMD_FN(tile_fill)(float *y, float x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x;
}

void SIMD_FN(tile_stream)(float *y, const float *x, int64_t n)
{
    const int64_t misaligned = (int64_t)((uintptr_t)y / sizeof(float) % VL);
    int64_t head = misaligned ? VL - misaligned : 0, i = head < n ? head : n;
    if (i > 0)
        vf_store_m(y, vm_first(i), vf_load_m(x, vm_first(i)));
    for (; i + VL <= n; i += VL)
        vf_stream(y + i, vf_load(x + i));
    if (i < n) {
        vm rest = vm_first(n - i);
        vf_store_m(y + i, rest, vf_load_m(x + i, rest));
    }
}

SIMD_INLINE void round_tile(uint16_t *y, const float *x, int64_t n, bool stream)
{
    const int64_t misaligned = stream ? (int64_t)((uintptr_t)y / sizeof(*y) % VL) : 0;
    int64_t head = misaligned ? VL - misaligned : 0, i = head < n ? head : n;
    if (i > 0)
        vf_store_bf16_fast_m(y, vm_first(i), vf_load_m(x, vm_first(i)));
    for (; i + VL <= n; i += VL) {
        if (stream)
            vf_stream_bf16(y + i, vf_load(x + i));
        else
            vf_store_bf16_fast(y + i, vf_load(x + i));
    }
    if (i < n) {
        vm rest = vm_first(n - i);
        vf_store_bf16_fast_m(y + i, rest, vf_load_m(x + i, rest));
    }
}

void SIMD_FN(tile_round)(uint16_t *y, const float *x, int64_t n, bool stream)
{
    if (stream)
        round_tile(y, x, n, true);
    else
        round_tile(y, x, n, false);
}
