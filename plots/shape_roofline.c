/* SPDX-License-Identifier: Apache-2.0
 *
 * A roofline: points over intensity and rate under lines for what the machine can do. Solid lines
 * were measured, dashed ones are a maker's statement. A point's area is its share of the time.
 *
 * Blocks: points (intensity, flop_rate, share, label, kind or domain, valid, named: may be NULL)
 * and roofs (kind, value, label, how). Without roofs the points stand alone. A plot of two runs has
 * base_points (with a key, as points then have) and base_roofs too: small and grey, with an arrow
 * to where each point is now. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "plots/figure.h"
#include "plots/palette.h"
#include "plots/text.h"

enum { ROOFS_MAX = 16, NAMED_MAX = 40, LEAST_TARGET_PX = 7 };

#define ROOF_MOVED 1.03                /* smaller moves of a roof are the noise of measuring it */
static const unsigned grey = 0x595959; /* of text: 7 to 1 on white */

struct roof {
    bool measured, of_base;
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
        double *highest = compute ? &roofs->top : &roofs->widest;
        if (!(value > 0) || *count == ROOFS_MAX)
            continue;
        list[(*count)++] =
            (struct roof){.measured = strcmp(grid_text(grid, row, "how"), "measured") == 0,
                          .value = value,
                          .label = grid_text(grid, row, "label")};
        *highest = fmax(*highest, value);
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

static void widen_axes(struct figure *f, const struct grid *points, const struct roofs *roofs)
{
    for (int64_t row = 0; row < points->row_count; row++)
        if (visible(points, row)) {
            widen(&f->x, grid_number(points, row, "intensity"));
            widen(&f->y, grid_number(points, row, "flop_rate"));
        }
    if (roofs->top > 0)
        for (int k = 0; k < roofs->memory_count; k++)
            if (roofs->memory[k].measured)
                widen(&f->x, roofs->top / roofs->memory[k].value);
    if (roofs->top > 0)
        widen(&f->y, roofs->top);
}

static void set_axes(struct figure *f, const struct grid *points, const struct roofs *roofs,
                     const struct roofs *base)
{
    const struct grid *base_points = figure_grid_if(f, "base_points");
    f->x = f->y = (struct axis){.log = true};
    widen_axes(f, points, roofs);
    if (base_points)
        widen_axes(f, base_points, base);
    round_axis(&f->x, 2.2, 2.5);
    f->y.min = fmin(f->y.min, f->y.max / 60); /* the slopes are visible, not only the flat part */
    round_axis(&f->y, 2.2, 1.7);
}

/* Small points are easier to hit than they look. */
static void put_mark(struct figure *f, const struct grid *points, int64_t row, double radius)
{
    double x = grid_number(points, row, "intensity"), y = grid_number(points, row, "flop_rate");
    double id = grid_number(points, row, f->marks_steps ? "step" : "result");
    f->marks[f->mark_count++] = (struct figure_mark){.x = figure_px_x(f, x),
                                                     .y = figure_px_y(f, y),
                                                     .radius = fmax(radius, LEAST_TARGET_PX),
                                                     .x_value = x,
                                                     .y_value = y,
                                                     .id = (int64_t)id};
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
        put_mark(f, points, row, radius[row]);
    }
    figure_end(f);
}

/* The texts of the labels are cut to length: they need a place of their own. */
struct names {
    struct label_point *labels;
    struct short_text *texts;
    int count;
};

static void name_points(struct figure *f, const struct grid *points, const double *radius,
                        struct names *names)
{
    names->count = 0;
    for (int64_t row = 0; row < points->row_count; row++) {
        if (!visible(points, row) || grid_number(points, row, "named") == 0)
            continue;
        if (names->count == NAMED_MAX) {
            f->unnamed++;
            continue;
        }
        struct short_text *text = &names->texts[names->count];
        *text = text_fit(grid_text(points, row, "label"), 24);
        names->labels[names->count++] =
            (struct label_point){.x = figure_px_x(f, grid_number(points, row, "intensity")),
                                 .y = figure_px_y(f, grid_number(points, row, "flop_rate")),
                                 .radius = radius[row],
                                 .text = text->s};
    }
    figure_label_points(f, names->labels, names->count);
}

/* ---- the run compared with ---- */

static int64_t find_key(const struct grid *grid, const char *key)
{
    for (int64_t row = 0; row < grid->row_count; row++)
        if (strcmp(grid_text(grid, row, "key"), key) == 0)
            return row;
    return -1;
}

