/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/plugin.h"

#include "collective/plugins/mpi/mpi_backend.h"

const struct backend_plugin *ridge_backend(struct error *why)
{
    static const struct backend_plugin plugin = {BACKEND_ABI, &mpi_backend};
    (void)why;
    return &plugin;
}
