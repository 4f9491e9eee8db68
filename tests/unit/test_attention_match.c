/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention as language models write it: heads that share keys and values, which were repeated for
 * them, and fixed masks that hide what follows a query. What only resembles these stays what it is,
 * and all compute the same as before. */
#include <math.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { BATCH = 2, SHARED = 2, EACH = 3, HEADS = SHARED * EACH, SIZE = 4, FEW = 5, LONG = 7 };

static int reshaped(struct graph *g, int x, struct shape shape)
{
    return reshape(g, x, shape.rank, shape.dim);
}

static int turned(struct graph *g, int x, const int64_t *perm)
{
    return transpose(g, x, g->values[x].shape.rank, perm);
}

static void pass_over(struct graph *g)
{
    pass_keeps_result(g, pass_find_attention, 1e-6);
}

/* ---- heads that share keys and values ---- */

/* [B, SHARED, S, D] with each head EACH times in a row, or the heads EACH times: transformers'
 * repeat_kv, and what it is not. */
static int repeated(struct graph *g, int x, bool in_a_row)
{
    struct shape once = {5, {0}}, all = g->values[x].shape;
    once.dim[0] = all.dim[0];
    once.dim[1] = in_a_row ? SHARED : 1;
    once.dim[2] = in_a_row ? 1 : SHARED;
    once.dim[3] = all.dim[2];
    once.dim[4] = all.dim[3];
    struct shape each = once;
    each.dim[in_a_row ? 2 : 1] = EACH;
    all.dim[1] = HEADS;
    int shape = graph_const_i64(g, 5, each.dim);
    return reshaped(g, graph_node(g, "Expand", NULL, INPUTS(reshaped(g, x, once), shape), NO_ATTRS),
                    all);
}

/* torch's repeat_interleave, as an index of heads. */
static int gathered(struct graph *g, int x)
{
    int64_t heads[HEADS];
    for (int h = 0; h < HEADS; h++)
        heads[h] = h / EACH;
    int index = graph_const_i64(g, HEADS, heads);
    return graph_node(g, "Gather", NULL, INPUTS(x, index), ATTRS(attr_int("axis", 1)));
}

/* Repeats heads along a new axis of size 1. */
static int tiled(struct graph *g, int x)
{
    struct shape s = g->values[x].shape, all = s;
    struct shape once = {5, {s.dim[0], s.dim[1], 1, s.dim[2], s.dim[3]}};
    const int64_t times[] = {1, 1, EACH, 1, 1};
    all.dim[1] = HEADS;
    int repeats = graph_const_i64(g, 5, times);
    return reshaped(g, graph_node(g, "Tile", NULL, INPUTS(reshaped(g, x, once), repeats), NO_ATTRS),
                    all);
}

enum how { IN_A_ROW, IN_TURN, BY_INDEX, BY_TILE, NOT };

static int many_heads(struct graph *g, int x, enum how how)
{
    return how == NOT        ? x
           : how == BY_INDEX ? gathered(g, x)
           : how == BY_TILE  ? tiled(g, x)
                             : repeated(g, x, how == IN_A_ROW);
}

struct sharing {
    enum how keys, values;
    bool changed; /* queries and keys, head by head */
    int64_t queries;
    int kv_heads;
};

static struct graph *shared_graph(const struct sharing *s, int (*masked)(struct graph *, int))
{
    static const int64_t plain[] = {0, 2, 1, 3}, swap[] = {0, 1, 3, 2};
    const char *const names[] = {"q", "k", "v"};
    struct graph *g = graph_new("shared");
    const enum how hows[] = {NOT, s->keys, s->values};
    int in[3];
    for (int i = 0; i < 3; i++) {
        int64_t heads = i && hows[i] != NOT ? SHARED : HEADS;
        int x = noise_input(g, names[i], shape_of(BATCH, i ? LONG : s->queries, heads, SIZE));
        in[i] = turned(g, x, plain);
        if (s->changed && i < 2)
            in[i] = unary(g, "Tanh", in[i]);
        in[i] = many_heads(g, in[i], hows[i]);
    }
    int scores = binary(g, "MatMul", in[0], turned(g, in[1], swap));
    scores = mul(g, scores, graph_const_f32(g, 0.5F));
    if (masked)
        scores = masked(g, scores);
    int y = binary(g, "MatMul", softmax(g, scores, -1), in[2]);
    graph_output(g, reshaped(g, turned(g, y, plain), shape_of(BATCH, s->queries, HEADS * SIZE)));
    return g;
}

