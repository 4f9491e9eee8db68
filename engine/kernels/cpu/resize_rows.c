/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize and Upsample of f32 images along height and width, nearest and linear, one row of the
 * result at a time. Which elements and weights make an element is the operator's business
 * (engine/ops/lib/resize.h) and tabulated once. Two rows of the input are blended first, then
 * elements of the blend. Channels-last, where an element is a vector of channels, a row that gets
 * shorter is made from its four corners at once instead: most of the blend would not be used.
 */
#include <stdlib.h>

#include "engine/kernels/lib/copy_bytes.h"
#include "engine/ops/lib/resize.h"

enum { TILE_BYTES = 32 << 10 };

/* First and second element along one axis and the weight of the second. */
struct pick {
    int32_t a, b;
    float t;
};

struct kernel_state {
    bool linear, nhwc;
    size_t row_floats; /* of a blended row; 0: four corners */
    int64_t planes;    /* images; plain: images x channels */
    int64_t width;     /* floats of an element: channels, or 1 */
    int64_t in_h, in_w, out_h, out_w;
    int64_t rows_per_tile, tiles;
    int threads;
    struct pick *y, *x; /* tables, of one piece of memory */
};

static bool is_nhwc(const struct kernel_query *q)
{
    return desc_is_nhwc(&q->in[0]) && desc_is_nhwc(&q->out[0]);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    struct op_args args = args_of_query(q);
    struct resize r;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[0].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32");
    TRY(resize_of_node(&args, &r, why));
    TRY(resize_of_rows(&r, why));
    if (!is_nhwc(q) && !(desc_is_plain(&q->in[0]) && desc_is_plain(&q->out[0])))
        return UNSUPPORTED(why, "input and output are neither both plain nor both channels-last");
    const struct resize_axis *last = &r.axes[r.rank - 1], *first = &r.axes[2];
    bool flat = r.rank == 3; /* one row */
    s->linear = r.mode == RESIZE_LINEAR;
    s->nhwc = is_nhwc(q);
    s->width = s->nhwc ? r.axes[1].in : 1;
    s->planes = r.axes[0].in * (s->nhwc ? 1 : r.axes[1].in);
    s->in_h = flat ? 1 : first->in;
    s->out_h = flat ? 1 : first->out;
    s->in_w = last->in;
    s->out_w = last->out;
    bool blended = !s->nhwc || s->out_w >= s->in_w;
    s->row_floats = blended ? (size_t)(s->in_w * s->width + 31) / 16 * 16 : 0;
    int64_t row_bytes = s->out_w * s->width * (int64_t)sizeof(float) + 1;
    s->rows_per_tile = TILE_BYTES / row_bytes + 1;
    s->tiles = (s->planes * s->out_h + s->rows_per_tile - 1) / s->rows_per_tile;
    s->threads = q->threads;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return s->row_floats * sizeof(float) * (size_t)s->threads;
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

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    struct op_args args = args_of_query(q);
    struct resize r;
    TRY(resize_of_node(&args, &r, err));
    *packed_bytes = (size_t)(s->out_h + s->out_w) * sizeof(*s->y);
    s->y = calloc(1, *packed_bytes + 1);
    if (!s->y)
        return FAIL_NO_MEMORY(err);
    s->x = s->y + s->out_h;
    if (r.rank > 3)
        tabulate(&r, 2, s->y);
    tabulate(&r, r.rank - 1, s->x);
    return STATUS_OK;
}

static void release(struct kernel_state *s)
{
    free(s->y);
}

/* y = a + t (b - a) */
SIMD_INLINE void blend(float *restrict y, const float *a, const float *b, float t, int64_t n)
{
    vf weight = vf_set1(t);
    int64_t k = 0;
    for (; k + VL <= n; k += VL) {
        vf from = vf_load(a + k);
        vf_store(y + k, vf_fma(weight, vf_sub(vf_load(b + k), from), from));
    }
    if (k < n) {
        vm m = vm_first(n - k);
        vf from = vf_load_m(a + k, m);
        vf_store_m(y + k, m, vf_fma(weight, vf_sub(vf_load_m(b + k, m), from), from));
    }
}

static void blend_corners(float *y, const float *const corner[4], const float weight[4], int64_t n)
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

/* Two rows of the input and the weight of the second. */
struct rows {
    const float *a, *b;
    float t;
};

static void row_corners(const struct kernel_state *s, const struct rows *r, float *y)
{
    int64_t c = s->width;
    for (int64_t k = 0; k < s->out_w; k++) {
        struct pick x = s->x[k];
        const float *const corner[4] = {r->a + x.a * c, r->a + x.b * c, r->b + x.a * c,
                                        r->b + x.b * c};
        const float weight[4] = {(1 - r->t) * (1 - x.t), (1 - r->t) * x.t, r->t * (1 - x.t),
                                 r->t * x.t};
        blend_corners(y + k * c, corner, weight, c);
    }
}

static void row_nearest(const struct kernel_state *s, const float *row, float *restrict y)
{
    int64_t bytes = s->width * (int64_t)sizeof(float);
    const char *src = (const char *)row;
    if (s->width == 1)
        for (int64_t k = 0; k < s->out_w; k++)
            y[k] = row[s->x[k].a];
    else
        for (int64_t k = 0; k < s->out_w; k++)
            copy_run((char *)y + k * bytes, src + s->x[k].a * bytes, bytes);
}

static void row_linear(const struct kernel_state *s, const float *row, float *restrict y)
{
    int64_t c = s->width, out_w = s->out_w;
    const struct pick *picks = s->x;
    if (c == 1) {
        for (int64_t k = 0; k < out_w; k++) {
            struct pick x = picks[k];
            y[k] = row[x.a] + x.t * (row[x.b] - row[x.a]);
        }
        return;
    }
    for (int64_t k = 0; k < out_w; k++) {
        struct pick x = picks[k];
        blend(y + k * c, row + x.a * c, row + x.b * c, x.t, c);
    }
}

struct job {
    const struct kernel_state *state;
    const float *x;
    float *y, *workspace;
};

static void write_row(const struct kernel_state *s, const struct rows *r, float *y, float *scratch)
{
    int64_t n = s->in_w * s->width;
    if (!s->linear) {
        row_nearest(s, r->a, y);
    } else if (!s->row_floats) {
        row_corners(s, r, y);
    } else if (r->t == 0) {
        row_linear(s, r->a, y);
    } else {
        blend(scratch, r->a, r->b, r->t, n);
        row_linear(s, scratch, y);
    }
}

static void tile_work(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t first = tile * s->rows_per_tile, last = first + s->rows_per_tile;
    for (int64_t row = first; row < last && row < s->planes * s->out_h; row++) {
        struct pick y = s->y[row % s->out_h];
        const float *plane = job->x + row / s->out_h * s->in_h * s->in_w * s->width;
        const float *a = plane + y.a * s->in_w * s->width, *b = plane + y.b * s->in_w * s->width;
        struct rows rows = {a, b, y.t};
        write_row(s, &rows, job->y + row * s->out_w * s->width,
                  job->workspace + (size_t)thread * s->row_floats);
    }
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args->in[0], args->out[0], args->workspace};
    pool_run(args->pool, state->tiles, tile_work, &job);
}

REGISTER_KERNEL(resize_rows) = {
    NATIVE(resize_rows),
    .ops = OPS("Resize", "Upsample"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
