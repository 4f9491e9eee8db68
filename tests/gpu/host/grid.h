/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the blocks of a grid one after the other. The threads of a block are fibers: each runs until
 * it waits at a barrier or ends. A barrier that some thread can never reach ends the program with
 * its name: on a GPU it would hang or, worse, not.
 *
 * The blocks of a cluster run beside each other. */
#ifndef TESTS_GPU_HOST_GRID_H
#define TESTS_GPU_HOST_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "tests/gpu/host/watch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct host_index {
    unsigned x, y, z;
};

/* What KERNEL_ADDRESS gives: a kernel of one argument. */
struct host_kernel {
    void (*run)(void **arguments);
    size_t argument_bytes;
    size_t *shared_bytes; /* that its blocks may ask for; 0: the usual 48 KiB */
};

enum {
    HOST_CLUSTER_MAX = 8,
    HOST_BLOCK_MAX = 1024,
    HOST_THREADS = 4096 /* that run beside each other */
};

/* cluster: blocks in x that run beside each other; 1: each alone. */
void host_grid_run(const struct host_kernel *kernel, struct host_index grid,
                   struct host_index block, unsigned cluster, void **arguments,
                   size_t shared_bytes);

double host_counted(void); /* of host_count, in all */
long host_begun(void);     /* threads of the latest launch that said they begin */

/* ---- for the kernels ---- */

void host_count(double n);
void host_begin(void);

/* What stays the same while a thread of the grid runs: asked once, not at each use. */
#define OF_THREAD __attribute__((const))
OF_THREAD struct host_index host_thread_index(void);
OF_THREAD struct host_index host_block_index(void);
OF_THREAD struct host_index host_block_size(void);
OF_THREAD struct host_index host_grid_size(void);
OF_THREAD void *host_shared(void);
OF_THREAD int host_lane(void);
OF_THREAD unsigned host_thread_number(void); /* among those that run beside each other */
OF_THREAD unsigned host_cluster_rank(void);
/* The same place in the dynamic shared memory of that block of the cluster. */
void *host_cluster_shared(const void *own, unsigned rank);
void host_arrive_cluster(void);
void host_wait_cluster(void);
void host_wait_block(void);
void host_wait_warp(unsigned mask); /* __syncwarp */
void host_meet_warp(unsigned mask); /* as a shuffle does: puts no accesses in an order */
/* The value that `lane` of the warp brings; all its threads call together. */
uint64_t host_shuffle(unsigned mask, uint64_t value, int lane);

#ifdef __cplusplus
}
#endif
#endif
