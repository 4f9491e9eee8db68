/* SPDX-License-Identifier: Apache-2.0
 *
 * One collective operation by several ranks, in one thread or in processes, for tests. */
#ifndef TESTS_LIB_COLLECTIVE_RANKS_H
#define TESTS_LIB_COLLECTIVE_RANKS_H

#include "collective/communicator.h"

enum { RANKS_CASE_MAX = 32 };

/* What a rank has sent, as its schedule says it: whole messages. */
struct ranks_count {
    int64_t messages, bytes;
};

struct ranks_case {
    const struct algorithm *algorithm;
    int ranks;
    struct comm_call call;
    int64_t counts[RANKS_CASE_MAX * RANKS_CASE_MAX]; /* of the call */
    struct schedule_options options;
    bool in_place;
    uint64_t seed;
    int64_t other_count;      /* if not 0: what rank 0 takes the count for */
    struct ranks_count *sent; /* if not NULL: by all ranks together */
};

/* Contents of all inputs, rank after rank, and room for all outputs. */
struct ranks_buffers {
    const void *inputs;
    void *outputs;
};

/* Fills call.operation and its counts; ragged ones where it has one for each rank. */
void ranks_case_call(struct ranks_case *c, enum comm_operation operation, int64_t count);
const char *ranks_case_text(const struct ranks_case *c, char *text, size_t size);

/* Elements that are wrong, or -1 with the reason. With buffers the inputs are theirs, outputs are
 * left there, and nothing is compared. */
int64_t ranks_run_loop(const struct ranks_case *c, const struct ranks_buffers *buffers,
                       struct error *err);

/* One rank's buffers, its operation prepared. */
struct one_rank {
    struct comm comm;
    struct comm_plan *plan;
    unsigned char *memory; /* owned; input and output lie in it, if they are not shared */
    unsigned char *input, *output;
    size_t input_bytes, output_bytes;
};
enum status one_rank_open(const struct ranks_case *c, const struct backend *backend,
                          struct group *group, int rank, struct one_rank *out, struct error *err);
/* Carries it out, from beginning to end. */
enum status one_rank_run(struct one_rank *one, struct error *err);
void one_rank_close(struct one_rank *one);

/* Mappings of this process that others may share: the groups that it has not freed, and files of
 * /dev/shm, if it had any. Those of other programs do not count. */
int shared_mappings(void);

#endif
