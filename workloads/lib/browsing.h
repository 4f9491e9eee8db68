/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up users who look at items, for DIEN. Each looks at items of one category, and one user in
 * four turns to another category at some moment; 97 in 100 clicks are on the category of that
 * moment. */
#ifndef WORKLOADS_LIB_BROWSING_H
#define WORKLOADS_LIB_BROWSING_H

#include "workloads/training.h"

enum { BROWSING_OTHERS = 5 }; /* items that were not looked at, drawn for each that was */

#define BROWSING_LESSON "whether an item is of the category that a user looked at last"

/* Fills the inputs of DIEN. */
void browsing_fill(const struct batch *batch);

#endif
