/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine itself can do, read beside each visit (harness/roofs/levels.h): the names under
 * which databases keep it. A slow level is a large time or a small rate. */
#ifndef RESULTS_LEVEL_H
#define RESULTS_LEVEL_H

#include "results/record.h"

enum level { LEVEL_HAND_OVER, LEVEL_CACHE, LEVEL_DRAM, LEVEL_ARITHMETIC, LEVEL_COUNT };

struct level_kind {
    const char *name, *unit; /* "hand_over", "s" */
    enum better better;
    const char *words; /* "handing work to threads" */
};

extern const struct level_kind level_kinds[LEVEL_COUNT];

#endif
