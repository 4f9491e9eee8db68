/* SPDX-License-Identifier: Apache-2.0
 *
 * A plot is one file plots/NAME.gp. Comment lines on its top say what it is:
 *
 *     # title: Roofline
 *     # about: one sentence for the reader
 *     # view: points = report_points(run)      a block of data, the view and what it is about:
 *                                              run, result, or base: the run compared with
 *     # shape: roofline                        who lays it out (plots/shape_roofline.c)
 *     # size: 860 520                          pixels
 *
 * and the rest is gnuplot, which finds the data in the file DATA, block by block. plot_draw writes
 * FOLDER/STEM.dat and FOLDER/STEM.gp, which draw the same again without ridge, and runs gnuplot.
 */
#ifndef PLOTS_PLOT_H
#define PLOTS_PLOT_H

#include <stdbool.h>

#include "base/embedded.h"
#include "results/query.h"

struct figure_mark;

enum { PLOT_VIEWS_MAX = 4, PLOT_AT_ONCE = 4 };

struct plot {
    char name[32], title[96], about[256], shape[32];
    char block[PLOT_VIEWS_MAX][32], view[PLOT_VIEWS_MAX][48];
    int view_count;
    bool of_base_view[PLOT_VIEWS_MAX];
    bool of_result; /* some view needs one result */
    bool of_base;   /* some view shows the run compared with */
    double width, height;
    const char *script; /* the gnuplot part */
};

struct plot_request {
    const char *name;
    int64_t run;
    int64_t result;     /* 0: the whole run */
    struct store *base; /* of the run compared with; NULL: there is none */
    int64_t base_run;
    const char *folder;
    const char *stem;   /* NULL: the plot's name */
    const char *kind;   /* svg, png or pdf */
    double width;       /* pixels; 0: as the plot says */
    bool gnuplot_hangs; /* known from an earlier plot: it is not started again */
};

struct plot_outcome {
    bool drawn, gnuplot_hangs;
    bool empty;                /* there was nothing to draw */
    char file[512];            /* the picture, when drawn */
    char reason[320];          /* why it was not drawn and what to do, else "" */
    struct figure_mark *marks; /* owned: what of it can be pointed at */
    int mark_count;
    bool marks_steps; /* their ids are steps */
    int unnamed;      /* points without a name or number */
};

/* The next plot after the named file (NULL: the first); NULL at the end. */
const struct embedded *plot_next(const struct embedded *after);
enum status plot_read(const struct embedded *file, struct plot *plot, struct error *err);
enum status plot_find(const char *name, struct plot *plot, struct error *err);

void plot_outcome_release(struct plot_outcome *outcome);

/* Up to PLOT_AT_ONCE, each by a gnuplot of its own at the same time. Nothing to draw, and no
 * gnuplot, are no failures: the outcome has the reason. The caller releases the outcomes, whatever
 * the status. */
enum status plot_draw(struct store *store, const struct plot_request *requests, int count,
                      struct plot_outcome *outcomes, struct error *err);

#endif
