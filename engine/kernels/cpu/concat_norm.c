/* SPDX-License-Identifier: Apache-2.0
 *
 * Concat of channels with a factor and a shift per channel and an activation, as the passes make of
 * batch norms after concatenations: one reading of the pieces, one writing of the result.
 * Channels-last, a row is all channels of a position, put together from the pieces' rows; plain, a
 * row is one channel of an image. All tensors are f32, or all bf16. */
#include <stdlib.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/kernels/lib/tiles.h"

enum { TILE_ELEMENTS = 16384, MUL = 0, ADD, ACT };

struct kernel_state {
    int pieces, factor, shift; /* inputs: how many are joined, and those of MUL and ADD */
    struct post act;
    bool channels_last, bf16;
    int64_t images, plane, channels;
    int64_t rows, rows_per_tile; /* channels-last: positions; plain: images x channels */
    int64_t *starts;             /* first channel of each piece, and after the last */
};

struct job {
    const struct kernel_state *state;
    const void *const *in;
    const void *factor, *shift;
    void *y;
};

static bool per_channel(const struct kernel_query *q, int post, enum post_kind kind)
{
    const struct post *p = &q->node->posts[post];
    if (p->kind != kind)
        return false;
    const struct shape *s = &q->in[p->input].shape;
    return q->fixed[p->input] && s->rank == 4 && shape_count(s) == q->out[0].shape.dim[1] &&
           s->dim[1] == q->out[0].shape.dim[1];
}

static bool all_lie(const struct kernel_query *q, bool (*lies)(const struct desc *desc))
{
    for (int k = 0; k < q->node->op_inputs; k++)
        if (!lies(&q->in[k]))
            return false;
    return lies(&q->out[0]);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const struct node *node = q->node;
    int64_t axis = node_int(node, "axis", 1);
    s->bf16 = q->out[0].dtype == DTYPE_BF16;
    if (!query_all_dtype(q, s->bf16 ? DTYPE_BF16 : DTYPE_F32) || q->out[0].shape.rank != 4 ||
        (axis != 1 && axis != -3))
        return UNSUPPORTED(why, "only channels of images of f32 or bf16");
    if (node->post_count < 2 || node->post_count > 3 || !per_channel(q, MUL, POST_MUL) ||
        !per_channel(q, ADD, POST_ADD))
        return UNSUPPORTED(why, "only with a factor and a shift per channel");
    if (node->post_count == 3 && node->posts[ACT].kind != POST_ACT)
        return UNSUPPORTED(why, "only an activation may follow factor and shift");
    if (!all_lie(q, desc_is_plain) && !all_lie(q, desc_is_nhwc))
        return UNSUPPORTED(why, "inputs and output lie differently");
    const struct shape *y = &q->out[0].shape;
    s->pieces = node->op_inputs;
    s->factor = node->posts[MUL].input;
    s->shift = node->posts[ADD].input;
    if (node->post_count > 2)
        s->act = node->posts[ACT];
    s->channels_last = all_lie(q, desc_is_nhwc);
    s->images = y->dim[0];
    s->channels = y->dim[1];
    s->plane = y->dim[2] * y->dim[3];
    s->rows = s->images * (s->channels_last ? s->plane : s->channels);
    int64_t row = s->channels_last ? s->channels : s->plane;
    s->rows_per_tile = rows_of_tile(s->rows, row, TILE_ELEMENTS, q->threads);
    return STATUS_OK;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    *packed_bytes = ((size_t)s->pieces + 1) * sizeof(*s->starts);
    s->starts = calloc(1, *packed_bytes);
    if (!s->starts)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < s->pieces; k++)
        s->starts[k + 1] = s->starts[k] + q->in[k].shape.dim[1];
    return STATUS_OK;
}

/* n neighbours; factors and shifts step with x. */
SIMD_INLINE void span(const struct job *job, const void *x, void *y, int64_t start, int64_t n,
                      bool bf16)
{
    const struct kernel_state *s = job->state;
    const void *factor = float_at(job->factor, start, bf16);
    const void *shift = float_at(job->shift, start, bf16);
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        vf value = vf_fma(vf_read(x, i, bf16), vf_read(factor, i, bf16), vf_read(shift, i, bf16));
        vf_write(y, i, vf_act(value, s->act.act, s->act.a, s->act.b), bf16);
    }
    if (i < n) {
        vm lanes = vm_first(n - i);
        vf value = vf_fma(vf_read_m(x, i, lanes, bf16), vf_read_m(factor, i, lanes, bf16),
                          vf_read_m(shift, i, lanes, bf16));
        vf_write_m(y, i, lanes, vf_act(value, s->act.act, s->act.a, s->act.b), bf16);
    }
}

SIMD_INLINE void position(const struct job *job, int64_t row, bool bf16)
{
    const struct kernel_state *s = job->state;
    void *y = out_at(job->y, row * s->channels, bf16);
    for (int k = 0; k < s->pieces; k++) {
        int64_t start = s->starts[k], n = s->starts[k + 1] - start;
        span(job, float_at(job->in[k], row * n, bf16), out_at(y, start, bf16), start, n, bf16);
    }
}

SIMD_INLINE void plane(const struct job *job, int64_t row, bool bf16)
{
    const struct kernel_state *s = job->state;
    int64_t image = row / s->channels, channel = row % s->channels;
    int k = 0;
    while (s->starts[k + 1] <= channel)
        k++;
    int64_t inside = image * (s->starts[k + 1] - s->starts[k]) + channel - s->starts[k];
    const void *x = float_at(job->in[k], inside * s->plane, bf16);
    void *y = out_at(job->y, row * s->plane, bf16);
    vf factor = vf_set1(float_read(job->factor, channel, bf16));
    vf shift = vf_set1(float_read(job->shift, channel, bf16));
    for (int64_t i = 0; i < s->plane; i += VL) {
        vm lanes = vm_first(s->plane - i);
        vf value = vf_fma(vf_read_m(x, i, lanes, bf16), factor, shift);
        vf_write_m(y, i, lanes, vf_act(value, s->act.act, s->act.a, s->act.b), bf16);
    }
}

SIMD_INLINE void run_rows(const struct job *job, int64_t first, int64_t last, bool bf16)
{
    for (int64_t row = first; row < last; row++) {
        if (job->state->channels_last)
            position(job, row, bf16);
        else
            plane(job, row, bf16);
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t first = tile * s->rows_per_tile, last = first + s->rows_per_tile;
    last = smaller(last, s->rows);
    if (s->bf16)
        run_rows(job, first, last, true);
    else
        run_rows(job, first, last, false);
}

static void release(struct kernel_state *s)
{
    free(s->starts);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.state = s,
                      .in = args->in,
                      .factor = args->in[s->factor],
                      .shift = args->in[s->shift],
                      .y = args->out[0]};
    pool_run(args->pool, divide_up(s->rows, s->rows_per_tile), run_tile, &job);
}

REGISTER_KERNEL(concat_norm) = {
    NATIVE(concat_norm), .ops = OPS("Concat"), .state_size = sizeof(struct kernel_state),
    .plan = plan,        .prepare = prepare,   .launch = launch,
    .release = release,
};
