/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "base/system/file.h"
#include "base/system/output.h"
#include "base/text/options.h"
#include "plots/figure.h"
#include "plots/gnuplot.h"

static const char folder_of_plots[] = "plots/";

/* ---- the head of a plot's file ---- */

static bool is_plot(const struct embedded *file)
{
    size_t length = strlen(file->path);
    return strncmp(file->path, folder_of_plots, sizeof(folder_of_plots) - 1) == 0 && length > 3 &&
           strcmp(file->path + length - 3, ".gp") == 0;
}

const struct embedded *plot_next(const struct embedded *after)
{
    const struct embedded *file = embedded_next(folder_of_plots, after);
    while (file && !is_plot(file))
        file = embedded_next(folder_of_plots, file);
    return file;
}

/* "points = report_points(run)" */
static bool read_view(struct plot *plot, const char *value)
{
    char what[32];
    if (plot->view_count == PLOT_VIEWS_MAX)
        return false;
    int k = plot->view_count;
    if (sscanf(value, "%31[a-z_] = %47[a-z_](%31[a-z_])", plot->block[k], plot->view[k], what) != 3)
        return false;
    plot->of_result = plot->of_result || strcmp(what, "result") == 0;
    plot->of_base_view[k] = strcmp(what, "base") == 0;
    plot->of_base = plot->of_base || plot->of_base_view[k];
    plot->view_count++;
    return true;
}

static void keep(char *field, size_t size, const char *value)
{
    snprintf(field, size, "%.*s", (int)size - 1, value);
}

static bool read_line(struct plot *plot, const char *key, const char *value)
{
    if (strcmp(key, "title") == 0)
        keep(plot->title, sizeof(plot->title), value);
    else if (strcmp(key, "about") == 0)
        keep(plot->about, sizeof(plot->about), value);
    else if (strcmp(key, "shape") == 0)
        keep(plot->shape, sizeof(plot->shape), value);
    else if (strcmp(key, "size") == 0)
        return sscanf(value, "%lf %lf", &plot->width, &plot->height) == 2;
    else if (strcmp(key, "view") == 0)
        return read_view(plot, value);
    return true;
}

enum status plot_read(const struct embedded *file, struct plot *plot, struct error *err)
{
    *plot = (struct plot){.script = file->text};
    const char *base = file->path + sizeof(folder_of_plots) - 1;
    snprintf(plot->name, sizeof(plot->name), "%.*s", (int)(strlen(base) - 3), base);
    int number = 1;
    for (; *plot->script == '#'; number++) {
        const char *end = strchr(plot->script, '\n');
        char line[320], key[16], value[300];
        if (!end)
            break;
        snprintf(line, sizeof(line), "%.*s", (int)(end - plot->script), plot->script);
        if (sscanf(line, "# %15[a-z]: %299[^\n]", key, value) == 2 && !read_line(plot, key, value))
            return FAIL(err, STATUS_FAILED, "%s:%d: cannot read \"%s\"", file->path, number, value);
        plot->script = end + 1;
    }
    if (!plot->title[0] || !plot->shape[0] || !plot->view_count || plot->width <= 0)
        return FAIL(err, STATUS_FAILED, "%s: title, shape, size or view is missing", file->path);
    return STATUS_OK;
}

