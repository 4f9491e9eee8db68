/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/tree_steps.h"

static int wrap(int value, int ranks)
{
    return (value % ranks + ranks) % ranks;
}

struct tree tree_of(const struct pattern *pattern, struct comm_schedule *to, int root,
                    bool mirrored)
{
    int ranks = pattern->ranks, sign = mirrored ? -1 : 1;
    int place = wrap(sign * (pattern->rank - root), ranks);
    struct tree tree = {to, NOBODY, {NOBODY, NOBODY}, 0};
    if (place > 0)
        tree.parent = wrap(root + sign * ((place - 1) / 2), ranks);
    for (int k = 0; k < 2; k++)
        if (2 * place + 1 + k < ranks)
            tree.children[k] = wrap(root + sign * (2 * place + 1 + k), ranks);
    for (int last = ranks - 1; last > 0; last = (last - 1) / 2)
        tree.depth++;
    return tree;
}

/* Adds children's elements to the own ones, and hands the sum to the parent. */
static void tree_up(const struct tree *tree, int lane, struct span part)
{
    struct span have = part;
    have.place = PLACE_INPUT;
    if (tree->to->ranks == 1)
        step_add(tree->to, lane,
                 (struct step){tree->to->rank, tree->to->rank, .send = have, .receive = part});
    for (int k = 0; k < 2; k++) {
        if (tree->children[k] == NOBODY)
            continue;
        step_add(tree->to, lane,
                 (struct step){NOBODY, tree->children[k], .receive = part, .combines = true,
                               .operand = have});
        have = part;
    }
    step_add(tree->to, lane, (struct step){tree->parent, NOBODY, .send = have});
}

void tree_down(const struct tree *tree, int lane, struct span part, enum place have)
{
    step_add(tree->to, lane, (struct step){NOBODY, tree->parent, .receive = part});
    struct span send = part;
    send.place = tree->parent == NOBODY ? have : PLACE_OUTPUT;
    for (int k = 0; k < 2; k++)
        step_add(tree->to, lane, (struct step){tree->children[k], NOBODY, .send = send});
}

void tree_all_reduce(const struct tree *tree, int lane, struct span whole, int64_t k,
                     int64_t segments, int64_t lag)
{
    if (k < segments)
        tree_up(tree, lane, span_part(whole, k, segments));
    if (k >= lag)
        tree_down(tree, lane, span_part(whole, k - lag, segments), PLACE_OUTPUT);
}
