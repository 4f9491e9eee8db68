/* SPDX-License-Identifier: Apache-2.0
 *
 * GridSample of f32 images in plain memory, nearest and linear. Where a tile of places reads and by
 * which weights is computed once, in vectors, then used for all channels, CHANNELS at a time.
 * Places are computed with the reference's operations in f32, because they decide what is nearest.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_pairs.h"
#include "engine/ops/lib/grid_sampler.h"

enum { TILE_PLACES = 256, CHANNELS = 4, LONGEST = 1 << 22 };

struct kernel_state {
    struct grid_sampler s;
    int64_t images, channels, plane, places, tiles;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const struct shape *x = &q->in[0].shape;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (!desc_is_plain(&q->in[0]) || !desc_is_plain(&q->in[1]) || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "only plain memory");
    TRY(grid_sampler_of(q->node, x, &s->s, why));
    if (s->s.sampling == SAMPLING_CUBIC)
        return UNSUPPORTED(why, "cubic");
    s->images = x->dim[0];
    s->channels = x->dim[1];
    s->plane = x->dim[2] * x->dim[3];
    s->places = q->out[0].shape.dim[2] * q->out[0].shape.dim[3];
    s->tiles = divide_up(s->places, TILE_PLACES);
    if (x->dim[2] > LONGEST || x->dim[3] > LONGEST || s->plane > INT32_MAX || !s->plane)
        return UNSUPPORTED(why, "images of %lld elements", (long long)s->plane);
    return STATUS_OK;
}

/* ---- places ---- */

/* Of TILE_PLACES: two elements along one axis, NONE outside, and the weight of the second. */
struct picks {
    int32_t a[TILE_PLACES], b[TILE_PLACES];
    float t[TILE_PLACES];
};

/* Mirrored at low and high until it is between them; only what is outside. */
SIMD_INLINE vf reflect(vf at, float low, float high)
{
    vf zero = vf_zero(), bottom = vf_set1(low), top = vf_set1(high), range = vf_set1(high - low);
    vm under = vf_lt(at, bottom), above = vf_lt(top, at);
    if (high <= low)
        return vf_select(under, zero, vf_select(above, zero, at));
    vf over = vf_select(under, vf_sub(bottom, at), vf_sub(at, top));
    vf turns = vf_floor(vf_div(over, range)), rest = vf_fnma(turns, range, over);
    vf half = vf_mul(turns, vf_set1(0.5f));
    vm even = vf_eq(vf_floor(half), half);
    vf from_low = vf_add(bottom, rest), from_high = vf_sub(top, rest);
    vf below = vf_select(even, from_low, from_high), beyond = vf_select(even, from_high, from_low);
    return vf_select(under, below, vf_select(above, beyond, at));
}

/* From [-1, 1] to elements, brought inside as far as the padding does that. */
SIMD_INLINE vf place(const struct grid_sampler *s, vf n, int64_t size)
{
    vf one = vf_set1(1), half = vf_set1(0.5f), length = vf_set1((float)size);
    vf from_edge = vf_add(n, one), last = vf_sub(length, one);
    vf at = s->align ? vf_mul(vf_mul(from_edge, half), last)
                     : vf_mul(vf_sub(vf_mul(from_edge, length), one), half);
    float low = s->align ? 0 : -0.5f, high = (float)(size - 1) - low;
    if (s->sampling == SAMPLING_NEAREST)
        at = vf_round(at);
    if (s->padding == PADDING_REFLECTION)
        return reflect(at, low, high);
    if (s->padding == PADDING_BORDER) {
        at = vf_select(vf_lt(at, vf_set1(low)), vf_zero(), at);
        at = vf_select(vf_lt(vf_set1(high), at), last, at);
    }
    return at;
}

/* An element that may be one beside the image: NONE, or what lies there by the padding. */
SIMD_INLINE vi settle(const struct grid_sampler *s, vf at, int64_t size)
{
    vf zero = vf_zero(), last = vf_set1((float)(size - 1));
    if (s->padding == PADDING_ZEROS) {
        at = vf_select(vf_le(zero, at), at, vf_set1(NONE));
        return vi_from_vf(vf_select(vf_le(at, last), at, vf_set1(NONE)));
    }
    if (s->padding == PADDING_REFLECTION) {
        float edge = s->align ? 0 : 1; /* whether edges are repeated */
        at = vf_select(vf_lt(at, zero), vf_sub(vf_set1(-edge), at), at);
        vf mirrored = vf_sub(vf_set1(2 * (float)(size - 1) + edge), at);
        at = vf_select(vf_lt(last, at), mirrored, at);
    }
    return vi_from_vf(vf_min(vf_max(at, zero), last));
}

SIMD_INLINE void pick(const struct grid_sampler *s, vf n, int64_t size, struct picks *to, int64_t k)
{
    vf at = place(s, n, size), low = vf_floor(at), one = vf_set1(1);
    vf_store(to->t + k, vf_sub(at, low));
    /* Far outside is as good as just outside, and an integer. */
    low = vf_min(vf_max(low, vf_set1(-2)), vf_set1((float)(size + 1)));
    vi_store(to->a + k, settle(s, low, size));
    vi_store(to->b + k, settle(s, vf_add(low, one), size));
}

