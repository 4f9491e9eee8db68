/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes out of facts what says whose machine it is: host and user names, serial numbers, paths in
 * homes, disks of the kernel command line. What remains is what makes two machines comparable.
 */
#ifndef HARNESS_MACHINE_REDACT_H
#define HARNESS_MACHINE_REDACT_H

#include <stddef.h>

#include "base/arena.h"
#include "results/record.h"

struct redaction {
    char host[256], user[128], home[512]; /* "": unknown */
};

/* The words of this process and this machine. */
void redaction_init(struct redaction *words, const char *root);
/* The value and the source of a fact without them. */
void redact_value(const struct redaction *words, const struct fact *fact, char *text, size_t size);
void redact_source(const struct redaction *words, const struct fact *fact, char *text, size_t size);

/* Any text of several lines without them, in the arena; NULL without memory. */
char *redact_lines(const char *text, struct arena *arena);

#endif
