/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the threads of this process were ready to run and had no CPU: the second number of
 * /proc/self/task/<thread>/schedstat, summed over all threads. Threads come and go: one that began
 * after run_delay_open counts from its birth, one that ended keeps what it had at the last reading.
 */
#ifndef HARNESS_WATCH_RUN_DELAY_H
#define HARNESS_WATCH_RUN_DELAY_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

struct run_delay {
    DIR *folder; /* .../task; NULL: not there */
    struct thread_delay *threads;
    int count, capacity;
    int64_t wait_ns, run_ns; /* since run_delay_open */
    bool counts;             /* the kernel does, at least for one thread */
    bool incomplete;         /* a thread could not be read or remembered */
};

/* `root` stands before /proc, "" on a real machine. Counting begins with the values of that moment.
 */
void run_delay_open(struct run_delay *delay, const char *root);
/* Brings the sums up to date. Takes 1 us and 2 us more for each thread. */
void run_delay_read(struct run_delay *delay);
void run_delay_close(struct run_delay *delay);
/* Why the sums mean nothing; "": they hold. */
const char *run_delay_unknown(const struct run_delay *delay);

#endif
