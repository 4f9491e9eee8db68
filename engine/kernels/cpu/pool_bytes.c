/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool of bytes on channels-last images: all channels of a position at once, by loops that
 * compilers make vectors of. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/pool_span.h"

struct kernel_state {
    struct window w; /* rank 3 */
    int64_t images, channels;
    unsigned char flip; /* what makes bytes unsigned, in the same order */
};

struct job {
    const struct kernel_state *state;
    const unsigned char *x;
    unsigned char *y;
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
    s->flip = q->in[0].dtype == DTYPE_I8 ? 0x80 : 0;
    return STATUS_OK;
}

static void take_larger(unsigned char *restrict y, const unsigned char *restrict x,
                        unsigned char flip, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        unsigned char a = x[i] ^ flip, b = y[i] ^ flip;
        y[i] = (a > b ? a : b) ^ flip;
    }
}

/* One position, whose tap 0 is at x; a window that lies in the padding alone gives the least. */
static void pool_position(const struct job *job, const struct pool_span *const s[3],
                          const unsigned char *x, unsigned char *y)
{
    const struct kernel_state *k = job->state;
    const struct window *w = &k->w;
    int64_t column = w->dilation[2] * k->channels, row = w->dilation[1] * w->in[2] * k->channels;
    int64_t slice = w->dilation[0] * w->in[1] * w->in[2] * k->channels;
    bool first = true;
    for (int64_t a = s[0]->first; a < s[0]->last; a++)
        for (int64_t b = s[1]->first; b < s[1]->last; b++)
            for (int64_t c = s[2]->first; c < s[2]->last; c++) {
                const unsigned char *tap = x + a * slice + b * row + c * column;
                if (first)
                    memcpy(y, tap, (size_t)k->channels);
                else
                    take_larger(y, tap, k->flip, k->channels);
                first = false;
            }
    if (first)
        memset(y, k->flip, (size_t)k->channels);
}

static void run_row(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *k = job->state;
    const struct window *w = &k->w;
    struct pool_row row = pool_row_of(w, tile);
    unsigned char *y = job->y + tile * w->out[2] * k->channels;
    (void)thread;
    for (int64_t o = 0; o < w->out[2]; o++, y += k->channels) {
        struct pool_span columns = pool_span_of(w, 2, o);
        const struct pool_span *const s[3] = {&row.slices, &row.rows, &columns};
        pool_position(job, s, job->x + (row.line * w->in[2] + columns.at) * k->channels, y);
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[0], args->out[0]};
    pool_run(args->pool, s->images * s->w.out[0] * s->w.out[1], run_row, &job);
}

REGISTER_KERNEL(pool_bytes) = {
    NATIVE(pool_bytes), .ops = OPS("MaxPool"), .state_size = sizeof(struct kernel_state),
    .plan = plan,       .launch = launch,
};
