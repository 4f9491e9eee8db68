/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a plan takes, and which of its points fit into a budget. */
#ifndef HARNESS_CAMPAIGN_PLAN_TIME_H
#define HARNESS_CAMPAIGN_PLAN_TIME_H

#include "harness/suite/plan.h"

/* What sampling a point takes by its stopping rule alone, over all visits: the floors and the caps.
 * Building, compiling, verifying and timing steps come on top; a server's rates and steps on
 * several ranks are not known before. */
struct time_range {
    double shortest_s, longest_s;
};
struct time_range plan_time_range(const struct point *point);

/* Median wall time of a point in earlier runs; NAN when there was none. */
typedef double plan_history(void *context, const char *point_id);
/* Fills estimate_s of all points that run. */
void plan_estimate(struct plan *plan, plan_history *history, void *context);
/* The same from the results in a database; one that does not exist, or cannot be read, estimates
 * nothing. */
void plan_estimate_from(struct plan *plan, const char *db);

/* What a point is thought to take in all: as long as in earlier runs, otherwise the least. */
double plan_takes(const struct point *point);

/* Marks the points that do not fit into the budget: in the order of the plan, each that is left
 * when those before it took as long as they did in earlier runs, or, where there was none, the
 * least that their stopping rule allows. */
void plan_admit(struct plan *plan);

#endif
