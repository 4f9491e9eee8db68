/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/gemm.h"

#include <string.h>

#include "engine/kernels/lib/simd_square.h"

struct job {
    const struct gemm_plan *plan;
    const struct gemm_call *call;
    bool rows_first; /* neighbouring tasks share columns of B (the larger operand), not rows of A */
    bool stream;
};

/* One task: tiles [tile0, tile1) by panels [panel0, panel1) of one batch. */
struct chunk {
    const struct gemm_plan *plan;
    const struct gemm_call *call;
    bool stream;
    int64_t batch, tile0, tile1, panel0, panel1;
    const float **rows;   /* per tile [taps][rows] */
    const float **copied; /* per tile [rows]: into copy */
    int64_t *places;      /* per tile [rows]: of C; NULL: c_row apart */
    float *copy;
    void *scratch; /* of the caller's */
    const float *b, *bias;
    float *c;     /* NULL: narrow */
    char *narrow; /* NULL: c */
    float *sums;  /* narrow, before the last pass; for the chunk's first row and column */
    const float *operands[GEMM_STEP_MAX];
    int64_t rescale_first;       /* of the batch's factors */
    struct gemm_rescale rescale; /* for the tiles of a panel */
};

/* A pass over the reduction: taps [tap, tap + taps), elements [first, first + k) of each. */
struct pass {
    int64_t tap, taps, first, k;
};

static int64_t split(int64_t count, int64_t parts, int64_t index)
{
    int64_t base = count / parts, rest = count % parts;
    return index * base + (index < rest ? index : rest);
}

static int64_t tile_row(const struct gemm_plan *p, int64_t tile)
{
    return tile * p->rows_even + (tile < p->rows_rest ? tile : p->rows_rest);
}

/* ---- setting up ---- */

static void locate_batch(struct chunk *k)
{
    const struct gemm_call *call = k->call;
    int64_t left = k->batch, c = 0, operand[GEMM_STEP_MAX] = {0};
    int steps = call->post ? call->post->count : 0;
    for (int d = call->batch_rank - 1; d >= 0; d--) {
        int64_t at = left % call->batch_dim[d];
        left /= call->batch_dim[d];
        c += at * call->c_batch[d];
        for (int s = 0; s < steps; s++)
            operand[s] += at * call->post->steps[s].batch[d];
    }
    k->narrow = k->plan->size.narrow ? (char *)call->c + c * k->plan->size.narrow : NULL;
    k->c = k->narrow ? NULL : (float *)call->c + c;
    int64_t b = call->b_period ? k->batch % call->b_period : k->batch;
    k->b = call->b + b * call->b_batch;
    k->bias = call->bias ? call->bias + b * call->bias_batch : NULL;
    k->rescale_first = b * call->rescale_batch;
    for (int s = 0; s < steps; s++) {
        int input = call->post->steps[s].input;
        k->operands[s] =
            input < 0 ? NULL : gemm_operand_at(&call->post->steps[s], call->in[input], operand[s]);
    }
}

static void locate_chunk(const struct job *job, int64_t task, int thread, struct chunk *k)
{
    const struct gemm_plan *p = job->plan;
    int64_t grid = p->chunk_rows * p->chunk_columns, at = task % grid;
    int64_t row = job->rows_first ? at % p->chunk_rows : at / p->chunk_columns;
    int64_t column = job->rows_first ? at / p->chunk_rows : at % p->chunk_columns;
    k->plan = p;
    k->call = job->call;
    k->stream = job->stream;
    k->batch = job->call->batch_first + task / grid;
    k->tile0 = split(p->tiles, p->chunk_rows, row);
    k->tile1 = split(p->tiles, p->chunk_rows, row + 1);
    k->panel0 = split(p->panels, p->chunk_columns, column);
    k->panel1 = split(p->panels, p->chunk_columns, column + 1);
    char *scratch = (char *)job->call->workspace +
                    (size_t)thread * (gemm_workspace(p) / (size_t)p->size.threads);
    k->rows = (const float **)(void *)scratch;
    k->copied = k->rows + p->row_tiles * p->size.rows * p->size.taps;
    k->places =
        p->size.spread ? (int64_t *)(void *)(k->copied + p->row_tiles * p->size.rows) : NULL;
    k->copy = (float *)(void *)(scratch + p->pointer_bytes);
    k->sums = (float *)(void *)(scratch + p->pointer_bytes + p->copy_bytes);
    k->scratch = (char *)job->call->scratch + (size_t)thread * job->call->scratch_bytes;
}

