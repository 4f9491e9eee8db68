/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "collective/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "base/numbers/stats.h"
#include "base/system/clock.h"
#include "collective/example.h"
#include "collective/local_ranks.h"

enum { PER_BLOCK_MAX = 1 << 20 };

/* Memory and communicator of one rank, for all cases. */
struct timed_rank {
    struct comm comm;
    unsigned char *from, *to; /* owned, `bytes` bytes each */
    size_t bytes;
    double *agreed;                  /* owned: one number in, one out */
    struct comm_plan *agree_plan[2]; /* owned: by the largest, by the sum */
    bool checked, shared;            /* results; memory */
    /* Of the case at hand: */
    struct comm_plan *plan; /* owned */
    const unsigned char *input;
    unsigned char *output;
    uint64_t read; /* of outputs, so that reading them is not left out */
};

/* The ranks that this process drives: one, or all of them. */
struct timed {
    const struct timing_options *options;
    const struct timing_case *cases;
    int count;
    struct timing *results; /* shared; rank 0 writes */
    struct timed_rank *ranks;
    int here;
    bool touching; /* what options->touch says, once results have been checked */
};

/* The counts of a case: equal parts. */
struct timed_call {
    struct comm_call call;
    int64_t *counts; /* owned */
};

static enum status timed_call_init(const struct timing_case *c, int ranks, struct timed_call *out,
                                   struct error *err)
{
    int64_t count = c->bytes / (int64_t)dtype_size(c->dtype);
    bool pairs = c->operation == COMM_ALL_TO_ALL;
    int parts = pairs ? ranks * ranks : ranks;
    out->call = (struct comm_call){.operation = c->operation,
                                   .reduction = c->reduction,
                                   .dtype = c->dtype,
                                   .wire = c->wire,
                                   .count = count > 0 ? count : 1,
                                   .root = c->root,
                                   .in_place = c->in_place};
    out->counts = calloc((size_t)parts, sizeof(*out->counts));
    if (!out->counts)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < parts; k++)
        out->counts[k] = count / ranks > 0 ? count / ranks : 1;
    out->call.counts = out->counts;
    return STATUS_OK;
}

static bool all_idle(const struct timed *timed)
{
    for (int k = 0; k < timed->here; k++)
        if (!communicator_idle(&timed->ranks[k].comm))
            return false;
    return true;
}

/* Waits for what the ranks here have started: one alone may sleep, several take turns. */
static enum status finish(struct timed *timed, struct error *err)
{
    while (timed->here > 1 && !all_idle(timed))
        for (int k = 0; k < timed->here; k++)
            TRY(timed->ranks[k].comm.progress(&timed->ranks[k].comm, err));
    return STATUS_OK;
}

enum agreement { AGREE_LARGEST, AGREE_SUM };

/* Each rank has put a number into agreed[0]; all get the same. Nobody leaves before all came. */
static enum status agree(struct timed *timed, enum agreement how, double *result, struct error *err)
{
    *result = 0;
    for (int k = 0; k < timed->here; k++) {
        struct timed_rank *rank = &timed->ranks[k];
        TRY(rank->comm.start(&rank->comm, rank->agree_plan[how], rank->agreed, rank->agreed + 1,
                             err));
    }
    TRY(finish(timed, err));
    for (int k = 0; k < timed->here; k++) {
        struct timed_rank *rank = &timed->ranks[k];
        TRY(rank->comm.wait(&rank->comm, rank->agree_plan[how], err));
        *result = rank->agreed[1];
    }
    return STATUS_OK;
}

/* Not one of the operations that are prepared. */
static bool is_plain(const struct timing_case *c)
{
    return c->copies || c->trip.messages;
}

/* Every line of the output, so that it is in a cache of this rank. */
static void read_output(struct timed_rank *rank, const struct timing_case *c)
{
    enum { LINE = 64 };
    const unsigned char *output = c->in_place ? rank->from : rank->to;
    for (int64_t at = 0; at < c->bytes; at += LINE)
        rank->read += output[at];
}

