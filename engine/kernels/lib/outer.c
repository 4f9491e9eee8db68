/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/outer.h"

#define UNROLLED_TO(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < (n); i++)

SIMD_INLINE void run(const struct outer *t, int rows, int vectors)
{
    vf sum[OUTER_ROWS_MAX][OUTER_VECTORS_MAX];
    const float *a = t->a, *b = t->b, *ahead_a = t->ahead_a, *ahead_b = t->ahead_b;
    UNROLLED_TO(m, rows)
    UNROLLED_TO(n, vectors)
    sum[m][n] = vf_zero();
    _Pragma("GCC unroll 1") for (int64_t k = 0; k < t->k; k++, a += t->a_step, b += t->b_step)
    {
        vf row[OUTER_VECTORS_MAX];
        simd_prefetch(ahead_a);
        simd_prefetch(ahead_b);
        ahead_a += t->ahead_a_step;
        ahead_b += t->ahead_b_step;
        UNROLLED_TO(n, vectors)
        row[n] = vf_load(b + n * VL);
        UNROLLED_TO(m, rows)
        {
            vf x = vf_set1(a[m]);
            UNROLLED_TO(n, vectors)
            sum[m][n] = vf_fma(x, row[n], sum[m][n]);
        }
    }
    UNROLLED_TO(m, rows)
    UNROLLED_TO(n, vectors)
    {
        float *c = t->c + m * t->c_row + n * VL;
        vf_store(c, t->resume ? vf_add(sum[m][n], vf_load(c)) : sum[m][n]);
    }
}

#define TILE(rows, vectors)                                                                        \
    static void tile_##rows##x##vectors(const struct outer *t)                                     \
    {                                                                                              \
        run(t, rows, vectors);                                                                     \
    }
#define TILES_4(vectors) TILE(1, vectors) TILE(2, vectors) TILE(3, vectors) TILE(4, vectors)
#define TILES_6(vectors) TILES_4(vectors) TILE(5, vectors) TILE(6, vectors)
#define ROW_4(vectors)   tile_1x##vectors, tile_2x##vectors, tile_3x##vectors, tile_4x##vectors
#define ROW_6(vectors)   ROW_4(vectors), tile_5x##vectors, tile_6x##vectors

#if defined(__AVX512F__)
TILES_6(1)
TILES_6(2)
TILES_6(3)
TILES_6(4)
#define TABLE                                                                                      \
    {ROW_6(1)}, {ROW_6(2)}, {ROW_6(3)},                                                            \
    {                                                                                              \
        ROW_6(4)                                                                                   \
    }
#elif defined(__AVX2__)
TILES_6(1)
TILES_6(2)
#define TABLE                                                                                      \
    {ROW_6(1)},                                                                                    \
    {                                                                                              \
        ROW_6(2)                                                                                   \
    }
#else
TILES_4(1)
TILES_4(2)
TILES_4(3)
TILES_4(4)
#define TABLE                                                                                      \
    {ROW_4(1)}, {ROW_4(2)}, {ROW_4(3)},                                                            \
    {                                                                                              \
        ROW_4(4)                                                                                   \
    }
#endif

void outer_run(const struct outer *tile, int rows, int vectors)
{
    static void (*const tiles[OUTER_VECTORS_MAX][OUTER_ROWS_MAX])(const struct outer *) = {TABLE};
    tiles[vectors - 1][rows - 1](tile);
}
