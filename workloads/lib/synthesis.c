/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/synthesis.h"

#include <math.h>
#include <stdbool.h>

#include "base/numbers/random.h"

enum {
    CHANNELS_MAX = 1024,
    ROUNDS = 3,    /* searches from different starts */
    STEPS = 12000, /* of each */
    SEED = 1812,
};

const int synthesis_kernels[SYNTHESIS_KERNELS] = {5, 3, 1};

/* ---- what a net costs ---- */

struct totals {
    double macs[SYNTHESIS_KERNELS], others, elementwise, weights, activations;
};

static void add_layer(struct totals *t, double in, double out, int kernel, double pixels)
{
    double size = synthesis_kernels[kernel] * synthesis_kernels[kernel];
    t->macs[kernel] += size * in * out * pixels;
    t->weights += size * in * out + 4 * out; /* and batch normalisation */
    t->activations += out * pixels;
    t->elementwise += 3 * out * pixels; /* batch normalisation 2, ReLU 1 */
}

void synthesis_measure(const struct synthesis_net *net, const struct synthesis_frame *frame,
                       struct synthesis_statistics *s)
{
    struct totals t = {0};
    double side = (double)frame->image, in = 3, batch = (double)frame->batch;
    t.activations = in * side * side;
    for (int gene = 0; gene < SYNTHESIS_GENES; gene++) {
        int out = net->channels[gene], kernel = gene / SYNTHESIS_DEPTH % SYNTHESIS_KERNELS;
        if (out) {
            add_layer(&t, in, out, kernel, side * side);
            in = out;
        }
        bool last = (gene + 1) % (SYNTHESIS_KERNELS * SYNTHESIS_DEPTH) == 0;
        if (last && gene + 1 < SYNTHESIS_GENES) {
            side = floor(side / 2); /* pooling */
            t.activations += in * side * side;
        }
    }
    t.activations += in + (double)frame->classes; /* mean over the image, then the last layer */
    t.elementwise += in * side * side + (double)frame->classes;
    t.others = in * (double)frame->classes;
    t.weights += (in + 1) * (double)frame->classes;
    double convolutions = t.macs[0] + t.macs[1] + t.macs[2];
    double flops = batch * (2 * (convolutions + t.others) + t.elementwise);
    s->footprint = 4 * (t.weights + batch * t.activations);
    s->intensity = flops / s->footprint;
    for (int k = 0; k < SYNTHESIS_KERNELS; k++)
        s->shares[k] = convolutions > 0 ? t.macs[k] / convolutions : 0;
}

/* ---- search ---- */

/* 0: exactly what is wanted. */
static double distance(const struct synthesis_net *net, const struct synthesis_frame *frame,
                       const struct synthesis_statistics *want)
{
    struct synthesis_statistics got;
    synthesis_measure(net, frame, &got);
    double sum =
        fabs(log(got.intensity / want->intensity)) + fabs(log(got.footprint / want->footprint));
    for (int k = 0; k < SYNTHESIS_KERNELS; k++)
        sum += fabs(got.shares[k] - want->shares[k]);
    return sum;
}

static int bounded(double channels)
{
    return channels < 1 ? 1 : channels > CHANNELS_MAX ? CHANNELS_MAX : (int)channels;
}

/* Removes a layer, or makes it a little or much wider or narrower. */
static int mutate(int channels, double kind, double amount)
{
    if (kind < 0.1)
        return 0;
    if (!channels || kind < 0.2)
        return bounded(pow(CHANNELS_MAX, amount));
    double factor = kind < 0.6 ? pow(2, 2 * amount - 1) : 1 + 0.1 * (amount - 0.5);
    int changed = bounded(channels * factor + 0.5);
    return changed != channels ? changed : bounded(channels + (amount < 0.5 ? -1 : 1));
}

/* One walk: what is no worse is kept. */
static double walk(uint64_t seed, const struct synthesis_frame *frame,
                   const struct synthesis_statistics *want, struct synthesis_net *net)
{
    uint64_t draw = 0;
    for (int gene = 0; gene < SYNTHESIS_GENES; gene++)
        net->channels[gene] =
            gene % SYNTHESIS_DEPTH == 0 ? bounded(pow(128, random_uniform(seed, draw++))) : 0;
    double best = distance(net, frame, want);
    for (int step = 0; step < STEPS; step++, draw += 3) {
        int gene = (int)(random_uniform(seed, draw) * SYNTHESIS_GENES);
        int before = net->channels[gene];
        net->channels[gene] =
            mutate(before, random_uniform(seed, draw + 1), random_uniform(seed, draw + 2));
        double now = distance(net, frame, want);
        if (now <= best)
            best = now;
        else
            net->channels[gene] = before;
    }
    return best;
}

void synthesis_search(const struct synthesis_frame *frame, const struct synthesis_statistics *want,
                      struct synthesis_net *net)
{
    double best = INFINITY;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct synthesis_net found;
        double now = walk(SEED + round, frame, want, &found);
        if (now >= best)
            continue;
        best = now;
        *net = found;
    }
}
