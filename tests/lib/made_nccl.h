/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend nccl over the stand-ins for NCCL (tests/nccl_fake/) and for the CUDA runtime
 * (tests/gpu/host/), for tests without a GPU. */
#ifndef TESTS_LIB_MADE_NCCL_H
#define TESTS_LIB_MADE_NCCL_H

#include "collective/backend.h"

/* Before anything else opens a plug-in: from here on those of the stand-ins are found first, with
 * eight GPUs. `program` lies in BUILD/tests/unit. NULL with the reason where there are none; the
 * backend is ready otherwise. */
const struct backend *made_nccl(const char *program, struct error *why);

#endif
