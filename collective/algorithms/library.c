/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's own operation that does not block: MPI_Iallreduce and the like. What to beat. */
#include "collective/algorithm.h"

REGISTER(algorithm, library) = {
    .name = "library",
    .summary = "what the backend's library has for it, started and waited for",
    .own = OWN_STARTED,
    .operations = OPERATION_BIT(COMM_ALL_REDUCE) | OPERATION_BIT(COMM_REDUCE_SCATTER) |
                  OPERATION_BIT(COMM_ALL_GATHER) | OPERATION_BIT(COMM_BROADCAST) |
                  OPERATION_BIT(COMM_ALL_TO_ALL),
};
