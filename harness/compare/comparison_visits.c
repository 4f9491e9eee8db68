/* SPDX-License-Identifier: Apache-2.0
 *
 * The visits that a comparison judges by: those of the runs compared, and those of earlier runs on
 * the same machine in the same environment. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/compare/comparison.h"

enum { HISTORY_RUNS = 50 };

/* ---- in turns ---- */

static int partner_of(const struct run_list *base, const struct run_ref *head)
{
    for (int k = 0; k < base->count; k++)
        if (*head->turns && strcmp(base->runs[k].uuid, head->turns) == 0 &&
            strcmp(base->runs[k].turns, head->uuid) == 0)
            return k;
    return -1;
}

void comparison_find_turns(struct comparison_set *set)
{
    set->in_turns = set->base.count == set->head.count;
    for (int k = 0; k < set->head.count; k++)
        set->in_turns = set->in_turns && partner_of(&set->base, &set->head.runs[k]) >= 0;
}

/* ---- visits of the runs compared ---- */

static void read_levels(const struct grid *g, int64_t row, double slow[LEVEL_COUNT])
{
    if (row >= 0)
        for (int level = 0; level < LEVEL_COUNT; level++) {
            double value = grid_number(g, row, level_kinds[level].name);
            slow[level] = value > 0 && isfinite(value) ? value : 0;
        }
}

static int64_t visit_row(const struct grid *visits, int round)
{
    for (int64_t row = 0; row < visits->row_count; row++)
        if ((int)grid_number(visits, row, "round") == round)
            return row;
    return -1;
}

/* A visit without a median in the store does not count. */
static enum status add_visits(struct comparison_set *set, struct compare_side *side, int run,
                              const struct grid *visits, const struct grid *samples,
                              struct error *err)
{
    double *times = arena_array(&set->arena, (size_t)samples->row_count + 1, sizeof(*times));
    struct compare_visit *all = arena_array(
        &set->arena, (size_t)(side->visit_count + samples->row_count) + 1, sizeof(*all));
    if (!times || !all)
        return FAIL_NO_MEMORY(err);
    if (side->visit_count)
        memcpy(all, side->visits, (size_t)side->visit_count * sizeof(*all));
    side->visits = all;
    for (int64_t row = 0, next; row < samples->row_count; row = next) {
        int round = (int)grid_at(samples, row, 0)->integer;
        int64_t at = visit_row(visits, round);
        struct compare_visit *visit = &all[side->visit_count];
        *visit = (struct compare_visit){.times = times, .run = run, .round = round};
        for (next = row; next < samples->row_count; next++) {
            if ((int)grid_at(samples, next, 0)->integer != round)
                break;
            times[visit->count++] = 1e-9 * grid_at(samples, next, 1)->real;
        }
        times += visit->count;
        if (at >= 0 && !(grid_number(visits, at, "median_s") > 0))
            continue;
        read_levels(visits, at, visit->slow);
        side->visit_count++;
    }
    return STATUS_OK;
}

enum status comparison_add_visits(struct comparison_set *set, struct compare_side *side,
                                  bool is_head, int run, int64_t result, struct error *err)
{
    const struct run_ref *ref = is_head ? &set->head.runs[run] : &set->base.runs[run];
    struct query_value value = {"result", NULL, (double)result};
    struct grid visits, samples;
    if (is_head && set->in_turns)
        run = partner_of(&set->base, ref);
    TRY(query_view(ref->store, "compare_visits", &value, 1, &visits, err));
    enum status status = query_view(ref->store, "compare_samples", &value, 1, &samples, err);
    if (status == STATUS_OK) {
        status = add_visits(set, side, run, &visits, &samples, err);
        grid_release(&samples);
    }
    grid_release(&visits);
    return status;
}

/* ---- history ---- */

/* Programs by build and environment: a run that differs in either says nothing about another's
 * speed. */
