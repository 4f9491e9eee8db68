/* SPDX-License-Identifier: Apache-2.0
 *
 * Rates over ranks, and the units of a step over time.
 *
 * Shape scaling: block points (series, label, ranks, worth, valid), rows of a series together,
 * ascending by ranks. Shape timeline: block units (rank, ready, started, ended, waited), rows of a
 * rank together; a line for each unit. */
#include <math.h>
#include <string.h>

#include "plots/figure.h"
#include "plots/palette.h"

enum { SERIES_MAX = 64, LINE_PX = 12 };

/* ---- scaling ---- */

static bool begins_series(const struct grid *g, int64_t row)
{
    return row == 0 || strcmp(grid_text(g, row, "series"), grid_text(g, row - 1, "series")) != 0;
}

static unsigned colour_of(int series)
{
    return palette_at(series % (PALETTE_COUNT - 1))->rgb;
}

static void put_lines(struct figure *f, const struct grid *g)
{
    int series = -1;
    figure_block(f, "lines", "ranks\tworth\tdx\tdy\tcolor\tlabel");
    for (int64_t row = 0; row < g->row_count; row++) {
        if (begins_series(g, row)) {
            series++;
            continue;
        }
        double x = grid_number(g, row - 1, "ranks"), y = grid_number(g, row - 1, "worth");
        figure_row(f, grid_text(g, row, "label"), "%g\t%.6g\t%g\t%.6g\t%u", x, y,
                   grid_number(g, row, "ranks") - x, grid_number(g, row, "worth") - y,
                   colour_of(series));
    }
    figure_end(f);
}

/* The last point of each series bears its name. */
static void put_points(struct figure *f, const struct grid *g)
{
    struct label_point names[SERIES_MAX];
    int series = -1, count = 0;
    figure_block(f, "points", "ranks\tworth\tmark\tcolor\tlabel");
    for (int64_t row = 0; row < g->row_count; row++) {
        double x = grid_number(g, row, "ranks"), y = grid_number(g, row, "worth");
        series += begins_series(g, row);
        int marker = palette_at(series % (PALETTE_COUNT - 1))->marker;
        bool valid = grid_number(g, row, "valid") != 0;
        figure_row(f, grid_text(g, row, "label"), "%g\t%.6g\t%d\t%u", x, y,
                   valid ? marker : marker - 1, colour_of(series));
        if ((row + 1 == g->row_count || begins_series(g, row + 1)) && count < SERIES_MAX)
            names[count++] = (struct label_point){.x = figure_px_x(f, x),
                                                  .y = figure_px_y(f, y),
                                                  .radius = 5,
                                                  .text = grid_text(g, row, "label")};
    }
    figure_end(f);
    figure_label_points(f, names, count);
}

static void put_ideal(struct figure *f, double largest)
{
    figure_block(f, "ideal", "ranks\tworth\tlabel");
    figure_row(f, "", "%g\t%g", 0.0, 0.0);
    figure_row(f, "", "%g\t%g", largest, largest);
    figure_end(f);
}

enum status shape_scaling(struct figure *f, struct error *err)
{
    (void)err;
    const struct grid *g = figure_grid(f, "points");
    double largest = 0, high = 0;
    for (int64_t row = 0; row < g->row_count; row++) {
        largest = fmax(largest, grid_number(g, row, "ranks"));
        high = fmax(high, grid_number(g, row, "worth"));
    }
    if (!(largest > 0)) {
        snprintf(f->empty, sizeof(f->empty), "no `ridge scale --db` of this machine is stored");
        return STATUS_OK;
    }
    f->left = 74, f->right = 24, f->top = 14, f->bottom = 46;
    f->x = (struct axis){0, largest * 1.3, false};
    f->y = (struct axis){0, fmax(largest, high) * 1.08, false};
    figure_frame(f);
    figure_x_title(f, "ranks");
    figure_y_title(f, "rate / that of one rank");
    put_ideal(f, largest);
    put_lines(f, g);
    put_points(f, g);
    return STATUS_OK;
}

/* ---- timeline ---- */

static void put_unit(struct figure *f, const struct grid *g, int64_t row, double scale)
{
    char name[48];
    double ready = grid_number(g, row, "ready") * scale;
    double started = fmax(ready, grid_number(g, row, "started") * scale);
    double ended = grid_number(g, row, "ended") * scale;
    double waited = grid_number(g, row, "waited") * scale;
    snprintf(name, sizeof(name), "rank %.0f", grid_number(g, row, "rank"));
    figure_row(f, name, "%lld\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g", (long long)row, ready,
               started - ready, started, ended - started, fmax(0, ended - waited), waited);
    if (row == 0 || grid_number(g, row, "rank") != grid_number(g, row - 1, "rank"))
        figure_label(f, f->left - 8, f->top + ((double)row + 0.5) * LINE_PX, 1, name);
}

enum status shape_timeline(struct figure *f, struct error *err)
{
    (void)err;
    const struct grid *g = figure_grid(f, "units");
    double end = 0;
    for (int64_t row = 0; row < g->row_count; row++)
        end = fmax(end, fmax(grid_number(g, row, "ended"), grid_number(g, row, "step")));
    if (!(end > 0)) {
        snprintf(f->empty, sizeof(f->empty), "nothing of this point went between ranks");
        return STATUS_OK;
    }
    f->left = figure_text_width("rank 000") + 14;
    f->right = 22, f->top = 8, f->bottom = 46;
    f->height = f->top + f->bottom + (double)g->row_count * LINE_PX;
    f->x = (struct axis){0, end * 1e3 * 1.02, false};
    f->y = (struct axis){(double)g->row_count - 0.5, -0.5, false};
    figure_frame(f);
    figure_x_title(f, "time since the step began [ms]");
    figure_block(f, "units", "row\tready\tqueued\tstarted\tmoving\tstood\twaited\tlabel");
    for (int64_t row = 0; row < g->row_count; row++)
        put_unit(f, g, row, 1e3);
    figure_end(f);
    return STATUS_OK;
}
