/* SPDX-License-Identifier: Apache-2.0
 * A communicator with a thread of its own, and what ranks agree upon. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "collective/agree.h"
#include "collective/comm_thread.h"
#include "collective/communicator.h"
#include "collective/local_ranks.h"
#include "tests/lib/unit.h"

enum { RANKS = 3, OPERATIONS = 5, COUNT = 4096, ROUNDS = 20 };

#define DEADLINE_NS UINT64_C(20000000000)

static enum status run_ranks(rank_body *body, void *context, uint64_t deadline_ns,
                             struct error *err)
{
    struct local_ranks run = {.backend = backend_find("shm"),
                              .ranks = RANKS,
                              .options = {.deadline_ns = deadline_ns},
                              .body = body,
                              .context = context};
    return local_ranks_run(&run, err);
}

struct pair {
    struct comm base, comm;
};

static enum status open_pair(struct group *group, int rank, struct pair *p, struct error *err)
{
    struct communicator_options options = {.algorithm = NULL};
    TRY(communicator_open(backend_find("shm"), group, rank, &options, &p->base, err));
    return comm_thread_open(&p->base, &p->comm, err);
}

static void close_pair(struct pair *p)
{
    comm_thread_close(&p->comm);
    communicator_close(&p->base);
}

/* Several operations under way, waited for in another order than they were started in. */
static enum status many_at_a_time(void *context, struct group *group, int rank, struct error *err)
{
    static float data[OPERATIONS][COUNT];
    struct pair p;
    struct comm_plan *plans[OPERATIONS];
    struct comm_call call = {.operation = COMM_ALL_REDUCE, .dtype = DTYPE_F32, .count = COUNT};
    (void)context;
    TRY(open_pair(group, rank, &p, err));
    for (int k = 0; k < OPERATIONS; k++)
        TRY(p.comm.prepare(&p.comm, &call, &plans[k], err));
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < OPERATIONS; k++) {
            for (int e = 0; e < COUNT; e++)
                data[k][e] = (float)(rank + k + round + e % 7);
            TRY(p.comm.start(&p.comm, plans[k], data[k], data[k], err));
        }
        for (int k = OPERATIONS - 1; k >= 0; k--) {
            struct comm_record record;
            TRY(p.comm.wait(&p.comm, plans[k], err));
            p.comm.record(&p.comm, plans[k], &record);
            if (record.started_ns == 0 || record.ended_ns < record.started_ns ||
                record.bytes_sent < COUNT)
                return FAIL(err, STATUS_FAILED, "the record of operation %d is wrong", k);
            int e = 0;
            while (e < COUNT && data[k][e] == (float)(3 + RANKS * (k + round + e % 7)))
                e++;
            if (e < COUNT)
                return FAIL(err, STATUS_FAILED, "operation %d, element %d: %g", k, e,
                            (double)data[k][e]);
        }
    }
    for (int k = 0; k < OPERATIONS; k++)
        p.comm.release(&p.comm, plans[k]);
    close_pair(&p);
    return STATUS_OK;
}

TEST(operations_are_carried_out_in_their_order)
{
    MUST(run_ranks, many_at_a_time, NULL, DEADLINE_NS);
}

/* Nobody is in wait, and yet it moves. */
static enum status moves_alone(void *context, struct group *group, int rank, struct error *err)
{
    static float data[COUNT];
    struct pair p;
    struct comm_plan *plan;
    struct comm_record record;
    struct comm_call call = {.operation = COMM_ALL_REDUCE, .dtype = DTYPE_F32, .count = COUNT};
    (void)context;
    TRY(open_pair(group, rank, &p, err));
    TRY(p.comm.prepare(&p.comm, &call, &plan, err));
    bool alone = false;
    for (int round = 0; round < ROUNDS; round++) { /* others may keep it from its CPU for a while */
        TRY(p.comm.start(&p.comm, plan, data, data, err));
        usleep(50000);
        uint64_t asked = clock_now_ns();
        TRY(p.comm.wait(&p.comm, plan, err));
        p.comm.record(&p.comm, plan, &record);
        alone = alone || record.ended_ns < asked;
    }
    if (!alone)
        return FAIL(err, STATUS_FAILED, "it moved only when it was waited for");
    p.comm.release(&p.comm, plan);
    close_pair(&p);
    return STATUS_OK;
}

