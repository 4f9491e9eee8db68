/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products over the micro-kernels of gemm_tile.h: which blocks, in which order, by which
 * thread. A[m][taps * k] times B[taps * k][n], B packed in panels, any number of batches.
 *
 * C is cut into a grid of chunks, one per task of the pool. Within a chunk the reduction goes in
 * blocks of block_k, so that a panel of B (block_k x panel columns) and the rows of A stay in the
 * second cache; then for each panel all row tiles. Rows are spread evenly over the tiles (49 rows
 * in tiles of 12 are 10, 10, 10, 10, 9), so no thin tile is left. `copy` gathers a chunk's rows of
 * A into dense memory first: it pays when many panels read them, or when their distance is a large
 * power of two and they fight for the same sets of the first cache. It also turns the rows of a
 * transposed A. Where words are no floats it completes rows that do not end with a word, and makes
 * signed bytes unsigned.
 *
 * Life cycle: gemm_plan once; gemm_pack once per constant B, else before each launch; gemm_run per
 * launch.
 */
#ifndef ENGINE_KERNELS_LIB_GEMM_H
#define ENGINE_KERNELS_LIB_GEMM_H

#include "base/system/pool.h"
#include "engine/kernels/lib/gemm_tile.h"

/* What the caller decides. */
struct gemm_size {
    int64_t batch, m, n;
    int64_t taps, k; /* k: elements (words, see gemm_tile.h) per tap */
    enum gemm_math math;
    int narrow;        /* bytes of an element of C, bf16 or a byte, in which c, c_row and c_batch
                          of the call are; 0: a word */
    bool flip;         /* with copy: the sign bits of A's bytes are turned over */
    int64_t row_bytes; /* with copy: what a row of A has, zeros follow; 0: k whole words */
    int vectors;       /* width of a panel in vectors */
    int rows;          /* rows of a tile; 0: the most there is */
    int64_t block_k;   /* at most so many of taps * k in a pass; 0: all */
    bool copy;
    bool turn;   /* floats alone: rows of A are columns in memory, which copying turns; one tap */
    bool stream; /* write C past the caches where that is possible */
    bool spread; /* rows of C lie where gemm_call.places says; no post that reads memory */
    int threads;
};

/* Outputs from here on leave the last cache before they are read: worth streaming. */
enum { GEMM_STREAM_BYTES = 16 << 20 };

struct gemm_plan {
    struct gemm_size size;
    int64_t tiles, panels;             /* of C */
    int64_t chunk_rows, chunk_columns; /* how many chunks C is cut into */
    int64_t row_tiles;                 /* most tiles in a chunk */
    int64_t rows_even, rows_rest;      /* a tile has rows_even rows, the first rows_rest one more */
    int64_t taps_block, k_block;       /* a pass is taps_block taps of k_block elements */
    int64_t copy_row;                  /* floats between copied rows */
    int64_t sums_row;                  /* narrow: floats between rows of sums that another pass */
    size_t sums_bytes;                 /* will go on with */
    size_t pointer_bytes, copy_bytes;  /* scratch per thread */
};

#define gemm_plan_for SIMD_FN(gemm_plan_for)
struct gemm_plan gemm_plan_for(const struct gemm_size *size);

/* The ways of cutting a product that are worth timing, best guesses first. size.vectors to
 * size.stream need not be filled in; row_floats is the distance of A's rows, large: the result
 * may be streamed. */
#define gemm_variant_count SIMD_FN(gemm_variant_count)
int gemm_variant_count(const struct gemm_size *size, int64_t row_floats, bool large);
#define gemm_variant SIMD_FN(gemm_variant)
struct gemm_plan gemm_variant(const struct gemm_size *size, int64_t row_floats, bool large,
                              int variant);
#define gemm_workspace SIMD_FN(gemm_workspace)
size_t gemm_workspace(const struct gemm_plan *plan); /* all threads */

/* "6x64 k512 copy grid 4x3", for kernel.describe. */
#define gemm_describe SIMD_FN(gemm_describe)
void gemm_describe(const struct gemm_plan *plan, char *text, size_t size);

/* Vectors in a panel: size.vectors, but for the last one. */
#define gemm_panel_vectors SIMD_FN(gemm_panel_vectors)
int64_t gemm_panel_vectors(const struct gemm_plan *plan, int64_t panel);
/* Floats of packed B (one batch) or of a padded bias. */
#define gemm_packed_floats SIMD_FN(gemm_packed_floats)
int64_t gemm_packed_floats(const struct gemm_plan *plan);
#define gemm_bias_floats SIMD_FN(gemm_bias_floats)
int64_t gemm_bias_floats(const struct gemm_plan *plan);