static enum status operate(struct timed *timed, const struct timing_case *c, struct error *err)
{
    for (int k = 0; k < timed->here && timed->touching; k++)
        memset(timed->ranks[k].from, 0, (size_t)c->bytes);
    for (int k = 0; k < timed->here; k++) {
        struct timed_rank *rank = &timed->ranks[k];
        if (c->copies)
            memcpy(rank->output, rank->input, (size_t)c->bytes);
        else if (c->trip.messages)
            TRY(communicator_trip(&rank->comm, &c->trip, rank->output, err));
        else
            TRY(rank->comm.start(&rank->comm, rank->plan, rank->input, rank->output, err));
    }
    if (!is_plain(c))
        TRY(finish(timed, err));
    for (int k = 0; k < timed->here && !is_plain(c); k++)
        TRY(timed->ranks[k].comm.wait(&timed->ranks[k].comm, timed->ranks[k].plan, err));
    for (int k = 0; k < timed->here && timed->touching; k++)
        read_output(&timed->ranks[k], c);
    return STATUS_OK;
}

/* Seconds of so many operations in the slowest rank. */
static enum status time_block(struct timed *timed, const struct timing_case *c, int64_t operations,
                              double *seconds, struct error *err)
{
    double ready;
    TRY(agree(timed, AGREE_SUM, &ready, err));
    uint64_t began = clock_now_ns();
    for (int64_t k = 0; k < operations; k++)
        TRY(operate(timed, c, err));
    for (int k = 0; k < timed->here; k++)
        timed->ranks[k].agreed[0] = (double)(clock_now_ns() - began) * 1e-9;
    return agree(timed, AGREE_LARGEST, seconds, err);
}

/* How many operations fill a block; warms up on the way. */
static enum status calibrate(struct timed *timed, const struct timing_case *c, int64_t *operations,
                             struct error *err)
{
    double target = (double)timed->options->block_ns * 1e-9;
    *operations = 1;
    for (;;) {
        double seconds;
        TRY(time_block(timed, c, *operations, &seconds, err));
        if (seconds >= target || *operations >= PER_BLOCK_MAX)
            return STATUS_OK;
        double factor = seconds > 0 ? 1.2 * target / seconds : 16;
        factor = factor > 16 ? 16 : factor;
        *operations = (int64_t)((double)*operations * factor) + 1;
    }
}

static enum status time_blocks(struct timed *timed, const struct timing_case *c,
                               struct timing *result, struct error *err)
{
    int64_t operations = 1;
    if (timed->options->block_ns)
        TRY(calibrate(timed, c, &operations, err));
    for (int k = 0; k < timed->options->blocks; k++) {
        TRY(time_block(timed, c, operations, &result->samples[k], err));
        result->samples[k] /= (double)operations;
    }
    result->per_block = operations;
    result->sample_count = timed->options->blocks;
    timing_summarise(result);
    return STATUS_OK;
}

/* In place, the one lies where the other has it (engine/run/comm.h). */
static void place(struct timed_rank *rank, const struct timing_case *c,
                  const struct comm_call *call)
{
    size_t part = dtype_size(c->dtype);
    unsigned char *input = rank->from, *output = c->in_place ? rank->from : rank->to;
    if (c->in_place && c->operation == COMM_REDUCE_SCATTER)
        output += (size_t)counts_before(call->counts, rank->comm.rank) * part;
    if (c->in_place && c->operation == COMM_ALL_GATHER)
        input += (size_t)counts_before(call->counts, rank->comm.rank) * part;
    rank->input = input;
    rank->output = output;
    if (rank->checked)
        example_fill(call, rank->comm.rank, rank->comm.ranks, input);
}

static enum status check_results(struct timed *timed, const struct timing_case *c,
                                 const struct comm_call *call, int64_t *wrong, struct error *err)
{
    double sum;
    TRY(operate(timed, c, err));
    for (int k = 0; k < timed->here; k++) {
        struct timed_rank *rank = &timed->ranks[k];
        int64_t own = example_wrong(call, rank->comm.rank, rank->comm.ranks, rank->output);
        rank->agreed[0] = is_plain(c) ? 0 : (double)own;
    }
    TRY(agree(timed, AGREE_SUM, &sum, err));
    *wrong = (int64_t)sum;
    return STATUS_OK;
}

static enum status prepare_case(struct timed *timed, const struct timing_case *c,
                                const struct comm_call *call, struct error *err)
{
    if (c->trip.messages &&
        (timed->here > 1 || timed->options->ranks < 2 || !timed->options->backend->send))
        return UNSUPPORTED(err, "messages go between two ranks that each run by themselves");
    for (int k = 0; k < timed->here; k++) {
        struct timed_rank *rank = &timed->ranks[k];
        if (!is_plain(c))
            TRY(rank->comm.prepare(&rank->comm, call, &rank->plan, err));
        place(rank, c, call);
    }
    return STATUS_OK;
}

