/* SPDX-License-Identifier: Apache-2.0
 *
 * For the simulator: its time passes while a rank is inside MPI, and pieces of one message would
 * share the network, so a message is whole. */
#include "collective/plugins/mpi/mpi_backend.h"

const size_t mpi_piece_bytes = 1 << 30;
const bool mpi_waits_inside = true;
