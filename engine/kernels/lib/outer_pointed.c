/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/outer_pointed.h"

#define UNROLLED_TO(i, n) _Pragma("GCC unroll 12") for (int i = 0; i < (n); i++)

SIMD_INLINE void run(const struct outer_pointed *t, int rows, int vectors)
{
    vf sum[POINTED_ROWS][POINTED_VECTORS];
    const float *a = t->a, *ahead_a = t->ahead_a;
    UNROLLED_TO(m, rows)
    UNROLLED_TO(n, vectors)
    sum[m][n] = vf_zero();
    _Pragma("GCC unroll 1") for (int64_t k = 0; k < t->k; k++, a += t->a_step)
    {
        vf row[POINTED_VECTORS];
        const float *b = t->b[k] + t->b_column;
        simd_prefetch_second(ahead_a);
        simd_prefetch_second(t->ahead_b[k] + t->ahead_b_column);
        ahead_a += t->ahead_a_step;
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

#define TILES(rows)                                                                                \
    static void tile_##rows##x1(const struct outer_pointed *t)                                     \
    {                                                                                              \
        run(t, rows, 1);                                                                           \
    }                                                                                              \
    static void tile_##rows##x2(const struct outer_pointed *t)                                     \
    {                                                                                              \
        run(t, rows, 2);                                                                           \
    }
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
TILES(7)
TILES(8)
TILES(9)
TILES(10)
TILES(11)
TILES(12)

void outer_run_pointed(const struct outer_pointed *tile, int rows, int vectors)
{
    static void (*const tiles[POINTED_VECTORS][POINTED_ROWS])(const struct outer_pointed *) = {
        {tile_1x1, tile_2x1, tile_3x1, tile_4x1, tile_5x1, tile_6x1, tile_7x1, tile_8x1, tile_9x1,
         tile_10x1, tile_11x1, tile_12x1},
        {tile_1x2, tile_2x2, tile_3x2, tile_4x2, tile_5x2, tile_6x2, tile_7x2, tile_8x2, tile_9x2,
         tile_10x2, tile_11x2, tile_12x2}};
    tiles[vectors - 1][rows - 1](tile);
}
