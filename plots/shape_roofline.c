/* SPDX-License-Identifier: Apache-2.0
 *
 * A roofline: points over intensity and rate under lines for what the machine can do. Solid lines
 * were measured, dashed ones are a maker's statement. A point's area is its share of the time.
 *
 * Blocks: points (intensity, flop_rate, share, label, kind or domain, valid, named: may be NULL)
 * and roofs (kind, value, label, how). Without roofs the points stand alone. */
#include <math.h>
#include <string.h>

#include "base/registry.h"
#include "plots/figure.h"
#include "plots/palette.h"
#include "plots/text.h"

enum { ROOFS_MAX = 16, NAMED_MAX = 24 };

struct roof {
    bool measured;
    double value;
    const char *label;
};

struct roofs {
    struct roof compute[ROOFS_MAX], memory[ROOFS_MAX];
    int compute_count, memory_count;
    double top, measured_top, widest; /* highest compute roofs, highest bandwidth */
};

static void collect(const struct grid *grid, struct roofs *roofs)
{
    for (int64_t row = 0; row < grid->row_count; row++) {
        double value = grid_number(grid, row, "value");
        bool compute = strcmp(grid_text(grid, row, "kind"), "compute") == 0;
        int *count = compute ? &roofs->compute_count : &roofs->memory_count;
        struct roof *list = compute ? roofs->compute : roofs->memory;
        double *most = compute ? &roofs->top : &roofs->widest;
        if (!(value > 0) || *count == ROOFS_MAX)
            continue;
        list[(*count)++] = (struct roof){strcmp(grid_text(grid, row, "how"), "measured") == 0,
                                         value, grid_text(grid, row, "label")};
        *most = fmax(*most, value);
        if (compute && list[*count - 1].measured)
            roofs->measured_top = fmax(roofs->measured_top, value);
    }
}

static bool visible(const struct grid *points, int64_t row)
{
    double x = grid_number(points, row, "intensity"), y = grid_number(points, row, "flop_rate");
    return x > 0 && y > 0 && isfinite(x) && isfinite(y);
}

static void widen(struct axis *axis, double value)
{
    axis->min = axis->min > 0 ? fmin(axis->min, value) : value;
    axis->max = fmax(axis->max, value);
}

/* All points, the ridges and some air; a decade at least. Ends at 1, 2 or 5 times a power of 10. */
static void round_axis(struct axis *axis, double air_low, double air_high)
{
    static const double ends[] = {1, 2, 5, 10};
    double low = axis->min / air_low, high = axis->max * air_high;
    double below = pow(10, floor(log10(low))), above = pow(10, floor(log10(high)));
    for (int k = 0; k < 4; k++)
        if (ends[k] * below <= low * 1.0001)
            axis->min = ends[k] * below;
    for (int k = 3; k >= 0; k--)
        if (ends[k] * above >= high * 0.9999)
            axis->max = ends[k] * above;
}

static void set_axes(struct figure *f, const struct grid *points, const struct roofs *roofs)
{
    f->x = f->y = (struct axis){.log = true};
    for (int64_t row = 0; row < points->row_count; row++)
        if (visible(points, row)) {
            widen(&f->x, grid_number(points, row, "intensity"));
            widen(&f->y, grid_number(points, row, "flop_rate"));
        }
    for (int k = 0; k < roofs->memory_count && roofs->top > 0; k++)
        if (roofs->memory[k].measured)
            widen(&f->x, roofs->top / roofs->memory[k].value);
    if (roofs->top > 0)
        widen(&f->y, roofs->top);
    round_axis(&f->x, 2.2, 2.5);
    f->y.min = fmin(f->y.min, f->y.max / 60); /* the slopes are seen, not the flat part alone */
    round_axis(&f->y, 2.2, 1.7);
}

static void put_points(struct figure *f, const struct grid *points, double *radius)
{
    bool ops = grid_column_find(points, "kind") >= 0;
    figure_block(f, "points", "x\ty\tsize\tmark\tcolor\tlabel");
    for (int64_t row = 0; row < points->row_count; row++) {
        if (!visible(points, row))
            continue;
        const struct swatch *swatch =
            palette_at(ops ? palette_of_kind(grid_text(points, row, "kind"))
                           : palette_of_domain(grid_text(points, row, "domain")));
        double share = grid_number(points, row, "share");
        double size = 0.55 + 3.2 * sqrt(isfinite(share) ? fmin(share, 1) : 0);
        bool hollow = grid_number(points, row, "valid") == 0;
        figure_row(f, grid_text(points, row, "label"), "%.6g\t%.6g\t%.3f\t%d\t%u",
                   grid_number(points, row, "intensity"), grid_number(points, row, "flop_rate"),
                   size, swatch->marker - hollow, swatch->rgb);
        double px = figure_px_x(f, grid_number(points, row, "intensity"));
        double py = figure_px_y(f, grid_number(points, row, "flop_rate"));
        radius[row] = 4.5 * size; /* gnuplot draws a marker of size 1 with 4.5 px around */
        figure_take(f, (struct box){px - radius[row], py - radius[row], px + radius[row],
                                    py + radius[row]});
    }
    figure_end(f);
}

static void name_points(struct figure *f, const struct grid *points, const double *radius)
{
    int named = 0;
    for (int64_t row = 0; row < points->row_count && named < NAMED_MAX; row++) {
        if (!visible(points, row) || grid_number(points, row, "named") == 0)
            continue;
        figure_label_beside(f, figure_px_x(f, grid_number(points, row, "intensity")),
                            figure_px_y(f, grid_number(points, row, "flop_rate")), radius[row],
                            text_fit(grid_text(points, row, "label"), 24).s);
        named++;
    }
}

