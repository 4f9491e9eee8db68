/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/compare/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/command.h"
#include "harness/suite/point_label.h"

/* ---- points of the runs ---- */

static enum status find_point(struct comparison_set *set, const struct grid *g, int64_t row,
                              size_t *index, struct error *err)
{
    const char *key = grid_text(g, row, "key");
    for (*index = 0; *index < set->count; ++*index)
        if (strcmp(set->points[*index].key, key) == 0)
            return STATUS_OK;
    size_t capacity[2] = {set->capacity, set->capacity};
    set->points =
        arena_grow(&set->arena, set->points, &capacity[0], set->count + 1, sizeof(*set->points));
    set->inputs =
        arena_grow(&set->arena, set->inputs, &capacity[1], set->count + 1, sizeof(*set->inputs));
    if (!set->points || !set->inputs)
        return FAIL_NO_MEMORY(err);
    set->capacity = capacity[0];
    struct compared_point *point = &set->points[set->count];
    *point = (struct compared_point){
        .key = arena_strdup(&set->arena, key),
        .label = point_label(&set->arena, g, row),
        .canonical = arena_strdup(&set->arena, grid_text(g, row, "canonical")),
        .work_changed = "",
        .cause = "",
    };
    set->inputs[set->count] =
        (struct compare_point){.base = {.reason = ""}, .head = {.reason = ""}};
    set->count++;
    return point->key && point->label && point->canonical ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* A failure spoils the side. Invalid runs are left out while as many valid ones remain: what makes
 * a run invalid was fixed in advance, whichever side it favours. */
static enum side_state row_state(const struct run_ref *run, const struct grid *g, int64_t row)
{
    const char *status = grid_text(g, row, "status");
    if (strcmp(status, "failed") == 0 || strcmp(status, "wrong") == 0)
        return SIDE_FAILED;
    return run->invalid || strcmp(grid_text(g, row, "verdict"), "valid") != 0 ? SIDE_INVALID
                                                                              : SIDE_USABLE;
}

static const char *row_reason(struct arena *arena, const struct run_ref *run, const struct grid *g,
                              int64_t row)
{
    const char *reason = grid_text(g, row, "reason"), *status = grid_text(g, row, "status");
    bool failed = row_state(run, g, row) == SIDE_FAILED;
    const char *text = arena_printf(arena, "%s%s%s", failed ? status : "", failed ? ": " : "",
                                    *reason        ? reason
                                    : run->invalid ? run->invalid
                                                   : "");
    return text ? text : "";
}

/* False when the row's samples do not count. */
static bool side_judge(struct compared_point *point, bool is_head, struct compare_side *side,
                       enum side_state state, const char *reason)
{
    if (state == SIDE_INVALID) {
        point->left_out[is_head]++;
        point->left_out_why[is_head] = reason;
    }
    if (side->state == SIDE_FAILED || (side->state == SIDE_USABLE && state == SIDE_INVALID))
        return false;
    side->state = state;
    side->reason = state == SIDE_USABLE ? "" : reason;
    return state == SIDE_USABLE;
}

static int run_count(const struct compare_side *side)
{
    int runs = 0;
    for (int k = 0; k < side->visit_count; k++)
        runs += k == 0 || side->visits[k].run != side->visits[k - 1].run;
    return runs;
}

static void settle_side(struct compare_side *side, const struct compared_point *point, bool is_head)
{
    if (side->state != SIDE_USABLE || point->left_out[is_head] <= run_count(side))
        return;
    side->state = SIDE_INVALID;
    side->reason = point->left_out_why[is_head];
}

static enum status load_row(struct comparison_set *set, bool is_head, int number,
                            const struct grid *g, int64_t row, struct error *err)
{
    const struct run_ref *run = is_head ? &set->head.runs[number] : &set->base.runs[number];
    size_t index;
    TRY(find_point(set, g, row, &index, err));
    struct compare_side *side = is_head ? &set->inputs[index].head : &set->inputs[index].base;
    struct compared_point *point = &set->points[index];
    int64_t *first = is_head ? &point->head_result : &point->base_result;
    int64_t result = (int64_t)grid_number(g, row, "result");
    if (strcmp(grid_text(g, row, "status"), "skipped") == 0) {
        side->reason = arena_printf(&set->arena, "skipped: %s", grid_text(g, row, "reason"));
        return side->reason ? STATUS_OK : FAIL_NO_MEMORY(err);
    }
    if (!*first) {
        *first = result;
        point->store[is_head] = run->store;
        comparison_read_work(&point->work[is_head], g, row);
    }
    TRY(comparison_note_visits(set, is_head, run->store, result, err));
    if (!side_judge(point, is_head, side, row_state(run, g, row),
                    row_reason(&set->arena, run, g, row)))
        return STATUS_OK;
    TRY(comparison_read_rate(set, &point->rate, is_head, g, row, err));
    return comparison_add_visits(set, side, is_head, number, result, err);
}

static enum status load_runs(struct comparison_set *set, bool is_head, struct error *err)
{
    const struct run_list *list = is_head ? &set->head : &set->base;
    for (int k = 0; k < list->count; k++) {
        const struct run_ref *run = &list->runs[k];
        struct query_value value = {"run", NULL, (double)run->id};
        struct grid g;
        TRY(query_view(run->store, "compare_points", &value, 1, &g, err));
        enum status status = STATUS_OK;
        for (int64_t row = 0; status == STATUS_OK && row < g.row_count; row++)
            status = load_row(set, is_head, k, &g, row, err);
        grid_release(&g);
        TRY(status);
    }
    return STATUS_OK;
}

/* ---- all together ---- */

static bool is_compared(const struct run_list *list, const char *uuid)
{
    for (int k = 0; k < list->count; k++)
        if (strcmp(list->runs[k].uuid, uuid) == 0)
            return true;
    return false;
}

static void drop_skipped(struct comparison_set *set)
{
    size_t kept = 0;
    for (size_t k = 0; k < set->count; k++) {
        settle_side(&set->inputs[k].base, &set->points[k], false);
        settle_side(&set->inputs[k].head, &set->points[k], true);
        if (set->inputs[k].base.state == SIDE_ABSENT && set->inputs[k].head.state == SIDE_ABSENT)
            continue;
        set->points[kept] = set->points[k];
        set->inputs[kept++] = set->inputs[k];
    }
    set->count = kept;
}

static double machine_of(const struct comparison_set *set, const struct compared_point *point)
{
    char device[32];
    const char *threads = strstr(point->canonical, "threads=");
    const char *on = strstr(point->canonical, "device=");
    on = on ? on + strlen("device=") : "cpu";
    snprintf(device, sizeof(device), "%.*s", (int)strcspn(on, " "), on);
    return comparison_machine(set, device,
                              threads ? (int)strtol(threads + strlen("threads="), NULL, 10) : 0);
}

static enum status judge(struct comparison_set *set, const struct compare_rules *rules,
                         struct error *err)
{
    const struct run_ref *base = &set->base.runs[0], *head = &set->head.runs[0];
    for (size_t k = 0; k < set->count; k++) {
        set->inputs[k].machine = machine_of(set, &set->points[k]);
        set->inputs[k].paired = set->in_turns;
        set->inputs[k].same_program =
            set->same_program && strcmp(base->environment, head->environment) == 0;
    }
    TRY(comparison_load_history(set, err));
    set->verdicts = arena_array(&set->arena, set->count, sizeof(*set->verdicts));
    if (!set->verdicts)
        return FAIL_NO_MEMORY(err);
    TRY(compare_points(set->inputs, (int)set->count, rules, set->verdicts, err));
    comparison_settle_rates(set);
    for (size_t k = 0; k < set->count; k++) {
        set->totals[set->verdicts[k].verdict]++;
        TRY(comparison_find_cause(set, k, err));
    }
    return STATUS_OK;
}

static enum status load(struct comparison_set *set, const char *base, const char *head,
                        const char *db, const struct compare_rules *rules, struct error *err)
{
    if (run_list_open(&set->base, base, db, err) != STATUS_OK)
        return error_context(err, "BASE");
    if (run_list_open(&set->head, head, db, err) != STATUS_OK)
        return error_context(err, "HEAD");
    for (int k = 0; k < set->base.count; k++)
        if (is_compared(&set->head, set->base.runs[k].uuid))
            return FAIL(err, STATUS_FAILED, "\"%s\" is in BASE and in HEAD (run %s)",
                        set->base.runs[k].word, set->base.runs[k].uuid);
    comparison_find_turns(set);
    TRY(load_runs(set, false, err));
    TRY(load_runs(set, true, err));
    drop_skipped(set);
    if (!set->count)
        return FAIL(err, STATUS_FAILED, "neither %s nor %s has results", base, head);
    TRY(comparison_find_differences(set, err));
    TRY(comparison_find_around(set, err));
    return judge(set, rules, err);
}

enum status comparison_open(struct comparison_set *set, const char *base, const char *head,
                            const char *db, const struct compare_rules *rules, struct error *err)
{
    *set = (struct comparison_set){.attribution = ""};
    enum status status = load(set, base, head, db, rules, err);
    if (status != STATUS_OK)
        comparison_close(set);
    return status;
}

void comparison_close(struct comparison_set *set)
{
    for (size_t k = 0; k < set->sample_count; k++)
        free(set->samples[k]);
    set->sample_count = 0;
    grid_release(&set->ceilings[0]);
    grid_release(&set->ceilings[1]);
    run_list_close(&set->base);
    run_list_close(&set->head);
    arena_release(&set->arena);
}

int comparison_exit_code(const struct comparison_set *set)
{
    if (set->totals[VERDICT_REGRESSED])
        return EXIT_REGRESSION;
    if (set->totals[VERDICT_FAILED])
        return EXIT_WRONG;
    if (set->totals[VERDICT_INVALID] || set->totals[VERDICT_INCONCLUSIVE] ||
        set->totals[VERDICT_MACHINE] || set->totals[VERDICT_MISSING])
        return EXIT_INCONCLUSIVE;
    return EXIT_FINE;
}
