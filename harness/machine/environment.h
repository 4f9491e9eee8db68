/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine is and how it is set, as far as it can be known without being root: identity,
 * CPU and its state, mitigations, memory, kernel, control group, storage, libraries, GPU, process,
 * permissions. Every fact says where it was read; one that was refused is FACT_DENIED, one that
 * this machine does not have is FACT_ABSENT. Nothing is guessed.
 *
 * The hash covers identity and tuning facts in redacted form, so it is the same with and without
 * `redact`, and equal for two equal machines. Names and serial numbers are volatile in this sense.
 */
#ifndef HARNESS_MACHINE_ENVIRONMENT_H
#define HARNESS_MACHINE_ENVIRONMENT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "results/record.h"

struct environment_options {
    const char *root;   /* put in front of /proc and /sys: fixture trees of tests; NULL: "" */
    const char *folder; /* whose file system is described; NULL: "." */
    bool redact;        /* no host name, serial number, user name, path */
};

/* Facts and their text live in the arena. Sorted by category and key. */
enum status environment_probe(struct environment *environment, struct arena *arena, bool redact,
                              struct error *err);
enum status environment_probe_at(const struct environment_options *options,
                                 struct environment *environment, struct arena *arena,
                                 struct error *err);
/* NULL when there is no such fact; its value is "" unless its status is FACT_OK. */
const struct fact *environment_find(const struct environment *environment, const char *category,
                                    const char *key);
/* The value of a fact as a number; NAN when it is not there or none. */
double environment_number(const struct environment *environment, const char *category,
                          const char *key);

/* In which of the facts that the hash covers two environments differ: "cpu_state governor
 * performance -> powersave", at most three of them; "" in none. */
void environment_changes(const struct environment *before, const struct environment *after,
                         char *text, size_t size);

/* Version, flags and hash of this executable and of the plug-ins beside it. */
enum status build_probe(struct build_record *build, struct arena *arena, struct error *err);

struct build_files;
/* Which files those are. */
enum status build_probe_files(struct build_files *files, struct arena *arena, struct error *err);

#endif
