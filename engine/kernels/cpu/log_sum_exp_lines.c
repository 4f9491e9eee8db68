/* SPDX-License-Identifier: Apache-2.0
 *
 * ReduceLogSumExp over axes that follow each other: the largest element first, then the sum of the
 * exponentials beside it. Along the last axis a vector runs over a line; otherwise vectors of
 * neighbouring results walk down the lines. Sums go up in stages, so that long ones stay exact.
 */
#include <math.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/kernels/lib/tiles.h"
#include "engine/ops/lib/reduce.h"

enum { TILE_ELEMENTS = 8192, PIECE = 128 /* terms of a lane that are summed as floats */ };

/* The input as [outer, size, inner], of which size goes. */
struct kernel_state {
    int64_t outer, size, inner;
    int64_t blocks; /* of a line of results */
    int64_t units, units_per_tile;
};

static enum status read_axes(const struct kernel_query *q, struct kernel_state *s,
                             struct error *why)
{
    const struct shape *x = &q->in[0].shape;
    const struct desc *axes = query_in(q, 1);
    bool reduced[RANK_MAX];
    if (axes && !q->fixed[1])
        return UNSUPPORTED(why, "axes come at run time");
    TRY(reduce_axes(q->node, x, axes ? (int)shape_count(&axes->shape) : 0,
                    axes ? q->fixed[1] : NULL, reduced, why));
    s->outer = s->size = s->inner = 1;
    bool begun = false, ended = false;
    for (int d = 0; d < x->rank; d++) {
        if (x->dim[d] == 1)
            continue;
        if (reduced[d] && ended)
            return UNSUPPORTED(why, "axes that do not follow each other");
        begun = begun || reduced[d];
        ended = begun && !reduced[d];
        int64_t *part = reduced[d] ? &s->size : begun ? &s->inner : &s->outer;
        *part *= x->dim[d];
    }
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->in[0].dtype != DTYPE_F32 || q->node->post_count)
        return UNSUPPORTED(why, "only f32 without a fused epilogue");
    if (!desc_is_plain(&q->in[0]) || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "a tensor is not plain");
    TRY(read_axes(q, s, why));
    if (shape_count(&q->in[0].shape) == 0)
        return UNSUPPORTED(why, "nothing to reduce");
    s->blocks = s->inner == 1 ? 1 : divide_up(s->inner, VL);
    s->units = s->outer * s->blocks;
    s->units_per_tile =
        rows_of_tile(s->units, s->size * (s->inner == 1 ? 1 : VL), TILE_ELEMENTS, q->threads);
    return STATUS_OK;
}

/* NaN stays. */
SIMD_INLINE vf larger_of(vf a, vf x)
{
    return vf_select(vf_is_nan(a), a, vf_max(a, x));
}

static float result_of(float largest, double sum)
{
    return isinf(largest) ? largest : (float)((double)largest + log(sum));
}

/* ---- along a line ---- */

static float line_largest(const float *x, int64_t n)
{
    vf low = vf_set1(-INFINITY), a = low;
    float lanes[VL], largest = -INFINITY;
    for (int64_t i = 0; i < n; i += VL) {
        vm rest = vm_first(n - i);
        a = larger_of(a, vf_select(rest, vf_load_m(x + i, rest), low));
    }
    vf_store(lanes, a);
    for (int k = 0; k < VL; k++)
        largest = lanes[k] > largest || isnan(lanes[k]) ? lanes[k] : largest;
    return largest;
}

static double line_sum(const float *x, int64_t n, float largest)
{
    vf shift = vf_set1(largest);
    double sum = 0;
    for (int64_t first = 0; first < n; first += PIECE * VL) {
        int64_t end = smaller(first + PIECE * VL, n);
        vf part = vf_zero();
        for (int64_t i = first; i < end; i += VL) {
            vm rest = vm_first(end - i);
            vf term = vf_exp_fast(vf_sub(vf_load_m(x + i, rest), shift));
            part = vf_add(part, vf_select(rest, term, vf_zero()));
        }
        sum += (double)vf_sum(part);
    }
    return sum;
}

/* ---- down the lines ---- */

static void columns(const float *x, float *y, int64_t n, int64_t step, int64_t count)
{
    vm some = vm_first(count);
    vf largest = vf_set1(-INFINITY);
    double sums[VL] = {0};
    float tops[VL], parts[VL];
    for (int64_t k = 0; k < n; k++)
        largest = larger_of(largest, vf_load_m(x + k * step, some));
    for (int64_t first = 0; first < n; first += PIECE) {
        int64_t end = smaller(first + PIECE, n);
        vf part = vf_zero();
        for (int64_t k = first; k < end; k++)
            part = vf_add(part, vf_exp_fast(vf_sub(vf_load_m(x + k * step, some), largest)));
        vf_store(parts, part);
        for (int c = 0; c < VL; c++)
            sums[c] += (double)parts[c];
    }
    vf_store(tops, largest);
    for (int c = 0; c < VL && c < count; c++)
        y[c] = result_of(tops[c], sums[c]);
}

struct job {
    const struct kernel_state *state;
    const float *x;
    float *y;
};

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t unit = tile * s->units_per_tile, end = smaller(unit + s->units_per_tile, s->units);
    (void)thread;
    for (; unit < end; unit++) {
        int64_t line = unit / s->blocks, column = unit % s->blocks * VL;
        const float *x = job->x + line * s->size * s->inner + column;
        float *y = job->y + line * s->inner + column;
        if (s->inner == 1) {
            float largest = line_largest(x, s->size);
            *y = result_of(largest, line_sum(x, s->size, largest));
        } else {
            columns(x, y, s->size, s->inner, s->inner - column);
        }
    }
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {.state = state, .x = args->in[0], .y = args->out[0]};
    pool_run(args->pool, divide_up(state->units, state->units_per_tile), run_tile, &job);
}

REGISTER_KERNEL(log_sum_exp_lines) = {
    NATIVE(log_sum_exp_lines),
    .ops = OPS("ReduceLogSumExp"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
