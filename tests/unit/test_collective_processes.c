/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks as processes: results bit for bit those of the backend without processes, and what happens
 * when one of them dies, stops, never comes or does something else. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/numbers/random.h"
#include "base/system/clock.h"
#include "collective/example.h"
#include "collective/local_ranks.h"
#include "tests/lib/child.h"
#include "tests/lib/collective_ranks.h"
#include "tests/lib/unit.h"

/* ROOM: bytes of one rank's input or output. */
enum { RANKS_MAX = 9, CASES_MAX = 256, ROOM = 4096 };

static const enum dtype dtypes[] = {DTYPE_F32,  DTYPE_F64, DTYPE_F16,
                                    DTYPE_BF16, DTYPE_I32, DTYPE_I64};

/* Several cases one after another in the same processes; inputs and outputs are shared. */
struct many {
    const struct ranks_case *cases;
    int count;
    unsigned char *inputs;
    unsigned char *outputs; /* of all cases: output_at */
};

static size_t input_size(const struct ranks_case *c, int rank)
{
    struct comm_call call = c->call;
    call.counts = c->counts;
    return (size_t)call_input_count(&call, rank, c->ranks) * dtype_size(call.dtype);
}

static size_t output_size(const struct ranks_case *c, int rank)
{
    struct comm_call call = c->call;
    call.counts = c->counts;
    return (size_t)call_output_count(&call, rank, c->ranks) * dtype_size(call.dtype);
}

static unsigned char *output_at(const struct many *many, int index, int rank)
{
    return many->outputs + ((size_t)index * RANKS_MAX + rank) * ROOM;
}

static enum status run_one(const struct many *many, int index, struct group *group, int rank,
                           struct error *err)
{
    const struct ranks_case *c = &many->cases[index];
    struct one_rank one;
    enum status status = one_rank_open(c, backend_find("shm"), group, rank, &one, err);
    if (status == STATUS_OK) {
        memcpy(one.input, many->inputs + (size_t)rank * ROOM, input_size(c, rank));
        status = one.comm.start(&one.comm, one.plan, one.input, one.output, err);
    }
    if (status == STATUS_OK)
        status = one.comm.wait(&one.comm, one.plan, err);
    if (status == STATUS_OK)
        memcpy(output_at(many, index, rank), one.output, output_size(c, rank));
    one_rank_close(&one);
    return status;
}

static enum status run_many(void *context, struct group *group, int rank, struct error *err)
{
    const struct many *many = context;
    for (int k = 0; k < many->count; k++)
        TRY(run_one(many, k, group, rank, err));
    return STATUS_OK;
}

/* The same inputs and the same schedules in one thread. */
static void compare_with_loop(const struct many *many, int index)
{
    static unsigned char inputs[RANKS_MAX * ROOM], outputs[RANKS_MAX * ROOM];
    const struct ranks_case *c = &many->cases[index];
    struct error err = {0};
    char text[200];
    size_t at = 0;
    for (int rank = 0; rank < c->ranks; rank++) {
        memcpy(inputs + at, many->inputs + (size_t)rank * ROOM, input_size(c, rank));
        at += input_size(c, rank);
    }
    struct ranks_buffers buffers = {inputs, outputs};
    if (ranks_run_loop(c, &buffers, &err) != 0)
        fail_msg("%s: %s", ranks_case_text(c, text, sizeof(text)), err.message);
    at = 0;
    for (int rank = 0; rank < c->ranks; rank++) {
        if (memcmp(outputs + at, output_at(many, index, rank), output_size(c, rank)) != 0)
            fail_msg("%s: rank %d has other bits", ranks_case_text(c, text, sizeof(text)), rank);
        at += output_size(c, rank);
    }
}

