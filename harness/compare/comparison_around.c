/* SPDX-License-Identifier: Apache-2.0
 *
 * What surrounded the runs that are compared, in figures of both sides: load, CPU time that others
 * took, clock and the machine's own levels. They are part of every comparison, also where they
 * agree: equal facts say nothing about how busy the machine was. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "harness/compare/comparison.h"

enum { LOADS = 2, TEXT = 64 };

static enum status note_figure(struct comparison_set *set, struct side_around *side, int what,
                               double figure, struct error *err)
{
    if (isnan(figure))
        return STATUS_OK;
    side->values[what] = arena_grow(&set->arena, side->values[what], &side->capacity[what],
                                    side->count[what] + 1, sizeof(double));
    if (!side->values[what])
        return FAIL_NO_MEMORY(err);
    side->values[what][side->count[what]++] = figure;
    return STATUS_OK;
}

enum status comparison_note_visits(struct comparison_set *set, bool is_head, struct store *store,
                                   int64_t result, struct error *err)
{
    static const char *const columns[AROUND_LEVELS] = {"steal_share", "wait_share", "clock_hz"};
    struct query_value value = {"result", NULL, (double)result};
    struct grid g;
    TRY(query_view(store, "compare_visits", &value, 1, &g, err));
    enum status status = STATUS_OK;
    for (int64_t row = 0; row < g.row_count; row++)
        for (int k = 0; status == STATUS_OK && k < AROUND_COUNT; k++) {
            const char *column =
                k < AROUND_LEVELS ? columns[k] : level_kinds[k - AROUND_LEVELS].name;
            status = note_figure(set, &set->visits[is_head], k, grid_number(&g, row, column), err);
        }
    grid_release(&g);
    return status;
}

static double middle(double *values, size_t count)
{
    stats_sort(values, (int)count);
    return stats_median(values, (int)count);
}

/* ---- load ---- */

static enum status read_load(const struct run_ref *run, double load[LOADS], struct error *err)
{
    struct query_value value = {"run", NULL, (double)run->id};
    struct grid g;
    TRY(query_view(run->store, "compare_load", &value, 1, &g, err));
    load[0] = load[1] = NAN;
    for (int64_t row = 0; row < g.row_count; row++) {
        const char *text = grid_text(&g, row, "value");
        char *end;
        double number = strtod(text, &end);
        if (end != text)
            load[strcmp(grid_text(&g, row, "phase"), "before") != 0] = number;
    }
    grid_release(&g);
    return STATUS_OK;
}

static enum status load_text(const struct run_list *list, char text[TEXT], struct error *err)
{
    static const char *const when[LOADS] = {"before", "after"};
    double loads[LOADS][RUNS_MAX];
    int count[LOADS] = {0, 0};
    size_t used = 0;
    for (int k = 0; k < list->count; k++) {
        double load[LOADS];
        TRY(read_load(&list->runs[k], load, err));
        for (int i = 0; i < LOADS; i++)
            if (!isnan(load[i]))
                loads[i][count[i]++] = load[i];
    }
    snprintf(text, TEXT, "not known");
    for (int i = 0; i < LOADS; i++)
        if (count[i])
            used += (size_t)snprintf(text + used, TEXT - used, "%s%.2f %s", used ? ", " : "",
                                     middle(loads[i], (size_t)count[i]), when[i]);
    return STATUS_OK;
}

/* ---- visits ---- */

/* 1.234e-05 s as "12.3 us", 2.5e10 as "25 GB/s". */
static void scaled_text(double value, const char *unit, char text[TEXT])
{
    static const char *const prefixes[] = {"n", "u", "m", "", "k", "M", "G", "T"};
    int k = 3;
    for (; k > 0 && value < 1; k--)
        value *= 1e3;
    for (; k < 7 && value >= 1e3; k++)
        value /= 1e3;
    snprintf(text, TEXT, "%.3g %s%s", value, prefixes[k], unit);
}

static void figure_text(enum around what, double value, char text[TEXT])
{
    int level = (int)what - AROUND_LEVELS;
    if (isnan(value))
        snprintf(text, TEXT, "not known");
    else if (what == AROUND_STEAL || what == AROUND_WAIT)
        snprintf(text, TEXT, "%.1f %%", 100 * value);
    else if (what == AROUND_CLOCK)
        scaled_text(value, "Hz", text);
    else
        scaled_text(level_kinds[level].better == BETTER_LOWER ? value : 1 / value,
                    level_kinds[level].unit, text);
}

enum status comparison_find_around(struct comparison_set *set, struct error *err)
{
    static const char *const what[AROUND_LEVELS] = {
        [AROUND_STEAL] = "CPU time taken by other virtual machines",
        [AROUND_WAIT] = "CPU time waited for other programs",
        [AROUND_CLOCK] = "clock",
    };
    struct difference *rows = arena_array(&set->arena, AROUND_COUNT + 1, sizeof(*rows));
    char text[2][TEXT];
    bool fine = rows != NULL;
    TRY(load_text(&set->base, text[0], err));
    TRY(load_text(&set->head, text[1], err));
    for (int k = -1; fine && k < AROUND_COUNT; k++) {
        struct difference *row = &rows[k + 1];
        if (k >= 0)
            for (int side = 0; side < 2; side++)
                figure_text((enum around)k,
                            middle(set->visits[side].values[k], set->visits[side].count[k]),
                            text[side]);
        row->what = k < 0               ? "load average (1 min)"
                    : k < AROUND_LEVELS ? what[k]
                                        : level_kinds[k - AROUND_LEVELS].words;
        row->base = arena_strdup(&set->arena, text[0]);
        row->head = arena_strdup(&set->arena, text[1]);
        fine = row->base && row->head;
    }
    set->around = rows;
    set->around_count = AROUND_COUNT + 1;
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}