/* What has no schedule is a result, too: all ranks find that out by themselves. */
static enum status time_prepared(struct timed *timed, const struct timing_case *c,
                                 const struct comm_call *call, struct timing *result,
                                 struct error *err)
{
    int ranks = timed->options->ranks;
    result->bytes = call_whole_count(call, ranks) * (int64_t)dtype_size(c->dtype);
    result->status = prepare_case(timed, c, call, err);
    if (result->status == STATUS_UNSUPPORTED) {
        result->reason = *err;
        return STATUS_OK;
    }
    TRY(result->status);
    if (!is_plain(c)) {
        result->work = plan_work(timed->ranks[0].plan);
        snprintf(result->algorithm, sizeof(result->algorithm), "%s",
                 plan_algorithm(timed->ranks[0].plan)->name);
    }
    result->wrong = -1;
    if (timed->ranks[0].checked)
        TRY(check_results(timed, c, call, &result->wrong, err));
    timed->touching = timed->options->touch && !c->trip.messages;
    enum status status = time_blocks(timed, c, result, err);
    timed->touching = false;
    return status;
}

/* The algorithm of a communicator is that of the case. */
static enum status time_case(struct timed *timed, const struct timing_case *c,
                             struct timing *result, struct error *err)
{
    struct timed_call call;
    TRY(timed_call_init(c, timed->options->ranks, &call, err));
    for (int k = 0; k < timed->here; k++)
        communicator_prefer(&timed->ranks[k].comm, c->algorithm);
    enum status status = time_prepared(timed, c, &call.call, result, err);
    for (int k = 0; k < timed->here; k++) {
        timed->ranks[k].comm.release(&timed->ranks[k].comm, timed->ranks[k].plan);
        timed->ranks[k].plan = NULL;
    }
    free(call.counts);
    return status;
}

static void rank_release(struct timed_rank *rank)
{
    if (rank->comm.state)
        for (int how = 0; how < 2; how++)
            rank->comm.release(&rank->comm, rank->agree_plan[how]);
    communicator_close(&rank->comm);
    if (rank->checked && !rank->shared) {
        memory_free(rank->from);
        memory_free(rank->to);
    }
    free(rank->agreed);
}

/* Room for the largest case; a part of each rank may be an element where there is less than one. */
static size_t buffer_bytes(const struct timed *timed)
{
    int64_t largest = 0, ranks = timed->options->ranks;
    for (int k = 0; k < timed->count; k++)
        largest = timed->cases[k].bytes > largest ? timed->cases[k].bytes : largest;
    return (size_t)(largest + 8 * ranks * ranks);
}

/* False: there is none, or not enough of it. */
static bool take_shared(struct timed_rank *rank, const struct timing_options *options)
{
    if (options->own_memory)
        return false;
    rank->from = communicator_memory(&rank->comm, rank->bytes);
    rank->to = communicator_memory(&rank->comm, rank->bytes);
    rank->shared = rank->from && rank->to;
    return rank->shared;
}

static enum status rank_init(const struct timed *timed, struct group *group, int index,
                             struct timed_rank *rank, struct error *err)
{
    const struct timing_options *o = timed->options;
    struct communicator_options options = {.schedule = o->schedule};
    struct comm_call call = {.operation = COMM_ALL_REDUCE, .dtype = DTYPE_F64, .count = 1};
    TRY(communicator_open(o->backend, group, index, &options, &rank->comm, err));
    call.reduction = COMM_MAX;
    TRY(rank->comm.prepare(&rank->comm, &call, &rank->agree_plan[AGREE_LARGEST], err));
    call.reduction = COMM_SUM;
    TRY(rank->comm.prepare(&rank->comm, &call, &rank->agree_plan[AGREE_SUM], err));
    rank->bytes = buffer_bytes(timed);
    rank->checked = !o->memory;
    if (o->memory || !take_shared(rank, o)) {
        void *(*memory)(size_t bytes) = o->memory ? o->memory : memory_alloc;
        rank->from = memory(rank->bytes);
        rank->to = memory(rank->bytes);
    }
    rank->agreed = calloc(2, sizeof(*rank->agreed));
    if (!rank->from || !rank->to || !rank->agreed)
        return FAIL_NO_MEMORY(err);
    if (rank->checked) {
        memset(rank->from, 0, rank->bytes);
        memset(rank->to, 0, rank->bytes);
    }
    return STATUS_OK;
}

