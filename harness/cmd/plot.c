/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge plot: one plot of a stored run as a picture, with the data and the script that drew it. */
#include "plots/plot.h"

#include <stdio.h>
#include <string.h>

#include "base/text/json.h"
#include "base/text/table.h"
#include "harness/cli/command.h"
#include "harness/compare/run_words.h"

struct plot_options {
    const char *run, *against, *db, *output;
    int64_t result;
    bool svg, png, pdf, json;
};

static const struct option options[] = {
    {"run", 'r', OPTION_TEXT, offsetof(struct plot_options, run), "RUN",
     "latest (default, or that of --result), latest~1, a tag, baseline, commit or id"},
    {"against", 'a', OPTION_TEXT, offsetof(struct plot_options, against), "RUN",
     "the other run, for plots of two; also FILE.db or FILE.db:RUN"},
    {"result", 0, OPTION_COUNT, offsetof(struct plot_options, result), "N",
     "number of the result, for plots of one workload; the run's first by default"},
    {"db", 'd', OPTION_TEXT, offsetof(struct plot_options, db), "FILE",
     "the database; default out/ridge.db"},
    {"output", 'o', OPTION_TEXT, offsetof(struct plot_options, output), "FOLDER",
     "where the picture, its .dat and its .gp go; default out/plots"},
    {"svg", 0, OPTION_FLAG, offsetof(struct plot_options, svg), NULL, "as SVG (default)"},
    {"png", 0, OPTION_FLAG, offsetof(struct plot_options, png), NULL, "as PNG"},
    {"pdf", 0, OPTION_FLAG, offsetof(struct plot_options, pdf), NULL, "as PDF"},
    {"json", 0, OPTION_FLAG, offsetof(struct plot_options, json), NULL,
     "the list of plots, machine-readable"},
    {.name = NULL},
};

static const char *shows(const struct plot *plot)
{
    return plot->of_base ? "two runs" : plot->of_result ? "result" : "run";
}

static void list_json(const struct plot *plot, struct json *json)
{
    json_open(json, NULL, '{');
    json_text(json, "name", plot->name);
    json_text(json, "title", plot->title);
    json_text(json, "of", shows(plot));
    json_text(json, "about", plot->about);
    json_close(json);
}

static enum status list_plots(bool as_json, struct error *err)
{
    struct plot plot;
    struct json json;
    struct table table = {.column_count = 0};
    table_column(&table, "plot", TABLE_LEFT);
    table_column(&table, "of", TABLE_LEFT);
    table_column(&table, "what", TABLE_LEFT);
    if (as_json) {
        json_begin(&json, stdout);
        json_open(&json, NULL, '[');
    }
    for (const struct embedded *file = plot_next(NULL); file; file = plot_next(file)) {
        TRY(plot_read(file, &plot, err));
        if (as_json)
            list_json(&plot, &json);
        table_cell(&table, "%s", plot.name);
        table_cell(&table, "%s", shows(&plot));
        table_cell(&table, "%s", plot.about);
    }
    if (as_json)
        json_close(&json);
    else
        table_print(&table, stdout);
    table_release(&table);
    return STATUS_OK;
}

/* The numbers that --result takes, for the message. */
static enum status fail_no_result(const struct grid *grid, int64_t result, struct error *err)
{
    char list[200] = "";
    size_t used = 0;
    for (int64_t row = 0; row < grid->row_count && used < sizeof(list); row++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s (%s)", row ? ", " : "",
                                 grid_text(grid, row, "result"), grid_text(grid, row, "label"));
    return FAIL(err, STATUS_FAILED, "this run has no result %lld to draw; it has %s",
                (long long)result, list);
}

/* *result: of this run, or 0 for the one that a plot of one workload shows by default. */
static enum status choose_result(struct store *store, int64_t run, int64_t *result,
                                 struct error *err)
{
    struct grid grid;
    struct query_value value = {.name = "run", .number = (double)run};
    TRY(query_view(store, "report_results", &value, 1, &grid, err));
    enum status status = STATUS_OK;
    int64_t row = 0;
    while (*result && row < grid.row_count && grid_number(&grid, row, "result") != (double)*result)
        row++;
    if (!grid.row_count)
        status = FAIL(err, STATUS_FAILED, "this run has no result to draw");
    else if (row == grid.row_count)
        status = fail_no_result(&grid, *result, err);
    else
        *result = (int64_t)grid_number(&grid, row, "result");
    grid_release(&grid);
    return status;
}

