/* SPDX-License-Identifier: Apache-2.0
 *
 * ExpertSort: a counting sort by one thread. An expert that does not exist counts as the first or
 * the last one; the reference reports it as an error. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/row_pitch.h"

struct kernel_state {
    int64_t places, experts;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count || q->in[0].dtype != DTYPE_I64 || !desc_is_plain(&q->in[0]))
        return UNSUPPORTED(why, "the choice is not plain i64, or there is an epilogue");
    TRY(query_plain_results(q, why));
    s->places = shape_count(&q->in[0].shape);
    s->experts = node_int(q->node, "experts", 0);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->experts + 1) * sizeof(int64_t);
}

static int64_t expert_of(const struct kernel_state *s, const int64_t *choice, int64_t place)
{
    return smaller(larger(choice[place], 0), s->experts - 1);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    const int64_t *choice = args->in[0];
    int64_t *order = args->out[0], *next = args->workspace;
    for (int64_t e = 0; e <= s->experts; e++)
        next[e] = 0;
    for (int64_t i = 0; i < s->places; i++)
        next[expert_of(s, choice, i) + 1]++;
    for (int64_t e = 0; e < s->experts; e++)
        next[e + 1] += next[e];
    if (args->out[1])
        memcpy(args->out[1], next, workspace(s));
    for (int64_t i = 0; order && i < s->places; i++)
        order[next[expert_of(s, choice, i)]++] = i;
}

REGISTER_KERNEL(expert_sort_places) = {
    NATIVE(expert_sort_places),
    .ops = OPS("ExpertSort"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
