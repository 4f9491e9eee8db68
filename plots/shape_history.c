/* SPDX-License-Identifier: Apache-2.0
 *
 * One point over the runs that measured it, oldest first: median with its 95 % interval. Runs are
 * equally far apart, since a night without a run is no result. Block runs: label, time_s, ci_low,
 * ci_high, valid, current. Block shares, of another plot, has the same columns and is drawn as
 * fraction_of_roof. */
#include <math.h>

#include "plots/figure.h"
#include "plots/palette.h"

static double scale_for(double seconds, const char **unit)
{
    static const char *const units[] = {"s", "ms", "\xc2\xb5s", "ns"};
    double scale = 1;
    int k = 0;
    for (; k < 3 && seconds * scale < 0.9995; k++)
        scale *= 1e3;
    *unit = units[k];
    return scale;
}

/* Names of runs under the frame, as far as there is room. */
static void name_run(struct figure *f, int64_t row, const char *label, double *last)
{
    double x = figure_px_x(f, (double)row), width = figure_text_width(label);
    if (x - width / 2 <= *last + 8 || x + width / 2 >= f->width)
        return;
    figure_label(f, x, f->height - f->bottom + 16, 0.5, label);
    *last = x + width / 2;
}

static void put_runs(struct figure *f, const struct grid *runs, double scale)
{
    double last = -1e9;
    figure_block(f, "runs", "run\ttime\tlow\thigh\tmark\tcolor\tlabel");
    for (int64_t row = 0; row < runs->row_count; row++) {
        double time = grid_number(runs, row, "time_s") * scale;
        double low = grid_number(runs, row, "ci_low") * scale;
        double high = grid_number(runs, row, "ci_high") * scale;
        const char *label = grid_text(runs, row, "label");
        bool valid = grid_number(runs, row, "valid") != 0;
        bool current = grid_number(runs, row, "current") != 0;
        figure_row(f, label, "%lld\t%.6g\t%.6g\t%.6g\t%d\t%u", (long long)row, time,
                   isfinite(low) ? low : time, isfinite(high) ? high : time, valid ? 7 : 6,
                   palette_at(current)->rgb);
        name_run(f, row, label, &last);
    }
    figure_end(f);
}

static void put_shares(struct figure *f, const struct grid *runs)
{
    double last = -1e9;
    figure_block(f, "shares", "run\tshare\tmark\tcolor\tlabel");
    for (int64_t row = 0; row < runs->row_count; row++) {
        const char *label = grid_text(runs, row, "label");
        double share = 100 * grid_number(runs, row, "fraction_of_roof");
        bool valid = grid_number(runs, row, "valid") != 0;
        if (!isfinite(share))
            continue;
        figure_row(f, label, "%lld\t%.6g\t%d\t%u", (long long)row, share, valid ? 7 : 6,
                   palette_at(grid_number(runs, row, "current") != 0)->rgb);
        name_run(f, row, label, &last);
    }
    figure_end(f);
}

static void draw_shares(struct figure *f, const struct grid *runs)
{
    double high = 0;
    for (int64_t row = 0; row < runs->row_count; row++)
        high = fmax(high, 100 * grid_number(runs, row, "fraction_of_roof"));
    if (!(high > 0)) {
        snprintf(f->empty, sizeof(f->empty), "no run of this point measured its ceilings");
        return;
    }
    f->left = 74, f->right = 20, f->top = 14, f->bottom = 40;
    f->x = (struct axis){-0.5, (double)runs->row_count - 0.5, false};
    f->y = (struct axis){0, 1.15 * high, false};
    figure_frame(f);
    figure_y_title(f, "of its roof [%]");
    put_shares(f, runs);
}

enum status shape_history(struct figure *f, struct error *err)
{
    (void)err;
    const struct grid *runs = figure_grid(f, "runs"), *shares = figure_grid_if(f, "shares");
    if (shares) {
        draw_shares(f, shares);
        return STATUS_OK;
    }
    const char *unit;
    char label[64];
    double low = INFINITY, high = 0;
    for (int64_t row = 0; row < runs->row_count; row++) {
        low = fmin(low, fmin(grid_number(runs, row, "time_s"), grid_number(runs, row, "ci_low")));
        high =
            fmax(high, fmax(grid_number(runs, row, "time_s"), grid_number(runs, row, "ci_high")));
    }
    if (!(high > 0)) {
        snprintf(f->empty, sizeof(f->empty), "no run has a time of this point");
        return STATUS_OK;
    }
    double scale = scale_for(high, &unit), air = fmax(high - low, 0.04 * high) * 0.3;
    f->left = 74, f->right = 20, f->top = 14, f->bottom = 40;
    f->x = (struct axis){-0.5, (double)runs->row_count - 0.5, false};
    f->y = (struct axis){(low - air) * scale, (high + air) * scale, false};
    figure_frame(f);
    snprintf(label, sizeof(label), "median time [%s]", unit);
    figure_y_title(f, label);
    put_runs(f, runs, scale);
    return STATUS_OK;
}
