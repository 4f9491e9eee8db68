/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of the weights of a 3x3 convolution of stride 1 by Winograd's F(4x4) and F(2x2) turned
 * around (engine/kernels/lib/winograd.h): a quarter, or 1 / 2.25, of the multiplications. Tiles of
 * x and of dy are transformed in blocks; each point of a tile is then a sum of outer products over
 * the tiles, [M] x [C] (engine/kernels/lib/outer.h). These sums, cut into chunks of rows by a panel
 * of columns, are transformed into taps when all tiles have passed.
 *
 * Two ways to spread the work: "own", where a thread carries its part of the tiles through all
 * steps and the gradients of the parts are added at the end, and "shared", where all threads do one
 * step of a larger block together. How it is cut depends on the shape and the variant alone, so the
 * result is the same on any number of threads. */
#include <stdio.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/outer.h"
#include "engine/kernels/lib/simd_square.h"
#include "engine/kernels/lib/slices.h"
#include "engine/kernels/lib/winograd.h"
#include "engine/kernels/lib/workspace.h"
#include "engine/ops/lib/window.h"

enum {
    BLOCK_MIN = 12, /* tiles */
    PARTS = 8,
    PART_TILES = 48, /* at least */
    GROUP_TILES = 4, /* transformed by a task */
    CHUNK_ROWS = 64, /* at most */
};

struct kernel_state {
    struct window w; /* rank 3 */
    int64_t channels, out_channels;
    int out, points; /* of a tile */
    int64_t tiles_y, tiles_x, tiles;
    bool shared;
    int64_t parts, block, blocks; /* of the tiles; tiles of a block; blocks of a part at most */
    int64_t rows, row_chunks, vectors, column_chunks; /* of a chunk of sums, and how many */
    int64_t v_row, v_step, d_row, d_step, u_step;     /* floats between tiles, between points */
    int64_t zeros_floats, v_floats, d_floats, chunk_floats, u_floats, dw_floats;
    int threads;
};

struct tuning {
    int out;
    bool shared;
    int64_t block_kib; /* of both transformed factors of a block */
    int64_t tiles_max; /* of a block */
};

/* Best guesses first. */
static const struct tuning tunings[] = {
    {4, false, 512, 32},  {4, true, 16384, 128}, {4, true, 4096, 64},
    {4, false, 1024, 64}, {2, false, 512, 64},   {2, true, 4096, 128},
};

