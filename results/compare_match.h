/* SPDX-License-Identifier: Apache-2.0
 *
 * Like is compared with like: of the visits of runs that were measured apart, those count that met
 * the machine's CPUs in one placement (results/placement.h), the faster one that both sides have
 * seen often. Where a side was never in it, or the levels do not tell, all visits count as they
 * are. In turns both sides of a pair met the same machine, and nothing is left out. */
#ifndef RESULTS_COMPARE_MATCH_H
#define RESULTS_COMPARE_MATCH_H

#include "results/compare.h"

struct compare_matched {
    struct compare_point point; /* borrows times and reasons; the arrays of visits are its own */
    void *visits, *history;     /* those arrays; NULL: none was left out */
    bool known;                 /* the levels tell the usual placement */
    bool base_met, head_met;    /* the side was in it */
};

enum status compare_match(const struct compare_point *point, struct compare_matched *out,
                          struct error *err);
void compare_match_release(struct compare_matched *matched);

#endif
