/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack that the program needs: libraries want more than some systems grant. */
#ifndef HARNESS_CLI_ENOUGH_STACK_H
#define HARNESS_CLI_ENOUGH_STACK_H

/* Calls run(count, words) on the thread's own stack, or on a larger one where `ulimit -s` leaves
 * less than a megabyte. New threads get as much. */
int run_with_enough_stack(int (*run)(int count, char **words), int count, char **words);

#endif
