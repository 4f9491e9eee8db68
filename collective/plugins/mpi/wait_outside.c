/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/plugins/mpi/mpi_backend.h"

const size_t mpi_piece_bytes = 128 << 10;
const bool mpi_waits_inside = false;
