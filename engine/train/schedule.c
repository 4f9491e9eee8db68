/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "engine/train/recipe.h"

static int64_t begin_of(const struct schedule *s)
{
    return s->over_warm_up ? 0 : s->warm_up;
}

/* How much of the decay is done, in [0, 1]. */
static double progress(const struct schedule *s, int64_t step)
{
    double all = (double)(s->steps - begin_of(s)), done = (double)(step - begin_of(s));
    return all <= 0 || done >= all ? 1 : done / all;
}

/* How many of at[] are over. */
static int points_over(const struct schedule *s, int64_t step)
{
    int k = 0;
    while (k < SCHEDULE_POINTS && s->at[k] > 0 && step >= s->at[k])
        k++;
    return k;
}

static double decayed(const struct schedule *s, int64_t step)
{
    double span = s->rate - s->end, every = s->every > 0 ? (double)s->every : INFINITY;
    switch (s->kind) {
    case SCHEDULE_STEP:
        if (step < s->from || s->every <= 0)
            return s->rate;
        return s->rate * pow(s->factor, (double)((step - s->from) / s->every));
    case SCHEDULE_MULTISTEP:
        return s->rate * pow(s->factor, points_over(s, step));
    case SCHEDULE_TABLE:
        return s->rate * s->scale[points_over(s, step)];
    case SCHEDULE_POLYNOMIAL:
        return s->end + span * pow(1 - progress(s, step), s->power);
    case SCHEDULE_COSINE:
        return s->end + span * 0.5 * (1 + cos(acos(-1.0) * progress(s, step)));
    case SCHEDULE_EXPONENTIAL:
        return s->rate * pow(s->factor, (double)(step - begin_of(s)) / every);
    case SCHEDULE_CONSTANT:
        break;
    }
    return s->rate;
}

double schedule_rate(const struct schedule *s, int64_t step)
{
    if (step < s->warm_up)
        return s->start + (s->rate - s->start) * (double)step / (double)s->warm_up;
    return decayed(s, step);
}
