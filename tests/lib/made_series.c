/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/made_series.h"

#include <math.h>

#include "base/numbers/random.h"

double made_normal(uint64_t *draw)
{
    return random_normal(99, (*draw)++);
}

static void fill(double *times, double level, const struct made_world *w, uint64_t *draw)
{
    double e = made_normal(draw);
    for (int k = 0; k < SAMPLES; k++) {
        e = 0.3 * e + sqrt(1 - 0.09) * made_normal(draw);
        double outlier = random_uniform(7, (*draw)++) < 0.03 ? 0.3 : 0;
        times[k] = exp(level + w->sd * e + outlier);
    }
}

void made_series(struct made_data *d, const struct made_world *w, uint64_t *draw)
{
    for (int r = 0; r < w->runs; r++) {
        double drift = w->paired ? 0.05 * made_normal(draw) : 0;
        for (int side = 0; side < 2; side++) {
            double level = drift + w->tau * made_normal(draw) + (side ? log1p(w->effect) : 0);
            for (int v = 0; v < w->visits; v++) {
                int at = r * w->visits + v;
                fill(d->times[side][at], level, w, draw);
                d->visits[side][at] = (struct compare_visit){
                    .times = d->times[side][at], .count = SAMPLES, .run = r, .round = v};
            }
        }
    }
    double whole = sqrt(w->tau * w->tau + w->sd * w->sd * 1.57 * 1.86 / SAMPLES);
    for (int k = 0; k < w->history; k++)
        d->history[k] = (struct compare_past){.run = k, .median = exp(whole * made_normal(draw))};
    d->point = (struct compare_point){
        .base = {SIDE_USABLE, "", d->visits[0], w->runs * w->visits},
        .head = {SIDE_USABLE, "", d->visits[1], w->runs * w->visits},
        .paired = w->paired,
        .history = d->history,
        .history_count = w->history,
    };
}
