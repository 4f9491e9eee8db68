/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/compare/against.h"

#include <string.h>

#include "harness/compare/comparison_print.h"

static void make_change(const struct comparison_set *set, size_t point, struct report_change *to)
{
    const struct compared_point *p = &set->points[point];
    const struct comparison *c = &set->verdicts[point];
    bool quiet = c->verdict == VERDICT_UNCHANGED;
    *to = (struct report_change){.key = p->key,
                                 .label = p->label,
                                 .verdict = verdict_name(c->verdict),
                                 .why = *p->cause ? p->cause
                                        : quiet   ? p->work_changed
                                                  : c->reason,
                                 .base_s = c->base_median,
                                 .head_s = c->head_median,
                                 .ratio = c->ratio,
                                 .ci_low = c->ci_low,
                                 .ci_high = c->ci_high,
                                 .rate = p->rate.name,
                                 .base_rate = p->rate.base,
                                 .head_rate = p->rate.head,
                                 .rate_ratio = p->rate.ratio};
    to->rate_verdict = p->rate.judged ? to->verdict : "not judged";
}

static const char *(*rows_of(struct arena *arena, const struct difference *all, size_t count))[3]
{
    const char *(*rows)[3] = arena_array(arena, count + 1, sizeof(*rows));
    if (rows)
        for (size_t k = 0; k < count; k++) {
            rows[k][0] = all[k].what;
            rows[k][1] = all[k].base;
            rows[k][2] = all[k].head;
        }
    return rows;
}

enum status against_make(struct comparison_set *set, struct report_against *against,
                         struct error *err)
{
    char totals[256];
    struct report_change *changes = arena_array(&set->arena, set->count, sizeof(*changes));
    const char *(*rows)[3] = rows_of(&set->arena, set->differences, set->difference_count);
    const char *(*around)[3] = rows_of(&set->arena, set->around, set->around_count);
    if (!changes || !rows || !around)
        return FAIL_NO_MEMORY(err);
    for (size_t k = 0; k < set->count; k++)
        make_change(set, comparison_ordered(set, k), &changes[k]);
    comparison_totals(set, totals, sizeof(totals));
    *against = (struct report_against){.store = set->base.runs[0].store,
                                       .run = set->base.runs[0].id,
                                       .changes = changes,
                                       .change_count = (int)set->count,
                                       .differences = rows,
                                       .difference_count = (int)set->difference_count,
                                       .around = around,
                                       .around_count = (int)set->around_count,
                                       .attribution = set->attribution,
                                       .totals = arena_strdup(&set->arena, totals)};
    return against->totals ? STATUS_OK : FAIL_NO_MEMORY(err);
}