TEST(shared_heads_are_read_once)
{
    static const struct sharing cases[] = {
        {IN_A_ROW, IN_A_ROW, false, FEW, SHARED}, {IN_A_ROW, IN_A_ROW, true, LONG, SHARED},
        {BY_INDEX, BY_INDEX, true, LONG, SHARED}, {BY_TILE, BY_TILE, true, 1, SHARED},
        {IN_A_ROW, BY_INDEX, false, 1, SHARED},   {IN_TURN, IN_TURN, true, LONG, 0},
        {IN_TURN, IN_TURN, false, LONG, 0},       {IN_A_ROW, NOT, true, LONG, 0},
        {IN_A_ROW, NOT, false, LONG, 0},          {NOT, IN_A_ROW, false, LONG, 0},
        {IN_A_ROW, IN_TURN, false, LONG, 0},      {NOT, NOT, false, LONG, 0}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct graph *g = shared_graph(&cases[k], NULL);
        pass_over(g);
        assert_int_equal(count_ops(g, "Attention"), 1);
        const struct node *attention = node_of(g, "Attention");
        assert_int_equal(node_int(attention, "kv_heads", 0), cases[k].kv_heads);
        if (cases[k].kv_heads) {
            assert_int_equal(count_ops(g, "Expand") + count_ops(g, "Tile"), 0);
            assert_int_equal(count_ops(g, "Gather"), 0);
            assert_int_equal(g->values[attention->inputs[2]].shape.dim[2], SHARED * SIZE);
        }
        graph_free(g);
    }
}

/* ---- masks that hide what follows ---- */

/* A fixed mask of scores: `seen` of keys up to the query's own plus `ahead`, else `hidden`. */
static int triangle(struct graph *g, int scores, int64_t ahead, float seen, float hidden,
                    int64_t planes)
{
    struct shape s = g->values[scores].shape;
    int64_t queries = s.dim[2], keys = s.dim[3], count = planes * queries * keys;
    float data[BATCH * LONG * LONG];
    for (int64_t i = 0; i < count; i++)
        data[i] = i % keys <= i / keys % queries + keys - queries + ahead ? seen : hidden;
    return graph_const(g, NULL, DTYPE_F32, shape_of(planes, 1, queries, keys), data);
}

static int by_sum(struct graph *g, int scores)
{
    return add(g, scores, triangle(g, scores, 0, 0, -INFINITY, 1));
}

static int by_big_number(struct graph *g, int scores)
{
    return add(g, scores, triangle(g, scores, 0, 0, -3e38F, BATCH));
}

static int by_small_number(struct graph *g, int scores)
{
    return add(g, scores, triangle(g, scores, 0, 0, -100, 1));
}

static int off_by_one(struct graph *g, int scores)
{
    return add(g, scores, triangle(g, scores, 1, 0, -INFINITY, 1));
}

static int off_by_less(struct graph *g, int scores)
{
    return add(g, scores, triangle(g, scores, -1, 0, -3e38F, 1));
}

static int with_a_bias(struct graph *g, int scores)
{
    return add(g, scores, triangle(g, scores, 0, 0.25F, -INFINITY, 1));
}

static int with_another(struct graph *g, int scores)
{
    return add(g, by_sum(g, scores), noise_input(g, "mask", shape_of(BATCH, 1, 1, LONG)));
}

static int big_with_another(struct graph *g, int scores)
{
    return add(g, by_big_number(g, scores), noise_input(g, "mask", shape_of(BATCH, 1, 1, LONG)));
}

static int of_an_input(struct graph *g, int scores)
{
    return add(g, scores, noise_input(g, "mask", shape_of(LONG, LONG)));
}

/* Where(seen, scores, number), or with hides Where(hidden, number, scores). */
static int chosen(struct graph *g, int scores, int64_t ahead, bool hides, float number)
{
    struct shape s = g->values[scores].shape;
    int64_t queries = s.dim[2], keys = s.dim[3];
    bool data[LONG * LONG];
    for (int64_t i = 0; i < queries * keys; i++)
        data[i] = (i % keys <= i / keys + keys - queries + ahead) != hides;
    int choice = graph_const(g, NULL, DTYPE_BOOL, shape_of(1, 1, queries, keys), data);
    int big = graph_const_f32(g, number);
    int from[] = {choice, hides ? big : scores, hides ? scores : big};
    return graph_node(g, "Where", NULL, 3, from, NO_ATTRS);
}

static int by_choice(struct graph *g, int scores)
{
    return chosen(g, scores, 0, false, -3e38F);
}

static int by_filling(struct graph *g, int scores)
{
    return chosen(g, scores, 0, true, -INFINITY);
}

static int filled_and_masked(struct graph *g, int scores)
{
    return add(g, by_filling(g, scores), noise_input(g, "mask", shape_of(BATCH, 1, 1, LONG)));
}

