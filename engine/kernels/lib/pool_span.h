/* SPDX-License-Identifier: Apache-2.0
 *
 * Which taps of a pool's window lie inside the input, along one dimension: they are a run, because
 * the input is one. So padding is cut off the loops over taps, not tested.
 */
#ifndef ENGINE_KERNELS_LIB_POOL_SPAN_H
#define ENGINE_KERNELS_LIB_POOL_SPAN_H

#include "engine/ops/lib/window.h"

/* Taps [first, last) lie inside the input; `padded` of all inside the padded input. */
struct pool_span {
    int64_t first, last, padded;
    int64_t at; /* input position of tap 0 */
};

static inline struct pool_span pool_span_of(const struct window *w, int d, int64_t position)
{
    int64_t at = position * w->stride[d] - w->pad_begin[d], step = w->dilation[d];
    int64_t end = w->in[d] + w->pad_end[d]; /* of the padded input */
    struct pool_span s = {.at = at, .last = w->kernel[d]};
    while (s.first < w->kernel[d] && at + s.first * step < 0)
        s.first++;
    while (s.last > s.first && at + (s.last - 1) * step >= w->in[d])
        s.last--;
    for (int64_t t = 0; t < w->kernel[d]; t++)
        s.padded += at + t * step < end;
    return s;
}

/* One row of output positions: its spans along the first two dimensions, and the line of the input,
 * counted over all images, at which tap 0 of both is. */
struct pool_row {
    struct pool_span slices, rows;
    int64_t line;
};

static inline struct pool_row pool_row_of(const struct window *w, int64_t row)
{
    int64_t slice = row / w->out[1], image = slice / w->out[0];
    struct pool_row r = {.slices = pool_span_of(w, 0, slice % w->out[0]),
                         .rows = pool_span_of(w, 1, row % w->out[1])};
    r.line = (image * w->in[0] + r.slices.at) * w->in[1] + r.rows.at;
    return r;
}

#endif
