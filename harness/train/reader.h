/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/train: training a workload: samples are read ahead, steps are run and timed, and what was
 * learnt is judged by samples that were held out.
 *
 * A reader makes batches ahead of their use, on threads of its own, into a bounded queue of
 * buffers. Batches come in order, with the same samples whatever the number of threads. Threads may
 * run on any CPU that the thread which opens the reader may use. */
#ifndef HARNESS_TRAIN_READER_H
#define HARNESS_TRAIN_READER_H

#include "workloads/data/data.h"

enum { READER_BUFFERS_MIN = 2, READER_THREADS_MAX = 256 };

struct reader;

struct reader_options {
    const struct graph *graph; /* borrowed, as are the next two */
    const struct training *training;
    const struct data_set *data; /* NULL: samples are made up */
    uint64_t seed;
    int64_t first; /* sample */
    int64_t batch;
    int64_t stride;     /* from a batch's first sample to that of the next; 0: batch */
    int buffers;        /* batches that are ready at most, READER_BUFFERS_MIN at least */
    int threads;        /* 0 as 1 */
    double bytes_per_s; /* no more is read, as if from a slow disk or a network; 0: no limit */
};

enum status reader_open(const struct reader_options *options, struct reader **out,
                        struct error *err);
/* The next batch, per graph input; NULL where it gives none. Waits until it is ready. Its memory is
 * the caller's until the next call. FAILED where a sample of it cannot be read. */
enum status reader_next(struct reader *reader, void *const **data, struct error *err);
/* How long reader_next has waited so far. */
uint64_t reader_waited_ns(const struct reader *reader);
/* What was read of files so far; of samples that are made up: the size of what was made. */
int64_t reader_bytes(struct reader *reader);
void reader_close(struct reader *reader);

#endif
