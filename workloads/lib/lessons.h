/* SPDX-License-Identifier: Apache-2.0
 *
 * What made-up samples are drawn from: random numbers and ids. */
#ifndef WORKLOADS_LIB_LESSONS_H
#define WORKLOADS_LIB_LESSONS_H

#include "workloads/training.h"

/* Random numbers of one sample, the same in whatever batch it is. */
struct draw {
    uint64_t seed, next; /* stream, counter */
    uint32_t word[4];    /* of the last counter */
    int left;            /* words not yet used */
};
struct draw draw_begin(const struct batch *batch, int64_t index);
double draw_uniform(struct draw *draw);               /* [0, 1) */
int64_t draw_index(struct draw *draw, int64_t count); /* 0 ... count - 1 */
/* How many ids there are of an input of ids: its fill says. */
int64_t batch_range(const struct batch *batch, const char *input);

#endif