/* Element (tap, k, n) of B is at b[tap * tap_stride + k * row_stride + n * column_stride]. */
struct gemm_source_b {
    const float *b;
    int64_t tap, row, column;
    float scale;
};
/* Packs panels [first, last). */
#define gemm_pack_b SIMD_FN(gemm_pack_b)
void gemm_pack_b(const struct gemm_plan *plan, const struct gemm_source_b *from, int64_t first,
                 int64_t last, float *packed);

/* All panels, by all threads. */
#define gemm_pack SIMD_FN(gemm_pack)
void gemm_pack(const struct gemm_plan *plan, const struct gemm_source_b *from, struct pool *pool,
               float *packed);

/* The same for words of elements of one or two bytes; strides in elements. */
struct gemm_source_words {
    const void *b;
    int64_t k; /* elements */
    int64_t row, column;
    int element; /* bytes */
    bool flip;   /* turn over the sign bits of bytes */
};
/* sums: those of each column's bytes (signed), padded like a bias; NULL: not wanted. */
#define gemm_pack_words SIMD_FN(gemm_pack_words)
void gemm_pack_words(const struct gemm_plan *plan, const struct gemm_source_words *from,
                     int64_t first, int64_t last, float *packed, int32_t *sums);
/* Elements of bf16, packed as floats for a plan of floats. */
#define gemm_pack_widened SIMD_FN(gemm_pack_widened)
void gemm_pack_widened(const struct gemm_plan *plan, const struct gemm_source_words *from,
                       int64_t first, int64_t last, float *packed);

/* Rows [row, row + count) of batch `batch` of A. scratch: the thread's, see gemm_call. */
struct gemm_rows {
    const void *source;
    void *scratch;
    int64_t batch, row, count;
    int64_t first; /* of the chunk */
};
/* Writes their addresses: to[tap * step + i]. */
typedef void gemm_rows_fn(const struct gemm_rows *rows, const float **to, int64_t step);
/* Writes where those rows of C begin, in its elements from that of the batch. */
typedef void gemm_places_fn(const struct gemm_rows *rows, int64_t *to);
/* Prepares all rows of a chunk in scratch, before their addresses are asked for. */
typedef void gemm_begin_fn(const struct gemm_rows *rows);

struct gemm_call {
    gemm_rows_fn *rows;
    gemm_begin_fn *begin;   /* NULL: nothing to prepare */
    gemm_places_fn *places; /* size.spread */
    const void *source;     /* for the functions */
    const float *zeros; /* the row of zeros that padding reads, so that it is left out; or NULL */
    void *scratch;      /* for them too: scratch_bytes per thread */
    size_t scratch_bytes;
    int64_t a_step;     /* size.turn: floats between elements of a row of A, neighbouring rows being
                           one float apart */
    const float *b;     /* packed */
    int64_t b_batch;    /* floats between the packed B of two batches; 0: the same for all */
    int64_t b_period;   /* batches after which B and bias begin again; 0: never */
    const float *bias;  /* padded to panels; NULL: none */
    int64_t bias_batch; /* like b_batch */
    /* Of bytes, see struct gemm_tile: per row of all batches, and shift_by like bias. */
    const int32_t *scale, *shift, *shift_by;
    const struct gemm_rescale *rescale; /* of bytes; NULL: C has their sums */
    int64_t rescale_batch;              /* like b_batch */
    void *c;                            /* float, i32, bf16 or bytes */
    int64_t c_row;
    const struct gemm_post *post; /* NULL: none. Of bytes none is light */
    const void *const *in;        /* operands of posts: kernel_args.in */
    int64_t batch_first;          /* the plan's batches are those from here on */
    int batch_rank;               /* batches as dimensions, for c and the operands */
    const int64_t *batch_dim, *c_batch;
    void *workspace;
};

#define gemm_run SIMD_FN(gemm_run)
void gemm_run(const struct gemm_plan *plan, const struct gemm_call *call, struct pool *pool);

/* Whether rows so many floats apart fight for the sets of a first cache (64 sets, 8 ways). */
#define gemm_rows_collide SIMD_FN(gemm_rows_collide)
bool gemm_rows_collide(int64_t row_floats, int rows);

#endif
