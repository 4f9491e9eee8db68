/* SPDX-License-Identifier: Apache-2.0
 * GridSample: an image read at places given in [-1, 1], by the nearest element, two by two or four
 * by four. Places outside are zero, the border, or mirrored. */
#include <math.h>

#include "engine/ops/lib/grid_sampler.h"

static const char *const attrs[] = {"mode", "padding_mode", "align_corners", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape, *grid = &c->in[1]->shape;
    struct grid_sampler s;
    if (x->rank != 4 || grid->rank != 4 || grid->dim[3] != 2 || grid->dim[0] != x->dim[0]) {
        char a[96], b[96];
        return UNSUPPORTED(err, "GridSample of %s with grid %s; only [N,C,H,W] with [N,h,w,2]",
                           shape_text(x, a), shape_text(grid, b));
    }
    TRY(grid_sampler_of(c->node, x, &s, err));
    struct shape y = shape_of(x->dim[0], x->dim[1], grid->dim[1], grid->dim[2]);
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

/* Mirrored at low and high until it is between them. */
static double reflect(double at, double low, double high)
{
    double range = high - low;
    if (range <= 0)
        return 0;
    double over = at < low ? low - at : at > high ? at - high : 0;
    double turns = floor(over / range), rest = over - turns * range;
    bool odd = fmod(turns, 2) != 0;
    if (at < low)
        return odd ? high - rest : low + rest;
    if (at > high)
        return odd ? low + rest : high - rest;
    return at;
}

/* From [-1, 1] to elements, brought inside as far as the padding does that. In float: a place
 * halfway between two elements must fall to the same side as in other runtimes. */
static double place(const struct grid_sampler *s, double given, int64_t size)
{
    float n = (float)given, length = (float)size;
    double at = (double)(s->align ? (n + 1) / 2 * (length - 1) : ((n + 1) * length - 1) / 2);
    double low = s->align ? 0 : -0.5, high = (double)(size - 1) - low;
    if (s->sampling == SAMPLING_NEAREST)
        at = rint(at);
    if (at >= low && at <= high)
        return at;
    if (s->padding == PADDING_BORDER &&
        s->sampling != SAMPLING_CUBIC) /* cubic: only its elements are clamped */
        return at < 0 ? 0 : at > (double)(size - 1) ? (double)(size - 1) : at;
    return s->padding == PADDING_REFLECTION ? reflect(at, low, high) : at;
}

static int64_t settle(const struct grid_sampler *s, int64_t at, int64_t size)
{
    if (at >= 0 && at < size)
        return at;
    double low = s->align ? 0 : -0.5;
    if (s->padding == PADDING_BORDER)
        return at < 0 ? 0 : size - 1;
    return s->padding == PADDING_REFLECTION
               ? (int64_t)reflect((double)at, low, (double)(size - 1) - low)
               : -1;
}

static double pixel(const struct grid_sampler *s, const double *plane, int64_t row, int64_t column)
{
    int64_t r = settle(s, row, s->height), c = settle(s, column, s->width);
    return r < 0 || c < 0 ? 0 : plane[r * s->width + c];
}

/* Weights of the elements from first on. */
struct taps {
    int count;
    int64_t first;
    double weight[4];
};

static void taps_at(enum grid_sampling sampling, double at, struct taps *taps)
{
    const double a = -0.75; /* the cubic coefficient that ONNX fixes */
    double low = floor(at), t = at - low, u = 1 - t;
    *taps = (struct taps){.count = 1, .first = (int64_t)low, .weight = {1}};
    if (sampling == SAMPLING_LINEAR) {
        taps->count = 2;
        taps->weight[0] = u;
        taps->weight[1] = t;
    }
    if (sampling == SAMPLING_CUBIC) {
        taps->count = 4;
        taps->first = (int64_t)low - 1;
        taps->weight[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
        taps->weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
        taps->weight[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
        taps->weight[3] = ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a;
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0], *grid = call->in[1], *y = call->out[0];
    struct grid_sampler s;
    TRY(grid_sampler_of(call->node, &x->shape, &s, err));
    int64_t places = y->shape.dim[2] * y->shape.dim[3], channels = y->shape.dim[1];
    for (int64_t k = 0; k < y->count; k++) {
        int64_t plane = k / places, n = plane / channels;
        const double *at = grid->f + (n * places + k % places) * 2;
        struct taps rows, columns;
        double sum = 0;
        taps_at(s.sampling, place(&s, at[0], s.width), &columns);
        taps_at(s.sampling, place(&s, at[1], s.height), &rows);
        for (int i = 0; i < rows.count; i++)
            for (int j = 0; j < columns.count; j++)
                sum +=
                    rows.weight[i] * columns.weight[j] *
                    pixel(&s, x->f + plane * s.height * s.width, rows.first + i, columns.first + j);
        y->f[k] = sum;
    }
    return STATUS_OK;
}

/* Interpolation as in Resize: 7 or 35 per output element. */
static void cost(const struct infer *c, struct cost *cost)
{
    struct grid_sampler s;
    if (grid_sampler_of(c->node, &c->in[0]->shape, &s, NULL) != STATUS_OK ||
        s.sampling == SAMPLING_NEAREST)
        return;
    cost->elementwise +=
        (s.sampling == SAMPLING_LINEAR ? 7 : 35) * (double)shape_count(&c->out[0]->shape);
}

static const struct op_case cases[] = {
    {.name = "linear", .inputs = "f32[2,3,5,6] f32[2,4,3,2]{-1.2:1.2}"},
    {.name = "border",
     .inputs = "f32[1,2,4,4] f32[1,5,5,2]{-2:2}",
     .attrs = "padding_mode=\"border\" align_corners=1"},
    {.name = "reflection",
     .inputs = "f32[1,2,4,5] f32[1,5,5,2]{-4:4}",
     .attrs = "padding_mode=\"reflection\""},
    {.name = "nearest",
     .inputs = "f32[1,2,4,5] f32[1,5,5,2]{-3:3}",
     .attrs = "mode=\"nearest\" padding_mode=\"reflection\" align_corners=1"},
    {.name = "linear_corners",
     .inputs = "f32[2,6,5,6] f32[2,4,7,2]{-1.5:1.5}",
     .attrs = "align_corners=1"},
    {.name = "border_edges",
     .inputs = "f32[1,5,4,6] f32[1,9,5,2]{-3:3}",
     .attrs = "padding_mode=\"border\""},
    {.name = "reflection_corners",
     .inputs = "f32[1,9,4,5] f32[1,9,5,2]{-9:9}",
     .attrs = "padding_mode=\"reflection\" align_corners=1"},
    {.name = "one_element_reflected",
     .inputs = "f32[1,2,1,1] f32[1,3,5,2]{-9:9}",
     .attrs = "padding_mode=\"reflection\" align_corners=1"},
    {.name = "one_column_reflected",
     .inputs = "f32[1,2,7,1] f32[1,3,5,2]{-4:4}",
     .attrs = "padding_mode=\"reflection\""},
    {.name = "nearest_zeros",
     .inputs = "f32[2,5,6,7] f32[2,5,9,2]{-1.5:1.5}",
     .attrs = "mode=\"nearest\""},
    {.name = "nearest_border",
     .inputs = "f32[2,3,6,7] f32[2,5,9,2]{-3:3}",
     .attrs = "mode=\"nearest\" padding_mode=\"border\""},
    {.name = "nearest_reflection",
     .inputs = "f32[2,4,6,7] f32[2,5,9,2]{-9:9}",
     .attrs = "mode=\"nearest\" padding_mode=\"reflection\""},
    {.name = "nearest_halfway",
     .inputs = "f32[1,1,4,4] f32[1,1,6,2]=-0.75,-0.25,0,0.25,0.5,0.75,-1,1,0.125,-0.5,1.25,-1.25",
     .attrs = "mode=\"nearest\""},
    {.name = "edges_and_beyond",
     .inputs = "f32[1,5,4,4] f32[1,1,6,2]=-1,-1,1,1,-1.25,1.25,0,-1.2500001,40,0,0,-1e30"},
    {.name = "beyond_what_is_not_a_number",
     .inputs = "f32[1,1,2,2]=nan,1,inf,2 f32[1,1,3,2]=-3,-3,0.5,0.1,3,0"},
    {.name = "place_not_a_number", .inputs = "f32[1,5,3,3] f32[1,1,2,2]=nan,0,0.1,0.2"},
    {.name = "more_than_a_tile", .inputs = "f32[2,7,33,21] f32[2,23,29,2]{-1.1:1.1}"},
    {.name = "many_channels", .inputs = "f32[1,67,5,6] f32[1,3,3,2]{-1.1:1.1}"},
    {.name = "f16", .inputs = "f16[1,3,5,6] f16[1,4,5,2]{-1.2:1.2}"},
    {.name = "bf16_by_f32", .inputs = "bf16[1,3,5,6] f32[1,4,5,2]{-1.2:1.2}"},
    {.name = "no_places", .inputs = "f32[1,2,3,3] f32[1,0,4,2]"},
    {.name = "no_channels", .inputs = "f32[1,0,3,3] f32[1,2,4,2]"},
    {.name = "cubic", .inputs = "f32[1,2,5,4] f32[1,3,6,2]{-1.5:1.5}", .attrs = "mode=\"bicubic\""},
};

REGISTER(op, grid_sample) = {
    .name = "GridSample",
    .inputs_min = 2,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