static int cases_for(struct ranks_case *cases, int ranks)
{
    int count = 0;
    for (int k = 0; k < algorithm_count(); k++)
        for (int operation = 0; operation < COMM_OPERATION_COUNT; operation++) {
            if (algorithm_at(k)->own || !(algorithm_at(k)->operations & OPERATION_BIT(operation)))
                continue;
            for (int d = 0; d < ARRAY_COUNT(dtypes); d++) {
                struct ranks_case *c = &cases[count++];
                uint64_t seed = (uint64_t)(count * 10 + ranks);
                *c =
                    (struct ranks_case){.algorithm = algorithm_at(k), .ranks = ranks, .seed = seed};
                ranks_case_call(c, (enum comm_operation)operation, (int64_t)(seed * 7 % 50));
                c->call.dtype = dtypes[d];
                c->call.reduction = (enum comm_reduction)(seed % COMM_REDUCTION_COUNT);
                c->call.root = (int)(seed % (uint64_t)ranks);
                c->options =
                    (struct schedule_options){1 + (int)(seed % LANES_MAX), 32, 1 + ranks / 3};
                c->in_place = seed % 2 && operation != COMM_ALL_TO_ALL &&
                              operation != COMM_REDUCE_SCATTER && operation != COMM_ALL_GATHER;
            }
        }
    return count;
}

/* Elements are normal numbers, so that sums round and their order shows. */
static void fill_inputs(unsigned char *inputs, enum dtype dtype)
{
    for (int k = 0; k < RANKS_MAX * ROOM / 8; k++) {
        double value = random_normal(3, (uint64_t)k);
        float narrow = (float)value;
        if (dtype == DTYPE_F64)
            memcpy(inputs + (size_t)k * 8, &value, 8);
        else if (dtype == DTYPE_I32 || dtype == DTYPE_I64)
            memcpy(inputs + (size_t)k * 8, &(int64_t){(int64_t)(value * 1e18)}, 8);
        else
            for (size_t at = 0; at < 8; at += dtype_size(dtype))
                floats_store(dtype, &narrow, inputs + (size_t)k * 8 + at, 1);
    }
}

/* Those of one type, which have the same inputs. */
static void run_cases(struct many *many, int ranks, enum dtype dtype)
{
    static struct ranks_case cases[CASES_MAX], same[CASES_MAX];
    int count = cases_for(cases, ranks), first = 0;
    struct local_ranks run = {.backend = backend_find("shm"),
                              .ranks = ranks,
                              .options = {.deadline_ns = 60000000000u},
                              .body = run_many,
                              .context = many};
    struct error err = {0};
    assert_true(count <= CASES_MAX);
    for (int k = 0; k < count; k++)
        if (cases[k].call.dtype == dtype)
            same[first++] = cases[k];
    many->cases = same;
    many->count = first;
    fill_inputs(many->inputs, dtype);
    if (local_ranks_run(&run, &err) != STATUS_OK)
        fail_msg("%d ranks: %s", ranks, err.message);
    for (int k = 0; k < first; k++)
        compare_with_loop(many, k);
}

TEST(bits_are_those_of_one_thread)
{
    struct many many = {.inputs = child_shared(RANKS_MAX * ROOM)};
    many.outputs = child_shared((size_t)CASES_MAX * RANKS_MAX * ROOM);
    assert_non_null(many.inputs);
    assert_non_null(many.outputs);
    /* Of more ranks, which share cores and wait for each other, every third type by turns. */
    for (int ranks = 1; ranks <= RANKS_MAX; ranks++) {
        int by = ranks > 4 ? 3 : 1;
        for (int d = ranks % by; d < ARRAY_COUNT(dtypes); d += by)
            run_cases(&many, ranks, dtypes[d]);
    }
}

/* ---- large messages, back to back ---- */

struct long_work {
    const struct ranks_case *c;
    int repeats;
    _Atomic int64_t *wrong;
};

static enum status repeat(void *context, struct group *group, int rank, struct error *err)
{
    const struct long_work *work = context;
    struct one_rank one;
    enum status status = one_rank_open(work->c, backend_find("shm"), group, rank, &one, err);
    for (int k = 0; k < work->repeats && status == STATUS_OK; k++) {
        struct comm_call call = work->c->call;
        call.counts = work->c->counts;
        if (!work->c->in_place)
            memset(one.output, 0x77, one.output_bytes);
        example_fill(&call, rank, work->c->ranks, one.input);
        status = one.comm.start(&one.comm, one.plan, one.input, one.output, err);
        if (status == STATUS_OK)
            status = one.comm.wait(&one.comm, one.plan, err);
        *work->wrong += example_wrong(&call, rank, work->c->ranks, one.output);
    }
    one_rank_close(&one);
    return status;
}

