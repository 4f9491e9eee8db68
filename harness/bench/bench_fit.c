/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/bench/bench_fit.h"

#include <math.h>

static bool is_no_operation(const struct timing_case *c)
{
    return c->copies || c->trip.messages;
}

double bench_copy_seconds(const struct bench_part *part, int64_t bytes)
{
    for (int k = 0; k < part->count; k++)
        if (part->cases[k].copies && part->cases[k].bytes == bytes &&
            part->results[k].status == STATUS_OK)
            return part->results[k].seconds;
    return NAN;
}

int64_t bench_bytes_sent(const struct timing_case *c, const struct timing *timing)
{
    struct comm_call call = {.dtype = c->dtype, .wire = c->wire};
    return timing->work.elements_sent * (int64_t)call_crossing_size(&call);
}

bool bench_fit(const struct bench_part *part, const struct algorithm *algorithm,
               enum comm_operation operation, bool in_place, struct alpha_beta *out)
{
    struct fit_point points[64];
    int count = 0;
    for (int k = 0; k < part->count && count < ARRAY_COUNT(points); k++) {
        const struct timing_case *c = &part->cases[k];
        const struct timing *t = &part->results[k];
        if (c->algorithm != algorithm || c->operation != operation || is_no_operation(c) ||
            c->in_place != in_place || t->status != STATUS_OK || t->work.messages == 0)
            continue;
        double bytes = (double)bench_bytes_sent(c, t);
        points[count++] = (struct fit_point){(double)t->work.messages, bytes, t->seconds};
    }
    return alpha_beta_fit(points, count, out);
}

bool bench_log_gp(const struct bench_part *part, struct log_gp *out)
{
    struct trip_time trips[64];
    int count = 0;
    for (int k = 0; k < part->count && count < ARRAY_COUNT(trips); k++) {
        const struct trip *trip = &part->cases[k].trip;
        if (trip->messages && part->results[k].status == STATUS_OK)
            trips[count++] =
                (struct trip_time){trip->messages, (double)trip->bytes,
                                   (double)trip->apart_ns * 1e-9, part->results[k].seconds};
    }
    return log_gp_fit(trips, count, out);
}
