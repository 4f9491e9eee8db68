/* SPDX-License-Identifier: Apache-2.0
 *
 * 3x3 convolution of stride 1, also a transposed one, by Winograd's F(4x4) and F(2x2)
 * (engine/kernels/lib/winograd.h): a quarter, or 1 / 2.25, of the multiplications. Tiles are taken
 * in blocks; for each block the input is transformed, `points` matrix products [tiles x C] [C x M]
 * run through the common micro-kernels, and the result is transformed back through the epilogue.
 *
 * Two ways to spread the work: "own", where a thread carries a block through all three steps in its
 * second cache and streams the transformed weights, and "shared", where all threads do one step of
 * a larger block together, so that the weights are read once per block. The first wins where there
 * are many tiles and few channels, the second at 14x14x256 and beyond, or with many threads.
 *
 * What is bf16 in memory is f32 from the input's transform to the end of the epilogue: a quarter of
 * the multiplications in f32 is as good as all of them as dot products of bf16. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers/integers.h"
#include "engine/kernels/lib/conv_shape.h"
#include "engine/kernels/lib/simd_square.h"
#include "engine/kernels/lib/winograd.h"

enum { TASKS_PER_THREAD = 6 };

struct kernel_state {
    struct conv_shape shape;
    struct gemm_post post;
    struct gemm_plan plan[2]; /* of a whole block, of the last one */
    int out, points;          /* of a tile */
    int64_t tiles_y, tiles_x, tiles, block, blocks;
    bool shared, large; /* large: the result is written past the caches if it is aligned */
    int64_t v_row, v_step, m_row, m_step; /* floats between tiles and between points */
    int64_t packed_step;
    int threads;
    size_t block_bytes;           /* V and M of one block */
    bool bf16;                    /* x, weights, operands and y are; else f32 */
    bool changing;                /* weights come with each launch */
    float *packed, *bias, *zeros; /* packed NULL: in the workspace */
};

struct tuning {
    int out, vectors, rows;
    bool shared;
    int64_t block_kib; /* V and M of a block */
};

/* Best guesses first. */
#if defined(__AVX512F__)
static const struct tuning tunings[] = {
    {4, 4, 6, false, 640},  {4, 2, 12, false, 640}, {4, 4, 6, true, 4096}, {4, 2, 12, true, 4096},
    {4, 3, 8, false, 1280}, {2, 4, 6, false, 640},  {2, 4, 6, true, 4096}, {2, 2, 12, true, 4096},
};
#elif defined(__AVX2__)
static const struct tuning tunings[] = {
    {4, 2, 6, false, 640}, {4, 2, 6, true, 4096}, {4, 3, 4, false, 1280},
    {2, 2, 6, false, 640}, {2, 2, 6, true, 4096},
};
#else
static const struct tuning tunings[] = {{4, 4, 4, false, 640}, {2, 4, 4, false, 640}};
#endif

/* ---- sizes ---- */

static struct gemm_plan plan_of(const struct kernel_state *state, const struct tuning *t,
                                int64_t tiles, int threads)
{
    struct gemm_size size = {.batch = state->points,
                             .m = tiles,
                             .n = state->shape.out_channels,
                             .taps = 1,
                             .k = state->shape.channels,
                             .vectors = t->vectors,
                             .rows = t->rows,
                             .block_k = 512,
                             .threads = t->shared ? threads : 1};
    return gemm_plan_for(&size);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    const struct tuning *t = &tunings[variant];
    s->bf16 = q->in[0].dtype == DTYPE_BF16;
    TRY(conv_shape_from(q, s->bf16 ? CONV_BF16 : CONV_PLAIN, &s->shape, why));
    TRY(winograd_fits(&s->shape.window, s->shape.channels, s->shape.out_channels, why));
    s->out = t->out;
    s->shared = t->shared;
    s->threads = q->threads;
    s->post = s->shape.post;
    s->points = (t->out + 2) * (t->out + 2);
    s->tiles_y = divide_up(s->shape.window.out[1], t->out);
    s->tiles_x = divide_up(s->shape.window.out[2], t->out);
    s->tiles = s->shape.images * s->tiles_y * s->tiles_x;
    s->v_row = winograd_row(s->shape.channels);
    s->m_row = winograd_row(s->shape.out_channels);
    int64_t tile_bytes = s->points * (s->v_row + s->m_row) * (int64_t)sizeof(float);
    int64_t fit = t->block_kib * 1024 / tile_bytes;
    fit = larger(fit, t->rows);
    /* Every thread shall have a block, as long as a block fills a tile of the micro-kernel. */
    int64_t blocks = divide_up(s->tiles, fit);
    if (!t->shared)
        blocks = divide_up(blocks, q->threads) * q->threads;
    s->block = divide_up(s->tiles, blocks);
    if (s->block < t->rows)
        s->block = t->rows < s->tiles ? t->rows : s->tiles;
    s->blocks = divide_up(s->tiles, s->block);
    s->plan[0] = plan_of(s, t, s->block, q->threads);
    s->plan[1] = plan_of(s, t, s->tiles - (s->blocks - 1) * s->block, q->threads);
    s->v_step = s->block * s->v_row;
    s->m_step = s->block * s->m_row;
    s->block_bytes = (size_t)(s->points * (s->v_step + s->m_step)) * sizeof(float);
    s->large = !s->bf16 && desc_bytes(&q->out[0]) >= GEMM_STREAM_BYTES &&
               s->shape.out_channels % VL == 0 && s->shape.y_pixel % VL == 0 &&
               s->shape.y_image % VL == 0 && s->post.light == s->post.count;
    s->packed_step = gemm_packed_floats(&s->plan[0]);
    s->changing = !q->fixed[1];
    return STATUS_OK;
}

