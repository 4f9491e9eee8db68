/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of an executable, kept in memory while another one takes its place: of the same
 * network for images of another size, say. */
#ifndef HARNESS_TRAIN_STATES_H
#define HARNESS_TRAIN_STATES_H

#include "base/arena.h"
#include "engine/run/exe.h"

struct states {
    struct arena arena;
    struct kept_state *kept;
    int count;
};

enum status states_keep(struct exe *exe, struct states *states, struct error *err);
/* Gives them, bit by bit, to an executable that has the same ones; FAILED where it has others. */
enum status states_give(const struct states *states, struct exe *exe, struct error *err);
void states_release(struct states *states);

#endif
