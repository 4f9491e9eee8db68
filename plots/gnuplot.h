/* SPDX-License-Identifier: Apache-2.0
 *
 * The only file that knows how gnuplot is called: found in PATH, started without a shell. */
#ifndef PLOTS_GNUPLOT_H
#define PLOTS_GNUPLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* `set terminal` for svg, png or pdf; false for another kind. */
bool gnuplot_terminal(FILE *script, const char *kind, double width, double height);
enum gnuplot_result {
    GNUPLOT_DREW,
    GNUPLOT_FAILED,
    GNUPLOT_HANGS /* it did not end in its time, 60 s or $RIDGE_GNUPLOT_LIMIT_S, and was killed */
};
/* One at work. */
struct gnuplot {
    const char *folder; /* borrowed */
    char script[300];
    pid_t child; /* 0: it could not be started, because of ... */
    int output, error;
    uint64_t end_ns; /* when its time is over */
};

/* Has it run FOLDER/STEM.gp inside FOLDER and draw into the file `picture` there. */
void gnuplot_start(struct gnuplot *gnuplot, const char *folder, const char *stem,
                   const char *picture);
/* Once after each start. reason: what went wrong and what to do. */
enum gnuplot_result gnuplot_finish(struct gnuplot *gnuplot, char *reason, size_t size);

#endif
