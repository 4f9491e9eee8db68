/* SPDX-License-Identifier: Apache-2.0
 *
 * Results inside larger ones, for the operator tests: the rows of a result lie apart, as if they
 * were some columns of a concatenation, and what is between them must stay as it is. The first
 * element is not aligned to more than itself. */
#ifndef TESTS_LIB_ROWS_APART_H
#define TESTS_LIB_ROWS_APART_H

#include "base/arena.h"
#include "engine/graph/graph.h"

/* Of a tensor whose rows lie apart in `bytes` of memory, the first element `skew` bytes on. */
struct apart {
    size_t skew, bytes;
    unsigned char *mask; /* 0 for each byte that is not the tensor's */
};

/* Whether some result of the only node has several rows. */
bool has_rows(const struct graph *g);
/* Takes the rows of a dense desc apart; apart->mask stays NULL where it has one row only. */
enum status rows_apart(struct arena *arena, struct desc *desc, struct apart *apart,
                       struct error *err);
/* FAILED unless all that lies between the rows is `left_over`; then it becomes 0. */
enum status gaps_intact(const struct apart *apart, unsigned char *data, int left_over,
                        struct error *err);

#endif
