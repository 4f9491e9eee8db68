/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "harness/scale/rank_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/hash.h"
#include "engine/graph/op_list.h"
#include "harness/cli/graph_text.h"

static void print_values(FILE *to, const struct graph *g, const int *values, int count)
{
    char shape[96];
    for (int k = 0; k < count; k++) {
        if (values[k] == NONE)
            continue;
        const struct value *value = &g->values[values[k]];
        fprintf(to, " %s:%s%s", value->name, dtype_name(value->dtype),
                shape_text(&value->shape, shape));
    }
}

/* What differs by design: each rank has its own part of dropout, of draws and of split weights. */
static bool differs_by_rank(const struct node *node, const struct attr *attr)
{
    bool draws = node->op == &op_random_dropout || node->op == &op_sample_targets;
    return (draws && strcmp(attr->name, "first") == 0) ||
           (node->op == &op_cut_for_ranks && strcmp(attr->name, "rank") == 0);
}

/* The kernel comes first, since messages show only the beginning of a line. */
static void print_step(FILE *to, const struct graph *g, const struct exe_step *step, int index)
{
    const struct node *node = step->node;
    fprintf(to, "step %d %s by %s %d", index, node->name, step->kernel->name, step->variant);
    for (int k = 0; k < node->attr_count; k++)
        if (!differs_by_rank(node, &node->attrs[k]))
            graph_print_attr(to, &node->attrs[k]);
    print_values(to, g, node->inputs, node->input_count);
    fputs(" ->", to);
    print_values(to, g, node->outputs, node->output_count);
    fputc('\n', to);
}

char *plan_text(const struct train_job *job, const struct exe *exe)
{
    char *text = NULL;
    size_t size;
    const struct schedule *s = &job->recipe.schedule;
    const struct graph *g = exe_graph(exe);
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fprintf(to, "workload %s\nbatch %" PRId64 "\nseed %" PRIu64 "\n", job->spec, job->model.batch,
            job->seed);
    fprintf(to, "rate %.17g over %" PRId64 " steps\n", s->rate, s->steps);
    for (int k = 0; k < exe_step_count(exe); k++) {
        struct exe_step step = exe_step_at(exe, k);
        print_step(to, g, &step, k);
    }
    for (int k = 0; k < exe_exchange_count(exe); k++) {
        struct exe_exchange x = exe_exchange_at(exe, k);
        fprintf(to, "unit %d of %zu bytes by %s\n", k, x.bytes, x.of.algorithm);
    }
    return fclose(to) == 0 ? text : (free(text), NULL);
}

/* Whether an optimiser makes it, of this rank or of all. */
static bool is_updated(const struct graph *g, const struct state *state)
{
    int made = state->after == NONE ? NONE : g->values[state->after].producer;
    const struct op *op = made == NONE ? NULL : g->nodes[made].op;
    return op && (op->update || op == &op_update_rows || op == &op_join_of_ranks);
}

char *weights_text(struct exe *exe, const struct shards *shards)
{
    char *text = NULL, hex[HASH64_TEXT];
    size_t size;
    const struct graph *g = exe_graph(exe);
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    for (int s = 0; s < g->state_count; s++) {
        const struct value *value = &g->values[g->states[s].before];
        if (!is_updated(g, &g->states[s]) || shards_in(shards, value->name))
            continue;
        int input = graph_input_index(g, g->states[s].before);
        hash64_hex(hash64_more(0, exe_input(exe, input), value_size(value)), hex);
        fprintf(to, "%s %s\n", value->name, hex);
    }
    return fclose(to) == 0 ? text : (free(text), NULL);
}
