/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize and Upsample of images of f32 or bf16 along height and width, nearest and linear, one row
 * of the result at a time. Which elements and weights make an element is the operator's business
 * (engine/ops/lib/resize.h) and tabulated once. Two rows of the input are blended first, then
 * elements of the blend. Channels-last, where an element is a vector of channels, a row that gets
 * shorter is made from its four corners at once instead: most of the blend would not be used. The
 * blend of two rows is of floats always, so that each element is rounded once.
 */
#include <stdlib.h>

#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/ops/lib/resize.h"

enum { TILE_BYTES = 32 << 10, ROUNDED = 256 }; /* ROUNDED: single elements, at a time */

/* First and second element along one axis and the weight of the second. */
struct pick {
    int32_t a, b;
    float t;
};

struct kernel_state {
    bool linear, nhwc, bf16;
    size_t row_floats; /* of a blended row; 0: four corners */
    int64_t planes;    /* images; plain: images x channels */
    int64_t width;     /* numbers of an element: channels, or 1 */
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
    s->bf16 = q->in[0].dtype == DTYPE_BF16;
    if (!s->bf16 && q->in[0].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32 or bf16");
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
    int64_t row_bytes = s->out_w * s->width * (s->bf16 ? 2 : 4) + 1;
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

/* Numbers in memory of either type; whether bf16 is known wherever functions of them are inlined.
 */
struct line {
    const void *p;
    bool bf16;
};

SIMD_INLINE struct line line_after(struct line l, int64_t count)
{
    return (struct line){float_at(l.p, count, l.bf16), l.bf16};
}

/* Element `at` of y and n in all = a + t (b - a) */
SIMD_INLINE void blend(void *restrict y, int64_t at, bool bf16, struct line a, struct line b,
                       float t, int64_t n)
{
    vf weight = vf_set1(t);
    int64_t k = 0;
    for (; k + VL <= n; k += VL) {
        vf from = vf_read(a.p, k, a.bf16), to = vf_read(b.p, k, b.bf16);
        vf_write(y, at + k, vf_fma(weight, vf_sub(to, from), from), bf16);
    }
    if (k < n) {
        vm m = vm_first(n - k);
        vf from = vf_read_m(a.p, k, m, a.bf16), to = vf_read_m(b.p, k, m, b.bf16);
        vf_write_m(y, at + k, m, vf_fma(weight, vf_sub(to, from), from), bf16);
    }
}

/* Two rows of the input and the weight of the second. */
struct rows {
    struct line a, b;
    float t;
};

/* The n elements of y from `at` on. */
SIMD_INLINE void blend_corners(void *y, int64_t at, const struct rows *r, struct pick x, int64_t n,
                               bool bf16)
{
    vf w0 = vf_set1((1 - r->t) * (1 - x.t)), w1 = vf_set1((1 - r->t) * x.t);
    vf w2 = vf_set1(r->t * (1 - x.t)), w3 = vf_set1(r->t * x.t);
    int64_t a = x.a * n, b = x.b * n;
    for (int64_t k = 0; k < n; k += VL) {
        vm m = vm_first(n - k);
        vf sum = vf_mul(w0, vf_read_m(r->a.p, a + k, m, bf16));
        sum = vf_fma(w1, vf_read_m(r->a.p, b + k, m, bf16), sum);
        sum = vf_fma(w2, vf_read_m(r->b.p, a + k, m, bf16), sum);
        sum = vf_fma(w3, vf_read_m(r->b.p, b + k, m, bf16), sum);
        vf_write_m(y, at + k, m, sum, bf16);
    }
}

SIMD_INLINE void row_nearest(const struct kernel_state *s, const void *row, void *restrict y,
                             bool bf16)
{
    int64_t bytes = s->width * (bf16 ? 2 : 4);
    const char *src = row;
    if (s->width > 1)
        for (int64_t k = 0; k < s->out_w; k++)
            copy_run((char *)y + k * bytes, src + s->x[k].a * bytes, bytes);
    else if (bf16)
        for (int64_t k = 0; k < s->out_w; k++)
            ((uint16_t *)y)[k] = ((const uint16_t *)row)[s->x[k].a];
    else
        for (int64_t k = 0; k < s->out_w; k++)
            ((float *)y)[k] = ((const float *)row)[s->x[k].a];
}

SIMD_INLINE float between(struct line row, struct pick x)
{
    float a = float_read(row.p, x.a, row.bf16), b = float_read(row.p, x.b, row.bf16);
    return a + x.t * (b - a);
}

/* Single elements to bf16: rounded as vectors, because one by one takes longer than the rest. */
SIMD_INLINE void row_rounded(const struct kernel_state *s, struct line row, void *restrict y)
{
    float part[ROUNDED];
    for (int64_t first = 0; first < s->out_w; first += ROUNDED) {
        int64_t count = s->out_w - first < ROUNDED ? s->out_w - first : ROUNDED;
        for (int64_t k = 0; k < count; k++)
            part[k] = between(row, s->x[first + k]);
        for (int64_t k = 0; k < count; k += VL) {
            vm m = vm_first(count - k);
            vf_write_m(y, first + k, m, vf_load_m(part + k, m), true);
        }
    }
}

SIMD_INLINE void row_linear(const struct kernel_state *s, struct line row, void *restrict y,
                            bool bf16)
{
    int64_t c = s->width, out_w = s->out_w;
    const struct pick *picks = s->x;
    if (c == 1 && bf16) {
        row_rounded(s, row, y);
        return;
    }
    if (c == 1) {
        for (int64_t k = 0; k < out_w; k++)
            ((float *)y)[k] = between(row, picks[k]);
        return;
    }
    for (int64_t k = 0; k < out_w; k++) {
        struct pick x = picks[k];
        blend(y, k * c, bf16, line_after(row, x.a * c), line_after(row, x.b * c), x.t, c);
    }
}

struct job {
    const struct kernel_state *state;
    const void *x;
    void *y;
    float *workspace;
};

SIMD_INLINE void write_row(const struct kernel_state *s, const struct rows *r, void *y,
                           float *scratch, bool bf16)
{
    if (!s->linear) {
        row_nearest(s, r->a.p, y, bf16);
    } else if (!s->row_floats) {
        for (int64_t k = 0; k < s->out_w; k++)
            blend_corners(y, k * s->width, r, s->x[k], s->width, bf16);
    } else if (r->t == 0) {
        row_linear(s, r->a, y, bf16);
    } else {
        blend(scratch, 0, false, r->a, r->b, r->t, s->in_w * s->width);
        row_linear(s, (struct line){scratch, false}, y, bf16);
    }
}

SIMD_INLINE void write_rows(const struct job *job, int64_t tile, float *scratch, bool bf16)
{
    const struct kernel_state *s = job->state;
    int64_t first = tile * s->rows_per_tile, last = first + s->rows_per_tile;
    int64_t row_elements = s->in_w * s->width;
    for (int64_t row = first; row < last && row < s->planes * s->out_h; row++) {
        struct pick y = s->y[row % s->out_h];
        struct line plane = {float_at(job->x, row / s->out_h * s->in_h * row_elements, bf16), bf16};
        struct rows rows = {line_after(plane, y.a * row_elements),
                            line_after(plane, y.b * row_elements), y.t};
        int64_t at = row * s->out_w * s->width;
        write_row(s, &rows, out_at(job->y, at, bf16), scratch, bf16);
    }
}

static void tile_work(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    float *scratch = job->workspace + (size_t)thread * job->state->row_floats;
    if (job->state->bf16)
        write_rows(job, tile, scratch, true);
    else
        write_rows(job, tile, scratch, false);
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
