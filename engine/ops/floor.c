/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

FUNCTION_OP(floor, "Floor", FN_FLOOR, unary_usual_cases);
