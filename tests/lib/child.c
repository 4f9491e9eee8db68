/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/lib/child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void *child_shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

enum status child_run(void (*body)(void *context), void *context, int limit_s, struct error *err)
{
    int state;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        return FAIL(err, STATUS_FAILED, "cannot fork");
    if (child == 0) {
        alarm((unsigned)limit_s);
        body(context);
        exit(0);
    }
    if (waitpid(child, &state, 0) != child)
        return FAIL(err, STATUS_FAILED, "cannot wait for the child");
    if (WIFSIGNALED(state) && WTERMSIG(state) == SIGALRM)
        return FAIL(err, STATUS_INVALID, "did not end within %d s", limit_s);
    if (WIFSIGNALED(state))
        return FAIL(err, STATUS_INVALID, "killed by signal %d (%s)", WTERMSIG(state),
                    strsignal(WTERMSIG(state)));
    if (WEXITSTATUS(state) != 0)
        return FAIL(err, STATUS_INVALID, "left with code %d", WEXITSTATUS(state));
    return STATUS_OK;
}
