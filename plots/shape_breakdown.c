/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the time goes: a bar per workload, a part per group of operators, all bars equally long.
 * Block times (result, label, kind, seconds), rows of a result together. Times of steps are each
 * measured alone: a bar shows shares of their sum, not of the workload's own time. */
#include <math.h>
#include <string.h>

#include "plots/figure.h"
#include "plots/palette.h"

enum { BAR_PX = 30 };

struct bar {
    const char *label;
    double seconds[PALETTE_COUNT], total;
    int64_t rows;
};

static struct bar read_bar(const struct grid *times, int64_t row)
{
    struct bar bar = {.label = grid_text(times, row, "label")};
    double result = grid_number(times, row, "result");
    for (; row < times->row_count && grid_number(times, row, "result") == result; row++) {
        double seconds = grid_number(times, row, "seconds");
        bar.rows++;
        if (!(seconds > 0))
            continue;
        bar.seconds[palette_of_kind(grid_text(times, row, "kind"))] += seconds;
        bar.total += seconds;
    }
    return bar;
}

static void put_bar(struct figure *f, const struct bar *bar, int index)
{
    double start = 0, plot_px = f->width - f->left - f->right;
    double y = f->top + (index + 0.5) * BAR_PX;
    figure_label(f, f->left - 8, y, 1, figure_row_name(f, bar->label).s);
    if (bar->total > 0)
        for (int k = 0; k < PALETTE_COUNT; k++) {
            double share = bar->seconds[k] / bar->total;
            const struct swatch *swatch = palette_at(k);
            char text[24];
            if (!(share > 0))
                continue;
            figure_row(f, bar->label, "%d\t%.5f\t%.5f\t%u", index, start * 100,
                       (start + share) * 100, swatch->rgb);
            snprintf(text, sizeof(text), "%.0f %%", share * 100);
            if (share * plot_px > figure_text_width(text) + 6)
                figure_label_colour(f, f->left + (start + share / 2) * plot_px, y, 0.5, text,
                                    swatch->text);
            start += share;
        }
}

static int survey(const struct figure *f, const struct grid *times, unsigned *used, double *widest)
{
    int bars = 0;
    for (int64_t row = 0; row < times->row_count;) {
        struct bar bar = read_bar(times, row);
        row += bar.rows;
        bars += bar.total > 0;
        *widest = fmax(*widest, figure_text_width(figure_row_name(f, bar.label).s));
        for (int k = 0; k < PALETTE_COUNT; k++)
            *used |= (unsigned)(bar.seconds[k] > 0) << k;
    }
    return bars;
}

enum status shape_breakdown(struct figure *f, struct error *err)
{
    (void)err;
    const struct grid *times = figure_grid(f, "times");
    unsigned used = 0;
    double widest = 0;
    int bars = survey(f, times, &used, &widest);
    if (!bars) {
        snprintf(f->empty, sizeof(f->empty), "no step of this run was timed");
        return STATUS_OK;
    }
    f->left = widest + 14;
    f->right = 22, f->bottom = 46;
    f->top = figure_legend_height(f, used, palette_group) + 4;
    f->height = f->top + f->bottom + bars * BAR_PX;
    figure_legend(f, used, palette_group);
    f->x = (struct axis){0, 100, false};
    f->y = (struct axis){bars - 0.5, -0.5, false};
    figure_frame(f);
    figure_x_title(f, "share of the time of all steps [%]");
    figure_block(f, "bars", "bar\tfrom\tto\tcolor\tlabel");
    int index = 0;
    for (int64_t row = 0; row < times->row_count;) {
        struct bar bar = read_bar(times, row);
        row += bar.rows;
        if (bar.total > 0)
            put_bar(f, &bar, index++);
    }
    return STATUS_OK;
}
