/* SPDX-License-Identifier: Apache-2.0
 *
 * How the process begins and ends. */
#ifndef HARNESS_WATCH_PROCESS_H
#define HARNESS_WATCH_PROCESS_H

/* Calls run(count, words) on the thread's own stack, or on a larger one where `ulimit -s` leaves
 * less than a megabyte: libraries need more. New threads get as much. */
int process_run(int (*run)(int count, char **words), int count, char **words);

/* Ends the process with that code once its output is written. Destructors of libraries do not run:
 * one that waits for threads which cannot end would hold up a process whose work is done. */
_Noreturn void process_end(int code);

#endif
