/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool of bytes on channels-last images: vectors over channels, the window's taps inside. */
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/pool_span.h"
#include "engine/kernels/lib/simd_dot.h"

struct kernel_state {
    struct window w; /* rank 3 */
    int64_t images, channels;
    bool is_signed;
};

struct job {
    const struct kernel_state *state;
    const unsigned char *x;
    unsigned char *y;
    const struct pool_span *columns; /* of each output column */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    struct window window;
    (void)variant;
    if ((q->in[0].dtype != DTYPE_U8 && q->in[0].dtype != DTYPE_I8) || q->out_count != 1)
        return UNSUPPORTED(why, "only bytes, without indices");
    if (!desc_is_nhwc(&q->in[0]) || !desc_is_nhwc(&q->out[0]) || q->node->post_count)
        return UNSUPPORTED(why, "only channels-last, without epilogue");
    TRY(window_from_node(q->node, &q->in[0].shape, NULL, &window, why));
    s->w = window_to_3d(&window);
    s->images = q->in[0].shape.dim[0];
    s->channels = q->in[0].shape.dim[1];
    s->is_signed = q->in[0].dtype == DTYPE_I8;
    return STATUS_OK;
}

/* `count` channels, a vector at most, of the position whose tap 0 is at x; a window that lies in
 * the padding alone gives the least number. */
SIMD_INLINE void pool_taps(const struct kernel_state *k, const struct pool_span *const s[3],
                           const unsigned char *x, unsigned char *y, int64_t count, bool is_signed)
{
    const struct window *w = &k->w;
    int64_t column = w->dilation[2] * k->channels, row = w->dilation[1] * w->in[2] * k->channels;
    int64_t slice = w->dilation[0] * w->in[1] * w->in[2] * k->channels;
    vi most = vi_set1(is_signed ? (int32_t)0x80808080 : 0);
    for (int64_t a = s[0]->first; a < s[0]->last; a++)
        for (int64_t b = s[1]->first; b < s[1]->last; b++) {
            const unsigned char *tap = x + a * slice + b * row + s[2]->first * column;
            for (int64_t c = s[2]->first; c < s[2]->last; c++, tap += column)
                most = vi_max_bytes(most, vi_load_all(tap, count), is_signed);
        }
    vi_store_all(y, count, most);
}

SIMD_INLINE void pool_position(const struct kernel_state *k, const struct pool_span *const s[3],
                               const unsigned char *x, unsigned char *y, bool is_signed)
{
    int64_t c = 0;
    for (; c + 4 * VL <= k->channels; c += 4 * VL)
        pool_taps(k, s, x + c, y + c, 4 * VL, is_signed);
    if (c < k->channels)
        pool_taps(k, s, x + c, y + c, k->channels - c, is_signed);
}

static void run_row(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *k = job->state;
    const struct window *w = &k->w;
    struct pool_row row = pool_row_of(w, tile);
    const struct pool_span *s[3] = {&row.slices, &row.rows, job->columns};
    unsigned char *y = job->y + tile * w->out[2] * k->channels;
    (void)thread;
    for (int64_t o = 0; o < w->out[2]; o++, s[2]++, y += k->channels) {
        const unsigned char *x = job->x + (row.line * w->in[2] + s[2]->at) * k->channels;
        if (k->is_signed)
            pool_position(k, s, x, y, true);
        else
            pool_position(k, s, x, y, false);
    }
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)s->w.out[2] * sizeof(struct pool_span);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct pool_span *columns = args->workspace;
    struct job job = {s, args->in[0], args->out[0], columns};
    for (int64_t o = 0; o < s->w.out[2]; o++)
        columns[o] = pool_span_of(&s->w, 2, o);
    pool_run(args->pool, s->images * s->w.out[0] * s->w.out[1], run_row, &job);
}

REGISTER_KERNEL(pool_bytes) = {
    NATIVE(pool_bytes), .ops = OPS("MaxPool"),  .state_size = sizeof(struct kernel_state),
    .plan = plan,       .workspace = workspace, .launch = launch,
};
