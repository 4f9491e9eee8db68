/* SPDX-License-Identifier: Apache-2.0 */
#include "results/compare_match.h"

#include <math.h>
#include <stdlib.h>

#include "results/placement.h"

static struct placement placement_by(const double slow[LEVEL_COUNT])
{
    double rate = slow[LEVEL_ARITHMETIC], time = slow[LEVEL_HAND_OVER];
    return (struct placement){time > 0 ? time : NAN, rate > 0 ? 1 / rate : NAN};
}

static bool matches(const double slow[LEVEL_COUNT], const struct placement *usual)
{
    struct placement placement = placement_by(slow);
    char how[8];
    return !placement_differs(&placement, usual, how, sizeof(how));
}

static enum status find_usual(const struct compare_point *p, struct placement *usual,
                              struct error *err)
{
    int count = 0, all = p->base.visit_count + p->head.visit_count + p->history_count;
    struct placement *readings = calloc((size_t)all + 1, sizeof(*readings));
    if (!readings)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < p->base.visit_count; k++)
        readings[count++] = placement_by(p->base.visits[k].slow);
    for (int k = 0; k < p->head.visit_count; k++)
        readings[count++] = placement_by(p->head.visits[k].slow);
    for (int k = 0; k < p->history_count; k++)
        readings[count++] = placement_by(p->history[k].slow);
    enum status status = placement_usual(readings, count, usual, err);
    free(readings);
    return status;
}

/* How many are kept, at `out`. */
static int keep_visits(const struct compare_side *side, const struct placement *usual,
                       struct compare_visit *out)
{
    int count = 0;
    for (int k = 0; k < side->visit_count; k++)
        if (matches(side->visits[k].slow, usual))
            out[count++] = side->visits[k];
    return count;
}

static int keep_past(const struct compare_point *p, const struct placement *usual,
                     struct compare_past *out)
{
    int count = 0;
    for (int k = 0; k < p->history_count; k++)
        if (matches(p->history[k].slow, usual))
            out[count++] = p->history[k];
    return count;
}

void compare_match_release(struct compare_matched *matched)
{
    free(matched->visits);
    free(matched->history);
    matched->visits = matched->history = NULL;
}

enum status compare_match(const struct compare_point *point, struct compare_matched *out,
                          struct error *err)
{
    struct placement usual;
    *out = (struct compare_matched){.point = *point};
    if (point->paired)
        return STATUS_OK;
    TRY(find_usual(point, &usual, err));
    size_t visits = (size_t)(point->base.visit_count + point->head.visit_count) + 1;
    struct compare_visit *kept = calloc(visits, sizeof(*kept));
    struct compare_past *past = calloc((size_t)point->history_count + 1, sizeof(*past));
    out->visits = kept;
    out->history = past;
    if (!kept || !past) {
        compare_match_release(out);
        return FAIL_NO_MEMORY(err);
    }
    int base = keep_visits(&point->base, &usual, kept);
    int head = keep_visits(&point->head, &usual, kept + base);
    out->known = isfinite(usual.hand_over_s) || isfinite(usual.multiply_add);
    out->base_met = base > 0;
    out->head_met = head > 0;
    if (base == 0 || head == 0)
        return STATUS_OK;
    out->point.base.visits = kept;
    out->point.base.visit_count = base;
    out->point.head.visits = kept + base;
    out->point.head.visit_count = head;
    out->point.history = past;
    out->point.history_count = keep_past(point, &usual, past);
    return STATUS_OK;
}
