/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/plan_time.h"

#include <math.h>
#include <unistd.h>

#include "harness/measure/visits.h"
#include "results/query.h"

struct time_range plan_time_range(const struct point *point)
{
    const struct protocol *protocol = &point->protocol;
    struct time_range range = {0, 0};
    if (point->ranks)
        return (struct time_range){0, (double)NAN};
    int rounds = protocol->rounds > 1 ? protocol->rounds : 1;
    for (int round = 0; round < rounds; round++) {
        struct protocol visit = visit_protocol(protocol, round, round > 0);
        range.shortest_s += visit.warmup_s + visit.seconds_min;
        range.longest_s += visit.warmup_s + visit.seconds_max;
    }
    if (protocol->scenario == SCENARIO_SERVER)
        range.longest_s = NAN;
    return range;
}

/* ---- earlier runs ---- */

void plan_estimate(struct plan *plan, plan_history *history, void *context)
{
    for (int k = 0; k < plan->count; k++) {
        struct point *point = &plan->points[k];
        if (!point->skip)
            point->estimate_s = history(context, point->id);
    }
}

/* Median wall time of the good results of a point; `context` is the store. */
static double wall_time(void *context, const char *id)
{
    static const char sql[] = "SELECT wall_s FROM result JOIN point ON point.id = result.point "
                              "WHERE point.key = :point AND status = 'ok' ORDER BY wall_s";
    const struct query_value value = {.name = "point", .text = id};
    struct grid grid;
    if (query_sql(context, sql, &value, 1, &grid, NULL) != STATUS_OK)
        return NAN;
    double median = grid.row_count ? grid_number(&grid, grid.row_count / 2, "wall_s") : NAN;
    grid_release(&grid);
    return median;
}

void plan_estimate_from(struct plan *plan, const char *db)
{
    struct store *store;
    if (access(db, R_OK) != 0 || store_open(db, STORE_READ, &store, NULL) != STATUS_OK)
        return;
    plan_estimate(plan, wall_time, store);
    store_close(store);
}

/* ---- the budget ---- */

double plan_takes(const struct point *point)
{
    return isnan(point->estimate_s) ? plan_time_range(point).shortest_s : point->estimate_s;
}

void plan_admit(struct plan *plan)
{
    double spent = 0;
    for (int k = 0; k < plan->count; k++) {
        struct point *point = &plan->points[k];
        double takes = plan_takes(point);
        point->over_budget = plan->budget_s > 0 && !point->skip && spent + takes > plan->budget_s;
        if (!point->skip && !point->over_budget)
            spent += takes;
    }
}
