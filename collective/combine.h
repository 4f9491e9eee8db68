/* SPDX-License-Identifier: Apache-2.0
 *
 * What a rank does with elements that it receives: to[k] = operand[k] combined with message[k].
 * Combining is commutative to the bit (but for the payloads of NaNs), so that two ranks that
 * exchange their elements get the same: larger and smaller of two zeros is +0 and -0, and a NaN
 * makes the result one. f16 and bf16 are combined in f32 and rounded to nearest even; sums of
 * integers wrap. */
#ifndef COLLECTIVE_COMBINE_H
#define COLLECTIVE_COMBINE_H

#include "engine/run/comm.h"

/* `to` may be `operand`. */
typedef void combine_elements(void *to, const void *operand, const void *message, int64_t count);

/* NULL: no combining of that type. */
combine_elements *combine_of(enum dtype dtype, enum comm_reduction reduction);

#endif