enum status plot_find(const char *name, struct plot *plot, struct error *err)
{
    enum { NAMES_MAX = 64 };
    struct plot known[NAMES_MAX];
    const char *names[NAMES_MAX];
    int count = 0;
    *plot = (struct plot){.view_count = 0};
    for (const struct embedded *f = plot_next(NULL); f && count < NAMES_MAX; f = plot_next(f)) {
        TRY(plot_read(f, &known[count], err));
        if (strcmp(known[count].name, name) == 0) {
            *plot = known[count];
            return STATUS_OK;
        }
        names[count] = known[count].name;
        count++;
    }
    const char *nearest = nearest_word(name, names, count);
    return FAIL(err, STATUS_FAILED, "unknown plot \"%s\"%s%s%s; `ridge plot` lists all", name,
                nearest ? ", did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

/* ---- drawing ---- */

struct shape {
    const char *name;
    shape_function *lay_out;
};

static const struct shape shapes[] = {
    {"roofline", shape_roofline},
    {"breakdown", shape_breakdown},
    {"latency", shape_latency},
    {"spread", shape_spread},
    {"history", shape_history},
    {"scaling", shape_scaling},
    {"timeline", shape_timeline},
    {"collective_rates", shape_collective_rates},
    {"collective_times", shape_collective_times},
};

static shape_function *find_shape(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(shapes); k++)
        if (strcmp(shapes[k].name, name) == 0)
            return shapes[k].lay_out;
    return NULL;
}

static enum status run_views(struct figure *figure, const struct plot *plot,
                             const struct plot_request *request, struct error *err)
{
    struct query_value values[2] = {{.name = "run", .number = (double)request->run},
                                    {.name = "result", .number = (double)request->result}};
    struct query_value base = {.name = "run", .number = (double)request->base_run};
    for (int k = 0; k < plot->view_count; k++) {
        bool of_base = plot->of_base_view[k];
        TRY(query_view(of_base ? request->base : figure->store, plot->view[k],
                       of_base ? &base : values, request->result && !of_base ? 2 : 1,
                       &figure->grids[k], err));
        figure->blocks[k] = plot->block[k];
        figure->grid_count = k + 1;
    }
    return STATUS_OK;
}

static enum status make_path(char path[512], const struct plot_request *r, const char *extension,
                             struct error *err)
{
    int length = snprintf(path, 512, "%s/%s.%s", r->folder, r->stem ? r->stem : r->name, extension);
    if (length < 0 || length >= 512)
        return FAIL(err, STATUS_FAILED, "%s: the path is too long", r->folder);
    return STATUS_OK;
}

/* The head that a script gets: where it draws to, and what the shape decided. */
static enum status write_script(const struct plot *plot, const struct figure *figure,
                                const struct plot_request *r, const char *commands,
                                struct error *err)
{
    char path[512];
    const char *stem = r->stem ? r->stem : r->name;
    TRY(make_path(path, r, "gp", err));
    struct output file;
    TRY(output_open(&file, path, OUTPUT_DERIVED, err));
    FILE *out = file.stream;
    fprintf(out, "# %s. `gnuplot %s.gp` in this folder draws it again.\n", plot->title, stem);
    gnuplot_terminal(out, r->kind, figure->width, figure->height);
    fprintf(out, "if (!exists(\"PICTURE\")) PICTURE = '%s.%s'\nset output PICTURE\n", stem,
            r->kind);
    fprintf(out, "DATA = '%s.dat'\n", stem);
    fputs("set encoding utf8\nset datafile separator tab\nset datafile columnheaders\n"
          "set datafile missing 'NaN'\nunset key\n"
          "set border 3 lc rgb '#808080'\nset tics nomirror textcolor rgb '#000000'\n",
          out);
    fputs(commands, out);
    fputs(plot->script, out);
    return output_close(&file, STATUS_OK, err);
}

/* The data go to `data`, the rest of the script to `commands`. */
static enum status lay_out(shape_function *shape, struct figure *figure, FILE *data,
                           char **commands, struct error *err)
{
    size_t size = 0;
    figure->data = data;
    figure->commands = open_memstream(commands, &size);
    if (!figure->commands)
        return FAIL_NO_MEMORY(err);
    enum status status = shape(figure, err);
    figure_end(figure);
    if (fclose(figure->commands) != 0 && status == STATUS_OK)
        status = FAIL_NO_MEMORY(err);
    return status;
}

static enum status write_files(struct figure *figure, const struct plot *plot,
                               const struct plot_request *r, struct error *err)
{
    char path[512], *commands = NULL;
    struct output data;
    shape_function *shape = find_shape(plot->shape);
    if (!shape)
        return FAIL(err, STATUS_FAILED, "plots/%s.gp: unknown shape \"%s\"", plot->name,
                    plot->shape);
    TRY(make_path(path, r, "dat", err));
    TRY(folders_make(path, err));
    TRY(output_open(&data, path, OUTPUT_DERIVED, err));
    enum status status = lay_out(shape, figure, data.stream, &commands, err);
    bool empty =
        status == STATUS_OK && figure->empty[0]; /* no file: without points it helps nobody */
    enum status closed = output_close(&data, empty ? STATUS_UNSUPPORTED : status, err);
    status = empty ? STATUS_OK : closed;
    if (status == STATUS_OK && !empty)
        status = write_script(plot, figure, r, commands, err);
    free(commands);
    return status;
}

/* ---- pictures, several at once ---- */

struct drawing {
    const struct plot_request *request;
    struct plot_outcome *outcome;
    struct output picture;
    struct gnuplot gnuplot;
    bool started;
};

static enum status start_picture(struct drawing *d, struct error *err)
{
    const struct plot_request *r = d->request;
    struct plot_outcome *outcome = d->outcome;
    outcome->gnuplot_hangs = r->gnuplot_hangs;
    if (r->gnuplot_hangs) {
        snprintf(outcome->reason, sizeof(outcome->reason),
                 "gnuplot did not finish an earlier plot and was not started again");
        return STATUS_OK;
    }
    TRY(make_path(outcome->file, r, r->kind, err));
    TRY(output_open(&d->picture, outcome->file, OUTPUT_DERIVED, err));
    gnuplot_start(&d->gnuplot, r->folder, r->stem ? r->stem : r->name, d->picture.part);
    d->started = true;
    return STATUS_OK;
}

static enum status finish_picture(struct drawing *d, struct error *err)
{
    struct plot_outcome *outcome = d->outcome;
    if (!d->started)
        return STATUS_OK;
    enum gnuplot_result result =
        gnuplot_finish(&d->gnuplot, outcome->reason, sizeof(outcome->reason));
    outcome->drawn = result == GNUPLOT_DREW;
    outcome->gnuplot_hangs = result == GNUPLOT_HANGS;
    if (outcome->drawn)
        return output_close(&d->picture, STATUS_OK, err);
    output_close(&d->picture, STATUS_FAILED, NULL);
    outcome->file[0] = '\0';
    return STATUS_OK;
}

static enum status lay_out_request(struct drawing *d, struct figure *figure, struct store *store,
                                   struct error *err)
{
    const struct plot_request *r = d->request;
    struct plot plot;
    TRY(plot_find(r->name, &plot, err));
    if (plot.of_result && !r->result)
        return FAIL(err, STATUS_FAILED, "plot \"%s\" shows one workload: say which by --result",
                    plot.name);
    if (plot.of_base && !r->base)
        return FAIL(err, STATUS_FAILED, "plot \"%s\" shows two runs: name the other by --against",
                    plot.name);
    figure->store = store;
    figure->width = r->width > 0 ? r->width : plot.width;
    figure->height = fmin(plot.height, figure->width * 1.1);
    TRY(run_views(figure, &plot, r, err));
    TRY(write_files(figure, &plot, r, err));
    if (!figure->empty[0])
        return start_picture(d, err);
    snprintf(d->outcome->reason, sizeof(d->outcome->reason), "%s", figure->empty);
    d->outcome->empty = true;
    return STATUS_OK;
}

static enum status begin_drawing(struct drawing *d, struct store *store, struct error *err)
{
    struct plot_outcome *outcome = d->outcome;
    struct figure *figure = calloc(1, sizeof(*figure));
    if (!figure)
        return FAIL_NO_MEMORY(err);
    enum status status = lay_out_request(d, figure, store, err);
    outcome->marks = figure->marks;
    outcome->mark_count = figure->mark_count;
    outcome->marks_steps = figure->marks_steps;
    outcome->unnamed = figure->unnamed;
    for (int k = 0; k < figure->grid_count; k++)
        grid_release(&figure->grids[k]);
    free(figure);
    return status;
}

void plot_outcome_release(struct plot_outcome *outcome)
{
    free(outcome->marks);
    outcome->marks = NULL;
    outcome->mark_count = 0;
}

enum status plot_draw(struct store *store, const struct plot_request *requests, int count,
                      struct plot_outcome *outcomes, struct error *err)
{
    struct drawing drawings[PLOT_AT_ONCE];
    enum status status = STATUS_OK;
    int begun = 0;
    for (int k = 0; k < count; k++)
        outcomes[k] = (struct plot_outcome){.drawn = false};
    for (; begun < count && status == STATUS_OK; begun++) {
        drawings[begun] =
            (struct drawing){.request = &requests[begun], .outcome = &outcomes[begun]};
        status = begin_drawing(&drawings[begun], store, err);
    }
    for (int k = 0; k < begun; k++) {
        enum status finished = finish_picture(&drawings[k], status == STATUS_OK ? err : NULL);
        status = status == STATUS_OK ? finished : status;
    }
    return status;
}
