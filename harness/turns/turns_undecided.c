/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/turns/turns_undecided.h"

#include <math.h>
#include <stdlib.h>

#include "results/compare.h"

/* All points as the procedure that judges them later wants them. */
struct judged {
    struct compare_point *points;
    struct comparison *out;
    struct compare_visit *visits; /* of all points, BASE's and HEAD's */
    double *times;                /* of all samples */
};

static enum status judged_open(struct judged *j, const struct turns_point *points, int count,
                               struct error *err)
{
    size_t visits = 1, samples = 1;
    for (int k = 0; k < count; k++) {
        visits += 2 * (size_t)points[k].complete;
        samples += points[k].count[0] + points[k].count[1];
    }
    *j = (struct judged){.points = calloc((size_t)count + 1, sizeof(*j->points)),
                         .out = calloc((size_t)count + 1, sizeof(*j->out)),
                         .visits = calloc(visits, sizeof(*j->visits)),
                         .times = calloc(samples, sizeof(*j->times))};
    return j->points && j->out && j->visits && j->times ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static void judged_close(struct judged *j)
{
    free(j->points);
    free(j->out);
    free(j->visits);
    free(j->times);
}

/* The visits in which both programs were measured are a point's first. */
static struct compare_side side_of(const struct turns_point *tp, int side,
                                   struct compare_visit *visits, double *times)
{
    size_t first = 0;
    for (size_t k = 0; k < tp->count[side]; k++)
        times[k] = (double)tp->samples[side][k].time_ns;
    for (int k = 0; k < tp->complete; k++) {
        const struct visit_record *visit = &tp->visits[side][k];
        visits[k] = (struct compare_visit){
            .times = times + first, .count = (int)visit->samples, .round = visit->round};
        first += (size_t)visit->samples;
    }
    return (struct compare_side){
        .state = SIDE_USABLE, .reason = "", .visits = visits, .visit_count = tp->complete};
}

static void fill(struct judged *j, const struct turns_point *points, int count)
{
    struct compare_visit *visits = j->visits;
    double *times = j->times;
    for (int k = 0; k < count; k++) {
        const struct turns_point *tp = &points[k];
        struct compare_side sides[2];
        for (int side = 0; side < 2; side++) {
            sides[side] = side_of(tp, side, visits, times);
            visits += tp->complete;
            times += tp->count[side];
        }
        j->points[k] = (struct compare_point){.paired = true, .base = sides[0], .head = sides[1]};
    }
}

static bool may_go_on(const struct turns_point *tp, int visits_max)
{
    return !tp->refused && tp->failed < 0 && tp->complete > 0 && tp->visit_count < visits_max;
}

/* Points of too few samples to be judged at all lack least: a visit more, and they are. */
static double lack(const struct comparison *c)
{
    return isnan(c->mde) ? COMPARE_DETECT_IN_TURNS : c->mde;
}

enum status turns_undecided(const struct turns_point *points, int count, int visits_max, int *order,
                            int *undecided, struct error *err)
{
    struct judged j;
    *undecided = 0;
    enum status status = judged_open(&j, points, count, err);
    if (status == STATUS_OK) {
        fill(&j, points, count);
        status = compare_points(j.points, count, NULL, j.out, err);
    }
    for (int k = 0; status == STATUS_OK && k < count; k++) {
        if (!may_go_on(&points[k], visits_max) || lack(&j.out[k]) < COMPARE_DETECT_IN_TURNS)
            continue;
        int at = (*undecided)++;
        for (; at > 0 && lack(&j.out[order[at - 1]]) > lack(&j.out[k]); at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
    judged_close(&j);
    return status;
}
