/* SPDX-License-Identifier: Apache-2.0
 *
 * Documentation and shell completion, made from the tables that the program itself follows:
 * commands, options, workloads, keys of suites. So they cannot drift. */
#ifndef HARNESS_CLI_REFERENCE_H
#define HARNESS_CLI_REFERENCE_H

#include <stdio.h>

#include "base/error.h"

extern const char reference_exit_codes[];

void reference_markdown(FILE *stream);
/* groff with the man macros. */
void reference_man(FILE *stream);
/* shell: bash, zsh or fish. */
enum status reference_completion(const char *shell, FILE *stream, struct error *err);

#endif