struct programs {
    const char *build[HISTORY_RUNS + 2], *environment[HISTORY_RUNS + 2];
    int count;
};

/* The first such program, so that one that is in BASE and in HEAD counts as BASE's. */
static int program_of(struct programs *programs, const char *build, const char *environment)
{
    for (int k = 0; k < programs->count; k++)
        if (strcmp(programs->build[k], build) == 0 &&
            strcmp(programs->environment[k], environment) == 0)
            return k;
    programs->build[programs->count] = build;
    programs->environment[programs->count] = environment;
    return programs->count++;
}

static bool is_compared(const struct comparison_set *set, const char *uuid)
{
    const struct run_list *lists[] = {&set->base, &set->head};
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < lists[side]->count; k++)
            if (strcmp(lists[side]->runs[k].uuid, uuid) == 0)
                return true;
    return false;
}

/* One past the last row of a run that is compared: a verdict does not change with later runs. */
static int64_t end_row(const struct comparison_set *set, const struct grid *g)
{
    int64_t row = g->row_count;
    while (row > 0 && !is_compared(set, grid_text(g, row - 1, "uuid")))
        row--;
    return row;
}

/* The first row of the latest runs before `row` that are not compared themselves. */
static int64_t first_row(const struct comparison_set *set, const struct grid *g, int64_t row)
{
    const char *uuid = "";
    int runs = 0;
    while (row > 0) {
        const char *other = grid_text(g, row - 1, "uuid");
        if (strcmp(other, uuid) != 0 && !is_compared(set, other) && ++runs > HISTORY_RUNS)
            break;
        uuid = other;
        row--;
    }
    return row;
}

static enum status fill_history(struct comparison_set *set, const struct grid *g,
                                struct compare_point *point, struct error *err)
{
    const struct run_ref *base = &set->base.runs[0], *head = &set->head.runs[0];
    struct programs programs = {.count = 0};
    struct compare_past *past = arena_array(&set->arena, (size_t)g->row_count + 1, sizeof(*past));
    int count = 0;
    if (!past)
        return FAIL_NO_MEMORY(err);
    programs.build[COMPARE_BASE_PROGRAM] = base->build;
    programs.environment[COMPARE_BASE_PROGRAM] = base->environment;
    programs.build[COMPARE_HEAD_PROGRAM] = head->build;
    programs.environment[COMPARE_HEAD_PROGRAM] = head->environment;
    programs.count = COMPARE_HEAD_PROGRAM + 1;
    int64_t end = end_row(set, g);
    for (int64_t row = first_row(set, g, end); row < end; row++) {
        if (is_compared(set, grid_text(g, row, "uuid")))
            continue;
        past[count] = (struct compare_past){
            .program =
                program_of(&programs, grid_text(g, row, "build"), grid_text(g, row, "environment")),
            .run = (int)grid_number(g, row, "run"),
            .median = grid_number(g, row, "median_s"),
        };
        read_levels(g, row, past[count++].slow);
    }
    point->history = past;
    point->history_count = count;
    return STATUS_OK;
}

/* None where BASE is from another machine, whose runs scatter differently, and none in turns, where
 * both sides of a pair meet the same state of the machine. */
enum status comparison_load_history(struct comparison_set *set, struct error *err)
{
    const struct run_ref *base = &set->base.runs[0], *head = &set->head.runs[0];
    if (set->in_turns || strcmp(head->host_uid, base->host_uid) != 0)
        return STATUS_OK;
    for (size_t k = 0; k < set->count; k++) {
        struct query_value values[] = {{"point", set->points[k].key, 0},
                                       {"host", head->host_uid, 0},
                                       {"base", base->environment, 0},
                                       {"head", head->environment, 0}};
        struct grid g;
        TRY(query_view(head->store, "compare_history", values, 4, &g, err));
        enum status status = fill_history(set, &g, &set->inputs[k], err);
        grid_release(&g);
        TRY(status);
    }
    return STATUS_OK;
}
