/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend nccl over stand-ins for NCCL and for the CUDA runtime: exact results of all
 * operations, types and places, with ragged counts; what happens when a call fails, when a rank
 * dies, stops, never comes or leaves, and when ranks never connect. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "collective/example.h"
#include "collective/local_ranks.h"
#include "tests/lib/child.h"
#include "tests/lib/collective_ranks.h"
#include "tests/lib/made_nccl.h"
#include "tests/lib/unit.h"

enum { RANKS_MOST = 4, TURNS = 12, COUNT = 131 };

static const uint64_t patient_ns = 60000000000u, deadline_ns = 400000000u, busy_ns = 5000000000u;
static const enum dtype dtypes[] = {DTYPE_F32,  DTYPE_F64, DTYPE_F16,
                                    DTYPE_BF16, DTYPE_I32, DTYPE_I64};

static const struct backend *nccl;

static int start(int argc, char **argv)
{
    struct error why = {0};
    (void)argc;
    nccl = made_nccl(argv[0], &why);
    if (!nccl)
        printf("skipped: %s\n", why.message);
    return nccl ? UNIT_RUN : UNIT_SKIP;
}

const struct unit_fixture unit_fixture = {.start = start};

static struct local_ranks ranks_of(int ranks, uint64_t deadline, rank_body *body, void *context)
{
    return (struct local_ranks){.backend = nccl,
                                .ranks = ranks,
                                .options = {.deadline_ns = deadline},
                                .body = body,
                                .context = context};
}

static void expect_part(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not say \"%s\"", text, part);
}

/* ---- results ---- */

static struct ranks_case case_of(int ranks, enum comm_operation operation, int turn)
{
    struct ranks_case c = {.algorithm = algorithm_find("library"),
                           .ranks = ranks,
                           .seed = (uint64_t)(turn + 13 * operation + 100 * ranks)};
    int parts = operation == COMM_ALL_TO_ALL ? ranks * ranks : ranks;
    ranks_case_call(&c, operation, turn == TURNS - 1 ? 70001 : COUNT);
    for (int k = 0; k < parts && turn % 4 == 3; k++) /* equal parts */
        c.counts[k] = COUNT;
    c.call.dtype = dtypes[turn % ARRAY_COUNT(dtypes)];
    c.call.reduction = (enum comm_reduction)(turn / 2 % COMM_REDUCTION_COUNT);
    c.call.root = turn % ranks;
    c.in_place = turn / 6 && operation != COMM_ALL_TO_ALL;
    return c;
}

/* In place the second time around has other input than the first. */
static enum status run_case(const struct ranks_case *c, struct group *group, int rank,
                            struct error *err)
{
    struct one_rank one;
    struct comm_call call = c->call;
    char text[200];
    call.counts = c->counts;
    enum status status = one_rank_open(c, nccl, group, rank, &one, err);
    for (int k = 0; k < (c->in_place ? 1 : 2) && status == STATUS_OK; k++) {
        if (!c->in_place)
            memset(one.output, 0x77, one.output_bytes);
        status = one_rank_run(&one, err);
        if (status == STATUS_OK && example_wrong(&call, rank, c->ranks, one.output) > 0)
            status = FAIL(err, STATUS_INVALID, "wrong elements");
    }
    one_rank_close(&one);
    if (status != STATUS_OK)
        error_context(err, "%s", ranks_case_text(c, text, sizeof(text)));
    return status;
}

static enum status run_all(void *context, struct group *group, int rank, struct error *err)
{
    const int *ranks = context;
    for (int operation = 0; operation < COMM_OPERATION_COUNT; operation++)
        for (int turn = 0; turn < TURNS; turn++) {
            struct ranks_case c = case_of(*ranks, (enum comm_operation)operation, turn);
            TRY(run_case(&c, group, rank, err));
        }
    return STATUS_OK;
}

TEST(results_are_exact)
{
    for (int ranks = 1; ranks <= RANKS_MOST; ranks++) {
        struct error err = {0};
        struct local_ranks run = ranks_of(ranks, patient_ns, run_all, &ranks);
        if (local_ranks_run(&run, &err) != STATUS_OK)
            fail_msg("%d ranks: %s", ranks, err.message);
    }
}