static size_t gemm_bytes(const struct kernel_state *s)
{
    size_t whole = gemm_workspace(&s->plan[0]), last = gemm_workspace(&s->plan[1]);
    return whole > last ? whole : last;
}

static size_t task_bytes(const struct kernel_state *s)
{
    return s->block_bytes + gemm_bytes(s);
}

/* ---- hooks of preparation ---- */

static int variants(const struct kernel_state *s)
{
    (void)s;
    return ARRAY_COUNT(tunings);
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    const struct gemm_size *g = &s->plan[0].size;
    snprintf(text, size, "F%d %dx%d %s %lldx%lld", s->out, g->rows, g->vectors * VL,
             s->shared ? "shared" : "own", (long long)s->blocks, (long long)s->block);
}

static size_t weight_bytes(const struct kernel_state *s)
{
    return (size_t)(s->packed_step * s->points) * sizeof(float);
}

/* Of all threads, less weights that change, which lie after it. */
static size_t block_workspace(const struct kernel_state *s)
{
    return task_bytes(s) * (s->shared ? 1 : (size_t)s->threads);
}

static size_t workspace(const struct kernel_state *s)
{
    return block_workspace(s) + (s->changing ? weight_bytes(s) : 0);
}

static float *panels(const struct kernel_state *s, const struct kernel_args *args)
{
    return s->packed ? s->packed : (float *)(void *)((char *)args->workspace + block_workspace(s));
}

static void release(struct kernel_state *state)
{
    memory_free(state->packed);
    memory_free(state->bias);
    memory_free(state->zeros);
}

struct packing {
    const struct kernel_state *state;
    const void *weights;
    float *packed;
};

SIMD_INLINE void gather_taps(const struct conv_shape *s, const void *from, bool bf16, int64_t count,
                             float *to)
{
    for (int t = 0; t < WINOGRAD_TAPS; t++)
        for (int64_t lane = 0; lane < VL; lane++)
            to[t * VL + lane] =
                lane < count ? float_read(from, lane * s->w_out + s->w_first + t * s->w_tap, bf16)
                             : 0.0f;
}

/* Taps of up to VL output channels from m on, of input channel c: to[tap * VL + lane]. */
static void load_taps(const struct conv_shape *s, const void *weights, bool bf16, int64_t m,
                      int64_t c, float *to)
{
    const float *from = float_at(weights, m * s->w_out + c * s->w_in, bf16);
    int64_t count = s->out_channels - m < VL ? s->out_channels - m : VL;
    bool backwards = s->w_tap == -1;
    if (bf16) {
        gather_taps(s, from, true, count, to);
    } else if (s->w_tap == 1 || backwards) {
        float *rows[WINOGRAD_TAPS];
        for (int t = 0; t < WINOGRAD_TAPS; t++)
            rows[t] = to + (backwards ? WINOGRAD_TAPS - 1 - t : t) * VL;
        for (int64_t t = 0; t < WINOGRAD_TAPS; t += VL)
            turn_columns(from + t, s->w_out, rows + t,
                         WINOGRAD_TAPS - t < VL ? WINOGRAD_TAPS - t : VL, count);
    } else {
        gather_taps(s, from, false, count, to);
    }
}

