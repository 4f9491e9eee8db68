/* SPDX-License-Identifier: Apache-2.0
 *
 * Documentation and shell completion, made from the tables that the program itself follows:
 * commands, options, workloads, keys of suites. So they cannot drift. */
#ifndef HARNESS_CLI_MANUAL_H
#define HARNESS_CLI_MANUAL_H

#include <stdio.h>

#include "base/error.h"

extern const char manual_exit_codes[];

void manual_markdown(FILE *stream);
/* groff with the man macros. */
void manual_man(FILE *stream);
/* shell: bash, zsh or fish. */
enum status manual_completion(const char *shell, FILE *stream, struct error *err);

#endif
