/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/turns: two programs measured in turns, sample by sample, each in processes of its own, so
 * that a change of the machine meets both alike (`ridge run --against`, `--interleave`).
 *
 * A child process that gives one sample per line it is sent (`ridge run MODEL --on-request`). Its
 * input and output are one socket, so that writing to a dead child is an error, not a signal. It
 * leads a process group of its own: Ctrl-C at the terminal reaches the caller alone, which then
 * ends its children; and whoever waits here for an answer stops waiting when an interrupt is
 * requested.
 */
#ifndef HARNESS_TURNS_ASKED_CHILD_H
#define HARNESS_TURNS_ASKED_CHILD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct asked_child {
    int socket; /* -1: not running */
    pid_t pid;
    const char *name; /* borrowed: command[0] */
    int errors;       /* file that keeps its standard error; -1: that is the caller's */
    int exit_code;    /* once it ended by itself; -1: not, or by a signal */
    size_t used;
    char buffer[4096];
};

enum status asked_child_start(struct asked_child *child, const char *const *command,
                              const char *const *environment, struct error *err);
/* The same with its standard error kept: what fails ends with the last line of that. */
enum status asked_child_start_kept(struct asked_child *child, const char *const *command,
                                   const char *const *environment, struct error *err);
/* Waits for "ready". */
enum status asked_child_ready(struct asked_child *child, double limit_s, struct error *err);
enum status asked_child_sample(struct asked_child *child, double limit_s, double *ms,
                               struct error *err);
/* The mean of `runs` executions that follow each other. */
enum status asked_child_block(struct asked_child *child, int64_t runs, double limit_s, double *ms,
                              struct error *err);
/* What the whole command prints until it ends, at most size - 1 bytes of it; fails when it ends
 * badly. */
enum status asked_child_output(const char *const *command, const char *const *environment,
                               double limit_s, char *text, size_t size, struct error *err);
/* Ends its input and waits five seconds for it, then kills it. Fails when it ended badly. */
enum status asked_child_stop(struct asked_child *child, struct error *err);

#endif
