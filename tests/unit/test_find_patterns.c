/* SPDX-License-Identifier: Apache-2.0
 *
 * Gelu and LayerNormalization are found in what exporters write, and not in what differs
 * from it by a rank, a constant or a size; whatever becomes of a graph, its result stays. */
#include <math.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/reference/reference.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

/* Of shape [], or of [1, 1, 1], which raises the rank of a matrix that it is multiplied with. */
static int number(struct graph *g, float value, bool raised)
{
    struct shape shape = raised ? shape_of(1, 1, 1) : (struct shape){0};
    return graph_const(g, NULL, DTYPE_F32, shape, &value);
}

/* Takes the graph: how many nodes of the operator the pass leaves in it. */
static int found(struct graph *g, graph_pass *pass, const char *op)
{
    struct ref_tensor before = {0}, after = {0};
    MUST(graph_check, g);
    MUST(reference_run, g, NULL, &before, NULL);
    MUST(pass, g);
    graph_compact(g);
    MUST(graph_check, g);
    MUST(reference_run, g, NULL, &after, NULL);
    assert_true(shape_equal(&before.shape, &after.shape));
    assert_true(ref_rel_error(&after, &before) < 1e-5);
    int count = count_ops(g, op);
    ref_release(&before);
    ref_release(&after);
    graph_free(g);
    return count;
}

/* x * s(x) * 1/2 with a reader to which the rank matters. raised: which of the three numbers is. */
static struct graph *gelu_graph(const float *numbers, int raised)
{
    struct graph *g = graph_new("gelu");
    int x = noise_input(g, "x", shape_of(4, 5)), z = noise_input(g, "z", shape_of(1, 2, 5));
    int bell = unary(g, "Erf", mul(g, x, number(g, numbers[0], raised == 0)));
    bell = add(g, bell, number(g, numbers[1], raised == 1));
    int y = mul(g, mul(g, x, bell), number(g, numbers[2], raised == 2));
    graph_output(g, raised == NONE ? y : concat(g, 1, 2, (const int[]){y, z}));
    return g;
}

static const float exact[] = {0.70710678F, 1, 0.5F};

/* Gelu(x) is a matrix, the product it replaced was none: its readers read past its end. */
TEST(a_number_that_raises_the_rank_is_no_part_of_a_gelu)
{
    assert_int_equal(found(gelu_graph(exact, NONE), pass_find_gelu, "Gelu"), 1);
    for (int raised = 0; raised < 3; raised++)
        assert_int_equal(found(gelu_graph(exact, raised), pass_find_gelu, "Gelu"), 0);
}

/* 0.1 % off was taken as meant, and gave errors of as much. */
TEST(a_gelu_has_its_constants)
{
    for (int k = 0; k < 3; k++) {
        float numbers[] = {exact[0], exact[1], exact[2]};
        numbers[k] *= 1.0005F;
        assert_int_equal(found(gelu_graph(numbers, NONE), pass_find_gelu, "Gelu"), 0);
    }
    const float six_digits[] = {0.707107F, 1, 0.5F};
    assert_int_equal(found(gelu_graph(six_digits, NONE), pass_find_gelu, "Gelu"), 1);
}

static int mean(struct graph *g, int x)
{
    return graph_node(g, "ReduceMean", NULL, INPUTS(x), ATTRS(attr_ints_of("axes", -1)));
}

static struct graph *norm_graph(bool raised)
{
    struct graph *g = graph_new("norm");
    int x = noise_input(g, "x", shape_of(4, 5)), z = noise_input(g, "z", shape_of(1, 2, 5));
    int d = binary(g, "Sub", x, mean(g, x));
    int variance = add(g, mean(g, mul(g, d, d)), number(g, 1e-3F, raised));
    int y = binary(g, "Div", d, unary(g, "Sqrt", variance));
    y = mul(g, y, noise_param(g, "scale", shape_of(5)));
    graph_output(g, raised ? concat(g, 1, 2, (const int[]){y, z}) : y);
    return g;
}

TEST(an_epsilon_that_raises_the_rank_is_no_part_of_a_layer_norm)
{
    assert_int_equal(found(norm_graph(false), pass_find_layer_norm, "LayerNormalization"), 1);
    assert_int_equal(found(norm_graph(true), pass_find_layer_norm, "LayerNormalization"), 0);
}
