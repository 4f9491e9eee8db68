/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests want of the three kernels of actors.c; found by dlsym. */
#ifndef TESTS_GPU_ACTORS_ACTORS_H
#define TESTS_GPU_ACTORS_ACTORS_H

#include <stdbool.h>
#include <stdint.h>

enum { ACTORS = 3, ACTOR_VARIANTS = 4 };

/* How one variant of a kernel plays. */
struct act_of_variant {
    int copies;      /* commands more than it needs: its time by the made clock */
    int wrong_count; /* so many elements of its result are wrong, from ... */
    int64_t wrong_at;
    bool waits;   /* for the stream, which a capture forbids */
    bool silent;  /* says nothing of it */
    bool refuses; /* cannot be prepared */
    int launches; /* what it was asked for */
};

struct actor {
    int variants; /* 0: it refuses the query */
    struct act_of_variant plays[ACTOR_VARIANTS];
};

struct actor *actors(void);

#endif