/* Of one panel: every point of it has its own matrix. */
static void pack_panel(void *context, int64_t panel, int thread)
{
    const struct packing *p = context;
    const struct kernel_state *state = p->state;
    const struct gemm_plan *plan = &state->plan[0];
    int64_t vectors = gemm_panel_vectors(plan, panel), first = panel * plan->size.vectors * VL;
    float *to = p->packed + first * plan->size.k;
    (void)thread;
    for (int64_t c = 0; c < plan->size.k; c++)
        for (int64_t v = 0; v < vectors; v++, to += VL) {
            float taps[WINOGRAD_TAPS * VL];
            load_taps(&state->shape, p->weights, state->bf16, first + v * VL, c, taps);
            winograd_weights(state->out, taps, to, state->packed_step);
        }
}

static void pack(struct kernel_state *state, const struct kernel_args *args)
{
    struct packing packing = {state, args->in[1], panels(state, args)};
    pool_run(args->pool, state->plan[0].panels, pack_panel, &packing);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    size_t weights = state->changing ? 0 : weight_bytes(state);
    size_t bias_bytes = (size_t)winograd_row(state->shape.out_channels) * sizeof(float);
    size_t zero_bytes = (size_t)winograd_row(state->shape.channels) * sizeof(float);
    state->packed = weights ? memory_alloc(weights) : NULL;
    state->bias = memory_alloc(bias_bytes);
    state->zeros = memory_alloc(zero_bytes);
    if ((weights && !state->packed) || !state->bias || !state->zeros)
        return FAIL_NO_MEMORY(err);
    memset(state->zeros, 0, zero_bytes);
    memset(state->bias, 0, bias_bytes);
    gemm_post_take_bias(q, &state->post, state->bias, state->shape.out_channels);
    *packed_bytes = weights + bias_bytes + zero_bytes;
    return STATUS_OK;
}

/* ---- one block ---- */

struct block {
    const struct kernel_state *state;
    const struct kernel_args *args;
    int64_t first, count; /* tiles */
    int64_t group;        /* tiles per task */
    float *v, *m;
    void *gemm; /* workspace of the products */
    bool stream;
};

struct place {
    int64_t image, y, x; /* first output pixel of a tile */
};

static struct place place_of(const struct kernel_state *s, int64_t tile)
{
    struct place p = {.x = tile % s->tiles_x * s->out};
    tile /= s->tiles_x;
    p.y = tile % s->tiles_y * s->out;
    p.image = tile / s->tiles_y;
    return p;
}

static void input_tile(const struct block *b, int64_t index)
{
    const struct kernel_state *s = b->state;
    const struct window *w = &s->shape.window;
    struct place p = place_of(s, b->first + index);
    struct winograd_image image = {
        .first = float_at(b->args->in[0], p.image * s->shape.x_image, s->bf16),
        .rows = w->in[1],
        .columns = w->in[2],
        .row = s->shape.x_at[1],
        .pixel = s->shape.x_at[2],
        .zeros = s->zeros,
        .bf16 = s->bf16,
    };
    const float *pixels[WINOGRAD_POINTS_MAX];
    winograd_pixels(&image, p.y - w->pad_begin[1], p.x - w->pad_begin[2], s->out + 2, pixels);
    float *v = b->v + index * s->v_row;
    if (s->bf16)
        winograd_input_bf16(s->out, pixels, s->shape.channels, v, s->v_step);
    else
        winograd_input(s->out, pixels, s->shape.channels, v, s->v_step);
}

