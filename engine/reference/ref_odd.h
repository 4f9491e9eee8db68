/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that no error bound speaks of: NaN, infinities and integers that differ. Counted where an
 * output is wrong, so that the reason says how many and where; and NaN in both, which is no error,
 * but must be said. */
#ifndef ENGINE_REFERENCE_REF_ODD_H
#define ENGINE_REFERENCE_REF_ODD_H

#include "engine/graph/op.h"

struct ref_odd {
    int64_t nan;      /* NaN where the expected is none */
    int64_t infinite; /* an infinity where the expected is finite, or of the other sign */
    int64_t lost;     /* a number where the expected is NaN or infinite */
    int64_t integers; /* that differ */
    int64_t first;    /* the first of these four; of integers, with both values */
    int64_t both_nan;
    int64_t got, expected; /* integers at first */
};

/* Element by element; of sets of rows, whose order is free, the numbers of NaN and of infinities
 * alone. Tensors of another count have nothing in common: all is 0. */
void ref_odd_count(const struct ref_tensor *got, const struct ref_tensor *expected, bool is_set,
                   struct ref_odd *out);
/* Whether what is odd makes the output wrong. */
bool ref_odd_is_wrong(const struct ref_odd *odd);
/* "12 NaN where the reference has numbers, first at [0, 3, 7]"; "" when nothing is wrong. */
void ref_odd_text(const struct ref_odd *odd, const struct shape *shape, char *text, size_t size);
/* Where element k of the shape is: "[0, 3, 7]". */
void ref_index_text(const struct shape *shape, int64_t k, char text[96]);

#endif
