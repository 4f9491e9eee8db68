/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that are kept beside a database: DB.programs/UID/ holds the executable ("ridge") and its
 * plug-ins where it finds them, so that a later program can be measured against it in turns. What
 * is kept is never replaced: another program has another uid. */
#ifndef HARNESS_COMPARE_KEPT_PROGRAM_H
#define HARNESS_COMPARE_KEPT_PROGRAM_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"

struct kept_program {
    const char *path;               /* of the executable */
    const char *const *environment; /* what it must be started with; NULL: nothing */
};

/* Keeps this program when it is the build `uid`; otherwise fails, saying what differs. *path is
 * where it is kept, in the arena; *fresh: it was not yet. */
enum status kept_program_keep(const char *db, const char *uid, struct arena *arena,
                              const char **path, bool *fresh, struct error *err);
/* False when the build is not kept beside the database. */
bool kept_program_find(const char *db, const char *uid, struct arena *arena,
                       struct kept_program *out);
/* From an argument of the command line: a path, "baseline:NAME" or the bare name of a baseline
 * where no such file exists, else the name of a command in PATH. */
enum status kept_program_from_word(const char *word, const char *db, struct arena *arena,
                                   struct kept_program *out, struct error *err);

#endif
