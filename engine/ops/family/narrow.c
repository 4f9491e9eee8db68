/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/narrow.h"

enum narrow_class narrow_class_of(const struct op *op)
{
    return op->narrow             ? op->narrow
           : op_is_expression(op) ? NARROW_MATH
           : op->move             ? NARROW_MOVE
                                  : NARROW_NEVER;
}

bool narrow_takes(const struct op *op, int k)
{
    bool takes = op->narrow_inputs == 0 || (k < 32 && op->narrow_inputs >> k & 1);
    bool decides_shape = k < 32 && op->const_inputs >> k & 1;
    return narrow_class_of(op) != NARROW_NEVER && takes && !decides_shape;
}

double narrow_unit(enum dtype dtype)
{
    return dtype == DTYPE_BF16     ? 0x1p-7
           : dtype == DTYPE_F16    ? 0x1p-10
           : dtype == DTYPE_F8E4M3 ? 0x1p-3
                                   : 0;
}

/* Two results round to neighbours at most, which differ by a whole unit. */
double narrow_tolerance(const struct op *op, enum dtype out)
{
    return narrow_unit(out) * (op->narrow_roundings ? op->narrow_roundings : 1);
}
