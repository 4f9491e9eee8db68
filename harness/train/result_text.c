/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/train/result_text.h"

#include <math.h>
#include <stdio.h>

double train_last_loss(const struct train_result *r)
{
    int64_t made = r->steps - r->first, count = (made + 9) / 10;
    double sum = 0;
    for (int64_t k = made - count; k < made; k++)
        sum += r->losses[k];
    return count ? sum / (double)count : (double)NAN;
}

double train_samples_per_s(const struct train_result *r)
{
    return r->time_ns ? (double)((r->steps - r->first) * r->batch) / ((double)r->time_ns * 1e-9)
                      : (double)NAN;
}

const char *train_loss_text(double loss, char *text, size_t size)
{
    if (isfinite(loss))
        snprintf(text, size, "%.4g", loss);
    else
        snprintf(text, size, "%s", isnan(loss) ? "not a number" : "infinite");
    return text;
}

void train_judgement_text(const struct quality *q, const struct train_judgement *j, char *text,
                          size_t size)
{
    char loss[24];
    size_t used =
        (size_t)snprintf(text, size, "loss %s", train_loss_text(j->loss, loss, sizeof(loss)));
    if (q && !isnan(j->quality) && used < size)
        used += (size_t)snprintf(text + used, size - used, ", %s %.4f", q->name, j->quality);
    if (q && !isnan(j->bayes) && used < size)
        used += (size_t)snprintf(text + used, size - used, " (at best %.4f)", j->bayes);
    if (q && q->also && !isnan(j->also) && used < size)
        snprintf(text + used, size - used, ", %s %.4f", q->also->name, j->also);
}
