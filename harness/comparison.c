/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/command.h"
#include "harness/point_label.h"

enum { HISTORY_RUNS = 50 };

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

static enum status add_series(struct comparison_set *set, struct compare_side *side,
                              const struct run_ref *run, int64_t result, struct error *err)
{
    double *times;
    int64_t count;
    TRY(query_samples(run->store, result, &times, &count, err));
    set->samples = arena_grow(&set->arena, set->samples, &set->sample_capacity,
                              set->sample_count + 1, sizeof(*set->samples));
    struct compare_series *runs =
        arena_array(&set->arena, (size_t)side->run_count + 1, sizeof(*runs));
    if (!set->samples || !runs) {
        free(times);
        return FAIL_NO_MEMORY(err);
    }
    set->samples[set->sample_count++] = times;
    for (int64_t k = 0; k < count; k++)
        times[k] *= 1e-9;
    if (side->run_count)
        memcpy(runs, side->runs, (size_t)side->run_count * sizeof(*runs));
    runs[side->run_count++] = (struct compare_series){times, (int)count};
    side->runs = runs;
    return STATUS_OK;
}

/* A failure spoils the side. Invalid runs are left out while as many valid ones remain: what makes
 * a run invalid was fixed before anybody looked at which way it leans. */
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

static void settle_side(struct compare_side *side, const struct compared_point *point, bool is_head)
{
    if (side->state != SIDE_USABLE || point->left_out[is_head] <= side->run_count)
        return;
    side->state = SIDE_INVALID;
    side->reason = point->left_out_why[is_head];
}

static enum status load_row(struct comparison_set *set, bool is_head, const struct run_ref *run,
                            const struct grid *g, int64_t row, struct error *err)
{
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
    if (!side_judge(point, is_head, side, row_state(run, g, row),
                    row_reason(&set->arena, run, g, row)))
        return STATUS_OK;
    TRY(comparison_read_rate(set, &point->rate, is_head, g, row, err));
    return add_series(set, side, run, result, err);
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
            status = load_row(set, is_head, run, &g, row, err);
        grid_release(&g);
        TRY(status);
    }
    return STATUS_OK;
}

/* ---- history ---- */

static bool is_compared(const struct run_list *list, const char *uuid)
{
    for (int k = 0; k < list->count; k++)
        if (strcmp(list->runs[k].uuid, uuid) == 0)
            return true;
    return false;
}

/* Medians of good runs on HEAD's machine other than HEAD itself; none for another machine's BASE,
 * whose runs scatter in their own way. */
static enum status load_history(struct comparison_set *set, size_t index, struct error *err)
{
    const struct run_ref *head = &set->head.runs[0];
    if (strcmp(head->host_uid, set->base.runs[0].host_uid) != 0)
        return STATUS_OK;
    struct query_value values[] = {{"point", set->points[index].key, 0}, {"host", head->host, 0}};
    struct grid g;
    TRY(query_view(head->store, "history", values, 2, &g, err));
    double *medians = arena_array(&set->arena, HISTORY_RUNS, sizeof(*medians));
    int64_t row = g.row_count;
    int count = 0;
    while (medians && row-- > 0 && count < HISTORY_RUNS) {
        double median = grid_number(&g, row, "median");
        if (median > 0 && strcmp(grid_text(&g, row, "status"), "ok") == 0 &&
            strcmp(grid_text(&g, row, "verdict"), "valid") == 0 &&
            !is_compared(&set->head, grid_text(&g, row, "uuid")))
            medians[count++] = median;
    }
    grid_release(&g);
    set->inputs[index].history = medians;
    set->inputs[index].history_count = count;
    return medians ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* ---- all together ---- */

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
    for (size_t k = 0; k < set->count; k++) {
        TRY(load_history(set, k, err));
        set->inputs[k].machine = machine_of(set, &set->points[k]);
    }
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
    TRY(load_runs(set, false, err));
    TRY(load_runs(set, true, err));
    drop_skipped(set);
    if (!set->count)
        return FAIL(err, STATUS_FAILED, "neither %s nor %s has results", base, head);
    TRY(comparison_find_differences(set, err));
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
        set->totals[VERDICT_MISSING])
        return EXIT_INCONCLUSIVE;
    return EXIT_FINE;
}