static void point_rows(const struct chunk *k)
{
    const struct gemm_plan *p = k->plan;
    int64_t step = p->size.rows;
    int64_t first = tile_row(p, k->tile0), end = tile_row(p, k->tile1);
    struct gemm_rows rows = {k->call->source, k->scratch, k->batch, first, end - first, first};
    if (k->call->begin)
        k->call->begin(&rows);
    for (int64_t tile = k->tile0; tile < k->tile1; tile++) {
        int64_t row = tile_row(p, tile), at = tile - k->tile0;
        rows.row = row;
        rows.count = tile_row(p, tile + 1) - row;
        k->call->rows(&rows, k->rows + at * step * p->size.taps, step);
        if (k->places)
            k->call->places(&rows, k->places + at * step);
        for (int64_t m = 0; p->size.copy && m < step; m++)
            k->copied[at * step + m] = k->copy + (at * step + m) * p->copy_row;
    }
}

/* A row's words of a pass, completed and flipped. */
static void copy_words(const struct gemm_size *s, const struct pass *pass, const float *from,
                       void *to)
{
    size_t bytes = (size_t)pass->k * sizeof(float), valid = bytes;
    int64_t left = s->row_bytes - pass->first * (int64_t)sizeof(float);
    unsigned char *words = to;
    if (s->row_bytes && left < (int64_t)bytes)
        valid = (size_t)left;
    memcpy(words, from + pass->first, valid);
    memset(words + valid, 0, bytes - valid);
    for (size_t i = 0, end = s->flip ? bytes : 0; i < end; i++)
        words[i] ^= 0x80;
}

/* `depth` elements, VL at most, of all rows of a chunk that lie as columns: from their first one
 * on, to element `at` of the copied rows. */
static void turn_elements(const struct chunk *k, const float *from, int64_t at, int64_t depth)
{
    const struct gemm_plan *p = k->plan;
    int64_t rows = tile_row(p, k->tile1) - tile_row(p, k->tile0), tile = 0, row = 0;
    for (int64_t first = 0; first < rows; first += VL) {
        int64_t count = rows - first < VL ? rows - first : VL;
        float *to[VL];
        for (int64_t i = 0; i < count; i++) {
            to[i] = k->copy + (tile * p->size.rows + row++) * p->copy_row + at;
            if (row == p->rows_even + (k->tile0 + tile < p->rows_rest)) {
                row = 0;
                tile++;
            }
        }
        turn_columns(from + first, k->call->a_step, to, count, depth);
    }
}

static void turn_rows_of(const struct chunk *k, const struct pass *pass)
{
    int64_t step = k->call->a_step;
    const float *from = k->rows[0] + pass->first * step;
    for (int64_t at = 0; at < pass->k; at += VL)
        turn_elements(k, from + at * step, at, pass->k - at < VL ? pass->k - at : VL);
}

static void copy_rows(const struct chunk *k, const struct pass *pass)
{
    const struct gemm_plan *p = k->plan;
    int64_t step = p->size.rows;
    if (p->size.turn) {
        turn_rows_of(k, pass);
        return;
    }
    for (int64_t tile = k->tile0; tile < k->tile1; tile++) {
        int64_t count = tile_row(p, tile + 1) - tile_row(p, tile), at = tile - k->tile0;
        const float **rows = k->rows + at * step * p->size.taps + pass->tap * step;
        for (int64_t m = 0; m < count; m++)
            for (int64_t t = 0; t < pass->taps; t++)
                copy_words(&p->size, pass, rows[t * step + m],
                           k->copy + (at * step + m) * p->copy_row + t * pass->k);
    }
}

/* ---- computing ---- */

/* Operands of the epilogue at element (row, column) of C. */
static void move_operands(const struct chunk *k, const struct gemm_post *post, int64_t row,
                          int64_t column, const float **operands)
{
    for (int s = 0; s < post->count; s++) {
        const struct gemm_step *step = &post->steps[s];
        operands[s] =
            gemm_operand_at(step, k->operands[s], row * step->row + column * step->column);
    }
}

