/* SPDX-License-Identifier: Apache-2.0
 * What is turned and turned back: read where it lay at first, when it lies there as wanted. */
#include "engine/graph/op_list.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"

enum { CHAIN_MAX = 5 };

struct move {
    int rank; /* 0: the end of the chain */
    bool turn;
    int64_t list[4]; /* the perm, or the shape */
};

static const struct row {
    struct shape x;
    struct move moves[CHAIN_MAX];
    int turns, reshapes; /* that are left */
} rows[] = {
    /* Heads before positions and back. */
    {{3, {2, 5, 24}},
     {{.rank = 4, .list = {2, 5, 3, 8}},
      {.rank = 4, .turn = true, .list = {0, 2, 1, 3}},
      {.rank = 4, .turn = true, .list = {0, 2, 1, 3}},
      {.rank = 3, .list = {2, 5, 24}}},
     0,
     0},
    {{4, {2, 3, 5, 8}},
     {{.rank = 4, .turn = true, .list = {3, 1, 0, 2}},
      {.rank = 4, .turn = true, .list = {2, 1, 3, 0}}},
     0,
     0},
    /* Back, but under another shape. */
    {{3, {2, 3, 20}},
     {{.rank = 3, .turn = true, .list = {0, 2, 1}},
      {.rank = 4, .list = {2, 4, 5, 3}},
      {.rank = 4, .turn = true, .list = {0, 3, 1, 2}}},
     0,
     1},
    /* One position, so that nothing moves. */
    {{3, {2, 1, 24}},
     {{.rank = 4, .list = {2, 1, 3, 8}}, {.rank = 4, .turn = true, .list = {0, 2, 1, 3}}},
     0,
     1},
    /* A Reshape of a Reshape is none only when it leads back. */
    {{2, {2, 12}}, {{.rank = 2, .list = {4, 6}}, {.rank = 2, .list = {2, 12}}}, 0, 0},
    {{2, {2, 12}}, {{.rank = 2, .list = {4, 6}}, {.rank = 2, .list = {3, 8}}}, 0, 2},
    /* Not back. */
    {{3, {2, 3, 4}},
     {{.rank = 3, .turn = true, .list = {1, 2, 0}}, {.rank = 3, .turn = true, .list = {1, 2, 0}}},
     2,
     0},
    {{2, {4, 4}},
     {{.rank = 2, .turn = true, .list = {1, 0}},
      {.rank = 2, .list = {2, 8}},
      {.rank = 2, .turn = true, .list = {1, 0}}},
     2,
     1},
};

static int moved(struct graph *g, int x, const struct move *moves)
{
    for (int k = 0; k < CHAIN_MAX && moves[k].rank; k++) {
        const struct move *m = &moves[k];
        x = m->turn ? graph_node(g, "Transpose", NULL, INPUTS(x),
                                 ATTRS(attr_ints("perm", m->rank, m->list)))
                    : graph_node(g, "Reshape", NULL,
                                 INPUTS(x, graph_const_i64(g, m->rank, m->list)), NO_ATTRS);
    }
    return x;
}

TEST(what_is_turned_back_stays)
{
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        struct graph *g = graph_new("moves");
        int x = moved(g, noise_input(g, "x", rows[k].x), rows[k].moves);
        graph_output(g, graph_node(g, "Neg", NULL, INPUTS(x), NO_ATTRS));
        pass_keeps_result(g, pass_undo_moves, 1e-12);
        graph_compact(g);
        assert_int_equal(count_ops(g, "Transpose"), rows[k].turns);
        assert_int_equal(count_ops(g, "Reshape"), rows[k].reshapes);
        graph_free(g);
    }
}

/* An output has memory of its own, and what scales changes what lies there. */
TEST(outputs_and_products_stay)
{
    static const int64_t perm[] = {1, 0};
    for (int scaled = 0; scaled < 2; scaled++) {
        struct graph *g = graph_new("moves");
        int x = noise_input(g, "x", shape_of(3, 4));
        x = graph_node(g, "Transpose", NULL, INPUTS(x), ATTRS(attr_ints("perm", 2, perm)));
        if (scaled)
            x = graph_node(g, "Mul", NULL, INPUTS(x, graph_const_f32(g, 2)), NO_ATTRS);
        x = graph_node(g, "Transpose", NULL, INPUTS(x), ATTRS(attr_ints("perm", 2, perm)));
        graph_output(g, scaled ? graph_node(g, "Neg", NULL, INPUTS(x), NO_ATTRS) : x);
        pass_keeps_result(g, pass_undo_moves, 1e-12);
        graph_compact(g);
        assert_int_equal(count_ops(g, "Transpose"), 2);
        graph_free(g);
    }
}
