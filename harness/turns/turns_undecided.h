/* SPDX-License-Identifier: Apache-2.0
 *
 * Which points two programs in turns must visit more often until a slowdown would be found. Chosen
 * by the noise of the samples so far, never by their difference, since that would bias it. */
#ifndef HARNESS_TURNS_TURNS_UNDECIDED_H
#define HARNESS_TURNS_TURNS_UNDECIDED_H

#include "harness/turns/turns_point.h"

/* Their indices into order, those that lack least first, and how many; points that failed, were
 * refused or have had visits_max visits are not among them. */
enum status turns_undecided(const struct turns_point *points, int count, int visits_max, int *order,
                            int *undecided, struct error *err);

#endif
