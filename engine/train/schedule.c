/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/recipe.h"

#include <math.h>

/* How much of the training is done, warm-up not counted, in [0, 1]. */
static double progress(const struct schedule *s, int64_t step)
{
    double all = (double)(s->steps - s->warm_up), done = (double)(step - s->warm_up);
    return all <= 0 || done >= all ? 1 : done / all;
}

static double decayed(const struct schedule *s, int64_t step)
{
    double rate = s->rate;
    switch (s->kind) {
    case SCHEDULE_STEP:
        return s->every > 0 ? rate * pow(s->factor, (double)(step / s->every)) : rate;
    case SCHEDULE_MULTISTEP:
        for (int k = 0; k < SCHEDULE_POINTS && s->at[k] > 0 && step >= s->at[k]; k++)
            rate *= s->factor;
        return rate;
    case SCHEDULE_POLYNOMIAL:
        return s->end + (rate - s->end) * pow(1 - progress(s, step), s->power);
    case SCHEDULE_COSINE:
        return s->end + (rate - s->end) * 0.5 * (1 + cos(acos(-1.0) * progress(s, step)));
    case SCHEDULE_EXPONENTIAL:
        if (s->every <= 0)
            return rate;
        return rate * pow(s->factor, (double)(step - s->warm_up) / (double)s->every);
    case SCHEDULE_CONSTANT:
        break;
    }
    return rate;
}

double schedule_rate(const struct schedule *s, int64_t step)
{
    if (step < s->warm_up) {
        double top = decayed(s, s->warm_up);
        return s->start + (top - s->start) * (double)(step + 1) / (double)s->warm_up;
    }
    return decayed(s, step);
}
