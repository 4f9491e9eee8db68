/* SPDX-License-Identifier: Apache-2.0
 *
 * RotaryEmbedding on plain memory: a row is one head of one token, read and written once. Caches
 * may be f32 where x is bf16. Pairs that lie side by side are taken apart in registers; of bf16
 * they are widened into a few vectors on the stack first. A position outside the caches gives zeros
 * in the place of what is turned; the reference reports it as an error. */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/plain_floats.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/simd_pairs.h"
#include "engine/kernels/lib/tiles.h"
#include "engine/ops/lib/rotary.h"

enum { TILE_ELEMENTS = 8 << 10 };

enum { X, COSINES, SINES, POSITIONS };

struct job;
typedef void rows_fn(const struct job *job, int64_t first, int64_t end);

struct kernel_state {
    struct rotary r;
    int64_t rows, tile;
    int64_t cache_rows, cache_width;
    int64_t pitch;    /* elements from run to run of the result */
    bool interleaved; /* pairs lie side by side */
    bool given, wide; /* positions, of 64 bits */
    bool bf16_x, bf16_cache;
    rows_fn *work;
};

struct job {
    const struct kernel_state *state;
    const void *x, *cosines, *sines, *positions;
    void *y;
};

/* ---- one row ---- */

/* By one vector, of which m is real. first and second: the elements of the pairs. */
SIMD_INLINE void turn(vf *first, vf *second, vf cosine, vf sine)
{
    vf x = *first;
    *first = vf_sub(vf_mul(cosine, x), vf_mul(sine, *second));
    *second = vf_fma(sine, x, vf_mul(cosine, *second));
}

SIMD_INLINE void turn_halves(const void *x, const void *cosines, const void *sines, void *y,
                             int64_t half, bool bf16_x, bool bf16_cache)
{
    int64_t i = 0;
    for (; i + VL <= half; i += VL) {
        vf a = vf_read(x, i, bf16_x), b = vf_read(x, half + i, bf16_x);
        turn(&a, &b, vf_read(cosines, i, bf16_cache), vf_read(sines, i, bf16_cache));
        vf_write(y, i, a, bf16_x);
        vf_write(y, half + i, b, bf16_x);
    }
    if (i < half) {
        vm m = vm_first(half - i);
        vf a = vf_read_m(x, i, m, bf16_x), b = vf_read_m(x, half + i, m, bf16_x);
        turn(&a, &b, vf_read_m(cosines, i, m, bf16_cache), vf_read_m(sines, i, m, bf16_cache));
        vf_write_m(y, i, m, a, bf16_x);
        vf_write_m(y, half + i, m, b, bf16_x);
    }
}

/* VL pairs that lie side by side, or the first n of them. */
SIMD_INLINE void turn_pairs(const void *x, const void *cosines, const void *sines, void *y,
                            int64_t n, bool bf16_x, bool bf16_cache)
{
    float pairs[2 * VL];
    vf a, b;
    vm m = vm_first(n), low = vm_first(2 * n), high = vm_first(2 * n - VL);
    if (VL > 1) {
        vf_store(pairs, vf_read_m(x, 0, low, bf16_x));
        vf_store(pairs + VL, n * 2 > VL ? vf_read_m(x, VL, high, bf16_x) : vf_zero());
    } else {
        pairs[0] = float_read(x, 0, bf16_x);
        pairs[1] = float_read(x, 1, bf16_x);
    }
    vf_split(pairs, &a, &b);
    turn(&a, &b, vf_read_m(cosines, 0, m, bf16_cache), vf_read_m(sines, 0, m, bf16_cache));
    vf_merge(pairs, a, b);
    vf_write_m(y, 0, low, vf_load(pairs), bf16_x);
    if (2 * n > VL)
        vf_write_m(y, VL, high, vf_load(pairs + VL), bf16_x);
}

SIMD_INLINE void turn_interleaved(const void *x, const void *cosines, const void *sines, void *y,
                                  int64_t half, bool bf16_x, bool bf16_cache)
{
    for (int64_t i = 0; i < half; i += VL)
        turn_pairs(float_at(x, 2 * i, bf16_x), float_at(cosines, i, bf16_cache),
                   float_at(sines, i, bf16_cache), out_at(y, 2 * i, bf16_x), smaller(half - i, VL),
                   bf16_x, bf16_cache);
}

/* ---- rows ---- */

/* The caches' row; NONE: there is none. */
static int64_t angles_of(const struct job *job, int64_t token)
{
    const struct kernel_state *s = job->state;
    if (!s->given)
        return token;
    int64_t at = s->wide ? ((const int64_t *)job->positions)[token]
                         : ((const int32_t *)job->positions)[token];
    return at >= 0 && at < s->cache_rows ? at : NONE;
}