/* Whether a tile's rows lie one after the other, all read by this pass: then the hardware sees too
 * many short streams, and the micro-kernel prefetches the next tile's rows. */
static bool pass_is_dense(const struct chunk *k, const struct pass *pass)
{
    const struct gemm_size *s = &k->plan->size;
    return !s->copy && s->taps == 1 && pass->k == s->k && k->plan->rows_even > 1 &&
           k->rows[1] - k->rows[0] == s->k;
}

static const struct gemm_rescale *rescale_from(struct chunk *k, int64_t column)
{
    k->rescale = *k->call->rescale;
    k->rescale.scale += k->rescale_first + column;
    k->rescale.offset += k->rescale_first + column;
    return &k->rescale;
}

/* Where the tile at (row, column) of C leaves its sums, and what they start from. */
static void place_results(struct chunk *k, int64_t row, int64_t column, bool last,
                          struct gemm_tile *tile)
{
    const struct gemm_plan *p = k->plan;
    const struct gemm_call *call = k->call;
    int64_t first = k->panel0 * p->size.vectors * VL, at = k->batch * p->size.m + row;
    tile->c_row = k->narrow ? p->sums_row : call->c_row;
    tile->c = k->narrow ? k->sums + column - first : k->c + row * call->c_row + column;
    tile->narrow =
        k->narrow && last ? k->narrow + (row * call->c_row + column) * p->size.narrow : NULL;
    tile->narrow_row = call->c_row;
    tile->bias = k->bias ? k->bias + column : NULL;
    tile->scale = call->scale ? call->scale + at : NULL;
    tile->shift = call->shift ? call->shift + at : NULL;
    tile->shift_by = call->shift ? call->shift_by + column : NULL;
    tile->rescale = call->rescale && last ? rescale_from(k, column) : NULL;
}

/* The tile below one of `rows` rows. */
static void move_down(struct gemm_tile *tile, int64_t rows, int narrow)
{
    tile->c += rows * tile->c_row;
    if (tile->narrow)
        tile->narrow = (char *)tile->narrow + rows * tile->narrow_row * narrow;
    if (tile->scale)
        tile->scale += rows;
    if (tile->shift)
        tile->shift += rows;
}

/* What the tiles of a panel prefetch: the rows of the tile below where the hardware does not see
 * them, else, each its share, the next panel, which lies in the third cache or in memory: nothing
 * else could hide the way from there, for its first tile reads all of it. */
struct ahead {
    bool rows;
    const float *panel;
    int64_t floats; /* of the panel still to come */
};

/* The next panel is in this pass or the first of the next one. */
static struct ahead ahead_of(const struct chunk *k, const struct pass *pass, int64_t panel)
{
    const struct gemm_plan *p = k->plan;
    struct ahead ahead = {.rows = panel == k->panel0 && pass_is_dense(k, pass)};
    int64_t depth = pass->taps * pass->k, all = p->size.taps * p->size.k;
    int64_t before = pass->tap * p->size.k + pass->first, next = panel + 1;
    if (next == k->panel1) {
        next = k->panel0;
        before += depth;
        depth = before + depth <= all ? depth : all - before;
    }
    if (depth == 0)
        return ahead;
    int64_t width = gemm_panel_vectors(p, next) * VL;
    ahead.panel = k->b + next * p->size.vectors * VL * all + before * width;
    ahead.floats = depth * width;
    return ahead;
}

/* The share of a tile that will prefetch so many floats. */
static const float *take_ahead(struct ahead *ahead, const float *const *rows,
                               const float *const *below, int64_t floats)
{
    const float *from = rows[0];
    if (ahead->floats > 0)
        from = ahead->panel;
    ahead->panel += ahead->floats > floats ? floats : ahead->floats;
    ahead->floats -= ahead->floats > floats ? floats : ahead->floats;
    return ahead->rows && below ? below[0] : from;
}

