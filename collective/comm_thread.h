/* SPDX-License-Identifier: Apache-2.0
 *
 * A struct comm that moves by itself: a thread of its own carries out what is started, in that
 * order, while the caller computes. It sleeps when nothing is under way. */
#ifndef COLLECTIVE_COMM_THREAD_H
#define COLLECTIVE_COMM_THREAD_H

#include "engine/run/comm.h"

/* `inner` is borrowed; from here on nobody else uses it. The thread runs on the CPUs that the
 * calling one may use. */
enum status comm_thread_open(struct comm *inner, struct comm *out, struct error *err);
/* After all plans have been waited for and released. A zeroed struct comm is fine. */
void comm_thread_close(struct comm *comm);

#endif
