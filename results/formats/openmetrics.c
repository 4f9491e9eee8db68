/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenMetrics text 1.0, for Prometheus and what understands it. One family of gauges per metric and
 * unit; a name that has a unit ends in it, as the standard requires. Numbers that are absent are
 * left out: a gauge has no reason. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "results/format.h"

static const char *const labels[] = {"run",       "host",     "git",     "tag",   "sequence",
                                     "point",     "workload", "params",  "mode",  "device",
                                     "precision", "batch",    "threads", "cache", "scenario",
                                     "providers", "source",   "verdict"};

/* Our units, theirs, and the ending of our names that the other replaces. */
static const struct unit {
    const char *ours, *theirs, *ending;
} units[] = {
    {"s", "seconds", "_s"},    {"B", "bytes", "_bytes"},           {"J", "joules", "_j"},
    {"1/s", "per_second", ""}, {"FLOP/s", "flops_per_second", ""}, {"Hz", "hertz", "_hz"},
};

struct family {
    char name[160];
    const char *unit;
};

static struct family family_of(const struct grid *grid, int64_t row)
{
    struct family family = {.unit = ""};
    const char *metric = grid_text(grid, row, "metric"), *ours = grid_text(grid, row, "unit");
    int length = (int)strlen(metric);
    for (int k = 0; k < ARRAY_COUNT(units); k++) {
        int end = (int)strlen(units[k].ending);
        if (strcmp(units[k].ours, ours) != 0)
            continue;
        family.unit = units[k].theirs;
        if (end && length > end && strcmp(metric + length - end, units[k].ending) == 0)
            length -= end;
    }
    snprintf(family.name, sizeof(family.name), "ridge_%.*s%s%s", length, metric,
             *family.unit ? "_" : "", family.unit);
    for (char *at = family.name; *at; at++)
        if (!isalnum((unsigned char)*at))
            *at = '_';
    return family;
}

static bool is_gauge(const struct grid *grid, int64_t row)
{
    return grid_text(grid, row, "metric")[0] && grid_text(grid, row, "step")[0] == 0 &&
           !isnan(grid_number(grid, row, "value"));
}

static void write_label(const char *text, FILE *stream)
{
    for (; *text; text++)
        if (*text == '\n')
            fputs("\\n", stream);
        else if (*text == '"' || *text == '\\')
            fprintf(stream, "\\%c", *text);
        else
            fputc(*text, stream);
}

static void write_labels(const struct grid *grid, int64_t row, bool source, FILE *stream)
{
    for (int k = 0; k < ARRAY_COUNT(labels); k++) {
        const char *value = grid_text(grid, row, labels[k]);
        if (!*value || (!source && strcmp(labels[k], "source") == 0))
            continue;
        fprintf(stream, "%s%s=\"", k ? "," : "{", labels[k]);
        write_label(value, stream);
        fputc('"', stream);
    }
    fputc('}', stream);
}

static void write_value(double value, FILE *stream)
{
    if (isinf(value))
        fputs(value > 0 ? " +Inf\n" : " -Inf\n", stream);
    else
        fprintf(stream, " %.17g\n", value);
}

/* All rows of one family, which must stand together. */
static void write_family(const struct grid *grid, int64_t first, FILE *stream)
{
    struct family family = family_of(grid, first);
    fprintf(stream, "# TYPE %s gauge\n", family.name);
    if (*family.unit)
        fprintf(stream, "# UNIT %s %s\n", family.name, family.unit);
    fprintf(stream, "# HELP %s Metric %s of a benchmark result.\n", family.name,
            grid_text(grid, first, "metric"));
    for (int64_t row = first; row < grid->row_count; row++) {
        if (!is_gauge(grid, row) || strcmp(family_of(grid, row).name, family.name) != 0)
            continue;
        fputs(family.name, stream);
        write_labels(grid, row, true, stream);
        write_value(grid_number(grid, row, "value"), stream);
    }
}

static void write_ok(const struct grid *grid, FILE *stream)
{
    fputs("# TYPE ridge_result_ok gauge\n"
          "# HELP ridge_result_ok 1 for a result that was measured and is right.\n",
          stream);
    for (int64_t row = 0; row < grid->row_count; row++) {
        if (!format_starts_result(grid, row))
            continue;
        fputs("ridge_result_ok", stream);
        write_labels(grid, row, false, stream);
        write_value(strcmp(grid_text(grid, row, "status"), "ok") == 0, stream);
    }
}

struct families {
    struct arena arena;
    const char **names;
    size_t count, capacity;
};

static enum status is_new_family(struct families *seen, const char *name, bool *is_new,
                                 struct error *err)
{
    *is_new = true;
    for (size_t k = 0; k < seen->count && *is_new; k++)
        *is_new = strcmp(seen->names[k], name) != 0;
    if (!*is_new)
        return STATUS_OK;
    const char *copy = arena_strdup(&seen->arena, name);
    seen->names = arena_grow(&seen->arena, seen->names, &seen->capacity, seen->count + 1,
                             sizeof(*seen->names));
    if (!seen->names || !copy)
        return FAIL_NO_MEMORY(err);
    seen->names[seen->count++] = copy;
    return STATUS_OK;
}

static enum status write_families(const struct grid *grid, struct families *seen, FILE *stream,
                                  struct error *err)
{
    bool is_new;
    for (int64_t row = 0; row < grid->row_count; row++) {
        if (!is_gauge(grid, row))
            continue;
        TRY(is_new_family(seen, family_of(grid, row).name, &is_new, err));
        if (is_new)
            write_family(grid, row, stream);
    }
    return STATUS_OK;
}

static enum status write_openmetrics(const struct grid *grid, FILE *stream, struct error *err)
{
    struct families seen = {0};
    enum status status = write_families(grid, &seen, stream, err);
    arena_release(&seen.arena);
    write_ok(grid, stream);
    fputs("# EOF\n", stream);
    return status == STATUS_OK ? format_flush(stream, err) : status;
}

REGISTER(format, openmetrics) = {
    .name = "openmetrics",
    .extension = "txt",
    .summary = "OpenMetrics text for Prometheus, one gauge per metric",
    .write = write_openmetrics,
};
