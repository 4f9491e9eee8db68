/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/outer.h"

#define UNROLLED_TO(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)

enum {
    ROWS = OUTER_TALL_ROWS > OUTER_ROWS_MAX ? OUTER_TALL_ROWS : OUTER_ROWS_MAX,
    VECTORS = OUTER_VECTORS_MAX,
};
typedef vf sums[ROWS][VECTORS];

SIMD_INLINE void begin(int rows, int vectors, sums sum)
{
    UNROLLED_TO(m, rows)
    UNROLLED_TO(n, vectors)
    sum[m][n] = vf_zero();
}

/* a: an element per row; b: the row's vectors. */
SIMD_INLINE void add(const float *a, const float *b, int rows, int vectors, sums sum)
{
    vf row[VECTORS];
    UNROLLED_TO(n, vectors)
    row[n] = vf_load(b + n * VL);
    UNROLLED_TO(m, rows)
    {
        vf x = vf_set1(a[m]);
        UNROLLED_TO(n, vectors)
        sum[m][n] = vf_fma(x, row[n], sum[m][n]);
    }
}

SIMD_INLINE void end(const struct outer *t, int rows, int vectors, sums sum)
{
    UNROLLED_TO(m, rows)
    UNROLLED_TO(n, vectors)
    {
        float *c = t->c + m * t->c_row + n * VL;
        vf_store(c, t->resume ? vf_add(sum[m][n], vf_load(c)) : sum[m][n]);
    }
}

SIMD_INLINE void run(const struct outer *t, int rows, int vectors)
{
    sums sum;
    const float *a = t->a, *b = t->b, *ahead_a = t->ahead_a, *ahead_b = t->ahead_b;
    begin(rows, vectors, sum);
    _Pragma("GCC unroll 1") for (int64_t k = 0; k < t->k; k++, a += t->a_step, b += t->b_step)
    {
        simd_prefetch(ahead_a);
        simd_prefetch(ahead_b);
        ahead_a += t->ahead_a_step;
        ahead_b += t->ahead_b_step;
        add(a, b, rows, vectors, sum);
    }
    end(t, rows, vectors, sum);
}

SIMD_INLINE void run_pointed(const struct outer_pointed *p, int rows, int vectors)
{
    sums sum;
    const struct outer *t = &p->tile;
    const float *a = t->a, *ahead_a = t->ahead_a;
    begin(rows, vectors, sum);
    _Pragma("GCC unroll 1") for (int64_t k = 0; k < t->k; k++, a += t->a_step)
    {
        simd_prefetch_second(ahead_a);
        simd_prefetch_second(p->ahead_rows[k] + p->ahead_column);
        ahead_a += t->ahead_a_step;
        add(a, p->b_rows[k] + p->b_column, rows, vectors, sum);
    }
    end(t, rows, vectors, sum);
}

#define TILE(rows, vectors)                                                                        \
    static void tile_##rows##x##vectors(const struct outer *t)                                     \
    {                                                                                              \
        run(t, rows, vectors);                                                                     \
    }
#define TALL(rows, vectors)                                                                        \
    static void tall_##rows##x##vectors(const struct outer_pointed *p)                             \
    {                                                                                              \
        run_pointed(p, rows, vectors);                                                             \
    }
#define FOUR(make, vectors) make(1, vectors) make(2, vectors) make(3, vectors) make(4, vectors)
#define SIX(make, vectors)  FOUR(make, vectors) make(5, vectors) make(6, vectors)
#define TWELVE(make, vectors)                                                                      \
    SIX(make, vectors)                                                                             \
    make(7, vectors) make(8, vectors) make(9, vectors) make(10, vectors) make(11, vectors)         \
        make(12, vectors)
#define NAME_TILE(rows, vectors) tile_##rows##x##vectors,
#define NAME_TALL(rows, vectors) tall_##rows##x##vectors,

/* make(rows, vectors) for every tile, those of one width in W(...). */
#if defined(__AVX512F__)
#define TILES(W, make) W(SIX(make, 1)) W(SIX(make, 2)) W(SIX(make, 3)) W(SIX(make, 4))
#define TALLS(W, make) W(TWELVE(make, 1)) W(TWELVE(make, 2))
#elif defined(__AVX2__)
#define TILES(W, make) W(SIX(make, 1)) W(SIX(make, 2))
#define TALLS(W, make) W(SIX(make, 1)) W(SIX(make, 2))
#else
#define TILES(W, make) W(FOUR(make, 1)) W(FOUR(make, 2)) W(FOUR(make, 3)) W(FOUR(make, 4))
#define TALLS(W, make) TILES(W, make)
#endif
#define DEFINED(...) __VA_ARGS__
#define LISTED(...)  {__VA_ARGS__},

TILES(DEFINED, TILE)
TALLS(DEFINED, TALL)

void outer_run(const struct outer *tile, int rows, int vectors)
{
    static void (*const tiles[OUTER_VECTORS_MAX][OUTER_ROWS_MAX])(const struct outer *) = {
        TILES(LISTED, NAME_TILE)};
    tiles[vectors - 1][rows - 1](tile);
}

void outer_run_pointed(const struct outer_pointed *p, int rows, int vectors)
{
    static void (*const tiles[OUTER_TALL_VECTORS][OUTER_TALL_ROWS])(
        const struct outer_pointed *) = {TALLS(LISTED, NAME_TALL)};
    tiles[vectors - 1][rows - 1](p);
}
