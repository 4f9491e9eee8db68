/* SPDX-License-Identifier: Apache-2.0
 *
 * The distribution of the times of one workload as the share of executions, or of a server's
 * queries with their time in the queue, that took at most so long, with its percentiles. The curve
 * has at most CURVE_POINTS points, closer together in the tail, whatever the number of samples.
 * Block results: result, label, scenario; the first row is drawn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "base/registry.h"
#include "plots/figure.h"
#include "plots/text.h"

enum { CURVE_POINTS = 400 };

struct mark {
    double quantile;
    int64_t needs; /* samples for the quantile to mean something */
    const char *name;
};

static const struct mark marks[] = {
    {0.5, 1, "median"}, {0.9, 20, "p90"}, {0.99, 100, "p99"}, {0.999, 1000, "p99.9"}};

/* Half of the points are spread evenly, half come ten times closer to 1 with each quarter. */
static double share_at(int k)
{
    const double half = CURVE_POINTS / 2.0;
    return k < CURVE_POINTS / 2 ? (k + 0.5) / half : 1 - pow(10, -4 * (k - half) / half);
}

static void put_curve(struct figure *f, const double *sorted, int64_t count)
{
    figure_block(f, "curve", "time\tshare\tlabel");
    if (count <= CURVE_POINTS) {
        for (int64_t k = 0; k < count; k++)
            figure_row(f, "", "%.6g\t%.6g", sorted[k], 100.0 * (double)(k + 1) / (double)count);
    } else {
        double shares[CURVE_POINTS];
        for (int k = 0; k < CURVE_POINTS; k++)
            shares[k] = share_at(k);
        stats_sort(shares, CURVE_POINTS);
        for (int k = 0; k < CURVE_POINTS; k++)
            figure_row(f, "", "%.6g\t%.6g", stats_quantile(sorted, (int)count, shares[k]),
                       100 * shares[k]);
    }
    figure_end(f);
}

static void put_marks(struct figure *f, const double *sorted, int64_t count, double scale)
{
    figure_block(f, "marks", "time\tshare\tmark\tlabel");
    double tail = figure_px_x(f, stats_quantile(sorted, (int)count, 0.9));
    double all = figure_px_y(f, 100); /* the flat end of the curve */
    figure_take(f, (struct box){tail, all - 4, f->width - f->right, all + 6});
    for (int k = 0; k < ARRAY_COUNT(marks); k++) {
        char text[96];
        double value = stats_quantile(sorted, (int)count, marks[k].quantile);
        if (count < marks[k].needs)
            continue;
        figure_row(f, marks[k].name, "%.6g\t%.6g\t%d", value, 100 * marks[k].quantile, k);
        snprintf(text, sizeof(text), "%s %s", marks[k].name, text_time(value / scale).s);
        double x = figure_px_x(f, value), y = figure_px_y(f, 100 * marks[k].quantile);
        figure_take(f, (struct box){x - 5, y - 5, x + 5, y + 5});
        /* To the right and below: the curve is above and to the left of it. */
        double at_y = y + 12 + 3 * k;
        for (; !figure_free(f, figure_text_box(x + 10, at_y, text, 0)) &&
               at_y < f->height - f->bottom;
             at_y += 6)
            ;
        if (figure_free(f, figure_text_box(x + 10, at_y, text, 0)))
            figure_label(f, x + 10, at_y, 0, text);
        else
            figure_label_beside(f, x, y, 5, text);
    }
    figure_end(f);
}

/* Times in the unit that the median is read in. */
static double pick_scale(double median_s, const char **unit)
{
    static const char *const units[] = {"s", "ms", "\xc2\xb5s", "ns"};
    double scale = 1;
    int k = 0;
    for (; k < 3 && median_s * scale < 0.9995; k++)
        scale *= 1e3;
    *unit = units[k];
    return scale;
}

/* Up to the slowest, unless that would press the rest into a corner: then to beyond the 99th
 * percentile. */
static void set_time_axis(struct figure *f, const double *sorted, int64_t count)
{
    double low = sorted[0], high = sorted[count - 1];
    double high_max = 1.5 * stats_quantile(sorted, (int)count, 0.99);
    high = high > 3 * low ? fmin(high, high_max) : high;
    double span = fmax(high - low, 0.02 * high);
    f->x = (struct axis){low - 0.04 * span, high + 0.06 * span, false};
}

static void put_beyond(struct figure *f, double slowest, double scale)
{
    char text[96];
    if (slowest <= f->x.max)
        return;
    snprintf(text, sizeof(text), "slowest %s \xe2\x86\x92", text_time(slowest / scale).s);
    figure_label(f, f->width - f->right - 4, f->top + 40, 1, text);
}

static void lay_out(struct figure *f, double *times, int64_t count, bool server)
{
    const char *unit;
    char label[64];
    stats_sort(times, (int)count);
    double scale = pick_scale(times[count / 2] / 1e9, &unit);
    for (int64_t k = 0; k < count; k++)
        times[k] *= scale / 1e9;
    f->left = 64, f->right = 24, f->top = 14, f->bottom = 50;
    set_time_axis(f, times, count);
    f->y = (struct axis){0, 104, false};
    figure_frame(f);
    snprintf(label, sizeof(label), "time of one %s [%s]",
             server ? "query, in the queue and executed" : "execution", unit);
    figure_x_title(f, label);
    figure_y_title(f, server ? "queries [%]" : "executions [%]");
    put_beyond(f, times[count - 1], scale);
    put_curve(f, times, count);
    put_marks(f, times, count, scale);
}

enum status shape_latency(struct figure *f, struct error *err)
{
    const struct grid *results = figure_grid(f, "results");
    double *times = NULL;
    int64_t count = 0;
    if (results->row_count)
        TRY(query_latencies(f->store, (int64_t)grid_number(results, 0, "result"), &times, &count,
                            err));
    if (count)
        lay_out(f, times, count, strcmp(grid_text(results, 0, "scenario"), "server") == 0);
    else
        snprintf(f->empty, sizeof(f->empty), "no samples were taken");
    free(times);
    return STATUS_OK;
}
