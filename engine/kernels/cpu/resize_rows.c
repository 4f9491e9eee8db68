/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize and Upsample of f32 images along height and width, nearest and linear, one row of the
 * result at a time. Which elements and weights make an element is the operator's business
 * (engine/resize.h) and tabulated once. Channels-last: an element is a vector of channels. Plain:
 * two rows of the input are blended first, then elements are picked from the blend.
 */
#include <stdlib.h>

#include "engine/kernels/lib/copy_bytes.h"
#include "engine/resize.h"

enum { TILE_BYTES = 32 << 10 };

/* First and second element along one axis and the weight of the second. */
struct pick {
    int32_t a, b;
    float t;
};

struct kernel_state {
    bool linear, nhwc;
    int64_t planes; /* images; plain: images x channels */
    int64_t width;  /* floats of an element: channels, or 1 */
    int64_t in_h, in_w, out_h, out_w;
    int64_t rows_per_tile, tiles;
    const struct pick *y, *x;
    struct pick picks[]; /* y, then x */
};

static enum status check_axes(const struct resize *r, struct error *why)
{
    if (r->mode == RESIZE_CUBIC || r->coordinate == RESIZE_TF_CROP_AND_RESIZE)
        return UNSUPPORTED(why, "only nearest and linear, without extrapolation");
    if (r->rank != 3 && r->rank != 4)
        return UNSUPPORTED(why, "rank %d, not 3 or 4", r->rank);
    for (int k = 0; k < 2; k++)
        if (r->axes[k].in != r->axes[k].out || r->axes[k].scale != 1)
            return UNSUPPORTED(why, "axis %d is resized", k);
    for (int k = 2; k < r->rank; k++)
        if (r->axes[k].in > INT32_MAX || r->axes[k].out > INT32_MAX)
            return UNSUPPORTED(why, "axis %d is longer than 2^31", k);
    return STATUS_OK;
}

static bool is_nhwc(const struct kernel_query *q)
{
    return desc_is_nhwc(&q->in[0]) && desc_is_nhwc(&q->out[0]);
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct op_args args = args_of_query(q);
    struct resize r;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[0].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32");
    TRY(resize_of_node(&args, &r, why));
    TRY(check_axes(&r, why));
    if (!is_nhwc(q) && !(desc_is_plain(&q->in[0]) && desc_is_plain(&q->out[0])))
        return UNSUPPORTED(why, "input and output are neither both plain nor both channels-last");
    return STATUS_OK;
}

/* The blend of two rows, in plain memory only. */
static size_t row_floats(const struct kernel_state *s)
{
    return ((size_t)s->in_w + 63) / 16 * 16;
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    (void)variant;
    struct kernel_state s = {.in_w = q->in[0].shape.dim[q->in[0].shape.rank - 1]};
    return is_nhwc(q) ? 0 : row_floats(&s) * sizeof(float) * (size_t)q->threads;
}

static void tabulate(const struct resize *r, int axis, struct pick *picks)
{
    for (int64_t k = 0; k < r->axes[axis].out; k++) {
        struct resize_taps taps;
        resize_taps_at(r, axis, k, &taps);
        bool two = taps.count > 1;
        picks[k] = (struct pick){(int32_t)taps.index[0], (int32_t)taps.index[two],
                                 two ? (float)taps.weight[1] : 0};
    }
}

static enum status prepare(const struct kernel_query *q, int variant, struct kernel_state **state,
                           size_t *state_bytes, struct error *err)
{
    (void)variant;
    struct op_args args = args_of_query(q);
    struct resize r;
    TRY(resize_of_node(&args, &r, err));
    const struct resize_axis *last = &r.axes[r.rank - 1], *first = &r.axes[2];
    bool flat = r.rank == 3; /* one row */
    int64_t out_h = flat ? 1 : first->out;
    *state_bytes = sizeof(struct kernel_state) + (size_t)(out_h + last->out) * sizeof(struct pick);
    struct kernel_state *s = calloc(1, *state_bytes);
    if (!s)
        return FAIL_NO_MEMORY(err);
    *state = s;
    s->linear = r.mode == RESIZE_LINEAR;
    s->nhwc = is_nhwc(q);
    s->width = s->nhwc ? r.axes[1].in : 1;
    s->planes = r.axes[0].in * (s->nhwc ? 1 : r.axes[1].in);
    s->in_h = flat ? 1 : first->in;
    s->out_h = out_h;
    s->in_w = last->in;
    s->out_w = last->out;
    if (!flat)
        tabulate(&r, 2, s->picks);
    tabulate(&r, r.rank - 1, s->picks + out_h);
    s->y = s->picks;
    s->x = s->picks + out_h;
    int64_t row_bytes = s->out_w * s->width * (int64_t)sizeof(float) + 1;
    s->rows_per_tile = TILE_BYTES / row_bytes + 1;
    s->tiles = (s->planes * s->out_h + s->rows_per_tile - 1) / s->rows_per_tile;
    return STATUS_OK;
}

