/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

FUNCTION_OP(erf, "Erf", FN_ERF, unary_usual_cases);
