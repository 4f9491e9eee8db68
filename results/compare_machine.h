/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the machine's own levels beside the visits moved as the point did, so that the program is
 * not the cause. */
#ifndef RESULTS_COMPARE_MACHINE_H
#define RESULTS_COMPARE_MACHINE_H

#include "results/compare_noise.h"

/* How much each level slowed down from BASE to HEAD, in logarithms; NAN where it is not known. */
void compare_level_shifts(const struct compare_known *known, double shift[LEVEL_COUNT]);

/* The level (enum level) that moved as the point did, or -1. */
int compare_explained_by(const struct compare_known *known,
                         const struct compare_machine_noise *machine,
                         const double shift[LEVEL_COUNT]);

/* The level that shows that the slower side of a point never met the usual placement of the
 * machine's CPUs while the other did, or -1. */
int compare_displaced_by(const struct compare_known *known, const double shift[LEVEL_COUNT]);

#endif
