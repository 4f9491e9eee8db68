/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge: a benchmark suite for deep-learning workloads. Commands are the files of harness/cmd/. */
#include "harness/command.h"

int main(int argc, char **argv)
{
    return commands_dispatch(argc - 1, argv + 1);
}