/* The topmost tile of a chunk in a panel, but for its rows of A. */
static struct gemm_tile top_tile(struct chunk *k, const struct pass *pass, int64_t panel)
{
    const struct gemm_plan *p = k->plan;
    bool copy = p->size.copy,
         last = pass->tap + pass->taps == p->size.taps && pass->first + pass->k == p->size.k;
    int64_t column = panel * p->size.vectors * VL, vectors = gemm_panel_vectors(p, panel);
    int64_t left = p->size.n - column - (vectors - 1) * VL;
    int64_t before = (pass->tap * p->size.k + pass->first) * vectors * VL;
    struct gemm_tile tile = {.row_step = p->size.rows,
                             .taps = copy ? 1 : pass->taps,
                             .first = copy ? 0 : pass->first,
                             .k = copy ? pass->taps * pass->k : pass->k,
                             .b = k->b + column * p->size.taps * p->size.k + before,
                             .last = left < VL ? left : VL,
                             .stream = k->stream && last && left >= VL,
                             .resume = before > 0,
                             .post = last ? k->call->post : NULL};
    place_results(k, tile_row(p, k->tile0), column, last, &tile);
    return tile;
}

/* `rows` rows of a tile between C and a place of its own, where they are dense. */
static void copy_sums(const struct gemm_tile *tile, const int64_t *places, float *c, int64_t rows,
                      bool back)
{
    int64_t floats = tile->c_row - VL + tile->last;
    for (int64_t m = 0; m < rows; m++) {
        float *mine = tile->c + m * tile->c_row, *there = c + places[m];
        memcpy(back ? there : mine, back ? mine : there, (size_t)floats * sizeof(float));
    }
}

/* A tile whose rows lie in C where places say. */
static void run_spread(gemm_tile_fn *run, const struct gemm_tile *tile, const int64_t *places,
                       float *c, int64_t rows, int vectors)
{
    struct gemm_tile here = *tile;
    bool even = true;
    for (int64_t m = 2; m < rows; m++)
        even = even && places[m] - places[m - 1] == places[1] - places[0];
    for (int64_t m = 0; m < rows && !here.stream; m++)
        for (int n = 0; n < vectors; n++)
            simd_prefetch(c + places[m] + n * VL);
    if (even) {
        here.c = c + places[0];
        here.c_row = rows > 1 ? places[1] - places[0] : 0;
        run(&here);
        return;
    }
    _Alignas(64) float sums[GEMM_ROWS_MAX * GEMM_VECTORS_MAX * VL];
    here.c = sums;
    here.c_row = vectors * VL;
    here.stream = false;
    if (here.resume)
        copy_sums(&here, places, c, rows, false);
    run(&here);
    copy_sums(&here, places, c, rows, true);
}

/* The same of a narrow C: sums that wait for another pass do not lie in it. */
static void run_spread_narrow(gemm_tile_fn *run, const struct gemm_tile *tile,
                              const int64_t *places, char *c, const struct gemm_size *size,
                              int64_t rows, int vectors)
{
    struct gemm_tile here = *tile;
    _Alignas(64) char results[GEMM_ROWS_MAX * GEMM_VECTORS_MAX * VL * sizeof(float)];
    size_t bytes = (size_t)(((vectors - 1) * VL + tile->last) * size->narrow);
    here.narrow_row = vectors * VL;
    if (tile->narrow)
        here.narrow = results;
    run(&here);
    for (int64_t m = 0; m < rows && tile->narrow; m++)
        memcpy(c + places[m] * size->narrow, results + m * here.narrow_row * size->narrow, bytes);
}

static bool reads_padding(const float *const *rows, int64_t count, const float *zeros)
{
    for (int64_t m = 0; m < count; m++)
        if (rows[m] != zeros)
            return false;
    return true;
}

/* The tile without the first and the last taps in which all its rows read padding. */
static struct gemm_tile without_padding(const struct gemm_tile *all, int64_t count, int vectors,
                                        const float *zeros)
{
    struct gemm_tile tile = *all;
    while (tile.taps && reads_padding(tile.rows, count, zeros)) {
        tile.rows += tile.row_step;
        tile.b += tile.k * vectors * VL;
        tile.taps--;
    }
    while (tile.taps && reads_padding(tile.rows + (tile.taps - 1) * tile.row_step, count, zeros))
        tile.taps--;
    return tile;
}