/* Elements of a plane and their weights; NONE: a zero. */
struct corners {
    int32_t at[4][TILE_PLACES];
    float weight[4][TILE_PLACES];
    bool any_outside;
};

static void corner(const struct picks *rows, const struct picks *columns, int64_t width,
                   int64_t count, int which, struct corners *c)
{
    const int32_t *row = which & 2 ? rows->b : rows->a;
    const int32_t *column = which & 1 ? columns->b : columns->a;
    int32_t *at = c->at[which], outside = 0, pitch = (int32_t)width;
    for (int64_t k = 0; k < count; k++) {
        bool none = row[k] < 0 || column[k] < 0;
        at[k] = none ? NONE : row[k] * pitch + column[k];
        outside |= at[k];
        c->weight[which][k] = (which & 2 ? rows->t[k] : 1 - rows->t[k]) *
                              (which & 1 ? columns->t[k] : 1 - columns->t[k]);
    }
    c->any_outside = c->any_outside || outside < 0;
}

static void find_corners(const struct grid_sampler *s, const float *grid, int64_t count,
                         struct corners *c)
{
    struct picks rows, columns;
    for (int64_t k = 0; k < count; k += VL) {
        float rest[2 * VL] = {0};
        const float *from = grid + 2 * k;
        vf x, y;
        if (count - k < VL) {
            memcpy(rest, from, (size_t)(count - k) * 2 * sizeof(float));
            from = rest;
        }
        vf_split(from, &x, &y);
        pick(s, x, s->width, &columns, k);
        pick(s, y, s->height, &rows, k);
    }
    c->any_outside = false;
    for (int which = 0; which < (s->sampling == SAMPLING_NEAREST ? 1 : 4); which++)
        corner(&rows, &columns, s->width, count, which, c);
}

/* ---- elements ---- */

/* Where an element of the first plane is, and how far it is to the same one of the next. */
struct source {
    const float *at;
    int64_t step;
};

SIMD_INLINE struct source source_of(const float *x, int64_t plane, int32_t at, bool any_outside)
{
    static const float zero;
    return any_outside && at < 0 ? (struct source){&zero, 0} : (struct source){x + at, plane};
}

struct planes {
    const float *x;
    float *y;
    int64_t plane, places; /* from one to the next, in and out */
    int64_t count;         /* places of the tile */
};

SIMD_INLINE void linear(const struct planes *p, const struct corners *c, int channels,
                        bool any_outside)
{
    for (int64_t k = 0; k < p->count; k++) {
        struct source a = source_of(p->x, p->plane, c->at[0][k], any_outside);
        struct source b = source_of(p->x, p->plane, c->at[1][k], any_outside);
        struct source d = source_of(p->x, p->plane, c->at[2][k], any_outside);
        struct source e = source_of(p->x, p->plane, c->at[3][k], any_outside);
        float wa = c->weight[0][k], wb = c->weight[1][k];
        float wd = c->weight[2][k], we = c->weight[3][k];
        for (int j = 0; j < channels; j++)
            p->y[j * p->places + k] = wa * a.at[j * a.step] + wb * b.at[j * b.step] +
                                      wd * d.at[j * d.step] + we * e.at[j * e.step];
    }
}

SIMD_INLINE void nearest(const struct planes *p, const struct corners *c, int channels)
{
    for (int64_t k = 0; k < p->count; k++) {
        struct source a = source_of(p->x, p->plane, c->at[0][k], true);
        for (int j = 0; j < channels; j++)
            p->y[j * p->places + k] = a.at[j * a.step];
    }
}

static void some_channels(const struct kernel_state *s, const struct planes *p,
                          const struct corners *c, int channels)
{
    if (s->s.sampling == SAMPLING_NEAREST && channels == CHANNELS)
        nearest(p, c, CHANNELS);
    else if (s->s.sampling == SAMPLING_NEAREST)
        nearest(p, c, channels);
    else if (channels < CHANNELS)
        linear(p, c, channels, true);
    else if (c->any_outside)
        linear(p, c, CHANNELS, true);
    else
        linear(p, c, CHANNELS, false);
}

struct job {
    const struct kernel_state *state;
    const float *x, *grid;
    float *y;
};

static void tile_work(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t n = tile / s->tiles, first = tile % s->tiles * TILE_PLACES;
    struct corners corners;
    struct planes p = {job->x + n * s->channels * s->plane,
                       job->y + n * s->channels * s->places + first, s->plane, s->places,
                       smaller(TILE_PLACES, s->places - first)};
    (void)thread;
    find_corners(&s->s, job->grid + (n * s->places + first) * 2, p.count, &corners);
    for (int64_t c = 0; c < s->channels; c += CHANNELS) {
        some_channels(s, &p, &corners, (int)smaller(CHANNELS, s->channels - c));
        p.x += CHANNELS * s->plane;
        p.y += CHANNELS * s->places;
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[0], args->in[1], args->out[0]};
    pool_run(args->pool, s->images * s->tiles, tile_work, &job);
}

REGISTER_KERNEL(grid_sample_places) = {
    NATIVE(grid_sample_places),
    .ops = OPS("GridSample"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
