/* SPDX-License-Identifier: Apache-2.0
 *
 * The command that starts ranks of a backend which has a launcher. */
#ifndef COLLECTIVE_LAUNCHER_H
#define COLLECTIVE_LAUNCHER_H

#include "collective/backend.h"

enum { LAUNCHER_WORDS = 12 };

struct launcher_command {
    const char *words[LAUNCHER_WORDS + 1]; /* the program and its options; the ranks' own follow */
    int count;
    char ranks[16];
};

/* hosts: "HOST:RANKS,..."; NULL: this machine. FAILED when there is no such
 * program. */
enum status launcher_command_init(struct launcher_command *command, const struct backend *backend,
                                  int ranks, const char *hosts, struct error *err);

#endif