/* Several are started before the first is waited for, and waited for in another order. */
static enum status run_together(void *context, struct group *group, int rank, struct error *err)
{
    enum { PLANS = 4, ELEMENTS = 5000 };
    struct communicator_options options = {.algorithm = NULL};
    struct comm_call call = {
        .operation = COMM_ALL_REDUCE, .dtype = DTYPE_F32, .count = ELEMENTS, .in_place = true};
    static float values[PLANS][ELEMENTS];
    struct comm_plan *plans[PLANS] = {NULL};
    struct comm comm;
    (void)context;
    TRY(communicator_open(nccl, group, rank, &options, &comm, err));
    enum status status = STATUS_OK;
    for (int k = 0; k < PLANS && status == STATUS_OK; k++) {
        for (int e = 0; e < ELEMENTS; e++)
            values[k][e] = (float)(rank + k + e % 7);
        status = comm.prepare(&comm, &call, &plans[k], err);
    }
    for (int k = 0; k < PLANS && status == STATUS_OK; k++)
        status = comm.start(&comm, plans[k], values[k], values[k], err);
    for (int k = PLANS - 1; k >= 0 && status == STATUS_OK; k--)
        status = comm.wait(&comm, plans[k], err);
    for (int k = 0; k < PLANS && status == STATUS_OK; k++)
        for (int e = 0; e < ELEMENTS && status == STATUS_OK; e++)
            if (values[k][e] != (float)(3 + 3 * (k + e % 7)))
                status = FAIL(err, STATUS_INVALID, "plan %d, element %d: %g", k, e,
                              (double)values[k][e]);
    for (int k = 0; k < PLANS; k++)
        comm.release(&comm, plans[k]);
    communicator_close(&comm);
    return status;
}

TEST(operations_wait_for_each_other)
{
    struct local_ranks run = ranks_of(3, patient_ns, run_together, NULL);
    MUST(local_ranks_run, &run);
}

/* ---- what it does not have ---- */

static enum status prepare_one(void *context, struct group *group, int rank, struct error *err)
{
    struct one_rank one;
    enum status status = one_rank_open(context, nccl, group, rank, &one, err);
    one_rank_close(&one);
    return status;
}

TEST(what_it_does_not_have_is_refused)
{
    static const struct {
        const char *algorithm;
        enum dtype dtype, wire;
        const char *says;
    } refused[] = {
        {"ring", DTYPE_F32, DTYPE_NONE, "nccl has whole operations alone and no messages for ring"},
        {"library_blocking", DTYPE_F32, DTYPE_NONE, "no operations that block"},
        {"library", DTYPE_F32, DTYPE_F16, "NCCL sends elements as they are"},
        {"library", DTYPE_U8, DTYPE_NONE, "take f32, f64, f16, bf16, i32 or i64"}};
    for (int k = 0; k < ARRAY_COUNT(refused); k++) {
        struct error err = {0};
        struct ranks_case c = {.algorithm = algorithm_find(refused[k].algorithm), .ranks = 2};
        c.call = (struct comm_call){.dtype = refused[k].dtype, .wire = refused[k].wire, .count = 9};
        struct local_ranks run = ranks_of(2, patient_ns, prepare_one, &c);
        assert_int_equal(local_ranks_run(&run, &err), STATUS_UNSUPPORTED);
        expect_part(err.message, refused[k].says);
    }
}

TEST(an_old_library_is_refused)
{
    const struct backend *ready;
    struct error err = {0};
    setenv("RIDGE_FAKE_NCCL_VERSION", "21203", 1);
    assert_int_equal(backend_ready(backend_find("nccl"), &ready, &err), STATUS_UNSUPPORTED);
    expect_part(err.message, "libnccl.so.2 is version 2.12.3: 2.14.3 or newer is needed");
    unsetenv("RIDGE_FAKE_NCCL_VERSION");
    char text[32];
    nccl->version(text, sizeof(text));
    assert_true(text[0] == '2' && text[1] == '.');
}

/* ---- GPUs ---- */

