/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/hash.h"

/* What ranks compare: the hash of a text, and how long it is. */
enum { SAID = 2 };

/* all: SAID numbers of each rank, one after another; own ones are in their place. */
static enum status gather(struct comm *comm, int64_t *counts, int64_t *all, struct error *err)
{
    struct comm_call call = {.operation = COMM_ALL_GATHER, .dtype = DTYPE_I64, .counts = counts};
    for (int k = 0; k < comm->ranks; k++)
        counts[k] = SAID;
    return comm_once(comm, &call, all + (ptrdiff_t)SAID * comm->rank, all, err);
}

/* Ends of the first lines that differ; both texts are over where they are the same. */
static void first_difference(const char **a, const char **b)
{
    const char *x = *a, *y = *b;
    for (; *x && *x == *y; x++, y++)
        if (*x == '\n') {
            *a = x + 1;
            *b = y + 1;
        }
}

static enum status say_difference(const struct comm *comm, const char *what, const char *first,
                                  const char *own, struct error *err)
{
    first_difference(&first, &own);
    int there = (int)strcspn(first, "\n"), here = (int)strcspn(own, "\n");
    return FAIL(err, STATUS_FAILED,
                "rank %d differs from rank 0 in %s: \"%.*s\" instead of \"%.*s\"", comm->rank, what,
                here < 80 ? here : 80, own, there < 80 ? there : 80, first);
}

/* The text of rank 0 to all; its length is known. */
static enum status compare(struct comm *comm, const char *what, const char *text, int64_t length,
                           struct error *err)
{
    int64_t words = (length + 4) / 4;
    char *first = calloc((size_t)words, 4);
    if (!first)
        return FAIL_NO_MEMORY(err);
    if (comm->rank == 0)
        memcpy(first, text, (size_t)length);
    struct comm_call call = {.operation = COMM_BROADCAST, .dtype = DTYPE_I32, .count = words};
    enum status status = comm_once(comm, &call, first, first, err);
    if (status == STATUS_OK && strcmp(first, text) != 0)
        status = say_difference(comm, what, first, text, err);
    free(first);
    return status;
}

enum status ranks_agree(struct comm *comm, const char *what, const char *text, struct error *err)
{
    int64_t *counts = calloc((size_t)comm->ranks * (SAID + 1), sizeof(*counts));
    if (!counts)
        return FAIL_NO_MEMORY(err);
    int64_t *all = counts + comm->ranks, *own = all + (ptrdiff_t)SAID * comm->rank;
    uint64_t hash = hash64_text(text);
    memcpy(&own[0], &hash, sizeof(hash));
    own[1] = (int64_t)strlen(text);
    enum status status = gather(comm, counts, all, err);
    bool same = true;
    for (int k = 0; status == STATUS_OK && k < SAID * comm->ranks; k++)
        same = same && all[k] == all[k % SAID];
    if (status == STATUS_OK && !same) {
        status = compare(comm, what, text, all[1], err);
        /* Those who have the text of rank 0 wait to hear who has not. */
        if (status == STATUS_OK)
            status = gather(comm, counts, all, err);
        if (status == STATUS_OK)
            status = FAIL(err, STATUS_FAILED, "ranks differ in %s", what);
    }
    free(counts);
    return status;
}
