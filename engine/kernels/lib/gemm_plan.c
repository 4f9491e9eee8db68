/* SPDX-License-Identifier: Apache-2.0
 *
 * How C is cut up. A grid of chunks is chosen by a small model of the time of the slowest thread:
 * multiply-adds, plus what each chunk costs by itself. It decides well for 49 x 2048 on 64 threads
 * as for 100352 x 64 on 2; the constants are cycles and need not be exact. */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/gemm.h"
#include "engine/kernels/lib/workspace.h"

#include <stdio.h>

/* Rows of A that a chunk reads again for each panel: half of a second cache of 512 KiB. */
enum { CHUNK_BYTES = 256 << 10, CHUNK_CYCLES = 600, TILE_CYCLES = 40 };
/* Sums of a chunk that wait for the next pass. */
enum { SUMS_BYTES = 512 << 10 };

static void plan_passes(struct gemm_plan *p)
{
    const struct gemm_size *s = &p->size;
    int64_t limit = s->block_k > 0 ? s->block_k : s->taps * s->k;
    p->taps_block = 1;
    p->k_block = s->k;
    if (s->k > limit) {
        int64_t even = divide_up(s->k, divide_up(s->k, limit));
        p->k_block = divide_up(even, 16) * 16;
        return;
    }
    if (s->k > 0 && limit > s->k)
        p->taps_block = limit / s->k;
    if (p->taps_block > s->taps)
        p->taps_block = s->taps;
    if (p->taps_block > 0)
        p->taps_block = divide_up(s->taps, divide_up(s->taps, p->taps_block));
}

/* Cycles of one chunk of so many tiles and panels. */
static double chunk_cycles(const struct gemm_plan *p, int64_t tiles, int64_t panels)
{
    const struct gemm_size *s = &p->size;
    double k = (double)(s->taps * s->k), width = (double)s->vectors;
    double rows = (double)s->m / (double)p->tiles;
    double tile = rows * width * k + TILE_CYCLES + 4 * rows * width;
    double once = (double)tiles * rows * ((s->copy ? k * 2 / VL : 0) + 2 * (double)s->taps);
    double stream = (double)panels * width * k; /* B comes from the third cache or memory */
    return (double)(tiles * panels) * tile + once + stream + CHUNK_CYCLES;
}

/* Floats between rows, and bytes, of a chunk's sums when they do not fit into C. */
static void plan_sums(struct gemm_plan *p)
{
    const struct gemm_size *s = &p->size;
    int64_t columns = divide_up(p->panels, p->chunk_columns) * s->vectors * VL;
    int64_t rows = divide_up(p->tiles, p->chunk_rows) * s->rows;
    p->sums_row = columns + 16; /* no power of two */
    p->sums_bytes = 0;
    if (s->narrow && s->taps * s->k > p->taps_block * p->k_block)
        p->sums_bytes = (size_t)(rows * p->sums_row) * sizeof(float);
}

static void plan_grid(struct gemm_plan *p)
{
    const struct gemm_size *s = &p->size;
    struct gemm_plan trial = *p;
    int64_t tile_bytes = (int64_t)sizeof(float) * s->rows * p->taps_block * p->k_block;
    int64_t maximum = tile_bytes > 0 ? CHUNK_BYTES / tile_bytes : p->tiles;
    maximum = maximum < 1 ? 1 : maximum;
    int64_t least_rows = divide_up(p->tiles, maximum);
    if (p->panels == 1 && !s->copy)
        least_rows = 1;
    double best = -1;
    for (int64_t r = least_rows; r <= p->tiles && r < least_rows + 64; r++) {
        for (int64_t c = 1; c <= p->panels && c <= 256; c++) {
            double chunk = chunk_cycles(p, divide_up(p->tiles, r), divide_up(p->panels, c));
            double time = (double)divide_up(s->batch * r * c, s->threads) * chunk;
            time += s->threads > 1 ? 0.05 * chunk : 0; /* a disturbed thread delays by one chunk */
            trial.chunk_rows = r;
            trial.chunk_columns = c;
            plan_sums(&trial);
            time *= trial.sums_bytes > SUMS_BYTES ? 2 : 1;
            if (best >= 0 && time >= best)
                continue;
            best = time;
            p->chunk_rows = r;
            p->chunk_columns = c;
        }
    }
}

/* A narrow C makes the tile taller. */
static void fit_tile(struct gemm_size *s)
{
    int64_t needed = divide_up(s->n, VL);
    if (needed > 0 && needed < s->vectors) {
        s->rows = (int)(s->rows * s->vectors / needed);
        s->vectors = (int)needed;
    }
    if (s->rows <= 0 || s->rows > gemm_rows_max(s->vectors))
        s->rows = gemm_rows_max(s->vectors);
}

