/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of cases as lines of text, from a process that measured to the one that asked for it:
 * "sample 3 ring 32768 ..." with the case's number, and every sample in seconds. */
#ifndef COLLECTIVE_TIMING_TEXT_H
#define COLLECTIVE_TIMING_TEXT_H

#include <stdio.h>

#include "collective/timing.h"

void timing_write(FILE *file, int index, const struct timing *timing);
/* False: the line is something else. */
bool timing_read(const char *line, int *index, struct timing *timing);

/* "case 3 all_reduce ring ...": what is to be measured, for a process that measures. */
void timing_case_write(FILE *file, int index, const struct timing_case *c);
bool timing_case_read(const char *line, int *index, struct timing_case *c);

#endif
