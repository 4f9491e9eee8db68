/* SPDX-License-Identifier: Apache-2.0
 *
 * Communication between the ranks of a program, as far as a graph needs it: what a collective
 * operation is, and how one is prepared, started and waited for. The engine has only this
 * interface; collective/ fills it, and the harness hands it over.
 *
 * A rank is one of several processes that compute the same graph on different data. Life cycle of
 * an operation: prepare once, where memory may be allocated; then, any number of times, start when
 * its input is ready and wait before its result is used. Between the two, progress moves what can
 * be moved without waiting. All ranks start the same operations in the same order.
 *
 * Every wait has a deadline. Once an operation has failed, all later ones of the communicator fail
 * with the same message: it names the rank at fault and what was expected of it.
 */
#ifndef ENGINE_RUN_COMM_H
#define ENGINE_RUN_COMM_H

#include "base/error.h"
#include "engine/graph/tensor.h"

enum comm_operation {
    COMM_ALL_REDUCE,     /* every rank: `count` elements in, their sum over all ranks out */
    COMM_REDUCE_SCATTER, /* counts[0] + counts[1] + ... in; of the sum, rank r gets part r */
    COMM_ALL_GATHER,     /* rank r: counts[r] in; all parts one after another out */
    COMM_BROADCAST,      /* `count` elements of rank `root` to all */
    COMM_ALL_TO_ALL,     /* counts[from * ranks + to] elements for each pair of ranks */
    COMM_OPERATION_COUNT
};

enum comm_reduction { COMM_SUM, COMM_MAX, COMM_MIN, COMM_REDUCTION_COUNT };

/* What all ranks agree on. The arrays stay the caller's and are read by prepare alone. */
struct comm_call {
    enum comm_operation operation;
    enum comm_reduction reduction;
    enum dtype dtype;      /* f32, f64, f16, bf16, i32 or i64 */
    int64_t count;         /* of all-reduce and broadcast */
    const int64_t *counts; /* of the others */
    int root;
    /* As what elements of f32 cross between ranks: f16 or bf16, half the bytes. They are reduced in
     * f32, each message being rounded once, and so is the result, to the same bits on every rank.
     * DTYPE_NONE: as they are. */
    enum dtype wire;
    bool in_place;  /* start will be called with `from` as `to`: a hint for choosing an algorithm */
    bool on_device; /* enqueue will be called, and never start */
};

struct comm_plan; /* a prepared operation; each implementation defines its own */

/* What became of an operation, once it has been waited for, and what this rank does for it. */
struct comm_record {
    uint64_t started_ns, ended_ns; /* clock_now_ns; started: its turn came, the first bytes moved */
    int64_t messages, bytes_sent;  /* as the schedule of this rank says */
    const char *algorithm;
};

struct comm {
    int rank, ranks;
    void *state; /* of the implementation */
    enum status (*prepare)(struct comm *comm, const struct comm_call *call, struct comm_plan **out,
                           struct error *err);
    void (*release)(struct comm *comm, struct comm_plan *plan);
    /* Neither allocates. `to` is `from`, or overlaps it nowhere, but reduce-scatter may write its
     * part where it lies in the input, and all-gather may read its part where it lies in the
     * result. Both stand untouched until wait returns. A plan is started again after its wait. */
    enum status (*start)(struct comm *comm, struct comm_plan *plan, const void *from, void *to,
                         struct error *err);
    enum status (*progress)(struct comm *comm, struct error *err);
    enum status (*wait)(struct comm *comm, struct comm_plan *plan, struct error *err);
    /* Optional, and both or none: for memory of the device that the ranks communicate from. enqueue
     * puts a plan made for it into the queue of a stream there, as the launch of a kernel would, so
     * that a capture records it. Who waits for the stream calls attend meanwhile, `idle` times
     * since it began, from 0 on: FAILED past the deadline or when another rank has failed; what is
     * in the queue then ends, undone. */
    enum status (*enqueue)(struct comm *comm, struct comm_plan *plan, const void *from, void *to,
                           void *stream, struct error *err);
    enum status (*attend)(struct comm *comm, unsigned idle, struct error *err);
    /* Optional: memory of this rank which others reach, so that what lies there need not be copied
     * on its way; aligned for tensors, until the communicator is closed. NULL: there is no more of
     * it, and any other memory does, too. */
    void *(*memory)(struct comm *comm, size_t bytes);
    /* Optional. */
    void (*record)(const struct comm *comm, const struct comm_plan *plan, struct comm_record *out);
};

/* One operation from beginning to end. */
enum status comm_once(struct comm *comm, const struct comm_call *call, const void *from, void *to,
                      struct error *err);

#endif
