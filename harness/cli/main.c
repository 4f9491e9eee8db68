/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge: a benchmark suite for deep-learning workloads. Commands are the files of harness/cmd/. */
#include <signal.h>

#include "harness/cli/command.h"
#include "harness/watch/process.h"

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN); /* a file at its limit is an error that is reported, not a death */
    process_end(process_run(commands_dispatch, argc - 1, argv + 1));
}
