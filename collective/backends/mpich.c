/* SPDX-License-Identifier: Apache-2.0
 *
 * MPICH, behind plugins/collective/mpich.so (collective/plugins/mpi/). Ranks are what its mpirun or
 * Slurm's srun has started; a process that neither started is refused. */
#include "base/system/plugin_open.h"
#include "collective/backend.h"

static const struct plugin_wanted plugin = {"collective", "mpich", "ridge_backend", "libmpich",
                                            "apt-get install libmpich-dev mpich, then make"};

static const struct launcher launcher = {
    .rank_variables = {"PMI_RANK", NULL},
    .ranks_variables = {"PMI_SIZE", NULL},
    .programs = {"mpirun.mpich", "mpiexec.hydra", NULL},
    .hosts_option = "-hosts",
    .options = {"-bind-to", "core", "-n", NULL},
};

REGISTER(backend, mpich) = {
    .name = "mpich",
    .summary = "messages of MPICH, and its own operations; on any network that it knows",
    .for_measures = true,
    .launcher = &launcher,
    .plugin = &plugin,
};
