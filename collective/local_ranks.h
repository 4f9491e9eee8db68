/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks as processes of this machine: forked from this one, waited for, and gone when the function
 * returns, whatever became of them. They share its CPUs evenly, where each can have one. When this
 * process is killed they go with it. */
#ifndef COLLECTIVE_LOCAL_RANKS_H
#define COLLECTIVE_LOCAL_RANKS_H

#include <stdbool.h>

#include "collective/backend.h"

/* What one rank does, in a process of its own; it opens its communicator itself. */
typedef enum status rank_body(void *context, struct group *group, int rank, struct error *err);

struct local_ranks {
    const struct backend *backend; /* with separate processes */
    int ranks;
    struct group_options options;
    rank_body *body;
    void *context;
    bool (*stopped)(void); /* asked again and again; true: all ranks are ended. NULL: never */
};

/* FAILED when a rank did, with what the first one said, or how it ended; the others learn of it,
 * and those that have not ended within another deadline are killed. The caller has no threads
 * and has flushed its streams. */
enum status local_ranks_run(const struct local_ranks *run, struct error *err);

#endif
