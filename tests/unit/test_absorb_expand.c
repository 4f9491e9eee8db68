/* SPDX-License-Identifier: Apache-2.0
 * Operands that were expanded to the shape of a sum or product: read as they were before. */
#include <string.h>

#include "engine/graph/op_list.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { USERS = 5, STEPS = 7, WIDTH = 40 };

static int expanded(struct graph *g, int x)
{
    int all = graph_const_i64(g, 3, (const int64_t[]){USERS, STEPS, WIDTH});
    return graph_node(g, "Expand", NULL, INPUTS(x, all), NO_ATTRS);
}

/* Takes the graph: how many Expands are steps. The result is the same to the last bit. */
static int expands_left(struct graph *g)
{
    struct exe_options options = {
        .threads = 2, .isa = isa_detect(), .no_tune = true, .only_variant = NONE};
    struct exe *exe = compiled(g, &options);
    options.no_fuse = true;
    struct exe *plain = compiled(g, &options);
    int count = 0;
    for (int s = 0; s < exe_step_count(exe); s++)
        count += exe_step_at(exe, s).node->op == &op_expand;
    exe_run(exe);
    exe_run(plain);
    for (int k = 0; k < g->output_count; k++) {
        const struct value *y = &g->values[g->outputs[k]];
        assert_memory_equal(exe_output(exe, k), exe_output(plain, k),
                            (size_t)shape_count(&y->shape) * dtype_size(y->dtype));
    }
    exe_free(exe);
    exe_free(plain);
    graph_free(g);
    return count;
}

TEST(operands_are_read_as_they_were)
{
    const struct shape shapes[] = {shape_of(USERS, 1, WIDTH), shape_of(WIDTH),
                                   shape_of(USERS, 1, 1), shape_of(1, STEPS, 1)};
    for (int k = 0; k < 4; k++) {
        struct graph *g = graph_new("product");
        int y = noise_input(g, "y", shape_of(USERS, STEPS, WIDTH));
        int x = expanded(g, noise_input(g, "x", shapes[k]));
        graph_output(g, k % 2 ? mul(g, y, x) : add(g, x, y));
        assert_int_equal(expands_left(g), 0);
    }
}

/* Something must say how large the result is. */
TEST(one_operand_stays_expanded)
{
    for (int kind = 0; kind < 3; kind++) {
        struct graph *g = graph_new("both");
        int x = expanded(g, noise_input(g, "x", shape_of(USERS, 1, WIDTH)));
        int y = noise_input(g, "y", shape_of(1, 1, WIDTH));
        if (kind == 0)
            graph_output(g, mul(g, x, x));
        else if (kind == 1)
            graph_output(g, mul(g, x, y));
        else
            graph_output(g, mul(g, x, expanded(g, y)));
        assert_int_equal(expands_left(g), 1);
    }
}

TEST(what_else_reads_it_has_it)
{
    struct graph *g = graph_new("read");
    int y = noise_input(g, "y", shape_of(USERS, STEPS, WIDTH));
    int x = expanded(g, noise_input(g, "x", shape_of(USERS, 1, WIDTH)));
    graph_output(g, mul(g, x, y));
    graph_output(g, x);
    assert_int_equal(expands_left(g), 1);
}
