/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/train: training a workload: samples are read ahead, steps are run and timed, and what was
 * learnt is judged by samples that were held out.
 *
 * A reader makes batches ahead of their use, on a thread of its own, into a bounded queue of
 * buffers. It may run on any CPU that the thread which opens it may use. */
#ifndef HARNESS_TRAIN_READER_H
#define HARNESS_TRAIN_READER_H

#include "workloads/training.h"

enum { READER_BUFFERS_MIN = 2 };

struct reader;

struct reader_options {
    const struct graph *graph; /* borrowed, as is the next one */
    const struct training *training;
    uint64_t seed;
    int64_t first; /* sample */
    int64_t batch;
    int64_t stride; /* from a batch's first sample to that of the next; 0: batch */
    int buffers;    /* batches that are ready at most, READER_BUFFERS_MIN at least */
};

enum status reader_open(const struct reader_options *options, struct reader **out,
                        struct error *err);
/* The next batch, per graph input; NULL where it gives none. Waits until it is ready. Its memory is
 * the caller's until the next call. */
void *const *reader_next(struct reader *reader);
/* How long reader_next has waited so far. */
uint64_t reader_waited_ns(const struct reader *reader);
void reader_close(struct reader *reader);

#endif
