/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference pages, made from the tables that the program itself follows (commands, options,
 * keys of suites), so that they cannot drift from it. */
#ifndef HARNESS_CLI_MANUAL_H
#define HARNESS_CLI_MANUAL_H

#include <stdio.h>

extern const char manual_exit_codes[];

void manual_markdown(FILE *stream);
/* groff with the man macros. */
void manual_man(FILE *stream);

#endif
