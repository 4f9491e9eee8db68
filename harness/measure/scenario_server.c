/* SPDX-License-Identifier: Apache-2.0
 *
 * The server scenario. At a given rate, queries arrive by a Poisson process (exponential gaps from
 * a counter-based generator, so that every rate sees the same sequence of gaps, only scaled) and
 * are served one after the other. The highest passing rate is found by bisection of the logarithm:
 * the number of queries above the bound is monotone in the rate but for noise. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers/random.h"
#include "base/numbers/stats.h"
#include "harness/measure/sampler.h"

enum { TRIES = 8, CONFIRMATIONS = 4 };

static const double resolution = 1.02; /* ratio of two rates that are tried */

struct attempt {
    double rate_hz, latency_s; /* the wanted quantile */
    bool passes;
};

static double gap(const struct sampler *s, int64_t query)
{
    double u = random_uniform(s->options->seed, (uint64_t)query);
    return -log1p(-u);
}

static void serve_one(struct sampler *s, uint64_t arrival_ns, int64_t query)
{
    const struct time_source *time = s->options->time;
    if (sampler_now(s) < arrival_ns)
        time->sleep_until(time->context, arrival_ns);
    uint64_t start = sampler_now(s);
    sampler_take(s, SAMPLE_TIME, 1);
    struct sample_record *sample = &s->out->samples[s->out->count - 1];
    if (sampler_set_apart(s, 1))
        sample->phase = SAMPLE_TIME; /* queries that came meanwhile waited: all are in doubt */
    sample->queue_ns = (int64_t)(start - arrival_ns);
    s->times_s[query] = (double)(sample->time_ns + sample->queue_ns) * 1e-9;
}

/* Serves all queries at one rate; the samples replace those of the attempt before. */
static struct attempt attempt_rate(struct sampler *s, double rate_hz, int64_t keep, double share)
{
    const struct protocol *p = s->options->protocol;
    double arrival_s = 0;
    s->out->count = keep;
    uint64_t start = sampler_now(s);
    int64_t query = 0;
    for (; query < p->server_queries && !s->out->interrupted; query++) {
        arrival_s += gap(s, query) / rate_hz;
        serve_one(s, start + (uint64_t)(arrival_s * 1e9), query);
        sampler_go_on(s, share);
    }
    memcpy(s->scratch, s->times_s, (size_t)query * sizeof(*s->scratch));
    stats_sort(s->scratch, (int)query);
    struct attempt a = {.rate_hz = rate_hz};
    a.latency_s = stats_quantile(s->scratch, (int)query, p->latency_quantile);
    a.passes = a.latency_s <= p->latency_bound_s && !s->out->interrupted;
    return a;
}

static double service_time(const struct sampler *s)
{
    int count = 0;
    for (int64_t k = 0; k < s->out->count; k++)
        s->scratch[count++] = (double)s->out->samples[k].time_ns * 1e-9;
    stats_sort(s->scratch, count);
    return stats_median(s->scratch, count);
}

/* Bisects (low passes, high does not) and leaves the samples of the best passing rate. */
static struct attempt search(struct sampler *s, double high_hz, int64_t keep)
{
    struct attempt best = attempt_rate(s, high_hz / 20, keep, 0);
    struct attempt latest = best;
    double low_hz = best.rate_hz;
    for (int k = 1; k < TRIES && best.passes && high_hz / low_hz > resolution; k++) {
        latest = attempt_rate(s, sqrt(low_hz * high_hz), keep, (double)k / (TRIES + 1));
        if (s->out->interrupted)
            break;
        if (latest.passes)
            best = latest;
        *(latest.passes ? &low_hz : &high_hz) = latest.rate_hz;
    }
    /* The samples that are kept must be those of the reported rate, so it is measured again, and
     * may fail now because of noise. */
    for (int k = 0; k < CONFIRMATIONS && latest.rate_hz != best.rate_hz && best.passes; k++) {
        latest = best = attempt_rate(s, best.rate_hz, keep, (double)TRIES / (TRIES + 1));
        if (!best.passes && k + 1 < CONFIRMATIONS)
            best = (struct attempt){best.rate_hz / resolution, NAN, true};
    }
    return best;
}

enum status server_run(struct sampler *s, struct error *err)
{
    const struct protocol *p = s->options->protocol;
    struct measurement *m = s->out;
    if (!(p->latency_bound_s > 0) || p->server_queries < 1)
        return FAIL(err, STATUS_FAILED,
                    "scenario server needs a latency bound: server.latency_bound in seconds");
    double service_s = service_time(s);
    int64_t keep = m->count;
    struct attempt best = search(s, 1 / service_s, keep);
    m->timed = m->count - keep;
    m->rate_hz = best.passes ? best.rate_hz : NAN;
    snprintf(m->stop_reason, sizeof(m->stop_reason), "p%g of %lld queries is %.3g ms at %.4g/s",
             100 * p->latency_quantile, (long long)m->timed, best.latency_s * 1e3, best.rate_hz);
    if (!best.passes && !m->interrupted)
        snprintf(m->reason, sizeof(m->reason),
                 "no rate keeps p%g within %.3g ms: one execution alone takes %.3g ms",
                 100 * p->latency_quantile, p->latency_bound_s * 1e3, service_s * 1e3);
    return STATUS_OK;
}