static void repeat_long(const struct algorithm *algorithm, int ranks, bool shared, bool in_place)
{
    _Atomic int64_t *wrong = child_shared(sizeof(*wrong));
    struct ranks_case c = {.algorithm = algorithm, .ranks = ranks, .seed = shared ? 5 : 4};
    struct error err = {0};
    char text[200];
    int operation = 0;
    while (!(algorithm->operations & OPERATION_BIT(operation)))
        operation++;
    ranks_case_call(&c, (enum comm_operation)operation, 700001);
    c.call.dtype = DTYPE_F32;
    c.in_place = in_place && operation != COMM_ALL_TO_ALL;
    c.call.in_place = c.in_place;
    c.options = schedule_options_for(ranks);
    struct long_work work = {&c, 3, wrong};
    struct local_ranks run = {.backend = backend_find("shm"),
                              .ranks = ranks,
                              .options = {.deadline_ns = 60000000000u},
                              .body = repeat,
                              .context = &work};
    if (local_ranks_run(&run, &err) != STATUS_OK)
        fail_msg("%s: %s", ranks_case_text(&c, text, sizeof(text)), err.message);
    if (*wrong)
        fail_msg("%s: wrong elements", ranks_case_text(&c, text, sizeof(text)));
}

/* In memory of each rank alone, and in what ranks read, and give back to, where it lies. */
TEST(messages_longer_than_rings_one_after_another)
{
    for (int k = 0; k < algorithm_count(); k++)
        for (int ranks = 2; ranks <= 5 && !algorithm_at(k)->own; ranks += 3) {
            repeat_long(algorithm_at(k), ranks, false, false);
            repeat_long(algorithm_at(k), ranks, true, false);
            repeat_long(algorithm_at(k), ranks, true, true);
        }
}

/* ---- failures ---- */

enum trouble { KILLED, STOPPED, ABSENT, LEAVES };

struct ending {
    char message[512];
    uint64_t at_ns; /* of the victim: when its trouble began */
};

struct troubled {
    enum trouble trouble;
    int victim;
    struct ranks_case c;
    struct ending *said; /* shared: of each rank */
};

static enum status meet_trouble(void *context, struct group *group, int rank, struct error *err)
{
    struct troubled *t = context;
    struct one_rank one;
    t->said[rank].at_ns = clock_now_ns();
    if (rank == t->victim && t->trouble == ABSENT)
        pause();
    enum status status = one_rank_open(&t->c, backend_find("shm"), group, rank, &one, err);
    for (int k = 0; k < 1000000 && status == STATUS_OK; k++) {
        if (rank == t->victim && k == 50)
            t->said[rank].at_ns = clock_now_ns();
        if (rank == t->victim && k == 50 && t->trouble == KILLED)
            raise(SIGKILL);
        if (rank == t->victim && k == 50 && t->trouble == STOPPED)
            raise(SIGSTOP);
        if (rank == t->victim && k == 50 && t->trouble == LEAVES)
            break;
        status = one.comm.start(&one.comm, one.plan, one.input, one.output, err);
        if (status == STATUS_OK)
            status = one.comm.wait(&one.comm, one.plan, err);
    }
    /* Later operations fail with the same words. */
    if (status != STATUS_OK) {
        struct error again = {0};
        if (one.comm.start(&one.comm, one.plan, one.input, one.output, &again) == STATUS_OK ||
            strcmp(again.message, err->message) != 0)
            raise(SIGABRT);
        snprintf(t->said[rank].message, sizeof(t->said[rank].message), "%s", err->message);
    }
    if (rank != t->victim)
        t->said[rank].at_ns = clock_now_ns();
    one_rank_close(&one);
    return status;
}

/* Whether a survivor said nothing at all: the launcher ends those that are not done by the
 * deadline, and a busy machine may give a rank no turn for that long. */
static bool is_silent(const struct troubled *t)
{
    for (int rank = 0; rank < t->c.ranks; rank++)
        if (rank != t->victim && !*t->said[rank].message)
            return true;
    return false;
}

/* All survivors end in time, each of them names the victim, and nothing is left. False: one was
 * silent, and may be so (`again`). */
