/* SPDX-License-Identifier: Apache-2.0
 * LRNGradient (ridge): dy and x -> dx of LRN. With b = bias + alpha / size * (sum of squares in the
 * window), p = b^-beta:
 *     dx = dy p - 2 alpha beta / size x * (sum of dy x p / b over the channels whose window x is
 * in)
 */
#include <math.h>

#include "base/numbers/integers.h"
#include "engine/graph/op.h"

static const char *const attrs[] = {"alpha", "beta", "bias", "size", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    char text[96], text_x[96];
    const struct shape *dy = &c->in[0]->shape, *x = &c->in[1]->shape;
    if (x->rank < 2 || node_int(c->node, "size", 0) < 1 || !shape_equal(dy, x))
        return FAIL(err, STATUS_FAILED, "LRNGradient: dy of shape %s, x of shape %s, size %lld",
                    shape_text(dy, text), shape_text(x, text_x),
                    (long long)node_int(c->node, "size", 0));
    return infer_same(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *x = &c->in[0]->shape;
    double count = (double)shape_count(x);
    int64_t terms = smaller(node_int(c->node, "size", 1), 2 * x->dim[1]);
    cost->elementwise = (3 * (double)terms + 12) * count;
    cost->transcendentals = count;
}

/* One line of channels: what lies between two of them in memory is `step`. */
struct line {
    const double *dy, *x;
    double *dx;
    int64_t channels, step, before, after;
    double alpha, beta, bias; /* alpha over size */
};

static double base_at(const struct line *l, int64_t channel)
{
    double sum = 0;
    for (int64_t k = channel - l->before; k <= channel + l->after; k++)
        if (k >= 0 && k < l->channels)
            sum += l->x[k * l->step] * l->x[k * l->step];
    return l->bias + l->alpha * sum;
}

static void run_line(const struct line *l)
{
    for (int64_t c = 0; c < l->channels; c++) {
        double shared = 0;
        for (int64_t k = c - l->after; k <= c + l->before; k++) {
            if (k < 0 || k >= l->channels)
                continue;
            shared += l->dy[k * l->step] * l->x[k * l->step] * pow(base_at(l, k), -l->beta - 1);
        }
        l->dx[c * l->step] = l->dy[c * l->step] * pow(base_at(l, c), -l->beta) -
                             2 * l->alpha * l->beta * l->x[c * l->step] * shared;
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[1];
    int64_t size = node_int(call->node, "size", 1), channels = x->shape.dim[1];
    int64_t plane = shape_span(&x->shape, 2, x->shape.rank);
    struct line line = {.channels = channels,
                        .step = plane,
                        .before = smaller((size - 1) / 2, channels),
                        .after = smaller(size - 1 - (size - 1) / 2, channels),
                        .alpha = node_float(call->node, "alpha", 1e-4) / (double)size,
                        .beta = node_float(call->node, "beta", 0.75),
                        .bias = node_float(call->node, "bias", 1)};
    (void)err;
    for (int64_t i = 0; i < x->shape.dim[0] * plane; i++) {
        int64_t at = i / plane * channels * plane + i % plane;
        line.dy = call->in[0]->f + at;
        line.x = x->f + at;
        line.dx = call->out[0]->f + at;
        run_line(&line);
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "size_5", .inputs = "f32[1,37,6,7] f32[1,37,6,7]{-9:9}", .attrs = "size=5"},
    {.name = "size_even", .inputs = "f32[2,9,5,3] f32[2,9,5,3]{-9:9}", .attrs = "size=4 alpha=0.1"},
    {.name = "parameters",
     .inputs = "f32[1,16,5,5] f32[1,16,5,5]{-9:9}",
     .attrs = "size=3 alpha=0.02 beta=0.5 bias=2.0"},
    {.name = "another_power",
     .inputs = "f32[1,16,5,5] f32[1,16,5,5]{-9:9}",
     .attrs = "size=3 alpha=0.02 beta=0.6"},
    {.name = "wider_than_channels",
     .inputs = "f32[1,3,4,4] f32[1,3,4,4]{-9:9}",
     .attrs = "size=9 alpha=0.1"},
    {.name = "wider_than_any",
     .inputs = "f32[1,3,4,4] f32[1,3,4,4]{-9:9}",
     .attrs = "size=1073741824 alpha=1e8"},
    {.name = "rank_3", .inputs = "f32[2,8,11] f32[2,8,11]{-9:9}", .attrs = "size=5 alpha=0.1"},
};

REGISTER(op, lrn_gradient) = {
    .name = "LRNGradient",
    .domain = "ridge",
    .inputs_min = 2,
    .attrs = attrs,
    .layout = LAYOUT_RULE_CHANNELS_LAST,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
