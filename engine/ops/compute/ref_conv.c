/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/compute/ref_conv.h"

#include <stdlib.h>

#include "engine/ops/compute/ref_gemm.h"

/* One image and group. */
struct source {
    const double *x;
    const int64_t *offsets;
    int64_t positions, taps, plane;
};

static void pack_columns(const struct ref_gemm *g, int64_t k0, int64_t count_k, int64_t n0,
                         int64_t count_n, double *panel)
{
    const struct source *s = g->source;
    for (int64_t p = 0; p < count_k; p++) {
        const double *x = s->x + (k0 + p) / s->taps * s->plane;
        const int64_t *offset = s->offsets + (k0 + p) % s->taps * s->positions + n0;
        for (int64_t j = 0; j < count_n; j++)
            panel[p * REF_GEMM_COLUMNS + j] = offset[j] < 0 ? 0 : x[offset[j]];
    }
}

/* [in, out / group, taps] to [out, in / group, taps]; NULL: out of memory. */
static double *swap_channels(const struct ref_conv *c, int64_t taps)
{
    int64_t in = c->in_channels / c->window.group, out = c->out_channels / c->window.group;
    double *weights = malloc((size_t)(c->in_channels * out * taps) * sizeof(*weights));
    for (int64_t i = 0; weights && i < c->in_channels; i++)
        for (int64_t o = 0; o < out; o++)
            for (int64_t t = 0; t < taps; t++)
                weights[((i / in * out + o) * in + i % in) * taps + t] =
                    c->weights[(i * out + o) * taps + t];
    return weights;
}

static void run_groups(const struct ref_conv *c, const double *weights, const int64_t *offsets,
                       struct pool *pool, struct ref_gemm *items, struct source *sources)
{
    int64_t groups = c->window.group, taps = window_taps(&c->window);
    int64_t in = c->in_channels / groups, out = c->out_channels / groups;
    int64_t plane = window_in_count(&c->window), positions = window_out_count(&c->window);
    for (int64_t k = 0; k < c->images * groups; k++) {
        sources[k] = (struct source){.x = c->x + k * in * plane,
                                     .offsets = offsets,
                                     .positions = positions,
                                     .taps = taps,
                                     .plane = plane};
        items[k] = (struct ref_gemm){.m = out,
                                     .n = positions,
                                     .k = in * taps,
                                     .a = weights + k % groups * out * in * taps,
                                     .a_row = in * taps,
                                     .a_col = 1,
                                     .c = c->y + k * out * positions,
                                     .c_row = positions,
                                     .pack = pack_columns,
                                     .source = &sources[k]};
    }
    ref_gemm_run(pool, items, c->images * groups);
}

enum status ref_conv_run(const struct ref_conv *conv, struct pool *pool, struct error *err)
{
    size_t count = (size_t)(conv->images * conv->window.group);
    double *swapped = conv->transposed ? swap_channels(conv, window_taps(&conv->window)) : NULL;
    int64_t *offsets = window_offsets(&conv->window, conv->transposed);
    struct ref_gemm *items = calloc(count + 1, sizeof(*items));
    struct source *sources = calloc(count + 1, sizeof(*sources));
    bool fine = offsets && items && sources && (swapped || !conv->transposed);
    if (fine)
        run_groups(conv, swapped ? swapped : conv->weights, offsets, pool, items, sources);
    free(sources);
    free(items);
    free(offsets);
    free(swapped);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

void ref_conv_bias(const struct ref_conv *conv, const double *bias)
{
    int64_t positions = window_out_count(&conv->window);
    for (int64_t plane = 0; plane < conv->images * conv->out_channels; plane++)
        for (int64_t i = 0; i < positions; i++)
            conv->y[plane * positions + i] = bias ? bias[plane % conv->out_channels] : 0;
}

static enum status sum_integers(const struct ref_call *call, int weights, const double *x,
                                const double *w, double *sums, struct error *err)
{
    const struct shape *in = &call->in[0]->shape, *kernel = &call->in[weights]->shape;
    struct window window;
    if (!x || !w || !sums)
        return FAIL_NO_MEMORY(err);
    TRY(window_from_node(call->node, in, kernel->dim + 2, &window, err));
    struct ref_conv conv = {.window = window_to_3d(&window),
                            .images = in->dim[0],
                            .in_channels = in->dim[1],
                            .out_channels = kernel->dim[0],
                            .x = x,
                            .weights = w,
                            .y = sums};
    return ref_conv_run(&conv, call->pool, err);
}

enum status ref_conv_integers(const struct ref_call *call, int weights, double *x, double *w,
                              double **sums, struct error *err)
{
    double *made = calloc((size_t)call->out[0]->count + 1, sizeof(*made));
    enum status status = sum_integers(call, weights, x, w, made, err);
    free(x);
    free(w);
    if (status != STATUS_OK) {
        free(made);
        made = NULL;
    }
    *sums = made;
    return status;
}
