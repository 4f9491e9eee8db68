/* SPDX-License-Identifier: Apache-2.0
 * Weights that change from run to run: products of gradients are one step each, and no step of a
 * training graph falls to the reference for the only reason that its weights are not constant. */

#include <string.h>

#include "engine/graph/op.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"

static struct exe_options quick(void)
{
    return (struct exe_options){
        .threads = 2, .isa = isa_detect(), .no_tune = true, .only_variant = NONE};
}

static int steps_of(const struct exe *exe, const char *op)
{
    int count = 0;
    for (int s = 0; s < exe_step_count(exe); s++)
        count += strcmp(exe_step_at(exe, s).node->op->name, op) == 0;
    return count;
}

/* dA and dB of a product of changing matrices, given dC. */
static struct graph *gradients(struct shape a_shape, struct shape b_shape)
{
    struct graph *g = graph_new("gradients");
    int a = noise_input(g, "a", a_shape);
    int b = noise_input(g, "b", b_shape);
    int y = make_mat_mul(g, a, b), dx[2] = {NONE, NONE};
    int dy = noise_input(g, "dy", g->values[y].shape);
    struct gradient_call call = {g, g->values[y].producer, &dy, (const bool[]){true, true}, dx};
    MUST(op_mat_mul.gradient, &call);
    graph_output(g, dx[0]);
    graph_output(g, dx[1]);
    MUST(graph_check, g);
    assert_true(shape_equal(&g->values[dx[0]].shape, &a_shape));
    assert_true(shape_equal(&g->values[dx[1]].shape, &b_shape));
    return g;
}

TEST(gradients_of_products_copy_no_matrix)
{
    struct {
        struct shape a, b;
    } cases[] = {{shape_of(50, 36), shape_of(36, 70)},
                 {shape_of(3, 21, 36), shape_of(36, 70)},
                 {shape_of(3, 21, 36), shape_of(3, 36, 40)}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct graph *g = gradients(cases[k].a, cases[k].b);
        struct exe_options options = quick();
        struct exe *exe = compiled(g, &options);
        assert_int_equal(steps_of(exe, "MatMul"), 2);
        assert_int_equal(exe_step_count(exe), 2);
        for (int s = 0; s < 2; s++)
            assert_string_equal(exe_step_at(exe, s).kernel->provider, "native");
        assert_true(run_error(exe, g) <= 2e-5);
        exe_graph_free(exe, g);
    }
}

/* What one matrix does to a stack is one product in the gradient, not the sum of a stack. */
TEST(the_gradient_of_a_shared_matrix_is_one_product)
{
    struct graph *g = gradients(shape_of(3, 21, 36), shape_of(36, 70));
    const struct node *last = &g->nodes[g->values[g->outputs[1]].producer];
    assert_string_equal(last->op->name, "MatMul");
    assert_int_equal(g->values[last->inputs[1]].shape.rank, 2);
    graph_free(g);
}

/* Convolutions whose weights are states, of every kind that has a kernel of its own. */
TEST(convolutions_of_states_are_fast)
{
    struct {
        struct shape x, w;
        int64_t pads, stride, group;
    } cases[] = {{shape_of(2, 16, 14, 14), shape_of(32, 16, 3, 3), 1, 1, 1},
                 {shape_of(2, 16, 14, 14), shape_of(32, 16, 1, 1), 0, 1, 1},
                 {shape_of(2, 3, 32, 32), shape_of(16, 3, 7, 7), 3, 2, 1},
                 {shape_of(2, 32, 14, 14), shape_of(32, 1, 3, 3), 1, 1, 32},
                 {shape_of(2, 32, 14, 14), shape_of(48, 8, 3, 3), 1, 2, 4}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        int64_t pads[4], strides[2] = {cases[k].stride, cases[k].stride};
        for (int p = 0; p < 4; p++)
            pads[p] = cases[k].pads;
        struct graph *g = graph_new("convolution");
        int x = noise_input(g, "x", cases[k].x);
        int w = graph_state(g, "w", DTYPE_F32, cases[k].w, noise());
        int b = graph_state(g, "b", DTYPE_F32, shape_of(cases[k].w.dim[0]), noise());
        int y = graph_node(g, "Conv", NULL, INPUTS(x, w, b),
                           ATTRS(attr_ints("pads", 4, pads), attr_ints("strides", 2, strides),
                                 attr_int("group", cases[k].group)));
        graph_output(g, graph_node(g, "Relu", NULL, INPUTS(y), NO_ATTRS));
        struct exe_options options = quick();
        struct exe *exe = compiled(g, &options);
        assert_int_equal(steps_of(exe, "Relu"), 0); /* it is an epilogue */
        for (int s = 0; s < exe_step_count(exe); s++)
            assert_string_equal(exe_step_at(exe, s).kernel->provider, "native");
        assert_true(run_error(exe, g) <= 2e-5);
        exe_graph_free(exe, g);
    }
}
