/* SPDX-License-Identifier: Apache-2.0
 *
 * A child process that gives one sample per line it is sent (`ridge run MODEL --on-request`). Its
 * input and output are one socket, so that writing to a dead child is an error, not a signal; its
 * standard error is the caller's.
 */
#ifndef HARNESS_ASKED_CHILD_H
#define HARNESS_ASKED_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct asked_child {
    int socket; /* -1: not running */
    pid_t pid;
    const char *name; /* borrowed: command[0] */
    size_t used;
    char buffer[256];
};

enum status asked_child_start(struct asked_child *child, const char *const *command,
                              const char *const *environment, struct error *err);
/* Waits for "ready". */
enum status asked_child_ready(struct asked_child *child, double limit_s, struct error *err);
enum status asked_child_sample(struct asked_child *child, double limit_s, double *ms,
                               struct error *err);
/* Ends its input and waits five seconds for it, then kills it. Fails when it ended badly. */
enum status asked_child_stop(struct asked_child *child, struct error *err);

#endif
