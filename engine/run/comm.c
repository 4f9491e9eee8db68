/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/run/comm.h"

enum status comm_once(struct comm *comm, const struct comm_call *call, const void *from, void *to,
                      struct error *err)
{
    struct comm_plan *plan;
    TRY(comm->prepare(comm, call, &plan, err));
    enum status status = comm->start(comm, plan, from, to, err);
    if (status == STATUS_OK)
        status = comm->wait(comm, plan, err);
    comm->release(comm, plan);
    return status;
}
