/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

FUNCTION_OP(ceil, "Ceil", FN_CEIL, unary_usual_cases);
