/* SPDX-License-Identifier: Apache-2.0
 *
 * The database of results: one SQLite file. Only the files of results/ know SQLite.
 *
 * Writing: store_open, run_begin, run_put once per finished point (one transaction each, on disk
 * when it returns), run_end, store_close. A process that is killed between loses nothing that was
 * put. Several processes may write to the same file; each waits for the other for a while.
 *
 * Opening migrates older versions forward; a newer version, another application's file or a
 * damaged one is refused with a message that says what to do, and is not touched.
 */
#ifndef RESULTS_STORE_H
#define RESULTS_STORE_H

#include "base/arena.h"
#include "base/error.h"
#include "results/record.h"

#define STORE_DEFAULT "out/ridge.db"

struct store;

enum store_mode {
    STORE_READ,  /* must exist */
    STORE_WRITE, /* made when absent, with its folder */
};

enum status store_open(const char *path, enum store_mode mode, struct store **out,
                       struct error *err);
/* Where a run goes on when the main database cannot be written (locked for too long, read-only,
 * full, removed): a database of the same kind at PATH.spool/UUID.db, or under $TMPDIR when that
 * cannot be made. Call run_begin with the same head, unless run_find_uuid finds it there already,
 * and put what is not stored yet. The next store_open of PATH for writing takes it in and removes
 * it. */
enum status store_open_spool(const char *path, const char *uuid, struct store **out,
                             struct error *err);
/* How many spools store_open found and could not take in: damaged ones, mostly. They stay. */
int store_spools_left(const struct store *store);
/* The file of one of them, or "", and why it was left. */
const char *store_spool_left(const struct store *store, const char **why);
void store_close(struct store *store);
const char *store_path(const struct store *store);

/* An error if a run of this uuid is there. */
enum status run_begin(struct store *store, const struct run_head *head, int64_t *run,
                      struct error *err);
/* Facts that change by themselves; others are ignored. phase: "before" or "after". */
enum status run_put_facts(struct store *store, int64_t run, const char *phase,
                          const struct environment *environment, struct error *err);
/* A point is put again after each visit: what the run has at this position of the plan is replaced
 * if it is the same point with fewer visits, and the put refused otherwise. */
enum status run_put(struct store *store, int64_t run, const struct record *record,
                    struct error *err);
/* Those that the run has already are replaced. */
enum status run_put_ceilings(struct store *store, int64_t run,
                             const struct ceiling_record *ceilings, int count, struct error *err);
enum status run_end(struct store *store, int64_t run, bool finished, bool valid, const char *reason,
                    struct error *err);

/* Says that the point at this position begins. run_put of its result takes that back; until then it
 * counts: *earlier is how often it was begun before without a result, because the process was
 * killed or died of it. */
enum status run_attempt(struct store *store, int64_t run, int sequence, int *earlier,
                        struct error *err);
/* The point was stopped in good order: that was no attempt. */
enum status run_attempt_withdraw(struct store *store, int64_t run, int sequence, struct error *err);

/* ---- going on with a run (results/resume.c) ---- */

struct run_found {
    int64_t run; /* 0: there is none */
    char uuid[37];
    int rounds;
    int64_t order_seed;
    char tag[256]; /* or its beginning */
};

/* The latest unfinished run of this plan. */
enum status run_find_unfinished(struct store *store, const char *plan_hash, struct run_found *out,
                                struct error *err);
enum status run_find_uuid(struct store *store, const char *uuid, struct run_found *out,
                          struct error *err);
/* A fact of the time before it; *value NULL: it has none of that name. */
enum status run_fact(struct store *store, int64_t run, const char *category, const char *key,
                     struct arena *arena, const char **value, struct error *err);
/* True when the run has a result at this position of the plan. */
bool run_has(struct store *store, int64_t run, int sequence);
/* True when nothing is to be done there: so many visits, or a status other than ok. */
bool run_has_all(struct store *store, int64_t run, int sequence, int rounds);
/* What it has there, but for the point. All lives in the arena but the samples, which the caller
 * frees. */
enum status run_load(struct store *store, int64_t run, int sequence, struct arena *arena,
                     struct record *record, struct error *err);

enum status baseline_set(struct store *store, const char *name, const char *run_uuid,
                         const char *note, struct error *err);

struct ingest_counts {
    int64_t runs_new, runs_known, results_new, samples_new;
};

/* Copies what another database has and this one has not: runs by uuid, their results by position in
 * the plan. Twice is the same as once. All or nothing. */
enum status store_ingest(struct store *store, const char *other, struct ingest_counts *counts,
                         struct error *err);

#endif