/* A memory's line goes from the left or lower edge up to the highest compute roof. */
static void put_lines(struct figure *f, const struct roofs *roofs)
{
    figure_block(f, "lines", "x0\ty0\tx1\ty1\tdashed\tlabel");
    for (int k = 0; k < roofs->memory_count; k++) {
        const struct roof *roof = &roofs->memory[k];
        double x0 = fmax(f->x.min, f->y.min / roof->value);
        double end = roof->measured && roofs->measured_top > 0 ? roofs->measured_top : roofs->top;
        double y1 = fmin(end > 0 ? end : f->y.max, f->y.max);
        double x1 = fmin(y1 / roof->value, f->x.max);
        figure_row(f, roof->label, "%.6g\t%.6g\t%.6g\t%.6g\t%d", x0, x0 * roof->value, x1,
                   x1 * roof->value, !roof->measured);
    }
    for (int k = 0; k < roofs->compute_count; k++) {
        const struct roof *roof = &roofs->compute[k];
        double x0 = roofs->widest > 0 ? fmax(f->x.min, roof->value / roofs->widest) : f->x.min;
        figure_row(f, roof->label, "%.6g\t%.6g\t%.6g\t%.6g\t%d", x0, roof->value, f->x.max,
                   roof->value, !roof->measured);
    }
    figure_end(f);
}

/* A compute roof is named over its line, or under it, or a line further off, from the right edge
 * to the left until there is room. */
static void name_compute(struct figure *f, const struct roof *roof)
{
    static const double apart[] = {-11, 11, -28, 28, -45, 45};
    double y = figure_px_y(f, roof->value), right = f->width - f->right - 4;
    int tries = (int)((right - f->left) / 20) + 1;
    for (int k = 0; k < ARRAY_COUNT(apart) * tries; k++) {
        double x = right - 20 * (k % tries), at_y = y + apart[k / tries];
        if (!figure_free(f, figure_text_box(x, at_y, roof->label, 1)))
            continue;
        figure_label(f, x, at_y, 1, roof->label);
        return;
    }
}

/* A memory is named to the right of its line, from the lower end up. */
static void name_memory(struct figure *f, const struct roof *roof)
{
    enum { TRIES = 25 };
    for (int k = 0; k < TRIES; k++) {
        double share = 0.02 + 0.03 * k;
        double px = f->left + share * (f->width - f->left - f->right);
        double py = figure_px_y(f, f->x.min * pow(f->x.max / f->x.min, share) * roof->value);
        if (!figure_free(f, figure_text_box(px + 10, py + 6, roof->label, 0)))
            continue;
        figure_label(f, px + 10, py + 6, 0, roof->label);
        return;
    }
}

static unsigned used_swatches(const struct grid *points)
{
    bool ops = grid_column_find(points, "kind") >= 0;
    unsigned used = 0;
    for (int64_t row = 0; row < points->row_count; row++)
        if (visible(points, row))
            used |= 1u << (ops ? palette_of_kind(grid_text(points, row, "kind"))
                               : palette_of_domain(grid_text(points, row, "domain")));
    return used;
}

static void put_ridge(struct figure *f, const struct roofs *roofs)
{
    char text[96];
    double slowest = NAN;
    for (int k = 0; k < roofs->memory_count; k++)
        if (roofs->memory[k].measured)
            slowest = fmin(slowest, roofs->memory[k].value);
    double ridge = roofs->measured_top / slowest;
    bool known = isfinite(ridge) && ridge > 0;
    figure_number(f, "ridge_known", known);
    if (!known)
        return;
    snprintf(text, sizeof(text), "ridge %s FLOP/B", text_number(ridge).s);
    figure_number(f, "ridge_x", ridge);
    figure_number(f, "ridge_y", roofs->measured_top);
    figure_label_beside(f, figure_px_x(f, ridge), f->height - f->bottom - 10, 0, text);
}

enum status shape_roofline(struct figure *f, struct error *err)
{
    const struct grid *points = figure_grid(f, "points");
    struct roofs roofs = {.top = 0};
    int64_t count = 0;
    for (int64_t row = 0; row < points->row_count; row++)
        count += visible(points, row);
    if (!count) {
        snprintf(f->empty, sizeof(f->empty), "nothing here has both FLOPs and bytes");
        return STATUS_OK;
    }
    struct arena arena = {0};
    double *radius = arena_array(&arena, (size_t)points->row_count, sizeof(*radius));
    if (!radius)
        return FAIL_NO_MEMORY(err);
    collect(figure_grid(f, "roofs"), &roofs);
    const char *(*name)(int) =
        grid_column_find(points, "kind") >= 0 ? palette_family : palette_domain;
    f->left = 74, f->right = 16, f->bottom = 54;
    f->top = figure_legend_height(f, used_swatches(points), name);
    figure_legend(f, used_swatches(points), name);
    set_axes(f, points, &roofs);
    figure_frame(f);
    figure_number(f, "y_decades", log10(f->y.max / f->y.min));
    figure_x_title(f, "arithmetic intensity [FLOP/B]");
    figure_y_title(f, "performance [GFLOP/s]");
    put_lines(f, &roofs);
    put_points(f, points, radius);
    put_ridge(f, &roofs);
    for (int k = 0; k < roofs.compute_count; k++)
        name_compute(f, &roofs.compute[k]);
    for (int k = 0; k < roofs.memory_count; k++)
        name_memory(f, &roofs.memory[k]);
    name_points(f, points, radius);
    arena_release(&arena);
    return STATUS_OK;
}
