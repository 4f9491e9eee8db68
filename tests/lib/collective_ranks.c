/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/collective_ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/random.h"
#include "collective/example.h"

void ranks_case_call(struct ranks_case *c, enum comm_operation operation, int64_t count)
{
    int counts = operation == COMM_ALL_TO_ALL ? c->ranks * c->ranks : c->ranks;
    c->call.operation = operation;
    c->call.count = count;
    for (int k = 0; k < counts; k++) {
        uint32_t word[4];
        random_words(c->seed, (uint64_t)k, word);
        c->counts[k] = word[0] % 4 == 0 ? 0 : (int64_t)word[1] % (count + 1);
    }
}

const char *ranks_case_text(const struct ranks_case *c, char *text, size_t size)
{
    snprintf(text, size,
             "%s by %s: %d ranks, %s, %s, count %" PRId64 ", root %d, %s, %d lanes, segments of "
             "%" PRId64 " bytes, seed %" PRIu64,
             operation_name(c->call.operation), c->algorithm->name, c->ranks,
             dtype_name(c->call.dtype), reduction_name(c->call.reduction), c->call.count,
             c->call.root, c->in_place ? "in place" : "out of place", c->options.lanes,
             c->options.segment_bytes, c->seed);
    return text;
}

/* In place, the one lies in the other where the operation allows it. With an odd seed in memory
 * that the ranks share, where there is such. */
static enum status place_buffers(const struct ranks_case *c, const struct comm_call *call, int rank,
                                 struct one_rank *one, struct error *err)
{
    size_t size = dtype_size(call->dtype);
    one->input_bytes = (size_t)call_input_count(call, rank, c->ranks) * size;
    one->output_bytes = (size_t)call_output_count(call, rank, c->ranks) * size;
    size_t bytes = one->input_bytes + one->output_bytes + 1;
    unsigned char *memory = c->seed % 2 ? communicator_memory(&one->comm, bytes) : NULL;
    if (!memory)
        memory = one->memory = malloc(bytes);
    if (!memory)
        return FAIL_NO_MEMORY(err);
    memset(memory, 0x5a, bytes);
    one->input = memory;
    one->output = memory + (c->in_place ? 0 : one->input_bytes);
    if (!c->in_place)
        return STATUS_OK;
    if (call->operation == COMM_REDUCE_SCATTER)
        one->output += (size_t)counts_before(call->counts, rank) * size;
    if (call->operation == COMM_ALL_GATHER)
        one->input += (size_t)counts_before(call->counts, rank) * size;
    return STATUS_OK;
}

enum status one_rank_open(const struct ranks_case *c, const struct backend *backend,
                          struct group *group, int rank, struct one_rank *out, struct error *err)
{
    struct communicator_options options = {.algorithm = c->algorithm, .schedule = c->options};
    struct comm_call call = c->call;
    *out = (struct one_rank){.comm = {0}};
    call.counts = c->counts;
    if (rank == 0 && c->other_count)
        call.count = c->other_count;
    TRY(communicator_open(backend, group, rank, &options, &out->comm, err));
    TRY(out->comm.prepare(&out->comm, &call, &out->plan, err));
    TRY(place_buffers(c, &call, rank, out, err));
    example_fill(&call, rank, c->ranks, out->input);
    return STATUS_OK;
}

enum status one_rank_run(struct one_rank *one, struct error *err)
{
    TRY(one->comm.start(&one->comm, one->plan, one->input, one->output, err));
    return one->comm.wait(&one->comm, one->plan, err);
}

void one_rank_close(struct one_rank *one)
{
    if (one->comm.state)
        one->comm.release(&one->comm, one->plan);
    communicator_close(&one->comm);
    free(one->memory);
}

/* Ranks get their turns in an order drawn from the seed. */
static enum status take_turns(const struct ranks_case *c, struct one_rank *ranks, struct error *err)
{
    for (int rank = 0; rank < c->ranks; rank++)
        TRY(ranks[rank].comm.start(&ranks[rank].comm, ranks[rank].plan, ranks[rank].input,
                                   ranks[rank].output, err));
    for (uint64_t turn = 0;; turn++) {
        uint32_t word[4];
        random_words(c->seed + 77, turn, word);
        int rank = (int)(word[0] % (uint32_t)c->ranks), idle = 0;
        TRY(ranks[rank].comm.progress(&ranks[rank].comm, err));
        if (!communicator_idle(&ranks[rank].comm))
            continue;
        for (int k = 0; k < c->ranks; k++)
            idle += communicator_idle(&ranks[k].comm);
        if (idle == c->ranks)
            return STATUS_OK;
    }
}

static int64_t run_opened(const struct ranks_case *c, struct one_rank *ranks,
                          const struct ranks_buffers *buffers, struct error *err)
{
    struct comm_call call = c->call;
    int64_t wrong = 0;
    size_t from = 0, to = 0;
    call.counts = c->counts;
    for (int rank = 0; buffers && rank < c->ranks; from += ranks[rank++].input_bytes)
        memcpy(ranks[rank].input, (const char *)buffers->inputs + from, ranks[rank].input_bytes);
    if (take_turns(c, ranks, err) != STATUS_OK)
        return -1;
    for (int rank = 0; rank < c->ranks; to += ranks[rank++].output_bytes)
        if (buffers)
            memcpy((char *)buffers->outputs + to, ranks[rank].output, ranks[rank].output_bytes);
        else
            wrong += example_wrong(&call, rank, c->ranks, ranks[rank].output);
    return wrong;
}

/* The backend `loop`, with each message that is begun counted. */
struct counted {
    struct backend backend;
    struct ranks_count *sent;
};

static enum status counted_send(struct link *link, struct message *message, struct error *err)
{
    const struct counted *counted = (const struct counted *)link->backend;
    bool begun = message->begun;
    enum status status = backend_find("loop")->send(link, message, err);
    if (!begun && message->begun) {
        counted->sent->messages++;
        counted->sent->bytes += (int64_t)message->bytes;
    }
    return status;
}

int64_t ranks_run_loop(const struct ranks_case *c, const struct ranks_buffers *buffers,
                       struct error *err)
{
    const struct backend *loop = backend_find("loop");
    struct one_rank ranks[RANKS_CASE_MAX] = {0};
    struct group_options options = {.deadline_ns = 1000000000, .seed = c->seed};
    struct group *group;
    struct counted counted = {*loop, c->sent};
    counted.backend.send = counted_send;
    if (loop->group_new(c->ranks, &options, &group, err) != STATUS_OK)
        return -1;
    enum status status = STATUS_OK;
    for (int rank = 0; rank < c->ranks && status == STATUS_OK; rank++)
        status =
            one_rank_open(c, c->sent ? &counted.backend : loop, group, rank, &ranks[rank], err);
    int64_t wrong = status == STATUS_OK ? run_opened(c, ranks, buffers, err) : -1;
    for (int rank = 0; rank < c->ranks; rank++)
        one_rank_close(&ranks[rank]);
    loop->group_free(group);
    return wrong;
}

int shared_mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512], mode[8];
    int count = 0;
    if (!file)
        abort(); /* tests that compare such counts would prove nothing */
    while (fgets(line, sizeof(line), file))
        count += sscanf(line, "%*s %7s", mode) == 1 && strchr(mode, 's');
    fclose(file);
    return count;
}
