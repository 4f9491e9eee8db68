/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotated positions as transformers writes them are found with heads before and behind positions;
 * what only resembles them is left, and all compute the same. */
#include <math.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { BATCH = 2, POSITIONS = 5, HEADS = 3, SIZE = 8, HALF = SIZE / 2 };

struct form {
    bool heads_last;
    int64_t batches; /* of the angles */
    bool other_half; /* has angles of its own */
    bool fixed;
    bool swapped;  /* x[:half] comes first */
    bool positive; /* nothing is negated */
    int64_t cut;   /* where x is cut */
    int found;
};

static const struct form usual = {true, 1, false, true, false, false, HALF, 1};

static int half(struct graph *g, int x, int64_t start, int64_t stop)
{
    return slice(g, x, (struct range){.axis = 3, .start = start, .stop = stop});
}

static int angles(struct graph *g, const char *name, const struct form *f, double shift)
{
    float data[BATCH * POSITIONS * SIZE];
    struct shape shape = f->heads_last ? shape_of(f->batches, POSITIONS, 1, SIZE)
                                       : shape_of(f->batches, 1, POSITIONS, SIZE);
    for (int64_t i = 0; i < f->batches * POSITIONS * SIZE; i++) {
        int64_t pair = f->other_half ? i % SIZE : i % HALF;
        data[i] = (float)sin((double)(i / SIZE) / (double)(1 + pair) + shift);
    }
    return f->fixed ? graph_const(g, name, DTYPE_F32, shape, data) : noise_input(g, name, shape);
}

static int rotated(struct graph *g, int x, const struct form *f, int cosines, int sines)
{
    int low = half(g, x, 0, f->cut), high = half(g, x, f->cut, SIZE);
    int turned = f->positive ? high : unary(g, "Neg", high);
    int other =
        concat(g, 3, 2, f->swapped ? (const int[]){low, turned} : (const int[]){turned, low});
    return add(g, mul(g, x, cosines), mul(g, other, sines));
}

static int heads(struct graph *g, const char *name, const struct form *f)
{
    return noise_input(g, name,
                       f->heads_last ? shape_of(BATCH, POSITIONS, HEADS, SIZE)
                                     : shape_of(BATCH, HEADS, POSITIONS, SIZE));
}

TEST(rotations_are_found)
{
    static const struct form cases[] = {
        {true, 1, false, true, false, false, HALF, 1},
        {false, 1, false, true, false, false, HALF, 1},
        {true, BATCH, false, true, false, false, HALF, 1},
        {false, BATCH, false, true, false, false, HALF, 1},
        {true, 1, true, true, false, false, HALF, 0},
        {false, 1, false, false, false, false, HALF, 0},
        {true, 1, false, true, true, false, HALF, 0},
        {true, 1, false, true, false, true, HALF, 0},
        {true, 1, false, true, false, false, HALF + 1, 0},
    };
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        const struct form *f = &cases[k];
        struct graph *g = graph_new("rotated");
        int x = heads(g, "x", f);
        graph_output(g, rotated(g, x, f, angles(g, "cos", f, 1.57), angles(g, "sin", f, 0)));
        pass_keeps_result(g, pass_find_rotary, 1e-6);
        assert_int_equal(count_ops(g, "RotaryEmbedding"), f->found);
        if (f->found)
            assert_int_equal(count_ops(g, "Concat") + count_ops(g, "Mul") + count_ops(g, "Add"), 0);
        graph_free(g);
    }
}

/* Queries and keys, of which all read the same angles. */
TEST(angles_are_shared)
{
    struct graph *g = graph_new("shared");
    int cosines = angles(g, "cos", &usual, 1.57), sines = angles(g, "sin", &usual, 0);
    int q = rotated(g, heads(g, "q", &usual), &usual, cosines, sines);
    int k = rotated(g, heads(g, "k", &usual), &usual, cosines, sines);
    graph_output(g, mul(g, q, k));
    pass_keeps_result(g, pass_find_rotary, 1e-6);
    assert_int_equal(count_ops(g, "RotaryEmbedding"), 2);
    const struct node *first = NULL;
    for (int n = 0; n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        if (node->op != &op_rotary_embedding)
            continue;
        for (int i = 1; first && i < 4; i++)
            assert_int_equal(node->inputs[i], first->inputs[i]);
        first = node;
    }
    graph_free(g);
}

/* Compiled, with kernels that were chosen for it. */
TEST(rotations_run)
{
    struct graph *g = graph_new("rotated");
    struct exe_options options = {.threads = 2, .no_tune = true};
    int x = heads(g, "x", &usual);
    graph_output(
        g, rotated(g, x, &usual, angles(g, "cos", &usual, 1.57), angles(g, "sin", &usual, 0)));
    MUST(graph_check, g);
    struct exe *exe = compiled(g, &options);
    assert_true(run_error(exe, g) < 1e-5);
    exe_graph_free(exe, g);
}