/* y[i] = the blend of four vectors of channels. */
static void blend_channels(float *y, const float *const corner[4], const float weight[4], int64_t n)
{
    vf w0 = vf_set1(weight[0]), w1 = vf_set1(weight[1]);
    vf w2 = vf_set1(weight[2]), w3 = vf_set1(weight[3]);
    for (int64_t k = 0; k < n; k += VL) {
        vm m = vm_first(n - k);
        vf sum = vf_mul(w0, vf_load_m(corner[0] + k, m));
        sum = vf_fma(w1, vf_load_m(corner[1] + k, m), sum);
        sum = vf_fma(w2, vf_load_m(corner[2] + k, m), sum);
        sum = vf_fma(w3, vf_load_m(corner[3] + k, m), sum);
        vf_store_m(y + k, m, sum);
    }
}

static void row_nhwc(const struct kernel_state *s, const float *a, const float *b, float t,
                     float *y)
{
    int64_t c = s->width;
    for (int64_t k = 0; k < s->out_w; k++) {
        struct pick x = s->x[k];
        const float *const corner[4] = {a + x.a * c, a + x.b * c, b + x.a * c, b + x.b * c};
        const float weight[4] = {(1 - t) * (1 - x.t), (1 - t) * x.t, t * (1 - x.t), t * x.t};
        if (s->linear)
            blend_channels(y + k * c, corner, weight, c);
        else
            copy_run((char *)(y + k * c), (const char *)corner[0], c * (int64_t)sizeof(float));
    }
}

static void row_plain(const struct kernel_state *s, const float *a, const float *b, float t,
                      float *restrict y, float *restrict blend)
{
    if (!s->linear) {
        for (int64_t k = 0; k < s->out_w; k++)
            y[k] = a[s->x[k].a];
        return;
    }
    for (int64_t k = 0; k < s->in_w; k++)
        blend[k] = a[k] + t * (b[k] - a[k]);
    for (int64_t k = 0; k < s->out_w; k++) {
        struct pick x = s->x[k];
        y[k] = blend[x.a] + x.t * (blend[x.b] - blend[x.a]);
    }
}

struct job {
    const struct kernel_state *state;
    const float *x;
    float *y, *workspace;
};

static void tile_work(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t first = tile * s->rows_per_tile, last = first + s->rows_per_tile;
    for (int64_t row = first; row < last && row < s->planes * s->out_h; row++) {
        struct pick y = s->y[row % s->out_h];
        const float *plane = job->x + row / s->out_h * s->in_h * s->in_w * s->width;
        const float *a = plane + y.a * s->in_w * s->width, *b = plane + y.b * s->in_w * s->width;
        float *to = job->y + row * s->out_w * s->width;
        if (s->nhwc)
            row_nhwc(s, a, b, y.t, to);
        else
            row_plain(s, a, b, y.t, to, job->workspace + (size_t)thread * row_floats(s));
    }
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)q;
    struct job job = {state, args->in[0], args->out[0], args->workspace};
    pool_run(args->pool, state->tiles, tile_work, &job);
}

static void release(struct kernel_state *state)
{
    free(state);
}

REGISTER_KERNEL(resize_rows) = {
    NATIVE(resize_rows),  .ops = OPS("Resize", "Upsample"),
    .supports = supports, .workspace = workspace,
    .prepare = prepare,   .launch = launch,
    .release = release,
};
