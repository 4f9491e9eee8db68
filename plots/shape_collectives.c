/* SPDX-License-Identifier: Apache-2.0
 *
 * All-reduces between ranks over their size: rates under their roof, and times beside their models.
 * Block points (series, label, operation, place, bytes, bus_rate, roof, time, modelled, shown,
 * valid), rows of a series together, ascending by size. */
#include <math.h>
#include <string.h>

#include "plots/figure.h"
#include "plots/palette.h"

enum { SERIES_MAX = 64 };

/* What is drawn: y of some rows, and a guide, the dashed line beside them. */
struct curves {
    const struct grid *g;
    const char *y, *guide;
    bool (*drawn)(const struct grid *g, int64_t row);
    double scale;
};

static bool is_text(const struct grid *g, int64_t row, const char *column, const char *text)
{
    return strcmp(grid_text(g, row, column), text) == 0;
}

static bool has_rate(const struct grid *g, int64_t row)
{
    return is_text(g, row, "operation", "all_reduce") && grid_number(g, row, "shown") != 0;
}

static bool has_model(const struct grid *g, int64_t row)
{
    return is_text(g, row, "operation", "all_reduce") && is_text(g, row, "place", "out") &&
           isfinite(grid_number(g, row, "modelled"));
}

/* The row before it in its series that is drawn; -1: it is the first. */
static int64_t row_before(const struct curves *c, int64_t row)
{
    return row > 0 && c->drawn(c->g, row - 1) &&
                   strcmp(grid_text(c->g, row, "series"), grid_text(c->g, row - 1, "series")) == 0
               ? row - 1
               : -1;
}

static unsigned colour_of(int series)
{
    return palette_at(series % (PALETTE_COUNT - 1))->rgb;
}

/* From row to row of each series. */
static void put_lines(struct figure *f, const struct curves *c, const char *block,
                      const char *column)
{
    int series = -1;
    figure_block(f, block, "x\ty\tx1\ty1\tcolor\tlabel");
    for (int64_t row = 0; row < c->g->row_count; row++) {
        if (!c->drawn(c->g, row))
            continue;
        int64_t before = row_before(c, row);
        series += before < 0;
        double from = before < 0 ? NAN : grid_number(c->g, before, column) * c->scale;
        double to = grid_number(c->g, row, column) * c->scale;
        if (from > 0 && to > 0)
            figure_row(f, grid_text(c->g, row, "label"), "%.9g\t%.6g\t%.9g\t%.6g\t%u",
                       grid_number(c->g, before, "bytes"), from, grid_number(c->g, row, "bytes"),
                       to, colour_of(series));
    }
    figure_end(f);
}

/* The last point of each series bears its name. */
static void put_points(struct figure *f, const struct curves *c)
{
    struct label_point names[SERIES_MAX];
    int series = -1, count = 0;
    figure_block(f, "points", "x\ty\tmark\tcolor\tlabel");
    for (int64_t row = 0; row < c->g->row_count; row++) {
        if (!c->drawn(c->g, row))
            continue;
        series += row_before(c, row) < 0;
        double x = grid_number(c->g, row, "bytes"), y = grid_number(c->g, row, c->y) * c->scale;
        int marker = palette_at(series % (PALETTE_COUNT - 1))->marker;
        bool valid = grid_number(c->g, row, "valid") != 0;
        bool last = row + 1 == c->g->row_count || row_before(c, row + 1) != row;
        figure_row(f, grid_text(c->g, row, "label"), "%.9g\t%.6g\t%d\t%u", x, y,
                   valid ? marker : marker - 1, colour_of(series));
        if (last && count < SERIES_MAX)
            names[count++] = (struct label_point){.x = figure_px_x(f, x),
                                                  .y = figure_px_y(f, y),
                                                  .radius = 5,
                                                  .text = grid_text(c->g, row, "label")};
    }
    figure_end(f);
    figure_label_points(f, names, count);
}

static void stretch(struct axis *axis, double value)
{
    if (!(value > 0))
        return;
    axis->min = fmin(axis->min, value);
    axis->max = fmax(axis->max, value);
}

/* False: there is nothing to draw. */
static bool set_axes(struct figure *f, const struct curves *c)
{
    f->x = f->y = (struct axis){INFINITY, 0, true};
    for (int64_t row = 0; row < c->g->row_count; row++) {
        if (!c->drawn(c->g, row))
            continue;
        stretch(&f->x, grid_number(c->g, row, "bytes"));
        stretch(&f->y, grid_number(c->g, row, c->y) * c->scale);
        stretch(&f->y, grid_number(c->g, row, c->guide) * c->scale);
    }
    if (!(f->x.max > 0) || !(f->y.max > 0))
        return false;
    f->left = 74, f->right = 24, f->top = 14, f->bottom = 46;
    f->x.min /= 1.5;
    f->x.max *= 16; /* room for names */
    f->y.min /= 1.5;
    f->y.max *= 1.5;
    return true;
}

static void lay_out(struct figure *f, const struct curves *c, const char *y_title)
{
    if (!set_axes(f, c)) {
        snprintf(f->empty, sizeof(f->empty),
                 "no all-reduces of `ridge bench collectives --db` on this machine are stored");
        return;
    }
    figure_frame(f);
    figure_x_title(f, "size");
    figure_y_title(f, y_title);
    put_lines(f, c, "lines", c->y);
    put_lines(f, c, "guides", c->guide);
    put_points(f, c);
}

enum status shape_collective_rates(struct figure *f, struct error *err)
{
    (void)err;
    const struct curves c = {figure_grid(f, "points"), "bus_rate", "roof", has_rate, 1e-9};
    lay_out(f, &c, "bus bandwidth [GB/s]");
    return STATUS_OK;
}

enum status shape_collective_times(struct figure *f, struct error *err)
{
    (void)err;
    const struct curves c = {figure_grid(f, "points"), "time", "modelled", has_model, 1e6};
    lay_out(f, &c, "time [\xc2\xb5s]");
    return STATUS_OK;
}
