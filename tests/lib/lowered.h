/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph after the passes and the lowering, as kernels of a device are asked about its nodes. */
#ifndef TESTS_LIB_LOWERED_H
#define TESTS_LIB_LOWERED_H

#include "engine/compile/stages.h"

struct lowered {
    struct exe exe;
    void *zeros; /* stand for the contents of every larger weight; as long as the largest */
};

/* Takes the graph. lowered_close it whatever the status. */
enum status lowered_open(struct lowered *l, struct graph *graph, enum precision precision,
                         struct error *err);
/* The same with more said about how it is compiled. */
enum status lowered_open_with(struct lowered *l, struct graph *graph,
                              const struct exe_options *options, struct error *err);
void lowered_close(struct lowered *l);
/* Contents of weights: those of the graph, for tests that look at them. */
enum status lowered_materialise(struct lowered *l, struct error *err);
int lowered_count(const struct lowered *l);
const struct step *lowered_step(const struct lowered *l, int index);

#endif
