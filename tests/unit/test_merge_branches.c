/* SPDX-License-Identifier: Apache-2.0
 * Sums of convolutions of one input. */
#include "engine/compile/compile.h"
#include "engine/compile/stages.h"
#include "engine/run/exe.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

struct conv {
    const char *name;
    int64_t out, kernel[2], pad[2], stride, group;
    bool bias;
};

static int conv(struct graph *g, int x, const struct conv *c)
{
    const int64_t pads[] = {c->pad[0], c->pad[1], c->pad[0], c->pad[1]};
    const int64_t strides[] = {c->stride, c->stride};
    const int64_t channels = g->values[x].shape.dim[1];
    int w =
        noise_param(g, c->name, shape_of(c->out, channels / c->group, c->kernel[0], c->kernel[1]));
    int b = c->bias ? noise_param(g, "bias", shape_of(c->out)) : NONE;
    return graph_node(g, "Conv", c->name, INPUTS(x, w, b),
                      ATTRS(attr_ints("pads", 4, pads), attr_ints("strides", 2, strides),
                            attr_int("group", c->group)));
}

/* Compiles and frees a graph with that output, which is to have so many convolutions. */
static void check(struct graph *g, int y, int convolutions)
{
    struct exe_options options = {
        .threads = 2, .isa = isa_detect(), .no_tune = true, .only_variant = NONE};
    graph_output(g, relu(g, y));
    struct exe *exe = compiled(g, &options);
    assert_int_equal(count_ops(exe->g, "Conv"), convolutions);
    if (convolutions == 1)
        assert_int_equal(count_ops(exe->g, "BatchNormalization") + count_ops(exe->g, "Add"), 0);
    double error = run_error(exe, g);
    if (error > 2e-5)
        fail_msg("error %g", error);
    exe_free(exe);
    graph_free(g);
}

static struct graph *begin(int *x)
{
    struct graph *g = graph_new("branches");
    *x = noise_input(g, "x", shape_of(2, 8, 9, 10));
    return g;
}

/* A block of RepVGG, in groups and without. */
TEST(branches_and_a_norm_become_one)
{
    for (int64_t group = 1; group <= 8; group *= 2) {
        int x;
        struct graph *g = begin(&x);
        int wide = conv(g, x, &(struct conv){"wide", 8, {3, 3}, {1, 1}, 1, group, false});
        int point = conv(g, x, &(struct conv){"point", 8, {1, 1}, {0, 0}, 1, group, true});
        int y = add(g, batch_norm(g, point, "n1", 1e-5, 1), batch_norm(g, wide, "n2", 1e-5, 1));
        check(g, add(g, batch_norm(g, x, "n0", 1e-3, 1), y), 1);
    }
}

/* With a stride, more results than inputs, and kernels that are not square. */
TEST(smaller_kernels_lie_where_they_see_the_same)
{
    int x;
    struct graph *g = begin(&x);
    int a = conv(g, x, &(struct conv){"a", 12, {5, 3}, {2, 1}, 2, 1, true});
    int b = conv(g, x, &(struct conv){"b", 12, {1, 3}, {0, 1}, 2, 1, true});
    int c = conv(g, x, &(struct conv){"c", 12, {5, 1}, {2, 0}, 2, 1, false});
    check(g, add(g, c, add(g, b, a)), 1);
}

TEST(others_stay_branches)
{
    int x;
    struct graph *g = begin(&x);
    int a = conv(g, x, &(struct conv){"a", 8, {3, 1}, {1, 0}, 1, 1, false});
    int b = conv(g, x, &(struct conv){"b", 8, {1, 3}, {0, 1}, 1, 1, false});
    check(g, add(g, a, b), 2); /* neither lies inside the other */
    g = begin(&x);
    a = conv(g, x, &(struct conv){"a", 8, {3, 3}, {1, 1}, 1, 1, false});
    b = conv(g, relu(g, x), &(struct conv){"b", 8, {1, 1}, {0, 0}, 1, 1, false});
    check(g, add(g, a, b), 2); /* another input */
    g = begin(&x);
    a = conv(g, x, &(struct conv){"a", 8, {3, 3}, {1, 1}, 1, 1, false});
    b = conv(g, x, &(struct conv){"b", 8, {1, 1}, {0, 0}, 1, 8, false});
    check(g, add(g, a, b), 2); /* other groups */
    g = begin(&x);
    a = conv(g, x, &(struct conv){"a", 8, {3, 3}, {1, 1}, 1, 1, false});
    b = conv(g, x, &(struct conv){"b", 8, {1, 1}, {0, 0}, 1, 1, false});
    graph_output(g, b);
    check(g, add(g, a, b), 2); /* a result of its own */
}
