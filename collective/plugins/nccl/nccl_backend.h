/* SPDX-License-Identifier: Apache-2.0
 *
 * A backend over NCCL. Its operations are NCCL's own, each whole, on one stream of the rank's GPU;
 * what lies in the host's memory goes there and back. NCCL moves no messages for the algorithms of
 * ridge, and does not say who is at fault: so ranks find each other, and hear of failures, by
 * another backend, the control.
 *
 * The communicator does not block: each call of NCCL returns at once, and whether it was carried
 * out is asked for, so that a deadline can be kept also while ranks connect. After a failure the
 * communicator is aborted, which ends what runs on the GPU. */
#ifndef COLLECTIVE_PLUGINS_NCCL_NCCL_BACKEND_H
#define COLLECTIVE_PLUGINS_NCCL_NCCL_BACKEND_H

#include "collective/backend.h"
#include "collective/plugins/nccl/api.h"
#include "engine/run/device.h"

struct group {
    struct group_options options;
    struct group *control; /* owned: that of options.control */
    int ranks;
};

/* Memory of the host that the GPU reads and writes by itself. */
struct pinned {
    void *memory;
    struct pinned *next;
};

struct link_state {
    struct nccl_api nccl;
    struct link control;
    struct device device; /* kind NULL: not opened yet */
    void *stream;
    ncclComm_t comm;         /* NULL: not connected, or aborted */
    struct own_plan *active; /* borrowed: what has been started; others wait */
    struct pinned *pinned;   /* owned */
    uint64_t since_ns;       /* nothing has moved */
    bool sleeps;             /* between attempts: it has waited for long */
};

/* What a rank learns before it connects. */
struct meeting {
    ncclUniqueId id;
    int32_t device; /* how many ranks before this one are on its machine */
};

/* Rank 0 makes the id; all learn it, and where they are, by the control. */
enum status nccl_meet(struct link *link, struct meeting *out, struct error *err);

/* FAILED with NCCL's own words, or with those of a rank that has caused the failure; the
 * communicator is then aborted. A call that goes on is no failure. */
enum status nccl_check(struct link *link, ncclResult_t result, const char *call, struct error *err);
/* *settled: all calls so far were carried out, which says nothing of the work on the stream. */
enum status nccl_look(struct link *link, bool *settled, struct error *err);
/* Waits until they are. `operation`: which, for a message. */
enum status nccl_settle(struct link *link, uint32_t operation, struct error *err);
void nccl_give_up(struct link *link);

extern const struct own_operations nccl_own;

#endif