static void output_tile(const struct block *b, int64_t index)
{
    const struct kernel_state *s = b->state;
    const struct conv_shape *shape = &s->shape;
    const struct window *w = &shape->window;
    struct place p = place_of(s, b->first + index);
    const float *operands[GEMM_STEP_MAX] = {0};
    int64_t operand_row[GEMM_STEP_MAX] = {0}, pixel = p.y * w->out[2] + p.x;
    for (int k = 0; k < s->post.count; k++) {
        const struct gemm_step *step = &s->post.steps[k];
        operand_row[k] = step->row * w->out[2];
        if (step->input < 0)
            continue;
        int64_t image = shape->folded ? step->row * shape->pixels : step->batch[0];
        operands[k] =
            gemm_operand_at(step, b->args->in[step->input], p.image * image + pixel * step->row);
    }
    int64_t rows = w->out[1] - p.y, columns = w->out[2] - p.x;
    int64_t first = p.image * shape->y_image + pixel * shape->y_pixel;
    struct winograd_tile tile = {.m = b->m + index * s->m_row,
                                 .step = s->m_step,
                                 .channels = shape->out_channels,
                                 .bias = s->bias,
                                 .y = (char *)b->args->out[0] + first * (s->bf16 ? 2 : 4),
                                 .y_row = w->out[2] * shape->y_pixel,
                                 .y_pixel = shape->y_pixel,
                                 .rows = rows < s->out ? (int)rows : s->out,
                                 .columns = columns < s->out ? (int)columns : s->out,
                                 .post = &s->post,
                                 .operands = operands,
                                 .operand_row = operand_row,
                                 .bf16 = s->bf16,
                                 .stream = b->stream};
    winograd_output(s->out, &tile);
}

static void input_group(void *context, int64_t task, int thread)
{
    const struct block *b = context;
    int64_t end = (task + 1) * b->group;
    (void)thread;
    for (int64_t k = task * b->group; k < end && k < b->count; k++)
        input_tile(b, k);
}

static void output_group(void *context, int64_t task, int thread)
{
    const struct block *b = context;
    int64_t end = (task + 1) * b->group;
    (void)thread;
    for (int64_t k = task * b->group; k < end && k < b->count; k++)
        output_tile(b, k);
    if (b->stream)
        simd_fence();
}

static void point_rows(const struct gemm_rows *rows, const float **to, int64_t step)
{
    const struct block *b = rows->source;
    const float *v = b->v + rows->batch * b->state->v_step + rows->row * b->state->v_row;
    (void)step;
    for (int64_t k = 0; k < rows->count; k++)
        to[k] = v + k * b->state->v_row;
}

static void multiply(const struct block *b, struct pool *pool)
{
    const struct kernel_state *s = b->state;
    const struct gemm_plan *plan = &s->plan[b->count != s->block];
    int64_t points = s->points;
    struct gemm_call call = {.rows = point_rows,
                             .source = b,
                             .b = panels(s, b->args),
                             .b_batch = s->packed_step,
                             .c = b->m,
                             .c_row = s->m_row,
                             .batch_rank = 1,
                             .batch_dim = &points,
                             .c_batch = &s->m_step,
                             .workspace = b->gemm};
    gemm_run(plan, &call, pool);
}

static struct block block_at(const struct kernel_state *s, const struct kernel_args *args,
                             int64_t index, void *memory)
{
    struct block b = {.state = s, .args = args, .first = index * s->block, .v = memory};
    b.count = s->tiles - b.first < s->block ? s->tiles - b.first : s->block;
    b.m = b.v + s->points * s->v_step;
    b.gemm = (char *)memory + s->block_bytes;
    b.stream = s->large && (uintptr_t)args->out[0] % (VL * sizeof(float)) == 0;
    return b;
}

struct job {
    const struct kernel_state *state;
    const struct kernel_args *args;
};

static void own_block(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    size_t bytes = task_bytes(job->state);
    struct block b = block_at(job->state, job->args, task,
                              (char *)job->args->workspace + (size_t)thread * bytes);
    b.group = b.count;
    input_group(&b, 0, thread);
    multiply(&b, NULL);
    output_group(&b, 0, thread);
}

static void shared_block(const struct kernel_state *s, const struct kernel_args *args,
                         int64_t index)
{
    struct block b = block_at(s, args, index, args->workspace);
    int threads = pool_threads(args->pool);
    b.group = divide_up(b.count, (int64_t)threads * TASKS_PER_THREAD);
    int64_t groups = divide_up(b.count, b.group);
    pool_run(args->pool, groups, input_group, &b);
    multiply(&b, args->pool);
    pool_run(args->pool, groups, output_group, &b);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    if (!state->shared) {
        struct job job = {state, args};
        pool_run(args->pool, state->blocks, own_block, &job);
        return;
    }
    for (int64_t index = 0; index < state->blocks; index++)
        shared_block(state, args, index);
}

REGISTER_KERNEL(conv_winograd) = {
    NATIVE(conv_winograd),
    .ops = OPS("Conv", "ConvTranspose"),
    .packs = 1u << 1,
    .rel_error = 2e-5,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .variants = variants,
    .describe = describe,
    .workspace = workspace,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .release = release,
};
