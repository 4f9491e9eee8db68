/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples of two programs for tests of comparing: processes differ from each other by tau, samples
 * scatter by sd, are correlated and have outliers. */
#ifndef TESTS_LIB_MADE_SERIES_H
#define TESTS_LIB_MADE_SERIES_H

#include <stdint.h>

#include "results/compare.h"

enum { RUNS_MAX = 10, VISITS_MAX = 6, SAMPLES = 40, HISTORY_MAX = 20 };

struct made_world {
    int runs, visits, history;
    bool paired;
    double tau, sd, effect;
};

struct made_data {
    double times[2][RUNS_MAX * VISITS_MAX][SAMPLES];
    struct compare_past history[HISTORY_MAX];
    struct compare_visit visits[2][RUNS_MAX * VISITS_MAX];
    struct compare_point point;
};

double made_normal(uint64_t *draw);
void made_series(struct made_data *d, const struct made_world *w, uint64_t *draw);

#endif
