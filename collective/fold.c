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

void fold_in(const struct fold *fold, struct schedule *to, int lane, struct span part)
{
    struct span input = part;
    input.place = PLACE_INPUT;
    struct step step = {.to = NOBODY, .from = NOBODY};
    if (to->ranks == 1)
        step = (struct step){to->rank, to->rank, .send = input, .receive = part};
    else if (to->rank >= 2 * fold->extra)
        return;
    else if (fold->index == NOBODY)
        step = (struct step){to->rank + 1, NOBODY, .send = input};
    else
        step = (struct step){NOBODY, to->rank - 1, .receive = part, .operand = input,
                             .combines = true};
    step_add(to, lane, step);
}

void fold_out(const struct fold *fold, struct schedule *to, int lane, struct span part)
{
    if (to->rank >= 2 * fold->extra)
        return;
    struct step step = {NOBODY, to->rank + 1, .receive = part};
    if (fold->index != NOBODY)
        step = (struct step){to->rank - 1, NOBODY, .send = part};
    step_add(to, lane, step);
}