TEST(it_moves_while_the_caller_is_busy)
{
    MUST(run_ranks, moves_alone, NULL, DEADLINE_NS);
}

/* Rank 1 never comes to the second operation; the others say so in each operation from then on. */
static enum status one_is_missing(void *context, struct group *group, int rank, struct error *err)
{
    static float data[COUNT];
    struct pair p;
    struct comm_plan *plan;
    struct error later = {0};
    struct comm_call call = {.operation = COMM_ALL_REDUCE, .dtype = DTYPE_F32, .count = COUNT};
    (void)context;
    TRY(open_pair(group, rank, &p, err));
    TRY(p.comm.prepare(&p.comm, &call, &plan, err));
    TRY(p.comm.start(&p.comm, plan, data, data, err));
    TRY(p.comm.wait(&p.comm, plan, err));
    if (rank == 1) {
        close_pair(&p);
        return STATUS_OK;
    }
    TRY(p.comm.start(&p.comm, plan, data, data, err));
    enum status first = p.comm.wait(&p.comm, plan, err);
    enum status second = p.comm.start(&p.comm, plan, data, data, &later);
    second = second == STATUS_OK ? p.comm.wait(&p.comm, plan, &later) : second;
    if (second != first)
        return FAIL(err, STATUS_FAILED, "a later operation did not fail like the first");
    p.comm.release(&p.comm, plan);
    close_pair(&p);
    return first;
}

TEST(a_rank_that_is_missing_is_named)
{
    struct error err = {0};
    assert_int_equal(run_ranks(one_is_missing, NULL, 1000000000u, &err), STATUS_FAILED);
    if (!strstr(err.message, "rank 1 has left"))
        fail_msg("%s", err.message);
}

/* ---- agreeing ---- */

static enum status say(void *context, struct group *group, int rank, struct error *err)
{
    const char *const *texts = context;
    struct pair p;
    TRY(open_pair(group, rank, &p, err));
    enum status status = ranks_agree(&p.comm, "the plan", texts[rank], err);
    close_pair(&p);
    return status;
}

TEST(equal_texts_agree)
{
    struct error err = {0};
    const char *same[RANKS] = {"a\nb 1\nc\n", "a\nb 1\nc\n", "a\nb 1\nc\n"};
    const char *empty[RANKS] = {"", "", ""};
    if (run_ranks(say, (void *)same, DEADLINE_NS, &err) != STATUS_OK ||
        run_ranks(say, (void *)empty, DEADLINE_NS, &err) != STATUS_OK)
        fail_msg("%s", err.message);
}

TEST(the_first_line_that_differs_is_shown)
{
    struct error err = {0};
    const char *other[RANKS] = {"a\nb 1\nc\n", "a\nb 1\nc\n", "a\nb 2\nd\n"};
    assert_int_equal(run_ranks(say, (void *)other, DEADLINE_NS, &err), STATUS_FAILED);
    if (!strstr(err.message, "rank 2 differs from rank 0 in the plan: \"b 2\" instead of \"b 1\""))
        fail_msg("%s", err.message);
    const char *longer[RANKS] = {"a\n", "a\nmore\n", "a\n"};
    assert_int_equal(run_ranks(say, (void *)longer, DEADLINE_NS, &err), STATUS_FAILED);
    if (!strstr(err.message, "rank 1 differs from rank 0 in the plan: \"more\" instead of \"\""))
        fail_msg("%s", err.message);
}
