/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank's struct comm (engine/run/comm.h) over a backend. It has no thread: operations move
 * while somebody is in comm.progress or comm.wait. Those that were started are carried out one
 * after another.
 */
#ifndef COLLECTIVE_COMMUNICATOR_H
#define COLLECTIVE_COMMUNICATOR_H

#include "collective/algorithm.h"
#include "collective/backend.h"

struct communicator_options {
    const struct algorithm *algorithm; /* NULL: chosen by operation and size */
    struct schedule_options schedule;  /* a field that is 0: by the number of ranks */
    bool bytes_alone; /* for a simulator: what is received is not combined, so sums are wrong */
};

enum status communicator_open(const struct backend *backend, struct group *group, int rank,
                              const struct communicator_options *options, struct comm *out,
                              struct error *err);
/* After all plans have been released. A zeroed struct comm is fine. */
void communicator_close(struct comm *comm);

/* Memory for inputs and outputs that other ranks can read where it lies, so that nothing is copied
 * on its way. NULL where the backend has none. It ends with the communicator. */
void *communicator_memory(struct comm *comm, size_t bytes);

/* Messages from rank 0 to rank 1, and one of TRIP_ANSWER bytes (log_gp.h) back. */
struct trip {
    int messages;
    size_t bytes;      /* of each */
    uint64_t apart_ns; /* each begins so long after the one before has left */
};

/* Makes a trip and waits for it, while nothing else is under way; by all ranks, of which the others
 * have nothing to do. memory: bytes of one message, or of the answer if that is more. */
enum status communicator_trip(struct comm *comm, const struct trip *trip, void *memory,
                              struct error *err);

/* What plans prepared from now on are made by, of operations that it has a schedule for: NULL
 * leaves it to operation and size. */
void communicator_prefer(struct comm *comm, const struct algorithm *algorithm);
/* Whether everything that was started has been done. */
bool communicator_idle(const struct comm *comm);
/* The algorithm and the work of a plan that such a communicator prepared. */
const struct algorithm *plan_algorithm(const struct comm_plan *plan);
struct schedule_work plan_work(const struct comm_plan *plan);

#endif
