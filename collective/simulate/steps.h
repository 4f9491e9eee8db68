/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a training among simulated ranks: each computes for as long as it is told, and sums
 * units of gradients as they become ready, by the same schedules as between real ranks. */
#ifndef COLLECTIVE_SIMULATE_STEPS_H
#define COLLECTIVE_SIMULATE_STEPS_H

#include "collective/communicator.h"

/* This rank's part of the steps in the file `path`, written by harness/bench/step_simulate.c:
 *   step COMPUTE_S STEPS DTYPE ALGORITHM KEPT     once; ALGORITHM "-": by size
 *   unit BYTES READY_S                            in the order in which they are ready
 * Prints, for each step, "rank R STEP BEGAN_S ENDED_S COMMUNICATION_S EXPOSED_S", and of the last
 * step of the first KEPT ranks, for each unit,
 * "unit R INDEX ALGORITHM MESSAGES BYTES_SENT READY_S STARTED_S ENDED_S WAITED_S". */
enum status simulate_steps(const struct backend *backend, const char *path,
                           const struct schedule_options *schedule, struct error *err);

#endif
