/* SPDX-License-Identifier: Apache-2.0
 *
 * Open MPI, behind plugins/collective/openmpi.so (collective/plugins/mpi/). Ranks are what its
 * mpirun or Slurm's srun has started; a process that neither started is refused. */
#include "base/system/plugin_open.h"
#include "collective/backend.h"

static const struct plugin_wanted plugin = {
    "collective", "openmpi", "ridge_backend", "libmpi",
    "apt-get install libopenmpi-dev openmpi-bin, then make"};

static const struct launcher launcher = {
    .rank_variables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", NULL},
    .ranks_variables = {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", NULL},
    .programs = {"mpirun.openmpi", "mpirun", NULL},
    .hosts_option = "--host",
    .options = {"--allow-run-as-root", "--oversubscribe", "--bind-to", "core:overload-allowed",
                "-n", NULL},
};

REGISTER(backend, openmpi) = {
    .name = "openmpi",
    .summary = "messages of Open MPI, and its own operations; on any network that it knows",
    .for_measures = true,
    .launcher = &launcher,
    .plugin = &plugin,
};