static void run_tile(const struct chunk *k, gemm_tile_fn *run, const struct gemm_tile *tile,
                     int64_t index, int64_t panel)
{
    const struct gemm_plan *p = k->plan;
    bool changes = tile->taps || !tile->resume || tile->post || tile->narrow;
    if (!changes)
        return;
    int64_t column = panel * p->size.vectors * VL;
    if (k->places && k->narrow)
        run_spread_narrow(run, tile, k->places + (index - k->tile0) * p->size.rows,
                          k->narrow + column * p->size.narrow, &p->size,
                          tile_row(p, index + 1) - tile_row(p, index),
                          (int)gemm_panel_vectors(p, panel));
    else if (k->places)
        run_spread(run, tile, k->places + (index - k->tile0) * p->size.rows, k->c + column,
                   tile_row(p, index + 1) - tile_row(p, index), (int)gemm_panel_vectors(p, panel));
    else
        run(tile);
}

static void run_panel(struct chunk *k, const struct pass *pass, int64_t panel)
{
    const struct gemm_plan *p = k->plan;
    const float *operands[GEMM_STEP_MAX];
    enum gemm_math math = p->size.math;
    bool copy = p->size.copy;
    const float *zeros = copy ? NULL : k->call->zeros;
    int vectors = (int)gemm_panel_vectors(p, panel);
    gemm_tile_fn *thick = p->rows_rest ? gemm_tile_for(math, (int)p->rows_even + 1, vectors) : NULL;
    gemm_tile_fn *thin = p->rows_even ? gemm_tile_for(math, (int)p->rows_even, vectors) : NULL;
    int64_t step = (copy ? 1 : p->size.taps) * p->size.rows;
    const float *const *rows = copy ? k->copied : k->rows + pass->tap * p->size.rows;
    struct gemm_tile tile = top_tile(k, pass, panel);
    struct ahead ahead = ahead_of(k, pass, panel);
    tile.operands = operands;
    if (tile.post)
        move_operands(k, tile.post, tile_row(p, k->tile0), panel * p->size.vectors * VL, operands);
    for (int64_t index = k->tile0; index < k->tile1; index++, rows += step) {
        bool is_thick = index < p->rows_rest;
        int64_t count = p->rows_even + is_thick;
        tile.rows = rows;
        tile.ahead = take_ahead(&ahead, rows, index + 1 < k->tile1 ? rows + step : NULL,
                                count * pass->taps * pass->k);
        struct gemm_tile less;
        if (zeros)
            less = without_padding(&tile, count, vectors, zeros);
        run_tile(k, is_thick ? thick : thin, zeros ? &less : &tile, index, panel);
        move_down(&tile, count, p->size.narrow);
        for (int s = 0; tile.post && s < tile.post->count; s++)
            operands[s] =
                gemm_operand_at(&tile.post->steps[s], operands[s], count * tile.post->steps[s].row);
    }
}

static void run_pass(struct chunk *k, const struct pass *pass)
{
    if (k->plan->size.copy)
        copy_rows(k, pass);
    for (int64_t panel = k->panel0; panel < k->panel1; panel++)
        run_panel(k, pass, panel);
}

static void run_chunk(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct gemm_size *s = &job->plan->size;
    struct chunk k;
    locate_chunk(job, task, thread, &k);
    locate_batch(&k);
    point_rows(&k);
    for (int64_t tap = 0; tap < s->taps; tap += job->plan->taps_block) {
        for (int64_t first = 0; first < s->k; first += job->plan->k_block) {
            struct pass pass = {tap, job->plan->taps_block, first, job->plan->k_block};
            if (pass.taps > s->taps - tap)
                pass.taps = s->taps - tap;
            if (pass.k > s->k - first)
                pass.k = s->k - first;
            run_pass(&k, &pass);
        }
    }
    if (k.stream)
        simd_fence();
}

/* Whether all rows of C start on a vector's boundary and no second pass will read them. */
static bool can_stream(const struct gemm_plan *plan, const struct gemm_call *call)
{
    if (!plan->size.stream || plan->size.narrow || (uintptr_t)call->c % (VL * sizeof(float)) ||
        call->c_row % VL)
        return false;
    for (int d = 0; d < call->batch_rank; d++)
        if (call->c_batch[d] % VL)
            return false;
    return !call->post || call->post->light == call->post->count;
}

void gemm_run(const struct gemm_plan *plan, const struct gemm_call *call, struct pool *pool)
{
    const struct gemm_size *s = &plan->size;
    struct job job = {.plan = plan, .call = call, .rows_first = s->n > s->m};
    job.stream = can_stream(plan, call);
    pool_run(pool, s->batch * plan->chunk_rows * plan->chunk_columns, run_chunk, &job);
}
