/* SPDX-License-Identifier: Apache-2.0
 * ArgMin: where the smallest element of each line along an axis is; the first of equal ones, or the
 * last with select_last_index. */
#include "engine/ops/family/arg_extreme.h"

static enum status reference(const struct ref_call *call, struct error *err)
{
    return arg_reference(call, false, err);
}

REGISTER(op, arg_min) = {
    .name = "ArgMin",
    .inputs_min = 1,
    .attrs = arg_attrs,
    .infer = arg_infer,
    .cost = arg_cost,
    .reference = reference,
    .no_gradient = "its result is an index",
    OP_CASES(arg_cases),
};
