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
    char plot_reason[320];  /* why the first of those was not drawn */
    int results, not_valid; /* of the run */
};

/* Writes FOLDER/index.html and FOLDER/plots/. */
enum status report_write(struct store *store, int64_t run, const char *folder,
                         struct report_outcome *outcome, struct error *err);

#endif
