/* SPDX-License-Identifier: Apache-2.0
 *
 * How steady each workload of a run was: a row each, times as multiples of its median. A thick line
 * holds the middle half of the executions, a thin one 98 % of them, a tick is the slowest.
 * Block results: result, label, valid. */
#include <math.h>
#include <stdlib.h>

#include "base/numbers/stats.h"
#include "plots/figure.h"
#include "plots/text.h"

enum { ROW_PX = 24, BEYOND_PX = 66 };

struct spread {
    double q01, q25, q75, q99, max; /* of the median */
};

static enum status read_spread(struct figure *f, int64_t result, struct spread *spread,
                               struct error *err)
{
    double *times = NULL;
    int64_t count = 0;
    *spread = (struct spread){NAN, NAN, NAN, NAN, NAN};
    TRY(query_samples(f->store, result, &times, &count, err));
    if (count) {
        stats_sort(times, (int)count);
        double median = stats_median(times, (int)count);
        *spread = (struct spread){stats_quantile(times, (int)count, 0.01) / median,
                                  stats_quantile(times, (int)count, 0.25) / median,
                                  stats_quantile(times, (int)count, 0.75) / median,
                                  stats_quantile(times, (int)count, 0.99) / median,
                                  times[count - 1] / median};
    }
    free(times);
    return STATUS_OK;
}

static enum status read_all(struct figure *f, const struct grid *results, struct spread *spreads,
                            struct error *err)
{
    for (int64_t row = 0; row < results->row_count; row++)
        TRY(read_spread(f, (int64_t)grid_number(results, row, "result"), &spreads[row], err));
    return STATUS_OK;
}

/* The axis ends where a few slow executions would press all the rest into a corner; what lies
 * beyond is written at the edge. */
static void set_axes(struct figure *f, const struct grid *results, const struct spread *spreads)
{
    double widest = 0, low = 0.99, high = 1.01, high_max = 1.5;
    int rows = 0;
    for (int64_t row = 0; row < results->row_count; row++) {
        if (!isfinite(spreads[row].max))
            continue;
        struct short_text name = figure_row_name(f, grid_text(results, row, "label"));
        widest = fmax(widest, figure_text_width(name.s));
        low = fmin(low, spreads[row].q01);
        high = fmax(high, spreads[row].max);
        high_max = fmax(high_max, 1.15 * spreads[row].q99);
        rows++;
    }
    f->left = widest + 14;
    f->right = high > high_max ? BEYOND_PX : 24, f->top = 8, f->bottom = 46;
    f->height = f->top + f->bottom + rows * ROW_PX;
    high = fmin(high, high_max);
    f->x = high > 3 ? (struct axis){low * 0.97, high * 1.02, true}
                    : (struct axis){low - 0.02 * (high - low), high + 0.03 * (high - low), false};
    f->y = (struct axis){rows - 0.5, -0.5, false};
    figure_number(f, "rows", rows);
    figure_frame(f);
    figure_x_title(f, "time of one execution / its median");
}

static void put_row(struct figure *f, int index, const char *label, const struct spread *s)
{
    double y = f->top + (index + 0.5) * ROW_PX;
    figure_row(f, label, "%d\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g", index, s->q01, s->q25, s->q75, s->q99,
               s->max <= f->x.max ? s->max : NAN);
    figure_label(f, f->left - 8, y, 1, figure_row_name(f, label).s);
    if (s->max > f->x.max) {
        char text[80];
        snprintf(text, sizeof(text), "\xe2\x86\x92 %s", text_number(s->max).s);
        figure_label(f, f->width - f->right + 4, y, 0, text);
    }
}

static void put_rows(struct figure *f, const struct grid *results, const struct spread *spreads)
{
    int index = 0;
    figure_block(f, "rows_of_run", "row\tq01\tq25\tq75\tq99\tmax\tlabel");
    for (int64_t row = 0; row < results->row_count; row++)
        if (isfinite(spreads[row].max))
            put_row(f, index++, grid_text(results, row, "label"), &spreads[row]);
    figure_end(f);
    if (!index)
        snprintf(f->empty, sizeof(f->empty), "no samples were taken");
}

enum status shape_spread(struct figure *f, struct error *err)
{
    const struct grid *results = figure_grid(f, "results");
    struct arena arena = {0};
    struct spread *spreads = arena_array(&arena, (size_t)results->row_count + 1, sizeof(*spreads));
    enum status status = spreads ? read_all(f, results, spreads, err) : FAIL_NO_MEMORY(err);
    if (spreads && status == STATUS_OK) {
        set_axes(f, results, spreads);
        put_rows(f, results, spreads);
    }
    arena_release(&arena);
    return status;
}