static int chosen_off_by_one(struct graph *g, int scores)
{
    return chosen(g, scores, 1, false, -INFINITY);
}

static int chosen_and_masked(struct graph *g, int scores)
{
    return add(g, by_choice(g, scores), noise_input(g, "mask", shape_of(BATCH, 1, 1, LONG)));
}

TEST(hidden_keys_are_skipped)
{
    static const struct {
        int (*masked)(struct graph *g, int scores);
        int found, causal, mask;
    } cases[] = {{by_sum, 1, 1, 0},
                 {by_big_number, 1, 1, 0},
                 {by_small_number, 1, 0, 1},
                 {off_by_one, 1, 0, 1},
                 {off_by_less, 1, 0, 1},
                 {with_a_bias, 1, 0, 1},
                 {with_another, 1, 1, 1},
                 {big_with_another, 1, 0, 1},
                 {of_an_input, 1, 0, 1},
                 {by_choice, 1, 1, 0},
                 {by_filling, 1, 1, 0},
                 {filled_and_masked, 1, 1, 1},
                 {chosen_off_by_one, 0, 0, 0},
                 {chosen_and_masked, 0, 0, 0}};
    static const struct sharing sharing[] = {{IN_A_ROW, IN_A_ROW, true, LONG, SHARED},
                                             {NOT, NOT, true, LONG, 0},
                                             {NOT, NOT, false, LONG, 0}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++)
        for (int h = 0; h < ARRAY_COUNT(sharing); h++) {
            struct graph *g = shared_graph(&sharing[h], cases[k].masked);
            pass_over(g);
            assert_int_equal(count_ops(g, "Attention"), cases[k].found);
            if (cases[k].found) {
                const struct node *attention = node_of(g, "Attention");
                assert_int_equal(node_int(attention, "causal", 0), cases[k].causal);
                assert_int_equal(attention->op_inputs > 3, cases[k].mask);
                assert_int_equal(node_int(attention, "kv_heads", 0), sharing[h].kv_heads);
            }
            graph_free(g);
        }
}

/* Fewer queries than keys: those of the last ones. */
TEST(hidden_keys_of_the_last_queries)
{
    static const struct sharing few = {IN_A_ROW, IN_A_ROW, true, FEW, SHARED};
    struct graph *g = shared_graph(&few, by_sum);
    pass_over(g);
    assert_int_equal(node_int(node_of(g, "Attention"), "causal", 0), 1);
    graph_free(g);
}

/* Compiled, with kernels that were chosen for it. */
TEST(shared_heads_run)
{
    static const struct sharing sharing[] = {{IN_A_ROW, IN_A_ROW, true, LONG, SHARED},
                                             {BY_INDEX, BY_INDEX, false, LONG, SHARED},
                                             {NOT, NOT, true, LONG, 0}};
    for (int h = 0; h < ARRAY_COUNT(sharing); h++) {
        struct graph *g = shared_graph(&sharing[h], by_big_number);
        struct exe_options options = {.threads = 2, .no_tune = true};
        MUST(graph_check, g);
        struct exe *exe = compiled(g, &options);
        assert_true(run_error(exe, g) < 1e-5);
        exe_graph_free(exe, g);
    }
}

/* Two masks of which each leaves every query a key leave the first one none together. */
static int guarded_and_masked(struct graph *g, int scores)
{
    float first[LONG] = {-INFINITY};
    scores = by_sum(g, scores);
    return add(g, scores, graph_const(g, NULL, DTYPE_F32, shape_of(1, 1, 1, LONG), first));
}

TEST(zeros_where_two_masks_leave_nothing)
{
    static const int64_t plain[] = {0, 2, 1, 3}, swap[] = {0, 2, 3, 1};
    const char *const names[] = {"q", "k", "v"};
    struct graph *g = graph_new("guarded");
    int in[3];
    for (int i = 0; i < 3; i++)
        in[i] = turned(g, noise_input(g, names[i], shape_of(BATCH, LONG, HEADS, SIZE)),
                       i == 1 ? swap : plain);
    int p = softmax(g, guarded_and_masked(g, binary(g, "MatMul", in[0], in[1])), -1);
    int zero = graph_const_f32(g, 0);
    p = graph_node(g, "Where", NULL, INPUTS(unary(g, "IsNaN", p), zero, p), NO_ATTRS);
    graph_output(g, binary(g, "MatMul", p, in[2]));
    pass_over(g);
    assert_int_equal(node_int(node_of(g, "Attention"), "zero_empty", 0), 1);
    assert_int_equal(node_int(node_of(g, "Attention"), "causal", 0), 1);
    graph_free(g);
}
