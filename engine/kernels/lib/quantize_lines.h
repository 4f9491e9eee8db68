/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of linear quantisation share: a scale and a zero point for all elements of a
 * tensor, or for each index of an axis, and the tensor cut into lines that have one scale, or one
 * for each of their elements where the axis is the last.
 */
#ifndef ENGINE_KERNELS_LIB_QUANTIZE_LINES_H
#define ENGINE_KERNELS_LIB_QUANTIZE_LINES_H

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"
#include "engine/ops/family/quantize.h"

/* Elements of a tile, and of a block: results are made as i32, then narrowed. */
enum { QUANTIZE_TILE = 16384, QUANTIZE_BLOCK = 256 };

/* saturate(round(x / scale) + zero) for each lane, in [low, high], which holds 0; NaN gives 0, as
 * in the reference. Quotients are cut first, so that they can be rounded to integers. */
SIMD_INLINE vi quantize_vector(vf x, vf scale, vf zero, vf low, vf high)
{
    vf q = vf_div(x, scale);
    q = vf_select(vf_is_nan(q), vf_neg(zero), q);
    q = vf_min(vf_max(q, vf_sub(low, zero)), vf_sub(high, zero));
    return vi_add(vi_from_vf(q), vi_from_vf(zero));
}

/* n elements from x to y. Scales and zero points: one for all, or one each; zeros NULL: all 0. */
typedef void quantize_line_fn(const void *x, const float *scales, const void *zeros, void *y,
                              int64_t n, bool each);

struct quantize_lines {
    quantize_line_fn *line;
    int64_t count, inner, size; /* elements; of a line; scales */
    int64_t x_bytes, y_bytes, zero_bytes;
    bool one, has_zeros; /* one: a scale for all */
};

/* Refuses all but dense tensors that lie alike, with f32 scales that are not of blocks. */
static inline enum status quantize_lines_plan(const struct kernel_query *q, quantize_line_fn *line,
                                              struct quantize_lines *l, struct error *why)
{
    const struct shape *x = &q->in[0].shape;
    struct quantize_scales scales;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!line)
        return UNSUPPORTED(why, "%s to %s", dtype_name(q->in[0].dtype),
                           dtype_name(q->out[0].dtype));
    if (q->in[1].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "scales of type %s", dtype_name(q->in[1].dtype));
    if (!desc_is_dense(&q->in[0]) || !desc_same_memory(&q->in[0], &q->out[0]))
        return UNSUPPORTED(why, "input and result do not lie alike");
    TRY(quantize_scales_from(q->node, x, &q->in[1].shape, &scales, why));
    if (scales.block)
        return UNSUPPORTED(why, "scales of blocks");
    l->line = line;
    l->count = shape_count(x);
    l->one = scales.count == 1;
    l->inner = l->one ? l->count : q->in[0].stride[scales.axis];
    l->size = scales.count;
    l->has_zeros = query_in(q, 2) != NULL;
    l->x_bytes = (int64_t)dtype_size(q->in[0].dtype);
    l->y_bytes = (int64_t)dtype_size(q->out[0].dtype);
    l->zero_bytes = l->has_zeros ? (int64_t)dtype_size(q->in[2].dtype) : 0;
    return STATUS_OK;
}

struct quantize_job {
    const struct quantize_lines *lines;
    const char *x, *zeros;
    const float *scales;
    char *y;
};

/* From element `first` to `last`, line by line; the first and the last may be cut by the tile. */
static inline void quantize_lines_tile(void *context, int64_t tile, int thread)
{
    const struct quantize_job *job = context;
    const struct quantize_lines *l = job->lines;
    int64_t at = tile * QUANTIZE_TILE, last = smaller(at + QUANTIZE_TILE, l->count);
    bool each = !l->one && l->inner == 1;
    (void)thread;
    while (at < last) {
        int64_t scale = l->one ? 0 : at / l->inner % l->size;
        int64_t left = each ? l->size - scale : l->inner - at % l->inner;
        int64_t n = smaller(left, last - at);
        const char *zeros = l->has_zeros ? job->zeros + scale * l->zero_bytes : NULL;
        l->line(job->x + at * l->x_bytes, job->scales + scale, zeros, job->y + at * l->y_bytes, n,
                each);
        at += n;
    }
}

static inline void quantize_lines_run(const struct quantize_lines *l,
                                      const struct kernel_args *args)
{
    struct quantize_job job = {l, args->in[0], l->has_zeros ? args->in[2] : NULL, args->in[1],
                               args->out[0]};
    pool_run(args->pool, divide_up(l->count, QUANTIZE_TILE), quantize_lines_tile, &job);
}

#endif
