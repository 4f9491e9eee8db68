/* SPDX-License-Identifier: Apache-2.0
 *
 * A run as one page of HTML that needs nothing else: no network, no other file, no script to be
 * read. The plots lie beside it in plots/, each with its data and the gnuplot that draws it. */
#ifndef PLOTS_REPORT_H
#define PLOTS_REPORT_H

#include "results/query.h"

struct report_outcome {
    char file[512];         /* the page */
    int drawn, not_drawn;   /* plots */
    bool gnuplot_hangs;     /* one did not end in its time: the others are not tried */
    char plot_reason[320];  /* why the first of those was not drawn */
    int results, not_valid; /* of the run */
};

/* A point of a comparison; NAN where there is no number. */
struct report_change {
    const char *key, *label;
    const char *verdict, *why;     /* what needs a look has a reason */
    double base_s, head_s;         /* median times */
    double ratio, ci_low, ci_high; /* of times, HEAD / BASE */
    const char *rate;              /* "throughput", "server rate"; NULL: there is none */
    const char *rate_verdict;
    double base_rate, head_rate, rate_ratio;
};

/* The other run of a report, as `ridge compare` judged it; the caller owns all of it. */
struct report_against {
    struct store *store;
    int64_t run;
    const struct report_change *changes; /* what needs a look first */
    int change_count;
    const char *(*differences)[3]; /* what, in BASE, in HEAD */
    int difference_count;
    const char *(*around)[3]; /* figures around the runs: what, in BASE, in HEAD */
    int around_count;
    const char *attribution, *totals;
};

/* Writes FOLDER/index.html and FOLDER/plots/. against: NULL for one run alone. */
enum status report_write(struct store *store, int64_t run, const struct report_against *against,
                         const char *folder, struct report_outcome *outcome, struct error *err);

#endif
