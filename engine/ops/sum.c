/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/op_binary.h"

static const struct op_case cases[] = {VARIADIC_CASES};

VARIADIC_OP(sum, "Sum", FN_ADD, cases, .types = OP_FLOAT);