/* How many pixels two points are apart. */
static double apart(const struct figure *f, const struct grid *a, int64_t i, const struct grid *b,
                    int64_t k)
{
    return hypot(figure_px_x(f, grid_number(a, i, "intensity")) -
                     figure_px_x(f, grid_number(b, k, "intensity")),
                 figure_px_y(f, grid_number(a, i, "flop_rate")) -
                     figure_px_y(f, grid_number(b, k, "flop_rate")));
}

/* Points that have not moved are left out: today's marker is in their place. */
static void put_base_points(struct figure *f, const struct grid *base, const struct grid *points,
                            const double *radius)
{
    figure_block(f, "base_points", "x\ty\tmark\tlabel");
    for (int64_t row = 0; row < base->row_count; row++) {
        int64_t now = find_key(points, grid_text(base, row, "key"));
        bool here = now >= 0 && visible(points, now) && visible(base, row) &&
                    apart(f, base, row, points, now) <= radius[now];
        if (visible(base, row) && !here)
            figure_row(f, grid_text(base, row, "label"), "%.6g\t%.6g\t%d",
                       grid_number(base, row, "intensity"), grid_number(base, row, "flop_rate"),
                       palette_at(palette_of_domain(grid_text(base, row, "domain")))->marker);
    }
    figure_end(f);
}

/* No name stands on an arrow. */
static void take_line(struct figure *f, double x0, double y0, double x1, double y1)
{
    enum { PIECES = 8, HALF_PX = 4 };
    for (int k = 0; k < PIECES; k++) {
        double at = (k + 0.5) / PIECES, x = figure_px_x(f, x0 * pow(x1 / x0, at));
        double y = figure_px_y(f, y0 * pow(y1 / y0, at));
        double half = fabs(figure_px_y(f, y1) - figure_px_y(f, y0)) / PIECES / 2 + HALF_PX;
        figure_take(f, (struct box){x - HALF_PX, y - half, x + HALF_PX, y + half});
    }
}

/* Arrows end at the markers' edges. */
static void put_moves(struct figure *f, const struct grid *base, const struct grid *points,
                      const double *radius)
{
    figure_block(f, "moves", "x0\ty0\tx1\ty1\tlabel");
    for (int64_t row = 0; row < points->row_count; row++) {
        int64_t was = find_key(base, grid_text(points, row, "key"));
        if (was < 0 || !visible(points, row) || !visible(base, was))
            continue;
        double x0 = grid_number(base, was, "intensity"), y0 = grid_number(base, was, "flop_rate");
        double x1 = grid_number(points, row, "intensity");
        double y1 = grid_number(points, row, "flop_rate");
        double far = apart(f, base, was, points, row), part = 1 - radius[row] / far;
        if (far <= radius[row] + 2)
            continue;
        figure_row(f, grid_text(points, row, "label"), "%.6g\t%.6g\t%.6g\t%.6g", x0, y0,
                   x0 * pow(x1 / x0, part), y0 * pow(y1 / y0, part));
        take_line(f, x0, y0, x1, y1);
    }
    figure_end(f);
}

static bool same_roof(const struct roof *a, const struct roof *b)
{
    return a->measured == b->measured && a->value < ROOF_MOVED * b->value &&
           b->value < ROOF_MOVED * a->value;
}

/* Roofs that have not moved are drawn once. */
static enum status keep_moved(struct roof *base, int *count, const struct roof *now, int now_count,
                              struct arena *arena, struct error *err)
{
    int kept = 0;
    for (int k = 0; k < *count; k++) {
        bool same = false;
        for (int i = 0; i < now_count; i++)
            same = same || same_roof(&base[k], &now[i]);
        if (same)
            continue;
        base[kept] = base[k];
        base[kept].of_base = true;
        base[kept].label = arena_printf(arena, "BASE: %s", base[k].label);
        if (!base[kept++].label)
            return FAIL_NO_MEMORY(err);
    }
    *count = kept;
    return STATUS_OK;
}

/* ---- roofs ---- */

