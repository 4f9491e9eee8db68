/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread pool of the engine. Threads are pinned to the CPUs of the process's mask, one each;
 * the caller is thread 0 and works too. A region hands out tiles from one atomic counter, so a
 * preempted thread costs its share only. Between regions workers spin for a short while, then park.
 *
 * Life cycle: pool_new, pool_run any number of times (one region at a time, never nested),
 * pool_park before code that brings threads of its own (an OpenMP library), pool_free. Between
 * pool_stop and pool_start it has no threads and the caller is free of its CPU: of many pools that
 * exist at a time one alone may have threads.
 */
#ifndef BASE_SYSTEM_POOL_H
#define BASE_SYSTEM_POOL_H

#include <stdint.h>

#include "base/error.h"

struct pool;

typedef void pool_work(void *context, int64_t tile, int thread);

/* threads <= 0: one per CPU of the mask that the process was started with. */
enum status pool_new(int threads, struct pool **out, struct error *err);
void pool_free(struct pool *pool);
int pool_threads(const struct pool *pool);

/* Ends the threads, if they have not been ended. pool_run is serial then. */
void pool_stop(struct pool *pool);
/* Starts as many fresh ones as pool_new did, if it has none. When it fails it has none. */
enum status pool_start(struct pool *pool, struct error *err);

/* Calls work for each tile in [0, tiles); returns when all are done. pool may be NULL: serial. */
void pool_run(struct pool *pool, int64_t tiles, pool_work *work, void *context);
/* Sends spinning workers to sleep now. The next pool_run wakes them. */
void pool_park(struct pool *pool);

#endif
