/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of Resize and Upsample of f32 images along height and width, nearest and linear. Turned
 * round, each element of the image is a weighted sum over a rectangle of the result's: which ones,
 * and their weights, are tabulated once per row and per column. Each element is written once, its
 * terms in one order whatever the number of threads. Channels-last an element is a vector.
 */
#include <stdlib.h>

#include "engine/kernels/lib/simd.h"
#include "engine/ops/lib/resize.h"

/* Which elements of the result one of the image is part of, along one axis, and how much. */
struct reach {
    int32_t first, count;
    int64_t weights; /* index of the first in the table */
};

struct kernel_state {
    bool nhwc;
    int64_t planes; /* images; plain: images x channels */
    int64_t width;  /* floats of an element: channels, or 1 */
    int64_t in_h, in_w, out_h, out_w;
    struct reach *y, *x; /* in_h, in_w; one piece of memory with the weights */
    float *weights;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    struct resize r;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[0].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32");
    TRY(resize_of_query(q, &r, why));
    TRY(resize_of_rows(&r, why));
    s->nhwc = desc_is_nhwc(&q->in[0]) && desc_is_nhwc(&q->out[0]);
    if (!s->nhwc && !(desc_is_plain(&q->in[0]) && desc_is_plain(&q->out[0])))
        return UNSUPPORTED(why, "input and output are neither both plain nor both channels-last");
    const struct resize_axis *last = &r.axes[r.rank - 1], *first = &r.axes[2];
    bool flat = r.rank == 3; /* one row */
    s->width = s->nhwc ? r.axes[1].in : 1;
    s->planes = r.axes[0].in * (s->nhwc ? 1 : r.axes[1].in);
    s->in_h = flat ? 1 : first->in;
    s->out_h = flat ? 1 : first->out;
    s->in_w = last->in;
    s->out_w = last->out;
    return STATUS_OK;
}

/* Adds the taps of element k of the result to what each element of the image has of it. */
static void visit_taps(const struct resize *r, int axis, int64_t k, struct reach *reach,
                       float *weights)
{
    struct resize_taps taps;
    resize_taps_at(r, axis, k, &taps);
    for (int t = 0; t < taps.count; t++) {
        struct reach *at = &reach[taps.index[t]];
        if (weights)
            weights[at->weights + k - at->first] += (float)taps.weight[t];
        else if (at->count == 0)
            *at = (struct reach){.first = (int32_t)k, .count = 1};
        else
            at->count = (int32_t)(k - at->first + 1);
    }
}

/* The sizes first, then the weights. Positions grow with k, so each reach is a run. */
static int64_t measure(const struct resize *r, int axis, struct reach *reach, int64_t weights)
{
    for (int64_t k = 0; k < r->axes[axis].out; k++)
        visit_taps(r, axis, k, reach, NULL);
    for (int64_t k = 0; k < r->axes[axis].in; k++) {
        reach[k].weights = weights;
        weights += reach[k].count;
    }
    return weights;
}

static void weigh(const struct resize *r, int axis, struct reach *reach, float *weights)
{
    for (int64_t k = 0; k < r->axes[axis].out; k++)
        visit_taps(r, axis, k, reach, weights);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    struct resize r;
    int64_t count = 0;
    TRY(resize_of_query(q, &r, err));
    s->y = calloc((size_t)(s->in_h + s->in_w) + 1, sizeof(*s->y));
    if (!s->y)
        return FAIL_NO_MEMORY(err);
    s->x = s->y + s->in_h;
    if (r.rank > 3)
        count = measure(&r, 2, s->y, count);
    else
        s->y[0] = (struct reach){.count = 1, .weights = count++};
    count = measure(&r, r.rank - 1, s->x, count);
    s->weights = calloc((size_t)count + 1, sizeof(float));
    if (!s->weights)
        return FAIL_NO_MEMORY(err);
    if (r.rank > 3)
        weigh(&r, 2, s->y, s->weights);
    else
        s->weights[0] = 1;
    weigh(&r, r.rank - 1, s->x, s->weights);
    *packed_bytes =
        (size_t)(s->in_h + s->in_w) * sizeof(*s->y) + (size_t)count * sizeof(*s->weights);
    return STATUS_OK;
}

static void release(struct kernel_state *s)
{
    free(s->y);
    free(s->weights);
}

struct job {
    const struct kernel_state *state;
    const float *dy;
    float *dx;
};

/* One element of the image, all channels. plane: of dy. */
static void sum_element(const struct kernel_state *s, const struct reach *y, const struct reach *x,
                        const float *plane, float *dx)
{
    int64_t width = s->width;
    for (int64_t c = 0; c < width; c += VL) {
        vm lanes = vm_first(width - c);
        vf sum = vf_zero();
        for (int32_t i = 0; i < y->count; i++) {
            const float *row = plane + ((y->first + i) * s->out_w + x->first) * width + c;
            float weight = s->weights[y->weights + i];
            for (int32_t j = 0; j < x->count; j++, row += width)
                sum = vf_fma(vf_set1(weight * s->weights[x->weights + j]), vf_load_m(row, lanes),
                             sum);
        }
        vf_store_m(dx + c, lanes, sum);
    }
}

static float sum_scalar(const struct kernel_state *s, const struct reach *y, const struct reach *x,
                        const float *plane)
{
    float sum = 0;
    for (int32_t i = 0; i < y->count; i++) {
        const float *row = plane + (y->first + i) * s->out_w + x->first;
        float line = 0;
        for (int32_t j = 0; j < x->count; j++)
            line += s->weights[x->weights + j] * row[j];
        sum += s->weights[y->weights + i] * line;
    }
    return sum;
}

static void run_row(void *context, int64_t task, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const struct reach *y = &s->y[task % s->in_h];
    const float *plane = job->dy + task / s->in_h * s->out_h * s->out_w * s->width;
    float *dx = job->dx + task * s->in_w * s->width;
    for (int64_t k = 0; k < s->in_w; k++) {
        if (s->width == 1)
            dx[k] = sum_scalar(s, y, &s->x[k], plane);
        else
            sum_element(s, y, &s->x[k], plane, dx + k * s->width);
    }
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args->in[0], args->out[0]};
    pool_run(args->pool, state->planes * state->in_h, run_row, &job);
}

REGISTER_KERNEL(resize_gradient_rows) = {
    NATIVE(resize_gradient_rows),
    .ops = OPS("ResizeGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
