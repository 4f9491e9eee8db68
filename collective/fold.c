/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/fold.h"

struct fold fold_of(const struct pattern *pattern)
{
    struct fold fold = {.power = 1, .holds = PLACE_INPUT};
    while (fold.power * 2 <= pattern->ranks)
        fold.power *= 2;
    fold.extra = pattern->ranks - fold.power;
    int rank = pattern->rank;
    fold.index = rank - fold.extra;
    if (rank < 2 * fold.extra) {
        fold.index = rank % 2 ? rank / 2 : NOBODY;
        fold.holds = PLACE_OUTPUT;
    }
    return fold;
}

int fold_rank(const struct fold *fold, int index)
{
    return index < fold->extra ? 2 * index + 1 : index + fold->extra;
}

void fold_in(const struct fold *fold, struct comm_schedule *to, int lane, struct span part)
{
    struct span input = part;
    input.place = PLACE_INPUT;
    struct step copy = {to->rank, to->rank, .send = input, .receive = part};
    struct step give = {to->rank + 1, NOBODY, .send = input};
    struct step take = {NOBODY, to->rank - 1, .receive = part, .combines = true, .operand = input};
    if (to->ranks == 1)
        step_add(to, lane, copy);
    else if (to->rank < 2 * fold->extra)
        step_add(to, lane, fold->index == NOBODY ? give : take);
}

void fold_out(const struct fold *fold, struct comm_schedule *to, int lane, struct span part)
{
    struct step get = {NOBODY, to->rank + 1, .receive = part};
    struct step give_back = {to->rank - 1, NOBODY, .send = part};
    if (to->rank < 2 * fold->extra)
        step_add(to, lane, fold->index == NOBODY ? get : give_back);
}
