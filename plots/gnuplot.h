/* SPDX-License-Identifier: Apache-2.0
 *
 * The only file that knows how gnuplot is called: found in PATH, started without a shell. */
#ifndef PLOTS_GNUPLOT_H
#define PLOTS_GNUPLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* `set terminal` for svg, png or pdf; false for another kind. */
bool gnuplot_terminal(FILE *script, const char *kind, double width, double height);
enum gnuplot_result {
    GNUPLOT_DREW,
    GNUPLOT_FAILED,
    GNUPLOT_HANGS /* it did not end in its time, 60 s or $RIDGE_GNUPLOT_LIMIT_S, and was killed */
};
/* Runs FOLDER/STEM.gp inside FOLDER and has it draw into the file `picture` there. reason: what
 * went wrong and what to do. */
enum gnuplot_result gnuplot_run(const char *folder, const char *stem, const char *picture,
                                char *reason, size_t size);

#endif
