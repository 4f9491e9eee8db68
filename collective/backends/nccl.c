/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL, behind plugins/collective/nccl.so (collective/plugins/nccl/). Ranks are processes of this
 * machine, or those that the launcher of an MPI has started; each takes a GPU of its own. */
#include "base/system/plugin_open.h"
#include "collective/backend.h"

static const struct plugin_wanted plugin = {"collective", "nccl", "ridge_backend", "libnccl",
                                            "install libnccl-dev, then make"};

REGISTER(backend, nccl) = {
    .name = "nccl",
    .summary = "whole operations of NCCL between GPUs, one of them for each rank",
    .separate = true,
    .for_measures = true,
    .device = "cuda",
    .plugin = &plugin,
};