/* A result is of one run: with --result alone that is meant. */
static enum status choose_run(struct store *store, const struct plot_options *o, int64_t *run,
                              struct error *err)
{
    struct grid grid;
    struct query_value value = {.name = "result", .number = (double)o->result};
    if (o->run || !o->result)
        return query_find_run(store, o->run ? o->run : "latest", run, err);
    TRY(query_view(store, "report_results", &value, 1, &grid, err));
    enum status status = STATUS_OK;
    if (grid.row_count)
        *run = (int64_t)grid_number(&grid, 0, "run");
    else
        status = FAIL(err, STATUS_FAILED, "%s has no result %lld to draw", store_path(store),
                      (long long)o->result);
    grid_release(&grid);
    return status;
}

static enum status draw(struct store *store, const char *name, const struct plot_options *o,
                        const struct run_ref *base, struct plot_outcome *outcome, struct error *err)
{
    struct plot plot;
    struct plot_request request = {.name = name,
                                   .result = o->result,
                                   .base = base ? base->store : NULL,
                                   .base_run = base ? base->id : 0,
                                   .folder = o->output ? o->output : "out/plots",
                                   .kind = o->png   ? "png"
                                           : o->pdf ? "pdf"
                                                    : "svg"};
    TRY(plot_find(name, &plot, err));
    TRY(choose_run(store, o, &request.run, err));
    if (plot.of_result || request.result)
        TRY(choose_result(store, request.run, &request.result, err));
    return plot_draw(store, &request, 1, outcome, err);
}

/* Opens the other run too, where one is named. */
static enum status draw_both(struct store *store, const char *name, const struct plot_options *o,
                             struct plot_outcome *outcome, struct error *err)
{
    struct run_list base;
    if (!o->against)
        return draw(store, name, o, NULL, outcome, err);
    TRY(run_list_open(&base, o->against, o->db ? o->db : STORE_DEFAULT, err));
    enum status status = base.count == 1
                             ? draw(store, name, o, &base.runs[0], outcome, err)
                             : FAIL(err, STATUS_FAILED,
                                    "--against \"%s\" is %d runs, and a plot shows one other run",
                                    o->against, base.count);
    run_list_close(&base);
    return status;
}

static int plot_main(int word_count, char **words, const void *values)
{
    const struct plot_options *o = values;
    struct error err = {0};
    struct store *store = NULL;
    struct plot_outcome outcome = {.drawn = false};
    if (word_count == 0 &&
        (o->run || o->against || o->result || o->output || o->svg || o->png || o->pdf)) {
        FAIL(&err, STATUS_FAILED, "which plot? `ridge plot` lists them");
        return command_fail(&err);
    }
    if (word_count == 0)
        return list_plots(o->json, &err) == STATUS_OK ? EXIT_FINE : command_fail(&err);
    if (word_count > 1 || o->svg + o->png + o->pdf > 1 || o->json) {
        FAIL(&err, STATUS_FAILED, "one plot and one of --svg, --png, --pdf; --json lists plots");
        return command_fail(&err);
    }
    struct plot plot; /* a wrong name is reported before a missing database */
    enum status status = plot_find(words[0], &plot, &err);
    if (status == STATUS_OK && o->against && !plot.of_base)
        status =
            FAIL(&err, STATUS_FAILED, "--against is for plots of two runs, and %s shows one %s",
                 plot.name, shows(&plot));
    if (status == STATUS_OK)
        status = store_open(o->db ? o->db : STORE_DEFAULT, STORE_READ, &store, &err);
    if (status == STATUS_OK)
        status = draw_both(store, words[0], o, &outcome, &err);
    store_close(store);
    plot_outcome_release(&outcome);
    if (status != STATUS_OK)
        return command_fail(&err);
    if (outcome.drawn) {
        printf("%s\n", outcome.file);
        return EXIT_FINE;
    }
    fprintf(stderr, "ridge plot: no picture: %s\n", outcome.reason);
    return EXIT_MISSING;
}

REGISTER(command, plot) = {
    .name = "plot",
    .summary = "draw one plot of a stored run",
    .usage = "[PLOT] [--png|--svg|--pdf] [--run RUN] [options]",
    .help =
        "Without a name it lists the plots. PLOT.dat and PLOT.gp are kept beside the picture:\n"
        "`gnuplot PLOT.gp` draws it again. Without gnuplot these two are written all the same.\n",
    .options = options,
    .values_size = sizeof(struct plot_options),
    .main = plot_main,
};