/* Ranks first .. first + here - 1 in this process. */
static enum status time_all(struct timed *timed, struct group *group, int first, struct error *err)
{
    enum status status = STATUS_OK;
    timed->ranks = calloc((size_t)timed->here, sizeof(*timed->ranks));
    if (!timed->ranks)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < timed->here && status == STATUS_OK; k++)
        status = rank_init(timed, group, first + k, &timed->ranks[k], err);
    for (int k = 0; k < timed->count && status == STATUS_OK; k++) {
        struct timing result = {0};
        status = time_case(timed, &timed->cases[k], &result, err);
        if (timed->ranks[0].comm.rank == 0)
            timed->results[k] = result;
    }
    for (int k = 0; k < timed->here; k++)
        rank_release(&timed->ranks[k]);
    free(timed->ranks);
    return status;
}

static enum status one_rank(void *context, struct group *group, int rank, struct error *err)
{
    struct timed timed = *(const struct timed *)context;
    timed.here = 1;
    return time_all(&timed, group, rank, err);
}

/* `here` of them, from `first` on. */
static enum status run_in_this_process(struct timed *timed, const struct group_options *options,
                                       int first, int here, struct error *err)
{
    const struct backend *backend = timed->options->backend;
    struct group *group;
    TRY(group_make(backend, timed->options->ranks, options, &group, err));
    timed->here = here;
    enum status status = time_all(timed, group, first, err);
    if (status != STATUS_OK) /* else nobody knows it who has not met it */
        backend->announce(group, first, err->message);
    backend->group_free(group);
    return status;
}

enum status timing_run_rank(const struct timing_options *options, const struct timing_case *cases,
                            int count, struct timing *results, struct error *err)
{
    struct group_options group = {.deadline_ns = options->deadline_ns};
    struct timed timed = {options, cases, count, results, NULL, 0, false};
    return run_in_this_process(&timed, &group, 0, 1, err);
}

static enum status run_forked(struct timed *timed, const struct group_options *options,
                              struct error *err)
{
    size_t bytes = (size_t)timed->count * sizeof(*timed->results);
    struct timing *results = timed->results;
    timed->results = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (timed->results == MAP_FAILED)
        return FAIL_NO_MEMORY(err);
    struct local_ranks run = {.backend = timed->options->backend,
                              .ranks = timed->options->ranks,
                              .options = *options,
                              .body = one_rank,
                              .context = timed};
    enum status status = local_ranks_run(&run, err);
    memcpy(results, timed->results, bytes);
    munmap(timed->results, bytes);
    return status;
}

enum status timing_run(const struct timing_options *options, const struct timing_case *cases,
                       int count, struct timing *results, struct error *err)
{
    struct group_options group = {.deadline_ns = options->deadline_ns};
    struct timing_options ready = *options;
    struct timed timed = {&ready, cases, count, results, NULL, 0, false};
    const struct backend *backend = options->backend, *starter = NULL;
    int rank = 0, ranks;
    TRY(backend_ready(backend, &ready.backend, err));
    if (backend->launcher || backend->device)
        starter = backend_starter(&rank, &ranks);
    if (backend->launcher && (!starter || (starter != backend && !backend->device)))
        return FAIL(err, STATUS_FAILED, "ranks of %s are started by its own launcher: %s -n %d ...",
                    backend->name, backend->launcher->programs[0], options->ranks);
    if (starter)
        return run_in_this_process(&timed, &group, rank, 1, err);
    if (!ready.backend->separate)
        return run_in_this_process(&timed, &group, 0, options->ranks, err);
    return run_forked(&timed, &group, err);
}

void timing_summarise(struct timing *timing)
{
    double sorted[TIMING_SAMPLES_MAX];
    memcpy(sorted, timing->samples, sizeof(sorted));
    stats_sort(sorted, timing->sample_count);
    timing->seconds = stats_median(sorted, timing->sample_count);
    timing->fastest = sorted[0];
    timing->slowest = sorted[timing->sample_count - 1];
}

void timing_join(struct timing *timing, const struct timing *more)
{
    for (int k = 0; k < more->sample_count && timing->sample_count < TIMING_SAMPLES_MAX; k++)
        timing->samples[timing->sample_count++] = more->samples[k];
    timing->wrong += more->wrong;
    timing_summarise(timing);
}

double timing_algorithm_rate(const struct timing *timing)
{
    return (double)timing->bytes / timing->seconds;
}

double timing_bus_rate(const struct timing *timing, enum comm_operation operation, int ranks)
{
    double share = operation == COMM_BROADCAST ? 1 : (double)(ranks - 1) / ranks;
    return timing_algorithm_rate(timing) * (operation == COMM_ALL_REDUCE ? 2 * share : share);
}
