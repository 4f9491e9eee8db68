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
/* Runs FOLDER/STEM.gp inside FOLDER; false and a reason with what to do when it did not work. */
bool gnuplot_run(const char *folder, const char *stem, char *reason, size_t size);

#endif
