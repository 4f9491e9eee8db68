/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge history: one point over all runs, with the places where its level changed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/numbers/series.h"
#include "base/text/json.h"
#include "harness/cli/command.h"
#include "harness/suite/point_label.h"

enum { CHANGES_MAX = 32, RUNS_SHOWN = 40, RUNS_JUDGED = 200, POINTS_DRAWN = 8, CHART = 44 };

struct history_options {
    const char *db, *host;
    int64_t last;
    bool json;
};

static const struct option options[] = {
    {"db", 'd', OPTION_TEXT, offsetof(struct history_options, db), "FILE",
     "the database (default out/ridge.db)"},
    {"host", 0, OPTION_TEXT, offsetof(struct history_options, host), "NAME",
     "runs of this machine (default: of the latest run's)"},
    {"last", 'n', OPTION_COUNT, offsetof(struct history_options, last), "N",
     "number of runs to draw (default 40)"},
    {"json", 0, OPTION_FLAG, offsetof(struct history_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

/* Change points are found among good runs; `row` maps those back to the grid. */
struct history {
    struct arena arena;
    const char *key, *label, *host;
    struct grid runs, roofs;
    int64_t *row;
    int good;
    struct change_point changes[CHANGES_MAX];
    int change_count;
};

static bool is_good(const struct grid *g, int64_t row)
{
    return grid_number(g, row, "median") > 0 && strcmp(grid_text(g, row, "status"), "ok") == 0 &&
           strcmp(grid_text(g, row, "verdict"), "valid") == 0;
}

static enum status find_changes(struct history *h, struct error *err)
{
    size_t rows = (size_t)h->runs.row_count;
    double *values = arena_array(&h->arena, rows + 1, 2 * sizeof(*values));
    h->row = arena_array(&h->arena, rows + 1, sizeof(*h->row));
    if (!values || !h->row)
        return FAIL_NO_MEMORY(err);
    for (int64_t row = 0; row < h->runs.row_count; row++)
        if (is_good(&h->runs, row)) {
            values[h->good] = log(grid_number(&h->runs, row, "median"));
            h->row[h->good++] = row;
        }
    /* The time for this grows with the square of their number: older runs are drawn but not
     * judged. */
    int from = h->good > RUNS_JUDGED ? h->good - RUNS_JUDGED : 0;
    struct change_rules rules = {.seed = 1};
    h->change_count = series_changes(values + from, h->good - from, &rules, values + rows + 1,
                                     h->changes, CHANGES_MAX);
    for (int k = 0; k < h->change_count; k++)
        h->changes[k].index += from;
    return STATUS_OK;
}

/* ---- which point ---- */

static enum status fail_unknown(const char *word, struct error *err)
{
    return FAIL(err, STATUS_FAILED,
                "no point \"%s\" in the database; without a word, `ridge history` lists all", word);
}

static enum status fail_ambiguous(const struct grid *points, const char *word, struct error *err)
{
    struct arena arena = {0};
    for (int64_t row = 0; row < points->row_count; row++) {
        const char *label = point_label(&arena, points, row);
        fprintf(stderr, "%s  %3.0f runs  %s\n", grid_text(points, row, "key"),
                grid_number(points, row, "results"), label ? label : "");
    }
    arena_release(&arena);
    return FAIL(err, STATUS_FAILED, "\"%s\" is %lld points, listed above: name one by its id", word,
                (long long)points->row_count);
}

static enum status use_point(struct history *h, const struct grid *points, int64_t row,
                             const char *host, struct error *err)
{
    h->key = arena_strdup(&h->arena, grid_text(points, row, "key"));
    h->label = point_label(&h->arena, points, row);
    h->host = arena_strdup(&h->arena, host ? host : grid_text(points, row, "host"));
    if (!h->key || !h->label || !h->host)
        return FAIL_NO_MEMORY(err);
    if (!host && grid_number(points, row, "hosts") > 1)
        fprintf(stderr, "ridge: runs of %s only; --host shows those of %.0f other machines\n",
                h->host, grid_number(points, row, "hosts") - 1);
    return STATUS_OK;
}

static enum status load(struct history *h, struct store *store, struct error *err)
{
    struct query_value values[] = {{"point", h->key, 0}, {"host", h->host, 0}};
    TRY(query_view(store, "history", values, 2, &h->runs, err));
    TRY(query_view(store, "history_roofs", values, 1, &h->roofs, err));
    if (!h->runs.row_count)
        return FAIL(err, STATUS_FAILED, "%s has no runs on machine \"%s\"", h->label, h->host);
    return find_changes(h, err);
}

/* How near the result in a row of `runs` came to its roof; NAN: that run measured none. */
static double roof_share(const struct history *h, int64_t run, const char **bound)
{
    double result = grid_number(&h->runs, run, "result");
    *bound = "";
    for (int64_t row = 0; row < h->roofs.row_count; row++)
        if (grid_number(&h->roofs, row, "result") == result) {
            *bound = grid_text(&h->roofs, row, "bound");
            return grid_number(&h->roofs, row, "fraction_of_roof");
        }
    return NAN;
}

/* ---- text ---- */

static void scale_of(const struct history *h, int from, double *low, double *high)
{
    *low = INFINITY;
    *high = 0;
    for (int k = from; k < h->good; k++) {
        double median = grid_number(&h->runs, h->row[k], "median");
        double ci_low = grid_number(&h->runs, h->row[k], "ci_low");
        double ci_high = grid_number(&h->runs, h->row[k], "ci_high");
        *low = fmin(*low, fmin(median, isnan(ci_low) ? median : ci_low));
        *high = fmax(*high, fmax(median, isnan(ci_high) ? median : ci_high));
    }
    /* A quiet history must not look wild: the scale spans at least 5 %. */
    double widen = fmax(0, (1.05 * *low - *high) / 2);
    *low -= widen;
    *high += widen;
}

static int place(double value, double low, double high)
{
    int at = (int)lround((value - low) / (high - low) * (CHART - 1));
    return at < 0 ? 0 : at >= CHART ? CHART - 1 : at;
}

static void print_bar(const struct grid *g, int64_t row, double low, double high)
{
    char bar[CHART + 1];
    double median = grid_number(g, row, "median"), ci_low = grid_number(g, row, "ci_low");
    double ci_high = grid_number(g, row, "ci_high");
    memset(bar, ' ', CHART);
    bar[CHART] = 0;
    if (!isnan(ci_low) && !isnan(ci_high))
        for (int k = place(ci_low, low, high); k <= place(ci_high, low, high); k++)
            bar[k] = '-';
    bar[place(median, low, high)] = 'o';
    printf("|%s|\n", bar);
}

/* Letters, not bytes: a tag may be written in any script. */
static void print_cut(const char *text, int letters)
{
    for (; *text && letters > 0; letters--) {
        int length = utf8_length(text);
        fwrite(text, 1, (size_t)length, stdout);
        text += length;
    }
    printf("%*s", letters, "");
}

static void print_run(const struct history *h, int64_t row, double low, double high)
{
    const struct grid *g = &h->runs;
    const char *tag = grid_text(g, row, "tag");
    printf("%.10s  %-12.12s ", grid_text(g, row, "started_utc"), grid_text(g, row, "git"));
    print_cut(*tag ? tag : grid_text(g, row, "uuid"), 14);
    if (is_good(g, row)) {
        const char *bound;
        double share = roof_share(h, row, &bound);
        printf(" %9.4g ms ", 1e3 * grid_number(g, row, "median"));
        if (isnan(share))
            printf("    - ");
        else
            printf("%3.0f %% ", 100 * share);
        print_bar(g, row, low, high);
    } else {
        const char *status = grid_text(g, row, "status");
        printf(" %s: %s\n", strcmp(status, "ok") == 0 ? "invalid" : status,
               grid_text(g, row, "reason"));
    }
}

static void print_change(const struct change_point *change)
{
    printf("            level %.4g ms -> %.4g ms: %+.1f %% (p %.3f)\n", 1e3 * exp(change->before),
           1e3 * exp(change->after), 100 * expm1(change->after - change->before), change->p);
}

static void print_text(const struct history *h, int64_t last)
{
    int64_t from = h->runs.row_count > last ? h->runs.row_count - last : 0;
    int good = 0;
    double low, high;
    while (good < h->good && h->row[good] < from)
        good++;
    scale_of(h, good, &low, &high);
    printf("%s\n%s on %s: %lld run%s, %d good, ", h->label, h->key, h->host,
           (long long)h->runs.row_count, h->runs.row_count == 1 ? "" : "s", h->good);
    if (h->good < SERIES_TO_JUDGE)
        printf("changes of level are not judged\n\n");
    else
        printf("%d change%s of level\n\n", h->change_count, h->change_count == 1 ? "" : "s");
    if (good < h->good)
        printf("%52s of roof %-*.4g%*.4g ms\n", "", CHART / 2, 1e3 * low, CHART / 2, 1e3 * high);
    for (int64_t row = from; row < h->runs.row_count; row++) {
        for (int k = 0; k < h->change_count; k++)
            if (h->row[h->changes[k].index] == row)
                print_change(&h->changes[k]);
        print_run(h, row, low, high);
    }
    if (h->good < SERIES_TO_JUDGE)
        printf("\nUnder %d good runs no change of level can be distinguished from noise.\n",
               SERIES_TO_JUDGE);
}

/* ---- JSON ---- */

static void print_json(const struct history *h)
{
    static const char *const texts[] = {"uuid",        "started_utc", "git",     "tag",   "branch",
                                        "environment", "status",      "verdict", "reason"};
    static const char *const numbers[] = {"median", "ci_low", "ci_high", "min", "n", "order_key"};
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '{');
    json_text(&json, "point", h->key);
    json_text(&json, "label", h->label);
    json_text(&json, "host", h->host);
    json_text(&json, "unit", "s");
    json_bool(&json, "judged", h->good >= SERIES_TO_JUDGE);
    json_open(&json, "changes", '[');
    for (int k = 0; k < h->change_count; k++) {
        const struct change_point *change = &h->changes[k];
        json_open(&json, NULL, '{');
        json_int(&json, "run", h->row[change->index]);
        json_text(&json, "uuid", grid_text(&h->runs, h->row[change->index], "uuid"));
        json_number(&json, "before", exp(change->before));
        json_number(&json, "after", exp(change->after));
        json_number(&json, "ratio", exp(change->after - change->before));
        json_number(&json, "p", change->p);
        json_close(&json);
    }
    json_close(&json);
    json_open(&json, "runs", '[');
    for (int64_t row = 0; row < h->runs.row_count; row++) {
        json_open(&json, NULL, '{');
        for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
            json_text(&json, texts[k], grid_text(&h->runs, row, texts[k]));
        for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers); k++)
            json_number(&json, numbers[k], grid_number(&h->runs, row, numbers[k]));
        const char *bound;
        json_number(&json, "fraction_of_roof", roof_share(h, row, &bound));
        json_text(&json, "bound", *bound ? bound : NULL);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
}

/* ---- the list of points ---- */

static enum status print_points(struct store *store, bool as_json, struct error *err)
{
    struct arena arena = {0};
    struct grid g;
    struct json json;
    struct query_value none = {"word", NULL, NAN};
    TRY(query_view(store, "history_points", &none, 1, &g, err));
    if (as_json) {
        json_begin(&json, stdout);
        json_open(&json, NULL, '[');
    }
    bool several = false;
    for (int64_t row = 0; row < g.row_count; row++)
        several = several || grid_number(&g, row, "hosts") > 1;
    for (int64_t row = 0; row < g.row_count; row++) {
        const char *label = point_label(&arena, &g, row), *key = grid_text(&g, row, "key");
        double runs = grid_number(&g, row, "results");
        double machines = grid_number(&g, row, "hosts");
        if (!as_json) {
            printf("%s  %4.0f runs", key, runs);
            if (several)
                printf(" on %2.0f machine%s", machines, machines == 1 ? " " : "s");
            printf("  ");
            clean_put(stdout, label ? label : "");
            putchar('\n');
            continue;
        }
        json_open(&json, NULL, '{');
        json_text(&json, "point", key);
        json_text(&json, "label", label);
        json_number(&json, "runs", runs);
        json_number(&json, "machines", machines);
        json_close(&json);
    }
    if (as_json)
        json_close(&json);
    grid_release(&g);
    arena_release(&arena);
    return STATUS_OK;
}

/* ---- the points of a word ---- */

static enum status show_point(struct store *store, const struct grid *points, int64_t row,
                              const struct history_options *o, struct error *err)
{
    struct history h = {.good = 0};
    enum status status = use_point(&h, points, row, o->host, err);
    if (status == STATUS_OK)
        status = load(&h, store, err);
    if (status == STATUS_OK && o->json)
        print_json(&h);
    else if (status == STATUS_OK)
        print_text(&h, o->last ? o->last : RUNS_SHOWN);
    grid_release(&h.runs);
    grid_release(&h.roofs);
    arena_release(&h.arena);
    return status;
}

/* Each of several points; those without runs on the requested machine are left out. */
static enum status show_each(struct store *store, const struct grid *points,
                             const struct history_options *o, struct error *err)
{
    int drawn = 0;
    enum status status = STATUS_OK;
    for (int64_t row = 0; row < points->row_count && drawn < POINTS_DRAWN; row++) {
        struct error why = {0};
        if (drawn)
            putchar('\n');
        enum status one = show_point(store, points, row, o, &why);
        drawn += one == STATUS_OK;
        if (one != STATUS_OK && status == STATUS_OK)
            *err = why, status = one;
    }
    if (points->row_count > POINTS_DRAWN)
        fprintf(stderr,
                "ridge: %d of %lld points; `ridge history` lists all, and an id names one\n", drawn,
                (long long)points->row_count);
    return drawn ? STATUS_OK : status;
}

static enum status show(struct store *store, const char *word, const struct history_options *o,
                        struct error *err)
{
    struct grid points;
    struct query_value value = {"word", word, 0};
    TRY(query_view(store, "history_points", &value, 1, &points, err));
    bool one = points.row_count == 1 ||
               (points.row_count > 1 && strcmp(grid_text(&points, 0, "key"), word) == 0);
    enum status status = !points.row_count ? fail_unknown(word, err)
                         : one             ? show_point(store, &points, 0, o, err)
                         : o->json         ? fail_ambiguous(&points, word, err)
                                           : show_each(store, &points, o, err);
    grid_release(&points);
    return status;
}

static int history_main(int word_count, char **words, const void *values)
{
    const struct history_options *o = values;
    struct store *store = NULL;
    struct error err = {0};
    enum status status = STATUS_OK;
    if (word_count > 1)
        status = FAIL(&err, STATUS_FAILED, "one point at a time; \"%s\" is too much", words[1]);
    else if (o->last < 0)
        status = FAIL(&err, STATUS_FAILED, "--last must be positive");
    else if (!word_count && (o->host || o->last))
        status = FAIL(&err, STATUS_FAILED, "--%s is of a POINT; without one all points are listed",
                      o->host ? "host" : "last");
    if (status == STATUS_OK)
        status = store_open(o->db ? o->db : "out/ridge.db", STORE_READ, &store, &err);
    if (status == STATUS_OK)
        status = word_count ? show(store, words[0], o, &err) : print_points(store, o->json, &err);
    int code = status == STATUS_OK ? EXIT_FINE : command_fail(&err);
    if (store)
        store_close(store);
    return code;
}

REGISTER(command, history) = {
    .name = "history",
    .summary = "draw one point over all runs, with its changes of level",
    .usage = "[POINT] [options]",
    .help =
        "POINT is a point's id or its beginning, or a workload's name, which draws each of its\n"
        "points. Without it all points are listed. o is the median of a run, --- its 95 %\n"
        "interval; \"of roof\" is the least time that the ceilings of the same run allow, as a\n"
        "share of that median. Only runs of one machine are shown together, in the order in\n"
        "which they started. Changes are found by E-divisive means with a permutation test\n"
        "(p <= 0.01, at least 3 runs on each side, 12 in all), among the latest 200 good runs.",
    .options = options,
    .values_size = sizeof(struct history_options),
    .main = history_main,
};