static enum status fits(const struct kernel_query *q, const struct window *w, struct error *why)
{
    if (!query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (q->node->post_count || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "no fused epilogue, and only plain weights");
    if (!desc_is_nhwc(&q->in[0]) || !desc_is_nhwc(&q->in[1]))
        return UNSUPPORTED(why, "images are not channels-last");
    if (shape_count(&q->in[0].shape) == 0 || shape_count(&q->in[1].shape) == 0)
        return UNSUPPORTED(why, "an empty tensor");
    return winograd_fits(w, q->in[0].shape.dim[1], q->in[1].shape.dim[1], why);
}

/* The tiles of a part, a block of them, and the chunks of the sums. */
static void cut(struct kernel_state *s, const struct tuning *t)
{
    s->parts = s->shared ? 1 : larger(1, smaller(PARTS, s->tiles / PART_TILES));
    int64_t part = divide_up(s->tiles, s->parts);
    int64_t tile_bytes = s->points * (s->v_row + s->d_row) * (int64_t)sizeof(float);
    int64_t fit = smaller(larger(t->block_kib * 1024 / tile_bytes, BLOCK_MIN), t->tiles_max);
    s->blocks = divide_up(part, fit);
    s->block = divide_up(part, s->blocks);
    s->row_chunks = divide_up(s->out_channels, CHUNK_ROWS);
    s->rows = divide_up(s->out_channels, s->row_chunks);
    int64_t vectors = divide_up(s->channels, VL);
    s->vectors = divide_up(vectors, divide_up(vectors, OUTER_VECTORS_MAX));
    s->column_chunks = divide_up(vectors, s->vectors);
}

/* Floats of everything in the workspace. */
static void measure(struct kernel_state *s)
{
    int64_t chunks = s->row_chunks * s->column_chunks, kept = s->shared ? s->threads : 1;
    s->zeros_floats = larger(winograd_row(s->channels), winograd_row(s->out_channels));
    s->v_step = s->block * s->v_row;
    s->d_step = s->block * s->d_row;
    s->u_step = s->rows * s->vectors * VL + WINOGRAD_LINE;
    s->v_floats = s->points * s->v_step;
    s->d_floats = s->points * s->d_step;
    s->chunk_floats = s->points * s->u_step;
    /* Where all tiles are in one block, sums are taps before the next chunk begins. */
    s->u_floats = s->chunk_floats * (s->blocks > 1 ? chunks : kept);
    s->dw_floats = s->out_channels * s->channels * WINOGRAD_TAPS;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    const struct tuning *t = &tunings[variant];
    struct window window;
    TRY(window_from_node(q->node, &q->in[0].shape, NULL, &window, why));
    s->w = window_to_3d(&window);
    TRY(fits(q, &s->w, why));
    s->channels = q->in[0].shape.dim[1];
    s->out_channels = q->in[1].shape.dim[1];
    s->out = t->out;
    s->points = (t->out + 2) * (t->out + 2);
    s->shared = t->shared;
    s->threads = q->threads;
    s->tiles_y = divide_up(s->w.out[1], t->out);
    s->tiles_x = divide_up(s->w.out[2], t->out);
    s->tiles = q->in[0].shape.dim[0] * s->tiles_y * s->tiles_x;
    s->v_row = winograd_row(s->channels);
    s->d_row = winograd_row(s->out_channels);
    cut(s, t);
    measure(s);
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    (void)s;
    return ARRAY_COUNT(tunings);
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    snprintf(text, size, "F%d %s %lldx%lldx%lld", s->out, s->shared ? "shared" : "own",
             (long long)s->parts, (long long)s->blocks, (long long)s->block);
}

/* What a launch has in its workspace. Scratch: of each thread, or one for all. */
struct job {
    const struct kernel_state *state;
    const float *x, *dy;
    float *dw, *slices, *zeros, *scratch;
};

static size_t take(const struct kernel_state *s, struct job *job, char *base)
{
    size_t at = 0;
    int64_t floats = s->v_floats + s->d_floats + s->u_floats;
    job->zeros = take_floats(base, &at, s->zeros_floats);
    job->scratch = take_floats(base, &at, floats * (s->shared ? 1 : s->threads));
    job->slices = take_floats(base, &at, s->parts > 1 ? s->parts * s->dw_floats : 0);
    return at;
}

static size_t workspace(const struct kernel_state *s)
{
    struct job job;
    return take(s, &job, NULL);
}

/* ---- a block of tiles ---- */

struct pass {
    const struct job *job;
    float *v, *d, *u;     /* transformed x and dy; sums */
    float *dw;            /* of the part */
    int64_t first, count; /* tiles */
    bool resume, last;    /* u has the sums of earlier blocks; no other follows */
};

static void transform_tile(const struct pass *p, int64_t index)
{
    const struct job *job = p->job;
    const struct kernel_state *s = job->state;
    const struct window *w = &s->w;
    int64_t tile = p->first + index, x = tile % s->tiles_x * s->out;
    int64_t y = tile / s->tiles_x % s->tiles_y * s->out, image = tile / s->tiles_x / s->tiles_y;
    struct winograd_image from = {.first = job->x + image * w->in[1] * w->in[2] * s->channels,
                                  .rows = w->in[1],
                                  .columns = w->in[2],
                                  .row = w->in[2] * s->channels,
                                  .pixel = s->channels,
                                  .zeros = job->zeros};
    const float *pixels[WINOGRAD_POINTS_MAX];
    winograd_pixels(&from, y - w->pad_begin[1], x - w->pad_begin[2], s->out + 2, pixels);
    winograd_input(s->out, pixels, s->channels, p->v + index * s->v_row, s->v_step);
    from.first = job->dy + image * w->out[1] * w->out[2] * s->out_channels;
    from.rows = w->out[1];
    from.columns = w->out[2];
    from.row = w->out[2] * s->out_channels;
    from.pixel = s->out_channels;
    winograd_pixels(&from, y, x, s->out, pixels);
    winograd_gradient(s->out, pixels, s->out_channels, p->d + index * s->d_row, s->d_step);
}

static void transform_group(void *context, int64_t group, int thread)
{
    (void)thread;
    const struct pass *p = context;
    int64_t end = smaller((group + 1) * GROUP_TILES, p->count);
    for (int64_t k = group * GROUP_TILES; k < end; k++)
        transform_tile(p, k);
}

struct chunk {
    int64_t row, rows, column, vectors;
};

/* Sums of one point. Meanwhile the factors of the next one are prefetched, a line of each tile
 * with every tile of rows. */
static void multiply_point(const struct pass *p, const struct chunk *c, int64_t point, float *u)
{
    const struct kernel_state *s = p->job->state;
    const float *v = p->v + point * s->v_step + c->column;
    const float *d = p->d + point * s->d_step + c->row;
    int64_t tiles = divide_up(c->rows, OUTER_ROWS_MAX);
    bool more = point + 1 < s->points;
    struct outer tile = {.a_step = s->d_row,
                         .b = v,
                         .b_step = s->v_row,
                         .k = p->count,
                         .c_row = s->vectors * VL,
                         .resume = p->resume};
    for (int64_t k = 0; k < tiles; k++) {
        int64_t row = c->rows * k / tiles, end = c->rows * (k + 1) / tiles;
        bool ahead_a = more && k * WINOGRAD_LINE < c->rows;
        bool ahead_b = more && k * WINOGRAD_LINE < c->vectors * VL;
        tile.a = d + row;
        tile.c = u + row * tile.c_row;
        tile.ahead_a = ahead_a ? d + s->d_step + k * WINOGRAD_LINE : d;
        tile.ahead_b = ahead_b ? v + s->v_step + k * WINOGRAD_LINE : v;
        tile.ahead_a_step = ahead_a ? s->d_row : 0;
        tile.ahead_b_step = ahead_b ? s->v_row : 0;
        outer_run(&tile, (int)(end - row), (int)c->vectors);
    }
}

/* taps[tap * VL + lane] of `channels` input channels to [channel][tap]. */
static void store_taps(const float *taps, int64_t channels, float *to)
{
    for (int64_t first = 0; first < WINOGRAD_TAPS; first += VL) {
        int64_t count = smaller(WINOGRAD_TAPS - first, VL);
        vf r[VL];
        for (int64_t k = 0; k < VL; k++)
            r[k] = k < count ? vf_load(taps + (first + k) * VL) : vf_zero();
        transpose_square(r);
        for (int64_t k = 0; k < VL && k < channels; k++)
            vf_store_m(to + k * WINOGRAD_TAPS + first, vm_first(count), r[k]);
    }
}

static void write_chunk(const struct pass *p, const struct chunk *c, const float *u)
{
    const struct kernel_state *s = p->job->state;
    for (int64_t m = 0; m < c->rows; m++)
        for (int64_t k = 0; k < c->vectors; k++) {
            float taps[WINOGRAD_TAPS * VL];
            int64_t channel = c->column + k * VL;
            winograd_taps(s->out, u + (m * s->vectors + k) * VL, s->u_step, taps);
            store_taps(taps, smaller(s->channels - channel, VL),
                       p->dw + ((c->row + m) * s->channels + channel) * WINOGRAD_TAPS);
        }
}

static void multiply_chunk(void *context, int64_t index, int thread)
{
    const struct pass *p = context;
    const struct kernel_state *s = p->job->state;
    int64_t row_chunk = index / s->column_chunks, column_chunk = index % s->column_chunks;
    struct chunk c = {.row = row_chunk * s->rows, .column = column_chunk * s->vectors * VL};
    c.rows = smaller(s->rows, s->out_channels - c.row);
    c.vectors = smaller(s->vectors, divide_up(s->channels - c.column, VL));
    float *u = p->u + (s->blocks > 1 ? index : thread) * s->chunk_floats;
    for (int64_t point = 0; point < s->points; point++)
        multiply_point(p, &c, point, u + point * s->u_step);
    if (p->last)
        write_chunk(p, &c, u);
}

/* ---- parts ---- */

/* All blocks of a part. pool NULL: by the calling thread alone. */
static void run_blocks(const struct job *job, int64_t part, float *scratch, struct pool *pool)
{
    const struct kernel_state *s = job->state;
    int64_t end = s->tiles * (part + 1) / s->parts;
    struct pass p = {.job = job,
                     .v = scratch,
                     .d = scratch + s->v_floats,
                     .u = scratch + s->v_floats + s->d_floats,
                     .dw = s->parts > 1 ? job->slices + part * s->dw_floats : job->dw,
                     .first = s->tiles * part / s->parts};
    for (; p.first < end; p.first += p.count, p.resume = true) {
        p.count = smaller(s->block, end - p.first);
        p.last = p.first + p.count == end;
        pool_run(pool, divide_up(p.count, GROUP_TILES), transform_group, &p);
        pool_run(pool, s->row_chunks * s->column_chunks, multiply_chunk, &p);
    }
}

static void run_part(void *context, int64_t part, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t floats = s->v_floats + s->d_floats + s->u_floats;
    run_blocks(job, part, job->scratch + thread * floats, NULL);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.state = s, .x = args->in[0], .dy = args->in[1], .dw = args->out[0]};
    take(s, &job, args->workspace);
    memset(job.zeros, 0, (size_t)s->zeros_floats * sizeof(float));
    if (s->shared) {
        run_blocks(&job, 0, job.scratch, args->pool);
        return;
    }
    pool_run(args->pool, s->parts, run_part, &job);
    struct slices slices = {job.slices, s->parts, s->dw_floats, job.dw, s->dw_floats};
    if (s->parts > 1)
        slices_add(&slices, args->pool);
}

REGISTER_KERNEL(conv_weight_gradient_winograd) = {
    NATIVE(conv_weight_gradient_winograd),
    .ops = OPS("ConvWeightGradient"),
    .rel_error = 2e-5,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .variants = variants,
    .describe = describe,
    .workspace = workspace,
    .launch = launch,
};