TEST(each_rank_takes_a_gpu_of_its_own)
{
    struct error err = {0};
    int ranks = 2;
    struct local_ranks run = ranks_of(ranks, patient_ns, run_all, &ranks);
    setenv("RIDGE_HOST_GPUS", "1", 1);
    assert_int_equal(local_ranks_run(&run, &err), STATUS_UNSUPPORTED);
    expect_part(err.message, "rank 1 takes a GPU of its own: cuda:1: there is 1 cuda device");
    setenv("CUDA_VISIBLE_DEVICES", "3", 1); /* each rank has been given one */
    assert_int_equal(local_ranks_run(&run, &err), STATUS_FAILED);
    expect_part(err.message, "Duplicate GPU detected : rank 0 and rank 1");
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("RIDGE_NCCL_SHARE", "1", 1); /* as hosts of their own */
    MUST(local_ranks_run, &run);
    unsetenv("RIDGE_NCCL_SHARE");
    setenv("RIDGE_HOST_GPUS", "0", 1);
    assert_int_equal(local_ranks_run(&run, &err), STATUS_UNSUPPORTED);
    setenv("RIDGE_HOST_GPUS", "8", 1);
}

/* ---- failures ---- */

struct ending {
    char message[512];
    uint64_t at_ns; /* of the victim: when its trouble began */
};

enum trouble { KILLED, STOPPED, ABSENT, LEAVES, NONE_OF_THEM };

struct troubled {
    enum trouble trouble;
    int victim, rounds;
    bool patient;        /* a busy machine must not look like a rank in trouble */
    bool all;            /* operations, with equal parts and without */
    struct ending *said; /* shared: of each rank */
};

static enum status one_round(const struct troubled *t, const struct ranks_case *c,
                             struct group *group, int rank, struct error *err)
{
    struct one_rank one;
    enum status status = one_rank_open(c, nccl, group, rank, &one, err);
    for (int k = 0; k < t->rounds && status == STATUS_OK; k++) {
        if (rank == t->victim && k == 20) {
            t->said[rank].at_ns = clock_now_ns();
            if (t->trouble == KILLED)
                raise(SIGKILL);
            if (t->trouble == STOPPED)
                raise(SIGSTOP);
            if (t->trouble == LEAVES)
                break;
        }
        status = one_rank_run(&one, err);
    }
    if (status != STATUS_OK && one.comm.state) { /* later operations fail with the same words */
        struct error again = {0};
        if (one.plan &&
            (one.comm.start(&one.comm, one.plan, one.input, one.output, &again) == STATUS_OK ||
             strcmp(again.message, err->message) != 0))
            raise(SIGABRT);
    }
    one_rank_close(&one);
    return status;
}

static enum status meet_trouble(void *context, struct group *group, int rank, struct error *err)
{
    struct troubled *t = context;
    int cases = t->all ? 2 * COMM_OPERATION_COUNT : 1;
    enum status status = STATUS_OK;
    t->said[rank].at_ns = clock_now_ns();
    if (rank == t->victim && t->trouble == ABSENT)
        pause();
    for (int k = 0; k < cases && status == STATUS_OK; k++) {
        struct ranks_case c = case_of(RANKS_MOST - 1, (enum comm_operation)(k / 2), 2 + k % 2);
        status = one_round(t, &c, group, rank, err);
    }
    if (status != STATUS_OK)
        snprintf(t->said[rank].message, sizeof(t->said[rank].message), "%s", err->message);
    if (rank != t->victim)
        t->said[rank].at_ns = clock_now_ns();
    return status;
}

/* The message of the launcher; all ranks have ended, and nothing is left. */
static enum status run_troubled(struct troubled *t, struct error *err)
{
    int before, ranks = RANKS_MOST - 1;
    t->said = child_shared((size_t)ranks * sizeof(*t->said));
    assert_non_null(t->said);
    before = shared_mappings();
    uint64_t deadline = t->patient ? patient_ns : deadline_ns;
    struct local_ranks run = ranks_of(ranks, deadline, meet_trouble, t);
    *err = (struct error){0};
    enum status status = local_ranks_run(&run, err);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(shared_mappings(), before);
    return status;
}

TEST(a_rank_in_trouble_is_named)
{
    for (int trouble = KILLED; trouble <= LEAVES; trouble++) {
        struct troubled t = {
            .trouble = (enum trouble)trouble, .victim = trouble % 3, .rounds = 100000};
        struct error err;
        char named[32];
        assert_int_equal(run_troubled(&t, &err), STATUS_FAILED);
        snprintf(named, sizeof(named), "rank %d ", t.victim);
        expect_part(err.message, named);
        for (int rank = 0; rank < RANKS_MOST - 1; rank++) {
            if (rank == t.victim)
                continue;
            expect_part(t.said[rank].message, named);
            assert_true(t.said[rank].at_ns <= t.said[t.victim].at_ns + deadline_ns + busy_ns);
        }
    }
}

