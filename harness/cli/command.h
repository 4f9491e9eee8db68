/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/cli: what commands share: how one is declared, found and explained, exit codes, shell
 * completion, the manual, and printed forms of a graph, a workload and a tensor. The commands
 * themselves are harness/cmd/, one file each.
 *
 * `ridge NAME ...` is harness/cmd/NAME.c, function main. Results go to stdout, chatter to stderr.
 * Exit codes: see enum exit_code. Adding a command is adding a file; the smallest example is
 * harness/cmd/version.c.
 */
#ifndef HARNESS_CLI_COMMAND_H
#define HARNESS_CLI_COMMAND_H

#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/registry.h"
#include "base/text/options.h"

enum exit_code {
    EXIT_FINE = 0,
    EXIT_REGRESSION = 1,
    EXIT_USAGE = 2, /* also: an input file that cannot be used */
    EXIT_WRONG = 3, /* a workload failed or its numbers are wrong */
    EXIT_INCONCLUSIVE = 4,
    EXIT_MISSING = 5, /* a required capability is absent */
};

struct command {
    const char *name;
    const char *summary;          /* one line */
    const char *usage;            /* "MODEL... [options]" */
    const char *help;             /* paragraphs; may be NULL */
    const struct option *options; /* may be NULL */
    size_t values_size;           /* of the struct that options point into */
    int words_min;                /* fewer words are a usage error */
    /* words: what is left after options. values: the filled struct, zeroed before. */
    int (*main)(int word_count, char **words, const void *values);
};

int command_count(void);
const struct command *command_at(int index);
const struct command *command_find(const char *name);

/* Runs `ridge words...`: finds the command, parses its options, answers -h. An exit code. */
int commands_dispatch(int word_count, char **words);
/* Usage, options and text of a command, as `ridge NAME -h` prints them. */
void command_print_help(const struct command *command, FILE *stream);

/* The line of this process, with the options, which are no longer among the words, quoted where a
 * shell needs it. NULL when there is no memory. */
char *command_typed(struct arena *arena);

/* Prints "ridge: message" to stderr and turns a status into an exit code. */
int command_fail(const struct error *err);

#endif
