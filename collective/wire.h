/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of f32 that cross between ranks in two bytes (struct comm_call: wire). What is combined
 * with a message is rounded like a message first: then two ranks that exchange their elements get
 * the same sum, and a result is the same whoever computed it. */
#ifndef COLLECTIVE_WIRE_H
#define COLLECTIVE_WIRE_H

#include "engine/run/comm.h"

struct wire {
    void (*narrow)(uint16_t *to, const float *from, int64_t count);
    void (*widen)(float *to, const uint16_t *from, int64_t count);
    /* to = operand combined with message; `to` may be `operand`. */
    void (*combine[COMM_REDUCTION_COUNT])(float *to, const float *operand, const uint16_t *message,
                                          int64_t count);
    /* To what would have crossed. */
    void (*round)(float *values, int64_t count);
};

/* NULL: elements cross as they are. */
const struct wire *wire_of(const struct comm_call *call);

#endif
