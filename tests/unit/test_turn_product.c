/* SPDX-License-Identifier: Apache-2.0
 * Fixed matrices that multiply along an axis other than the last. */
#include "engine/compile/compile.h"
#include "engine/compile/stages.h"
#include "engine/run/exe.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

static int transposed(struct graph *g, int x, int rank, const int64_t *perm)
{
    return graph_node(g, "Transpose", NULL, INPUTS(x), ATTRS(attr_ints("perm", rank, perm)));
}

/* A linear layer along `axis` of x, as frameworks write it: with the axis moved to the end. */
static int linear_along(struct graph *g, int x, int axis, int64_t out, bool biased)
{
    const struct shape shape = g->values[x].shape;
    int64_t forth[RANK_MAX], back[RANK_MAX];
    int rank = shape.rank;
    for (int k = 0; k < rank; k++) {
        forth[k] = k == rank - 1 ? axis : k < axis ? k : k + 1;
        back[k] = k == axis ? rank - 1 : k < axis ? k : k - 1;
    }
    int y = transposed(g, x, rank, forth);
    y = graph_node(g, "MatMul", NULL,
                   INPUTS(y, noise_param(g, "w", shape_of(shape.dim[axis], out))), NO_ATTRS);
    if (biased)
        y = add(g, y, noise_param(g, "b", shape_of(out)));
    return transposed(g, y, rank, back);
}

/* Compiles and frees a graph with that output, and gives how many Transposes are left. */
static int turns_left(struct graph *g, int y)
{
    struct exe_options options = {
        .threads = 2, .isa = isa_detect(), .no_tune = true, .only_variant = NONE};
    graph_output(g, relu(g, y));
    struct exe *exe = compiled(g, &options);
    int left = count_ops(exe->g, "Transpose");
    assert_true(run_error(exe, g) <= 1e-5);
    exe_free(exe);
    graph_free(g);
    return left;
}

static struct graph *begin(struct shape shape, int *x)
{
    struct graph *g = graph_new("along");
    *x = noise_input(g, "x", shape);
    return g;
}

/* Missed: the exchanges took most of the time of attention whose heads are mixed. */
TEST(heads_are_mixed_where_they_lie)
{
    for (int biased = 0; biased < 2; biased++) {
        int x;
        struct graph *g = begin(shape_of(2, 4, 10, 9), &x);
        assert_int_equal(turns_left(g, linear_along(g, x, 1, 5, biased)), 0);
    }
}

TEST(positions_are_mixed_where_they_lie)
{
    int x;
    struct graph *g = begin(shape_of(3, 17, 70), &x);
    assert_int_equal(turns_left(g, linear_along(g, x, 1, 12, true)), 0);
    g = begin(shape_of(7, 80), &x);
    assert_int_equal(turns_left(g, linear_along(g, x, 0, 6, true)), 0);
    g = begin(shape_of(2, 3, 5, 66), &x);
    assert_int_equal(turns_left(g, linear_along(g, x, 2, 4, false)), 0);
}

/* A product of few columns is slow; what is read by others or turned otherwise stays. */
TEST(others_stay)
{
    int x;
    struct graph *g = begin(shape_of(40, 6, 8), &x);
    assert_int_equal(turns_left(g, linear_along(g, x, 1, 5, true)), 1); /* the product reads x */
    static const int64_t otherwise[] = {0, 2, 3, 1};
    g = begin(shape_of(1, 4, 9, 8), &x);
    int y = transposed(g, x, 4, otherwise);
    y = graph_node(g, "MatMul", NULL, INPUTS(y, noise_param(g, "w", shape_of(4, 4))), NO_ATTRS);
    assert_int_equal(turns_left(g, transposed(g, y, 4, otherwise)), 2);
}

/* Channels of an image lie last already. */
TEST(images_stay)
{
    int x;
    struct graph *g = begin(shape_of(1, 3, 12, 12), &x);
    int y = conv2d(g, x, .name = "c", .out = 16, .kernel = 3, .pad = 1);
    assert_int_equal(turns_left(g, linear_along(g, relu(g, y), 1, 24, true)), 2);
}