/* Each call of NCCL fails once: in all ranks, then in one alone, whose words all others end with.
 */
TEST(each_call_that_fails_is_named)
{
    static const char *const calls[] = {"ncclGetUniqueId",
                                        "ncclCommInitRankConfig",
                                        "ncclCommGetAsyncError",
                                        "ncclAllReduce",
                                        "ncclReduce",
                                        "ncclReduceScatter",
                                        "ncclAllGather",
                                        "ncclBroadcast",
                                        "ncclSend",
                                        "ncclRecv",
                                        "ncclGroupStart",
                                        "ncclGroupEnd"};
    for (int k = 0; k < 2 * ARRAY_COUNT(calls); k++) {
        struct troubled t = {
            .trouble = NONE_OF_THEM, .victim = NOBODY, .rounds = 2, .all = true, .patient = true};
        const char *call = calls[k / 2];
        char script[64], said[128];
        bool makes_id = k / 2 == 0; /* rank 0 does, before it has told the library its rank */
        int alone = makes_id ? 0 : 1 + k / 2 % 2, nth = k > 3 ? 1 + k / 2 % 2 : 1;
        struct error err;
        snprintf(script, sizeof(script), k % 2 && !makes_id ? "%s:%d:2:%d" : "%s:%d:2", call, nth,
                 alone);
        snprintf(said, sizeof(said), "rank %d: %s: unhandled system error", alone, call);
        setenv("RIDGE_FAKE_NCCL", script, 1);
        if (run_troubled(&t, &err) != STATUS_FAILED)
            fail_msg("%s: nobody failed", script);
        expect_part(err.message, call);
        for (int rank = 0; rank < RANKS_MOST - 1 && k % 2; rank++)
            expect_part(t.said[rank].message, said);
    }
    unsetenv("RIDGE_FAKE_NCCL");
}

/* What the communicator tells of itself, and what fails when all has been done. Its state is asked
 * for in each operation once at least, and then as often as the wait takes. */
TEST(failures_between_calls)
{
    static const struct {
        const char *script;
        enum status status;
        const char *says;
    } runs[] = {{"state:1:1", STATUS_FAILED, "the communicator: unhandled cuda error"},
                {"state:20:3:1", STATUS_FAILED, "rank 1: the communicator: internal error"},
                {"ncclCommInitRankConfig:1:7:2", STATUS_FAILED, "for the library to complete"},
                {"ncclGetVersion:1:2", STATUS_UNSUPPORTED, "does not say which version"},
                {"ncclCommFinalize:1:2", STATUS_OK, ""},
                {"ncclCommDestroy:1:2", STATUS_OK, ""},
                {"none:1:1", STATUS_OK, ""}};
    for (int k = 0; k < ARRAY_COUNT(runs); k++) {
        struct troubled t = {
            .trouble = NONE_OF_THEM, .victim = NOBODY, .rounds = 2, .all = true, .patient = true};
        struct error err;
        t.patient = !strstr(runs[k].says, "library to complete"); /* that one takes all of it */
        setenv("RIDGE_FAKE_NCCL", runs[k].script, 1);
        enum status status = run_troubled(&t, &err);
        if (status != runs[k].status)
            fail_msg("%s: status %d, \"%s\"", runs[k].script, status, err.message);
        expect_part(err.message, runs[k].says);
    }
    unsetenv("RIDGE_FAKE_NCCL");
}

/* Calls of the CUDA runtime, from their first use on. */
TEST(a_gpu_that_fails_is_named)
{
    static const char *const calls[] = {"set_device", "stream_create", "malloc", "copy",
                                        "stream_query"};
    for (int k = 0; k < ARRAY_COUNT(calls); k++) {
        struct troubled t = {
            .trouble = NONE_OF_THEM, .victim = NOBODY, .rounds = 2, .all = true, .patient = true};
        struct error err;
        char script[64];
        snprintf(script, sizeof(script), "%s:1", calls[k]);
        setenv("RIDGE_HOST_FAIL", script, 1);
        if (run_troubled(&t, &err) == STATUS_OK)
            fail_msg("%s: nobody failed", script);
        expect_part(err.message, "cudaErrorLaunchFailure");
    }
    unsetenv("RIDGE_HOST_FAIL");
}
