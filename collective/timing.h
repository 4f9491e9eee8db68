/* SPDX-License-Identifier: Apache-2.0
 *
 * How long operations take between ranks, and whether their results are exact. In the manner of
 * nccl-tests: operations back to back, in blocks long enough to be timed; a block's time is that of
 * the slowest rank. */
#ifndef COLLECTIVE_TIMING_H
#define COLLECTIVE_TIMING_H

#include "collective/communicator.h"

enum { TIMING_BLOCKS = 9, TIMING_SAMPLES_MAX = 64 };

struct timing_case {
    const struct algorithm *algorithm; /* NULL: chosen by size */
    enum comm_operation operation;
    enum comm_reduction reduction;
    enum dtype dtype, wire;
    int64_t bytes; /* of the whole operation: call_whole_count */
    int root;
    bool in_place;
    bool copies;      /* no operation: each rank copies `bytes` from its input to its output */
    struct trip trip; /* with messages: no operation, but these, of `bytes` each */
};

struct timing {
    enum status status; /* OK, or UNSUPPORTED with the reason */
    struct error reason;
    char algorithm[32]; /* that was taken */
    int64_t bytes;      /* as few elements more or less as ranks need for equal parts */
    /* Of one operation, each of one block, in the order in which they were taken. */
    double samples[TIMING_SAMPLES_MAX];
    int sample_count;
    double seconds; /* their median */
    double fastest, slowest;
    int64_t per_block;         /* operations */
    int64_t wrong;             /* elements of all ranks, of one operation before the blocks; -1: not
                                  compared */
    struct schedule_work work; /* of rank 0; elements */
};

struct timing_options {
    const struct backend *backend;
    int ranks;
    uint64_t deadline_ns;
    uint64_t block_ns; /* 0: one operation */
    int blocks;
    bool own_memory; /* inputs and outputs are no memory that ranks share, where they could be */
    bool touch;      /* before an operation each rank writes its input, and reads its output after
                        it, as a training does; that time counts */
    /* Not NULL: where inputs and outputs are, which nobody then fills or compares. A simulator has
     * the same memory for all ranks. */
    void *(*memory)(size_t bytes);
    struct schedule_options schedule; /* a field that is 0: chosen by the number of ranks */
};

/* One result for each case, all by the same processes. Where the backend has a launcher this
 * process is one of them, and results are those of rank 0; elsewhere it makes them. */
enum status timing_run(const struct timing_options *options, const struct timing_case *cases,
                       int count, struct timing *results, struct error *err);

/* The same for a backend that is ready and ranks that are there: this process is one of them. */
enum status timing_run_rank(const struct timing_options *options, const struct timing_case *cases,
                            int count, struct timing *results, struct error *err);

/* Median, fastest and slowest of the samples. */
void timing_summarise(struct timing *timing);
/* More samples of the same case. */
void timing_join(struct timing *timing, const struct timing *more);

/* Bytes per second as nccl-tests define them: of the algorithm, bytes / time; of the bus, what each
 * rank must send for it at least, which does not depend on the number of ranks. */
double timing_algorithm_rate(const struct timing *timing);
double timing_bus_rate(const struct timing *timing, enum comm_operation operation, int ranks);

#endif
