/* SPDX-License-Identifier: Apache-2.0
 *
 * A table for people, one line per result, to be put into an issue or a merge request. Of the
 * metrics it shows the usual ones; a cell without a number is a dash. */
#include <math.h>
#include <string.h>

#include "base/text/markdown.h"
#include "results/format.h"

/* A metric in the unit in which people read it. */
static const struct shown {
    const char *metric, *title;
    double scale;
    int digits;
} shown[] = {
    {"time_s", "median [ms]", 1e3, 4},     {"latency_p90_s", "p90 [ms]", 1e3, 4},
    {"latency_p99_s", "p99 [ms]", 1e3, 4}, {"throughput", "throughput [1/s]", 1, 4},
    {"flop_rate", "GFLOP/s", 1e-9, 4},     {"fraction_of_peak", "of peak [%]", 100, 3},
};

static void write_head(FILE *stream)
{
    fputs("| workload | batch | threads | precision | scenario | status |", stream);
    for (int k = 0; k < ARRAY_COUNT(shown); k++)
        fprintf(stream, " %s |", shown[k].title);
    fputs("\n|---|--:|--:|---|---|---|", stream);
    for (int k = 0; k < ARRAY_COUNT(shown); k++)
        fputs("--:|", stream);
    fputc('\n', stream);
}

static void write_run(const struct grid *grid, int64_t row, FILE *stream)
{
    static const char *const parts[] = {"run_started_utc", "host", "version", "git", "compiler"};
    fprintf(stream, "%sRun `%s`", row ? "\n" : "", grid_text(grid, row, "run"));
    for (int k = 0; k < ARRAY_COUNT(parts); k++) {
        fputs(", ", stream);
        markdown_text(grid_text(grid, row, parts[k]), stream);
    }
    fputs("\n\n", stream);
    write_head(stream);
}

static void write_result(const struct grid *grid, int64_t row, const double *values, FILE *stream)
{
    static const char *const parts[] = {"batch", "threads", "precision", "scenario"};
    const char *params = grid_text(grid, row, "params");
    const char *status = grid_text(grid, row, "status"), *verdict = grid_text(grid, row, "verdict");
    const char *mode = grid_text(grid, row, "mode");
    fputs("| ", stream);
    markdown_text(grid_text(grid, row, "workload"), stream);
    fputs(*params ? ":" : "", stream);
    markdown_text(params, stream);
    if (strcmp(mode, "inference") != 0) {
        fputc(' ', stream);
        markdown_text(mode, stream);
    }
    markdown_text(format_rare_words(grid, row), stream);
    for (int k = 0; k < ARRAY_COUNT(parts); k++) {
        fputs(" | ", stream);
        markdown_text(grid_text(grid, row, parts[k]), stream);
    }
    fprintf(stream, " | %s |", strcmp(status, "ok") == 0 ? verdict : status);
    for (int k = 0; k < ARRAY_COUNT(shown); k++)
        if (isnan(values[k]))
            fputs(" - |", stream);
        else
            fprintf(stream, " %.*g |", shown[k].digits, values[k] * shown[k].scale);
    fputc('\n', stream);
}

static void take_value(const struct grid *grid, int64_t row, double *values)
{
    const char *metric = grid_text(grid, row, "metric");
    for (int k = 0; k < ARRAY_COUNT(shown); k++)
        if (strcmp(metric, shown[k].metric) == 0 && *grid_text(grid, row, "step") == 0)
            values[k] = grid_number(grid, row, "value");
}

static enum status write_markdown(const struct grid *grid, FILE *stream, struct error *err)
{
    const char *run = "";
    for (int64_t row = 0; row < grid->row_count;) {
        int64_t first = row;
        double values[ARRAY_COUNT(shown)];
        for (int k = 0; k < ARRAY_COUNT(shown); k++)
            values[k] = NAN;
        if (strcmp(run, grid_text(grid, row, "run")) != 0)
            write_run(grid, row, stream);
        run = grid_text(grid, row, "run");
        do
            take_value(grid, row, values);
        while (++row < grid->row_count && !format_starts_result(grid, row));
        write_result(grid, first, values, stream);
    }
    return format_flush(stream, err);
}

REGISTER(format, markdown) = {
    .name = "markdown",
    .extension = "md",
    .summary = "a table per run, one line per result",
    .write = write_markdown,
};