static bool check_trouble_once(enum trouble trouble, int ranks, int victim,
                               const struct algorithm *algorithm, bool again)
{
    static const uint64_t deadline_ns = 1000000000, busy_ns = 5000000000;
    struct troubled t = {.trouble = trouble, .victim = victim};
    struct error err = {0};
    char named[32];
    t.said = child_shared((size_t)ranks * sizeof(*t.said));
    t.c = (struct ranks_case){.algorithm = algorithm, .ranks = ranks};
    /* Through rings, or read where they lie: in memory of each rank, or in shared memory. */
    bool rings = victim % 3 == 0;
    t.c.seed = (uint64_t)victim;
    t.c.call = (struct comm_call){
        .operation = COMM_ALL_REDUCE, .dtype = DTYPE_F32, .count = rings ? 999 : 99999};
    t.c.options = (struct schedule_options){2, rings ? 256 : 64 << 10, 0};
    struct local_ranks run = {.backend = backend_find("shm"),
                              .ranks = ranks,
                              .options = {.deadline_ns = deadline_ns},
                              .body = meet_trouble,
                              .context = &t};
    int before = shared_mappings();
    assert_int_equal(local_ranks_run(&run, &err), STATUS_FAILED);
    if (again && is_silent(&t))
        return false;
    snprintf(named, sizeof(named), "rank %d ", victim);
    for (int rank = 0; rank < ranks; rank++)
        if (rank != victim && !strstr(t.said[rank].message, named))
            fail_msg("trouble %d, %d ranks, %s: rank %d does not name rank %d: \"%s\"", trouble,
                     ranks, algorithm->name, rank, victim, t.said[rank].message);
    if (!strstr(err.message, named))
        fail_msg("trouble %d: the launcher does not name rank %d: \"%s\"", trouble, victim,
                 err.message);
    for (int rank = 0; rank < ranks; rank++) /* with time for a machine that is busy */
        assert_true(t.said[rank].at_ns <= t.said[victim].at_ns + deadline_ns + busy_ns);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    assert_int_equal(shared_mappings(), before);
    return true;
}

static void check_trouble(enum trouble trouble, int ranks, int victim,
                          const struct algorithm *algorithm)
{
    for (int attempt = 1; attempt <= 4; attempt++)
        if (check_trouble_once(trouble, ranks, victim, algorithm, attempt < 4))
            return;
}

/* Of those that a deadline ends, by every second algorithm. */
static void each_trouble(enum trouble trouble)
{
    for (int k = 0; k < algorithm_count(); k += trouble == KILLED ? 1 : 2) {
        if (algorithm_at(k)->own || !(algorithm_at(k)->operations & OPERATION_BIT(COMM_ALL_REDUCE)))
            continue;
        check_trouble(trouble, 5, k % 5, algorithm_at(k));
    }
    check_trouble(trouble, 2, 1, algorithm_find("ring"));
}

TEST(a_rank_that_is_killed_is_named)
{
    each_trouble(KILLED);
}

TEST(a_rank_that_stops_is_named)
{
    each_trouble(STOPPED);
}

TEST(a_rank_that_never_comes_is_named)
{
    each_trouble(ABSENT);
}

/* Bug: a rank that failed said so twice, and who read its words while it wrote them again "failed
 * without a reason". */
TEST(the_first_words_of_a_failure_stay)
{
    static const int ranks[] = {1, 0, NOBODY};
    const struct backend *shm = backend_find("shm");
    const struct group_options options = {.deadline_ns = 1000000000};
    for (int k = 0; k < ARRAY_COUNT(ranks); k++) {
        struct group *group;
        struct error err = {0};
        struct link link;
        struct awaited awaited = {.peer = NOBODY};
        MUST(shm->group_new, 2, &options, &group);
        MUST(link_open, shm, group, 0, &link);
        shm->announce(group, 1, "rank 1: the first words");
        shm->announce(group, ranks[k], "others");
        assert_int_equal(shm->wait(&link, 0, &awaited, &err), STATUS_FAILED);
        assert_string_equal(err.message, "rank 1: the first words");
        shm->close(&link);
        shm->group_free(group);
    }
}

/* It did its part as long as it was there; who waits for it says so. */
TEST(a_rank_that_leaves_is_named)
{
    check_trouble(LEAVES, 2, 1, algorithm_find("ring"));
}
