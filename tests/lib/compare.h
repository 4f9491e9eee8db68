/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a computed tensor is right. Floats: NaN and infinities in the same places, and
 * max |got - want| <= tolerance max(norm, |want|) over what is finite. Integers: equal.
 */
#ifndef TESTS_LIB_COMPARE_H
#define TESTS_LIB_COMPARE_H

#include "engine/graph/op.h"

struct comparison {
    const struct ref_tensor *got, *want;
    double tolerance;
    double norm; /* of what the tensor was made from, where that is larger; 0: none */
    int axis;    /* only the first `rows` along this axis count; NONE: all */
    int64_t rows;
};

/* INVALID with the first wrong element; *error gets the norm-wise relative error (0 for integers).
 */
enum status compare_tensors(const struct comparison *c, double *error, struct error *err);

/* The leading corner of `from` in the given shape; allocated, ref_release gives it back. */
enum status crop_tensor(const struct ref_tensor *from, const struct shape *shape,
                        struct ref_tensor *out, struct error *err);

#endif