struct gemm_plan gemm_plan_for(const struct gemm_size *size)
{
    struct gemm_plan p = {.size = *size, .chunk_rows = 1, .chunk_columns = 1};
    struct gemm_size *s = &p.size;
    fit_tile(s);
    p.tiles = divide_up(s->m, s->rows);
    p.panels = divide_up(s->n, (int64_t)s->vectors * VL);
    p.rows_even = p.tiles ? s->m / p.tiles : 0;
    p.rows_rest = p.tiles ? s->m % p.tiles : 0;
    plan_passes(&p);
    plan_grid(&p);
    plan_sums(&p);
    p.row_tiles = divide_up(p.tiles, p.chunk_rows);
    int64_t rows = p.row_tiles * s->rows;
    p.pointer_bytes = aligned_bytes((size_t)(rows * (s->taps + 1 + s->spread)) * sizeof(float *));
    p.copy_row = divide_up(p.taps_block * p.k_block, 16) * 16 + 16; /* no power of two */
    p.copy_bytes = s->copy ? (size_t)(rows * p.copy_row) * sizeof(float) : 0;
    return p;
}

void gemm_describe(const struct gemm_plan *plan, char *text, size_t size)
{
    const struct gemm_size *s = &plan->size;
    snprintf(text, size, "%dx%d k%lld%s%s grid %lldx%lld", s->rows, s->vectors * VL,
             (long long)(plan->taps_block * plan->k_block), s->copy ? " copy" : "",
             s->stream ? " stream" : "", (long long)plan->chunk_rows,
             (long long)plan->chunk_columns);
}

size_t gemm_workspace(const struct gemm_plan *plan)
{
    size_t bytes = plan->pointer_bytes + plan->copy_bytes + plan->sums_bytes;
    return (bytes / ALIGN_TENSOR + 2) * ALIGN_TENSOR * (size_t)plan->size.threads;
}

int64_t gemm_bias_floats(const struct gemm_plan *plan)
{
    return plan->panels * plan->size.vectors * VL;
}

bool gemm_rows_collide(int64_t row_floats, int rows)
{
    int64_t bytes = row_floats * (int64_t)sizeof(float), sets = 1;
    while (sets < 64 && bytes * sets % 4096)
        sets *= 2;
    return rows > 9 * sets;
}

/* ---- variants ---- */

struct tuning {
    int vectors, rows;
    int64_t block_k;
    bool other_copy; /* the opposite of what looks right */
    bool no_stream;  /* although the result is large */
};

#if defined(__AVX512F__)
static const struct tuning tunings[] = {
    {4, 6, 512, false, false},  {3, 8, 512, false, false}, {3, 9, 512, false, false},
    {2, 12, 512, false, false}, {4, 6, 256, false, false}, {3, 8, 256, false, false},
    {4, 6, 512, true, false},   {3, 8, 512, true, false},  {2, 12, 256, false, false},
    {2, 14, 512, true, false},  {4, 6, 512, false, true},  {3, 8, 512, false, true},
};
#elif defined(__AVX2__)
static const struct tuning tunings[] = {
    {2, 6, 512, false, false}, {3, 4, 512, false, false}, {2, 6, 256, false, false},
    {3, 4, 256, false, false}, {2, 6, 512, true, false},  {3, 4, 512, true, false},
    {2, 6, 512, false, true},
};
#else
static const struct tuning tunings[] = {{4, 4, 256, false, false}, {4, 3, 256, false, false}};
#endif

enum { TUNINGS = sizeof(tunings) / sizeof(tunings[0]) };

/* The size as it will be used, so that equal tunings compare equal. */
static struct gemm_size tuned(const struct gemm_size *size, int64_t row_floats, bool large,
                              const struct tuning *t)
{
    struct gemm_plan p = {.size = *size};
    struct gemm_size *s = &p.size;
    s->vectors = t->vectors;
    s->rows = t->rows;
    s->block_k = t->block_k;
    fit_tile(s);
    plan_passes(&p);
    s->block_k = p.taps_block * p.k_block;
    bool collide = s->m >= s->rows && s->k >= 64 && gemm_rows_collide(row_floats, s->rows);
    s->copy = s->turn || collide != t->other_copy;
    s->stream = large && !t->no_stream;
    return *s;
}

static bool same_tiling(const struct gemm_size *a, const struct gemm_size *b)
{
    return a->vectors == b->vectors && a->rows == b->rows && a->block_k == b->block_k &&
           a->copy == b->copy && a->stream == b->stream;
}

/* Writes the distinct sizes; returns how many. */
static int list_tunings(const struct gemm_size *size, int64_t row_floats, bool large,
                        struct gemm_size *list)
{
    int count = 0;
    for (int k = 0; k < TUNINGS; k++) {
        list[count] = tuned(size, row_floats, large, &tunings[k]);
        int seen = 0;
        while (seen < count && !same_tiling(&list[seen], &list[count]))
            seen++;
        count += seen == count;
    }
    return count;
}

int gemm_variant_count(const struct gemm_size *size, int64_t row_floats, bool large)
{
    struct gemm_size list[TUNINGS];
    return list_tunings(size, row_floats, large, list);
}

struct gemm_plan gemm_variant(const struct gemm_size *size, int64_t row_floats, bool large,
                              int variant)
{
    struct gemm_size list[TUNINGS];
    list_tunings(size, row_floats, large, list);
    return gemm_plan_for(&list[variant]);
}
