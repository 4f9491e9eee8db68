/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs as people name them on a command line. A list of words joined by commas; each is
 *     WORD          a run in the default database (query_find_run: latest, uuid, tag, commit ...)
 *     FILE.db       the latest run in that file
 *     FILE.db:WORD  a run in that file
 */
#ifndef HARNESS_COMPARE_RUN_WORDS_H
#define HARNESS_COMPARE_RUN_WORDS_H

#include "base/arena.h"
#include "results/query.h"

enum { RUNS_MAX = 64 };

struct run_ref {
    struct store *store; /* owned by the list; several runs may share one */
    int64_t id;
    const char *word, *uuid, *started, *tag, *host, *host_uid, *environment;
    const char *build, *version, *git, *config, *compiler, *flags, *features;
    const char *turns;   /* uuid of the run that was measured in turns with this one, or "" */
    const char *invalid; /* why the whole run does not count; NULL: it does */
};

struct run_list {
    struct arena arena;
    struct run_ref runs[RUNS_MAX];
    int count;
};

enum status run_list_open(struct run_list *list, const char *words, const char *db,
                          struct error *err);
void run_list_close(struct run_list *list);

/* Refuses a name to be given to a run by which it could not be found, since the word means
 * something else. option: "--tag". */
enum status run_name_check(const char *option, const char *name, struct error *err);

#endif
