/* SPDX-License-Identifier: Apache-2.0
 * A process that writes results is killed, is not alone, or runs out of room. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/numbers/random.h"
#include "results/sqlite.h"
#include "tests/lib/child.h"
#include "tests/lib/made_results.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/place.h"

enum { ROUNDS = 15, PUTS = 25, SAMPLES = 200 };

static const char *const uuids[] = {"aaaaaaaa-0000-4000-8000-000000000001",
                                    "bbbbbbbb-0000-4000-8000-000000000002"};

static int *acknowledged; /* shared with children */

static int open_both(void **state)
{
    acknowledged = child_shared(4096);
    return acknowledged ? place_open(state) : -1;
}

static enum status put(struct store *store, int64_t run, int sequence, struct error *err)
{
    struct made_record made;
    enum status status = made_record(&made, sequence, 0.02, SAMPLES, MADE_OPS);
    if (status == STATUS_OK)
        status = run_put(store, run, &made.record, err);
    made_release(&made);
    return status;
}

static enum status begin(const char *path, const char *uuid, struct store **store, int64_t *run,
                         struct error *err)
{
    struct run_head head = made_head(uuid, 0);
    struct run_found found;
    TRY(store_open(path, STORE_WRITE, store, err));
    TRY(run_find_uuid(*store, uuid, &found, err));
    *run = found.run; /* the one that was killed before */
    return found.run ? STATUS_OK : run_begin(*store, &head, run, err);
}

/* ---- killed ---- */

/* Never returns: puts one result after the other until it is killed. */
static void put_for_ever(struct place *place)
{
    struct store *store;
    int64_t run;
    if (begin(place->db, uuids[0], &store, &run, &place->err) != STATUS_OK)
        _exit(1);
    for (int k = *acknowledged;; k++) {
        if (!run_has(store, run, k) && put(store, run, k, &place->err) != STATUS_OK)
            _exit(2);
        *acknowledged = k + 1;
    }
}

/* On a machine that is busy with other things no round may have come to its first result. */
static void wait_for_one(int round)
{
    enum { MS_MAX = 60000 };
    for (int ms = 0; round == ROUNDS - 1 && *acknowledged == 0 && ms < MS_MAX; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

TEST(nothing_that_was_put_is_lost_to_a_kill)
{
    struct place *place = *state;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t word[4];
        int result, before = *acknowledged;
        random_words(7, (uint64_t)round, word);
        pid_t child = fork();
        if (child == 0)
            put_for_ever(place);
        nanosleep(&(struct timespec){.tv_nsec = 5000000 + word[0] % 60000000}, NULL);
        wait_for_one(round);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFSIGNALED(result)); /* it had not left by itself */
        struct store *store;
        MUST(store_open, place->db, STORE_WRITE, &store);
        assert_int_equal(rows_of(store, "pragma_integrity_check "
                                        "WHERE integrity_check <> 'ok'"),
                         0);
        int64_t stored = rows_of(store, "result");
        assert_in_range(stored - *acknowledged, 0, 1); /* one may not be acknowledged yet */
        assert_true(*acknowledged >= before);
        assert_int_equal(rows_of(store, "sample"), stored * SAMPLES);
        store_close(store);
    }
    assert_true(*acknowledged > 0);
}

/* ---- two at a time ---- */

static void put_some(struct place *place, const char *uuid)
{
    struct store *store;
    int64_t run;
    if (begin(place->db, uuid, &store, &run, &place->err) != STATUS_OK)
        _exit(1);
    for (int k = 0; k < PUTS; k++)
        if (put(store, run, k, &place->err) != STATUS_OK)
            _exit(2);
    if (run_end(store, run, true, true, "", &place->err) != STATUS_OK)
        _exit(3);
    store_close(store);
    _exit(0);
}

TEST(two_writers_wait_for_each_other)
{
    struct place *place = *state;
    int result;
    for (int k = 0; k < 2; k++)
        if (fork() == 0)
            put_some(place, uuids[k]);
    for (int k = 0; k < 2; k++) {
        assert_true(wait(&result) > 0);
        assert_int_equal(result, 0);
    }
    struct store *store;
    MUST(store_open, place->db, STORE_READ, &store);
    assert_int_equal(rows_of(store, "result"), 2 * PUTS);
    assert_int_equal(rows_of(store, "point"), PUTS);
    assert_int_equal(rows_of(store, "run WHERE state = 'finished'"), 2);
    store_close(store);
}

/* ---- no room ---- */

/* A file may not grow beyond the limit: the same errors as a full disk. What cannot be put any more
 * goes to a spool, another file. */
static void fill_up(void *context)
{
    struct place *place = context;
    struct store *store, *spool;
    struct run_head head = made_head(uuids[0], 0);
    int64_t run;
    int k = 0;
    struct rlimit limit = {.rlim_cur = 400 << 10, .rlim_max = 400 << 10};
    signal(SIGXFSZ, SIG_IGN);
    if (begin(place->db, uuids[0], &store, &run, &place->err) != STATUS_OK)
        _exit(1);
    if (setrlimit(RLIMIT_FSIZE, &limit))
        _exit(2);
    while (k < 1000 && put(store, run, k, &place->err) == STATUS_OK)
        k++;
    if (k == 0 || k == 1000 || !strstr(place->err.message, "no space is left")) {
        fprintf(stderr, "# %d: %s\n", k, place->err.message);
        _exit(3);
    }
    if (store_open_spool(place->db, uuids[0], &spool, &place->err) != STATUS_OK ||
        run_begin(spool, &head, &run, &place->err) != STATUS_OK ||
        put(spool, run, k, &place->err) != STATUS_OK ||
        run_end(spool, run, true, true, "", &place->err) != STATUS_OK) {
        fprintf(stderr, "# spool: %s\n", place->err.message);
        _exit(4);
    }
    acknowledged[0] = k + 1;
    store_close(spool);
    store_close(store);
}

TEST(full_disk_loses_nothing)
{
    struct place *place = *state;
    struct store *store;
    MUST(child_run, fill_up, place, 60);
    MUST(store_open, place->db, STORE_WRITE, &store);
    assert_int_equal(store_spools_left(store), 0);
    int64_t stored = rows_of(store, "result");
    assert_int_equal(stored, acknowledged[0]);
    assert_int_equal(rows_of(store, "sample"), stored * SAMPLES);
    assert_int_equal(rows_of(store, "run WHERE state = 'finished'"), 1);
    store_close(store);
}

const struct unit_fixture unit_fixture = {.before_each = open_both, .after_each = place_close};