SIMD_INLINE void turn_rows(const struct job *given, int64_t first, int64_t end, bool interleaved,
                           bool bf16_x, bool bf16_cache)
{
    const struct job job = *given;
    const struct kernel_state s = *job.state;
    int64_t half = s.r.half, size = bf16_x ? 2 : 4;
    for (int64_t row = first; row < end; row++) {
        int64_t at = angles_of(&job, rotary_token(&s.r, row));
        int64_t run = s.r.tokens_inside ? row : row / s.r.heads;
        int64_t to = run * s.pitch + (s.r.tokens_inside ? 0 : row % s.r.heads * s.r.size);
        const void *x = float_at(job.x, row * s.r.size, bf16_x);
        void *y = out_at(job.y, to, bf16_x);
        const void *cosines = float_at(job.cosines, larger(at, 0) * s.cache_width, bf16_cache);
        const void *sines = float_at(job.sines, larger(at, 0) * s.cache_width, bf16_cache);
        if (at == NONE)
            memset(y, 0, (size_t)(2 * half * size));
        else if (interleaved)
            turn_interleaved(x, cosines, sines, y, half, bf16_x, bf16_cache);
        else
            turn_halves(x, cosines, sines, y, half, bf16_x, bf16_cache);
        if (2 * half < s.r.size)
            copy_run(out_at(y, 2 * half, bf16_x), float_at(x, 2 * half, bf16_x),
                     (s.r.size - 2 * half) * size);
    }
}

#define ROWS(name, interleaved, bf16_x, bf16_cache)                                                \
    static void name(const struct job *job, int64_t first, int64_t end)                            \
    {                                                                                              \
        turn_rows(job, first, end, interleaved, bf16_x, bf16_cache);                               \
    }
ROWS(halves, false, false, false)
ROWS(halves_bf16, false, true, false)
ROWS(halves_all_bf16, false, true, true)
ROWS(pairs, true, false, false)
ROWS(pairs_bf16, true, true, false)
ROWS(pairs_all_bf16, true, true, true)

/* ---- hooks ---- */

static enum status check_types(const struct kernel_query *q, struct kernel_state *s,
                               struct error *why)
{
    enum dtype x = q->in[X].dtype, cache = q->in[COSINES].dtype;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if ((x != DTYPE_F32 && x != DTYPE_BF16) || q->out[0].dtype != x)
        return UNSUPPORTED(why, "x of type %s", dtype_name(x));
    if ((cache != DTYPE_F32 && cache != x) || q->in[SINES].dtype != cache)
        return UNSUPPORTED(why, "caches of type %s", dtype_name(cache));
    if (!descs_are_plain(q->in, q->in_count))
        return UNSUPPORTED(why, "an input is not plain");
    s->bf16_x = x == DTYPE_BF16;
    s->bf16_cache = cache == DTYPE_BF16;
    s->given = query_in(q, POSITIONS) != NULL;
    s->wide = s->given && q->in[POSITIONS].dtype == DTYPE_I64;
    if (s->given && !s->wide && q->in[POSITIONS].dtype != DTYPE_I32)
        return UNSUPPORTED(why, "positions of type %s", dtype_name(q->in[POSITIONS].dtype));
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    static rows_fn *const work[2][3] = {{halves, halves_bf16, halves_all_bf16},
                                        {pairs, pairs_bf16, pairs_all_bf16}};
    (void)variant;
    TRY(check_types(q, s, why));
    TRY(row_pitch(&q->out[0], 1, &s->pitch, why));
    s->r = rotary_of(&q->in[X].shape, node_int(q->node, "num_heads", 0),
                     node_int(q->node, "rotary_embedding_dim", 0));
    s->rows = s->r.batches * s->r.heads * s->r.tokens;
    s->cache_rows = q->in[COSINES].shape.dim[0];
    s->cache_width = q->in[COSINES].shape.dim[q->in[COSINES].shape.rank - 1];
    s->interleaved = node_int(q->node, "interleaved", 0) != 0;
    s->work = work[s->interleaved][s->bf16_x + s->bf16_cache];
    s->tile = rows_of_tile(s->rows, s->r.size, TILE_ELEMENTS, q->threads);
    return STATUS_OK;
}

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    (void)thread;
    s->work(job, tile * s->tile, smaller((tile + 1) * s->tile, s->rows));
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s,
                      args->in[X],
                      args->in[COSINES],
                      args->in[SINES],
                      s->given ? args->in[POSITIONS] : NULL,
                      args->out[0]};
    pool_run(args->pool, divide_up(s->rows, s->tile), run_tile, &job);
}

REGISTER_KERNEL(rotary_rows) = {
    NATIVE(rotary_rows),
    .ops = OPS("RotaryEmbedding"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
