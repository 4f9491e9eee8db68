/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs whose results are known exactly, for tests and for checks beside measurements: integers
 * so small that their sum over up to 32 ranks is exact in every type, in every order. */
#ifndef COLLECTIVE_EXAMPLE_H
#define COLLECTIVE_EXAMPLE_H

#include "engine/run/comm.h"

/* Fills the input of a rank. */
void example_fill(const struct comm_call *call, int rank, int ranks, void *input);
/* How many elements of a rank's output are not what they must be. */
int64_t example_wrong(const struct comm_call *call, int rank, int ranks, const void *output);

#endif
