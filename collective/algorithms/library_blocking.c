/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's own operation that blocks: MPI_Allreduce and the like, often the faster one.
 * Nothing overlaps with it and it keeps no deadline: for comparison alone. */
#include "collective/algorithm.h"

REGISTER(algorithm, library_blocking) = {
    .name = "library_blocking",
    .summary = "the same, but nothing else can be done meanwhile",
    .own = OWN_BLOCKING,
    .operations = OPERATION_BIT(COMM_ALL_REDUCE) | OPERATION_BIT(COMM_REDUCE_SCATTER) |
                  OPERATION_BIT(COMM_ALL_GATHER) | OPERATION_BIT(COMM_BROADCAST) |
                  OPERATION_BIT(COMM_ALL_TO_ALL),
};
