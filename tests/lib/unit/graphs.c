/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/unit/graphs.h"

#include <stdlib.h>
#include <string.h>

#include "engine/reference/reference.h"
#include "tests/lib/unit.h"

int count_ops(const struct graph *g, const char *op)
{
    int count = 0;
    for (int n = 0; n < g->node_count; n++)
        count += strcmp(g->nodes[n].op->name, op) == 0;
    return count;
}

const struct node *node_of(const struct graph *g, const char *op)
{
    for (int n = 0; n < g->node_count; n++)
        if (strcmp(g->nodes[n].op->name, op) == 0)
            return &g->nodes[n];
    fail_msg("no %s", op);
    return NULL;
}

void pass_keeps_result(struct graph *g, graph_pass *pass, double bound)
{
    struct ref_tensor before = {0}, after = {0};
    MUST(graph_check, g);
    MUST(reference_run, g, NULL, &before, NULL);
    MUST(pass, g);
    graph_compact(g);
    MUST(graph_check, g);
    MUST(reference_run, g, NULL, &after, NULL);
    assert_true(shape_equal(&before.shape, &after.shape));
    assert_true(ref_rel_error(&after, &before) < bound);
    ref_release(&before);
    ref_release(&after);
}

int input_named(const struct graph *g, const char *name)
{
    for (int k = 0; k < g->input_count; k++)
        if (strcmp(g->values[g->inputs[k]].name, name) == 0)
            return k;
    fail_msg("no input \"%s\"", name);
    return NONE;
}

float *exe_input_named(struct exe *exe, const char *name)
{
    return exe_input(exe, input_named(exe_graph(exe), name));
}

struct exe *compiled(const struct graph *g, const struct exe_options *options)
{
    struct exe *exe = NULL;
    MUST(exe_new, g, options, &exe);
    return exe;
}

struct exe *compiled_owned(struct graph *g, const struct exe_options *options)
{
    struct exe *exe = compiled(g, options);
    graph_free(g);
    return exe;
}

static struct ref_tensor copy_of(const struct graph *g, int v, const void *data)
{
    struct ref_tensor copy;
    MUST(ref_from_data, &copy, g->values[v].dtype, &g->values[v].shape, data);
    return copy;
}

void exe_graph_free(struct exe *exe, struct graph *g)
{
    exe_free(exe);
    graph_free(g);
}

double run_error(struct exe *exe, const struct graph *g)
{
    struct ref_tensor *given = calloc((size_t)g->input_count + 1, sizeof(*given));
    struct ref_tensor *expected = calloc((size_t)g->output_count + 1, sizeof(*expected));
    double worst = 0;
    assert_true(given && expected);
    for (int k = 0; k < g->input_count; k++)
        given[k] = copy_of(g, g->inputs[k], exe_input(exe, k));
    MUST(reference_run, g, given, expected, exe_pool(exe));
    exe_run(exe);
    MUST(exe_status, exe);
    for (int k = 0; k < g->output_count; k++) {
        struct ref_tensor got = copy_of(g, g->outputs[k], exe_output(exe, k));
        double error = ref_rel_error(&got, &expected[k]);
        worst = error > worst ? error : worst;
        ref_release(&got);
        ref_release(&expected[k]);
    }
    for (int k = 0; k < g->input_count; k++)
        ref_release(&given[k]);
    free(given);
    free(expected);
    return worst;
}

/* Twice, so that what an earlier run left in memory is not taken for an answer by chance. */
void assert_same_outputs(struct exe *exe, struct exe *other)
{
    const struct graph *g = exe_graph(exe);
    for (int run = 0; run < 2; run++) {
        for (int k = 0; k < g->input_count; k++) {
            float *x = exe_input(exe, k), *y = exe_input(other, k);
            int64_t count = shape_count(&g->values[g->inputs[k]].shape);
            for (int64_t e = 0; e < count; e++)
                x[e] = y[e] = (float)((e * 7 + run * 5) % 11) * 0.2f - 1;
        }
        exe_run(exe);
        exe_run(other);
        MUST(exe_status, exe);
        MUST(exe_status, other);
        for (int k = 0; k < g->output_count; k++) {
            int64_t count = shape_count(&g->values[g->outputs[k]].shape);
            assert_memory_equal(exe_output(exe, k), exe_output(other, k),
                                (size_t)count * sizeof(float));
        }
    }
}
