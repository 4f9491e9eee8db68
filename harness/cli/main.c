/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge: a benchmark suite for deep-learning workloads. Commands are the files of harness/cmd/. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collective/backend.h"
#include "harness/cli/command.h"
#include "harness/cli/enough_stack.h"

/* Part of the sanitizers' libraries, NULL without them: the check for leaks that exit() would make.
 */
extern void __lsan_do_leak_check(void) __attribute__((weak));

/* Ends the process once its output is written. Destructors of libraries do not run: one that waits
 * for threads which cannot end would hold up a process whose work is done. But a rank whose work
 * succeeded ends with them: MPICH 4.2 takes leave of its launcher in one, and the launcher takes a
 * rank that ended without it for a crash and kills the others. */
static _Noreturn void end_process(int code)
{
    int rank, ranks;
    fflush(stdout);
    fflush(stderr);
    if (code == 0 && backend_starter(&rank, &ranks))
        exit(code);
    if (__lsan_do_leak_check)
        __lsan_do_leak_check();
    _exit(code);
}

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN); /* a file at its size limit is reported as an error */
    signal(SIGCHLD, SIG_DFL); /* where a parent ignored it, no child could be waited for */
    end_process(run_with_enough_stack(commands_dispatch, argc - 1, argv + 1));
}
