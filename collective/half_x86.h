/* SPDX-License-Identifier: Apache-2.0
 *
 * combine.h and wire.h for f16 and bf16 by instructions that convert: five to ten times as fast as
 * what compilers make of half.h. NULL where this CPU has none of them. */
#ifndef COLLECTIVE_HALF_X86_H
#define COLLECTIVE_HALF_X86_H

#include "collective/combine.h"
#include "collective/wire.h"

combine_elements *half_combine_x86(enum dtype dtype, enum comm_reduction reduction);
const struct wire *half_wire_x86(enum dtype wire);

#endif
