/* SPDX-License-Identifier: Apache-2.0
 *
 * A plot on its way from grids to gnuplot. A shape (plots/shape_*.c) reads the grids of the plot's
 * views and writes blocks of data and commands; what must not overlap is placed here in pixels,
 * since gnuplot itself places labels on top of each other.
 *
 * Pixels count from the upper left corner of the canvas. The plot's frame is the canvas less the
 * margins; a shape sets them before it asks for positions.
 */
#ifndef PLOTS_FIGURE_H
#define PLOTS_FIGURE_H

#include <stdbool.h>
#include <stdio.h>

#include "plots/text.h"
#include "results/query.h"

enum {
    FIGURE_GRIDS_MAX = 4,
    FIGURE_BOXES_MAX = 2000,
    FIGURE_LEADERS_MAX = 100,
    FIGURE_FONT_PX = 13,
    FIGURE_LINE_PX = 18
};

struct box {
    double x0, y0, x1, y1;
};

/* A marker that a reader can point at in the page. */
struct figure_mark {
    double x, y, radius; /* pixels */
    double x_value, y_value;
    int64_t id; /* result or step, as the plot has it */
};

struct axis {
    double min, max;
    bool log;
};

struct figure {
    struct store *store;
    struct grid grids[FIGURE_GRIDS_MAX];
    const char *blocks[FIGURE_GRIDS_MAX]; /* names of the grids */
    int grid_count;
    FILE *data, *commands;
    double width, height, left, right, top, bottom;
    struct axis x, y;
    double below; /* pixels under the title of the x axis, for a legend of numbers */
    struct box taken[FIGURE_BOXES_MAX];
    bool is_text[FIGURE_BOXES_MAX]; /* of taken */
    int taken_count;
    struct box leaders[FIGURE_LEADERS_MAX]; /* lines from markers to their names */
    int leader_count;
    struct figure_mark *marks; /* owned; the caller of the plot takes them over */
    int mark_count;
    bool marks_steps;  /* ids are steps of one result, not results */
    int unnamed;       /* points that have neither a name nor a number */
    const char *block; /* being written */
    int64_t rows;
    char empty[200]; /* why there is nothing to draw */
};

typedef enum status shape_function(struct figure *figure, struct error *err);
shape_function shape_roofline, shape_breakdown, shape_latency, shape_spread, shape_history,
    shape_scaling, shape_timeline, shape_collective_rates, shape_collective_times;

const struct grid *figure_grid(const struct figure *figure, const char *block);
/* The same for a block that not every plot has: NULL without it. */
const struct grid *figure_grid_if(const struct figure *figure, const char *block);

/* Data: a block has a name by which the plot finds it and columns divided by tabs. */
void figure_block(struct figure *figure, const char *name, const char *columns);
__attribute__((format(printf, 3, 4))) void figure_row(struct figure *figure, const char *text,
                                                      const char *format, ...);
void figure_end(struct figure *figure);

/* A variable of the gnuplot script. */
void figure_number(struct figure *figure, const char *name, double value);
/* Margins and ranges, after the last change of them. */
void figure_frame(struct figure *figure);

/* Places. */
double figure_px_x(const struct figure *figure, double value);
double figure_px_y(const struct figure *figure, double value);
double figure_text_width(const char *text);
/* Rows with names on the left: their names as far as they fit into 40 % of the width. */
struct short_text figure_row_name(const struct figure *figure, const char *name);
struct box figure_text_box(double x, double y, const char *text, double align);
bool figure_free(const struct figure *figure, struct box box);
void figure_take(struct figure *figure, struct box box);
/* Text with its vertical middle at y; align 0: begins at x, 0.5: centred, 1: ends there. */
void figure_label(struct figure *figure, double x, double y, double align, const char *text);
void figure_label_colour(struct figure *figure, double x, double y, double align, const char *text,
                         unsigned rgb);
/* Along the left edge, reading upwards; along the lower edge. */
void figure_y_title(struct figure *figure, const char *text);
void figure_x_title(struct figure *figure, const char *text);
void figure_line(struct figure *figure, struct box from_to, const char *style);

/* ---- names of points (plots/labels.c) ---- */

struct label_point {
    double x, y, radius;
    const char *text;
    int number; /* out: of the legend; 0: its name stands beside it, -1: there was no room */
};

/* Beside a marker of this radius, where there is room; false when there is none. */
bool figure_label_beside(struct figure *figure, double x, double y, double radius,
                         const char *text);
/* Names all points: beside the marker, or, where they crowd, by a number that the legend explains.
 * No label touches another or a marker. The same points always get the same places. */
void figure_label_points(struct figure *figure, struct label_point *points, int count);
/* The legend of the numbers, in columns over the lower edge; its height. Draws unless it measures.
 */
double figure_number_legend(struct figure *figure, const struct label_point *points, int count,
                            bool draws);

/* Entries over the frame, in lines from the left; bit k of `used`: palette entry k. */
double figure_legend_height(struct figure *figure, unsigned used, const char *(*name)(int index));
void figure_legend(struct figure *figure, unsigned used, const char *(*name)(int index));

#endif
