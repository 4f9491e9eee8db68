/* SPDX-License-Identifier: Apache-2.0
 *
 * A point is measured in several visits. Each is a measurement of its own
 * (harness/measure/measure.h) with its share of what the protocol demands; here they become one.
 * How is said in docs/method.md.
 */
#ifndef HARNESS_MEASURE_VISITS_H
#define HARNESS_MEASURE_VISITS_H

#include "base/arena.h"
#include "harness/measure/measure.h"
#include "results/placement.h"

/* What one visit owes of the whole. again: the point was visited before in this run, so that less
 * has to be warmed up. */
struct protocol visit_protocol(const struct protocol *whole, int round, bool again);

struct visits {
    const struct protocol *protocol; /* of the point */
    struct visit_record *visits;     /* ascending by round */
    int count;
    struct sample_record *samples; /* of all visits */
    int64_t sample_count;
    const char *stop_reason;       /* of the latest visit */
    const struct placement *usual; /* of the run; NULL: not known yet */
};

/* One measurement of all visits that count; `out` borrows the samples, whose phase says whether
 * they count. A visit whose reason is not empty does not; where two others do it is set apart,
 * which its reason then says, and otherwise the point is invalid. One that was measured in another
 * placement than the usual is set apart likewise, but makes no point invalid. NAN in *out: what is
 * known by the visits alone (rate of a server, overhead). *spread: standard deviation of the
 * logarithms of the visits' medians; NAN where there is one. */
enum status visits_join(struct visits *visits, struct arena *arena, struct measurement *out,
                        double *spread, struct error *err);

/* How many visits count and were measured in the usual placement. */
int visits_good(const struct visit_record *visits, int count, const struct placement *usual);

/* How many of them were set apart. */
int visits_apart(const struct visit_record *visits, int count);

/* The order in which a round comes to the points: order[0 .. count) becomes a permutation. */
void visits_order(int64_t seed, int round, int *order, int count);

#endif