/* A memory's line goes from the left or lower edge up to the highest compute roof. */
static void put_lines(struct figure *f, const struct roofs *roofs, const char *block)
{
    figure_block(f, block, "x0\ty0\tx1\ty1\tdashed\tlabel");
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
        figure_label_colour(f, x, at_y, 1, roof->label, roof->of_base ? grey : 0);
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
        figure_label_colour(f, px + 10, py + 6, 0, roof->label, roof->of_base ? grey : 0);
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

static void name_roofs(struct figure *f, const struct roofs *roofs)
{
    for (int k = 0; k < roofs->compute_count; k++)
        name_compute(f, &roofs->compute[k]);
    for (int k = 0; k < roofs->memory_count; k++)
        name_memory(f, &roofs->memory[k]);
}

static void set_frame(struct figure *f, const struct grid *points, const struct roofs *roofs,
                      const struct roofs *base)
{
    const char *(*name)(int) =
        grid_column_find(points, "kind") >= 0 ? palette_group : palette_domain;
    f->left = 74, f->right = 16, f->bottom = 54 + f->below;
    f->top = figure_legend_height(f, used_swatches(points), name);
    figure_legend(f, used_swatches(points), name);
    set_axes(f, points, roofs, base);
    figure_frame(f);
    figure_number(f, "y_decades", log10(f->y.max / f->y.min));
    figure_x_title(f, "arithmetic intensity [FLOP/B]");
    figure_y_title(f, "performance [GFLOP/s]");
}

static enum status draw(struct figure *f, const struct grid *points, struct names *names,
                        struct arena *arena, struct error *err)
{
    struct roofs roofs = {.top = 0}, base = {.top = 0};
    const struct grid *base_points = figure_grid_if(f, "base_points");
    double *radius = arena_array(arena, (size_t)points->row_count, sizeof(*radius));
    if (!radius)
        return FAIL_NO_MEMORY(err);
    f->taken_count = f->leader_count = f->mark_count = f->unnamed = 0;
    collect(figure_grid(f, "roofs"), &roofs);
    if (base_points)
        collect(figure_grid(f, "base_roofs"), &base);
    set_frame(f, points, &roofs, &base);
    TRY(keep_moved(base.compute, &base.compute_count, roofs.compute, roofs.compute_count, arena,
                   err));
    TRY(keep_moved(base.memory, &base.memory_count, roofs.memory, roofs.memory_count, arena, err));
    put_lines(f, &roofs, "lines");
    if (base_points)
        put_lines(f, &base, "base_lines");
    put_points(f, points, radius);
    if (base_points) {
        put_base_points(f, base_points, points, radius);
        put_moves(f, base_points, points, radius);
    }
    put_ridge(f, &roofs);
    name_roofs(f, &roofs);
    name_points(f, points, radius, names);
    name_roofs(f, &base);
    return STATUS_OK;
}

/* How high the legend is follows from the places of all labels: they are found once without
 * writing anything. The legend is below, so that it moves none of them. */
static enum status measure(struct figure *f, const struct grid *points, struct names *names,
                           struct arena *arena, struct error *err)
{
    FILE *data = f->data, *commands = f->commands;
    char *unused = NULL;
    size_t size = 0;
    FILE *scratch = open_memstream(&unused, &size);
    if (!scratch)
        return FAIL_NO_MEMORY(err);
    f->data = f->commands = scratch;
    enum status status = draw(f, points, names, arena, err);
    figure_end(f);
    fclose(scratch);
    free(unused);
    f->data = data, f->commands = commands;
    f->below = figure_number_legend(f, names->labels, names->count, false);
    f->height += f->below;
    return status;
}

static enum status lay_out(struct figure *f, const struct grid *points, struct arena *arena,
                           struct error *err)
{
    struct names names = {
        .labels = arena_array(arena, NAMED_MAX, sizeof(*names.labels)),
        .texts = arena_array(arena, NAMED_MAX, sizeof(*names.texts)),
    };
    f->marks = calloc((size_t)points->row_count, sizeof(*f->marks));
    f->marks_steps = grid_column_find(points, "step") >= 0;
    if (!names.labels || !names.texts || !f->marks)
        return FAIL_NO_MEMORY(err);
    TRY(measure(f, points, &names, arena, err));
    TRY(draw(f, points, &names, arena, err));
    (void)figure_number_legend(f, names.labels, names.count, true);
    return STATUS_OK;
}

enum status shape_roofline(struct figure *f, struct error *err)
{
    const struct grid *points = figure_grid(f, "points");
    struct arena arena = {0};
    int64_t count = 0;
    for (int64_t row = 0; row < points->row_count; row++)
        count += visible(points, row);
    if (!count) {
        snprintf(f->empty, sizeof(f->empty), "nothing here has both FLOPs and bytes");
        return STATUS_OK;
    }
    enum status status = lay_out(f, points, &arena, err);
    arena_release(&arena);
    return status;
}
