/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention as exporters write it: whatever chain of reshapes, transposes, slices and factors makes
 * queries, keys and values, it is found, computes the same, and reads what the projections wrote
 * where heads lie side by side. */
#include <math.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/compile/passes/view.h"
#include "engine/graph/op_list.h"
#include "engine/reference/reference.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { BATCH = 2, POSITIONS = 5, HEADS = 3, SIZE = 4, WIDTH = HEADS * SIZE };

static int scaled(struct graph *g, int x, float factor)
{
    return mul(g, x, graph_const_f32(g, factor));
}

static int reshaped(struct graph *g, int x, struct shape shape)
{
    return reshape(g, x, shape.rank, shape.dim);
}

static int turned(struct graph *g, int x, const int64_t *perm)
{
    return transpose(g, x, g->values[x].shape.rank, perm);
}

/* softmax(scores + mask) v; mask NONE: none. */
static int attend(struct graph *g, int q, int k_turned, int mask, int v)
{
    int scores = binary(g, "MatMul", q, k_turned);
    if (mask != NONE)
        scores = add(g, scores, mask);
    return binary(g, "MatMul", softmax(g, scores, -1), v);
}

/* Heads side by side again: the way out that all models have. */
static int joined(struct graph *g, int context)
{
    static const int64_t plain[] = {0, 2, 1, 3};
    return reshaped(g, turned(g, context, plain), shape_of(BATCH, POSITIONS, WIDTH));
}

/* ---- ways in; each returns the context's successor ---- */

/* Reshape and Transpose of three projections, keys by way of a matrix per head, a factor on both
 * sides: PyTorch's scaled_dot_product_attention. */
static int as_pytorch_does(struct graph *g, int mask)
{
    static const int64_t plain[] = {0, 2, 1, 3}, swap[] = {0, 2, 1};
    struct shape cut = shape_of(BATCH, POSITIONS, HEADS, SIZE);
    int in[3];
    for (int i = 0; i < 3; i++) {
        const char *const names[] = {"q", "k", "v"};
        int x = noise_input(g, names[i], shape_of(BATCH, POSITIONS, WIDTH));
        in[i] = turned(g, reshaped(g, x, cut), plain);
    }
    int k = turned(g, reshaped(g, in[1], shape_of(BATCH * HEADS, POSITIONS, SIZE)), swap);
    k = reshaped(g, k, shape_of(BATCH, HEADS, SIZE, POSITIONS));
    return joined(g, attend(g, scaled(g, in[0], 0.7F), scaled(g, k, 0.7F), mask, in[2]));
}

/* One projection as [B, S, 3, heads, D], turned as a whole and cut: vision transformers. */
static int of_one_projection(struct graph *g, int mask)
{
    static const int64_t apart[] = {2, 0, 3, 1, 4}, swap[] = {0, 1, 3, 2};
    int x = noise_input(g, "x", shape_of(BATCH, POSITIONS, 3 * WIDTH)), in[3];
    x = turned(g, reshaped(g, x, (struct shape){5, {BATCH, POSITIONS, 3, HEADS, SIZE}}), apart);
    for (int i = 0; i < 3; i++) {
        int index = graph_const_i64(g, -1, (const int64_t[]){i});
        in[i] = graph_node(g, "Gather", NULL, INPUTS(x, index), ATTRS(attr_int("axis", 0)));
    }
    return joined(g, attend(g, scaled(g, in[0], 0.5F), turned(g, in[1], swap), mask, in[2]));
}

/* The same by Split along the columns: GPT-2. */
static int of_split_columns(struct graph *g, int mask)
{
    static const int64_t plain[] = {0, 2, 1, 3}, swap[] = {0, 2, 3, 1};
    int x = noise_input(g, "x", shape_of(BATCH, POSITIONS, 3 * WIDTH)), in[3];
    graph_node_many(g, "Split", NULL, INPUTS(x), ATTRS(attr_int("axis", 2)), 3, in);
    for (int i = 0; i < 3; i++)
        in[i] = turned(g, reshaped(g, in[i], shape_of(BATCH, POSITIONS, HEADS, SIZE)),
                       i == 1 ? swap : plain);
    return joined(g, attend(g, in[0], in[1], mask, in[2]));
}

/* Something is computed per head before the product, as rotary positions are. */
static int of_changed_heads(struct graph *g, int mask)
{
    static const int64_t plain[] = {0, 2, 1, 3}, swap[] = {0, 1, 3, 2};
    const char *const names[] = {"q", "k", "v"};
    int in[3];
    for (int i = 0; i < 3; i++) {
        int x = noise_input(g, names[i], shape_of(BATCH, POSITIONS, HEADS, SIZE));
        in[i] = unary(g, "Tanh", turned(g, x, plain));
    }
    return joined(g, attend(g, in[0], turned(g, in[1], swap), mask, in[2]));
}

/* Positions first, heads as matrices of a stack: PyTorch's MultiheadAttention with one sequence. */
static int positions_first(struct graph *g, int mask)
{
    static const int64_t plain[] = {1, 0, 2}, swap[] = {0, 2, 1};
    const char *const names[] = {"q", "k", "v"};
    int in[3];
    for (int i = 0; i < 3; i++) {
        int x = noise_input(g, names[i], shape_of(POSITIONS, 1, WIDTH));
        in[i] = turned(g, reshaped(g, x, shape_of(POSITIONS, HEADS, SIZE)), plain);
    }
    int y = attend(g, in[0], turned(g, in[1], swap), mask, in[2]);
    return reshaped(g, turned(g, y, plain), shape_of(POSITIONS, WIDTH));
}

/* Windows of an image: one more axis before the heads. */
static int of_windows(struct graph *g, int mask)
{
    static const int64_t plain[] = {0, 1, 3, 2, 4}, swap[] = {0, 1, 3, 4, 2};
    const char *const names[] = {"q", "k", "v"};
    int in[3];
    for (int i = 0; i < 3; i++) {
        int x = noise_input(g, names[i], (struct shape){5, {BATCH, 4, POSITIONS, HEADS, SIZE}});
        in[i] = turned(g, x, i == 1 ? swap : plain);
    }
    return turned(g, attend(g, in[0], in[1], mask, in[2]), plain);
}

static const struct {
    int (*make)(struct graph *g, int mask);
    bool packed; /* Attention reads one tensor */
    int copies;  /* Transposes, Gathers and Splits that are left */
} forms[] = {{as_pytorch_does, false, 0}, {of_one_projection, true, 0},
             {of_split_columns, true, 0}, {of_changed_heads, false, 0},
             {positions_first, false, 0}, {of_windows, false, 0}};

static int copies_in(const struct graph *g)
{
    return count_ops(g, "Transpose") + count_ops(g, "Gather") + count_ops(g, "Split");
}

static void pass_over(struct graph *g)
{
    pass_keeps_result(g, pass_find_attention, 1e-6);
}

TEST(every_form_is_found)
{
    for (int k = 0; k < ARRAY_COUNT(forms); k++)
        for (int masked = 0; masked < 2; masked++) {
            struct graph *g = graph_new("attention");
            int mask = masked ? noise_input(g, "mask", shape_of(POSITIONS, POSITIONS)) : NONE;
            graph_output(g, forms[k].make(g, mask));
            pass_over(g);
            pass_keeps_result(g, pass_cancel_transpose, 1e-6);
            assert_int_equal(count_ops(g, "Attention"), 1);
            assert_int_equal(count_ops(g, "Softmax") + count_ops(g, "MatMul"), 0);
            assert_int_equal(count_ops(g, "Mul"), 0);
            assert_int_equal(copies_in(g), forms[k].copies);
            const struct node *attention = node_of(g, "Attention");
            assert_int_equal(attention->op_inputs == 1 || attention->inputs[1] == NONE,
                             forms[k].packed);
            graph_free(g);
        }
}

/* Compiled, with kernels that were chosen for it. */
TEST(every_form_runs)
{
    for (int k = 0; k < ARRAY_COUNT(forms); k++) {
        struct graph *g = graph_new("attention");
        struct exe_options options = {.threads = 2, .no_tune = true};
        graph_output(g, forms[k].make(g, NONE));
        MUST(graph_check, g);
        struct exe *exe = compiled(g, &options);
        assert_true(run_error(exe, g) < 1e-5);
        exe_graph_free(exe, g);
    }
}

/* Masks of heads that count as sequences, or, where several of these share a mask, lie side by side
 * for it. */
TEST(masks_of_heads_that_are_sequences)
{
    static const struct {
        struct shape mask;
        int found;
    } cases[] = {{{4, {BATCH, HEADS, POSITIONS, POSITIONS}}, 1},
                 {{4, {1, 1, 1, POSITIONS}}, 1},
                 {{4, {BATCH, HEADS, 1, POSITIONS}}, 1},
                 {{4, {1, HEADS, POSITIONS, POSITIONS}}, 1},
                 {{4, {BATCH, 1, POSITIONS, POSITIONS}}, 1}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct graph *g = graph_new("attention");
        graph_output(g, of_changed_heads(g, noise_input(g, "mask", cases[k].mask)));
        pass_over(g);
        assert_int_equal(count_ops(g, "Attention"), cases[k].found);
        graph_free(g);
    }
}

/* Swin's shifted windows: a bias for each head is added to the scores, and a mask for each window
 * to the same as images of windows. */
static struct graph *shifted_graph(int64_t images, struct shape mask)
{
    static const int64_t plain[] = {0, 2, 1, 3}, swap[] = {0, 2, 3, 1};
    const char *const names[] = {"q", "k", "v"};
    struct graph *g = graph_new("shifted");
    int64_t windows = 2 * images;
    int in[3];
    for (int i = 0; i < 3; i++)
        in[i] = turned(g, noise_input(g, names[i], shape_of(windows, POSITIONS, HEADS, SIZE)),
                       i == 1 ? swap : plain);
    int scores = binary(g, "MatMul", scaled(g, in[0], 0.5F), in[1]);
    scores = add(g, scores, noise_param(g, "bias", shape_of(HEADS, POSITIONS, POSITIONS)));
    scores = reshaped(g, scores, (struct shape){5, {images, 2, HEADS, POSITIONS, POSITIONS}});
    scores = add(g, scores, noise_param(g, "mask", mask));
    scores = reshaped(g, scores, shape_of(windows, HEADS, POSITIONS, POSITIONS));
    int y = turned(g, binary(g, "MatMul", softmax(g, scores, -1), in[2]), plain);
    graph_output(g, reshaped(g, y, shape_of(windows, POSITIONS, WIDTH)));
    return g;
}

TEST(several_masks_are_one)
{
    const struct {
        int64_t images;
        struct shape mask;
        int found;
    } cases[] = {
        {1, {5, {1, 2, 1, POSITIONS, POSITIONS}}, 1}, {1, {4, {2, 1, POSITIONS, POSITIONS}}, 1},
        {3, {5, {3, 2, 1, POSITIONS, POSITIONS}}, 1}, {3, {2, {POSITIONS, POSITIONS}}, 1},
        {3, {5, {1, 2, 1, POSITIONS, POSITIONS}}, 0}, {3, {5, {3, 1, 1, POSITIONS, POSITIONS}}, 0}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct graph *g = shifted_graph(cases[k].images, cases[k].mask);
        pass_over(g);
        assert_int_equal(count_ops(g, "Attention"), cases[k].found);
        graph_free(g);
    }
}

/* Sequences and heads are one axis of the product, and two where the mask of each sequence is
 * added: BART. */
TEST(masks_between_two_shapes)
{
    const struct {
        struct shape mask;
        int found;
    } cases[] = {{{4, {BATCH, HEADS, 1, POSITIONS}}, 1},
                 {{4, {1, 1, POSITIONS, POSITIONS}}, 1},
                 {{2, {POSITIONS, POSITIONS}}, 1},
                 {{4, {BATCH, 1, POSITIONS, POSITIONS}}, 0}};
    static const int64_t swap[] = {0, 2, 1};
    const char *const names[] = {"q", "k", "v"};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct graph *g = graph_new("sequences");
        int in[3];
        for (int i = 0; i < 3; i++)
            in[i] = noise_input(g, names[i], shape_of(BATCH * HEADS, POSITIONS, SIZE));
        int scores = binary(g, "MatMul", in[0], turned(g, in[1], swap));
        scores = reshaped(g, scores, shape_of(BATCH, HEADS, POSITIONS, POSITIONS));
        scores = add(g, scores, noise_input(g, "mask", cases[k].mask));
        scores = reshaped(g, scores, shape_of(BATCH * HEADS, POSITIONS, POSITIONS));
        graph_output(g, binary(g, "MatMul", softmax(g, scores, -1), in[2]));
        pass_over(g);
        assert_int_equal(count_ops(g, "Attention"), cases[k].found);
        graph_free(g);
    }
}

/* softmax(scores + mask) with zeros in the place of NaN; allowed: what each query may see. */
static struct graph *guarded_graph(const float *allowed, bool fixed)
{
    struct graph *g = graph_new("guarded");
    static const int64_t plain[] = {0, 2, 1, 3}, swap[] = {0, 2, 3, 1};
    struct shape square = shape_of(1, 1, POSITIONS, POSITIONS);
    int given = fixed ? graph_const(g, "allowed", DTYPE_F32, square, allowed)
                      : graph_input(g, "allowed", DTYPE_F32, square, noise());
    int in[3];
    for (int i = 0; i < 3; i++) {
        const char *const names[] = {"q", "k", "v"};
        int x = noise_input(g, names[i], shape_of(BATCH, POSITIONS, HEADS, SIZE));
        in[i] = turned(g, x, i == 1 ? swap : plain);
    }
    int scores = add(g, binary(g, "MatMul", in[0], in[1]), given);
    int p = softmax(g, scores, -1), zero = graph_const_f32(g, 0);
    p = graph_node(g, "Where", NULL, INPUTS(unary(g, "IsNaN", p), zero, p), NO_ATTRS);
    graph_output(g, joined(g, binary(g, "MatMul", p, in[2])));
    return g;
}

/* Torch 2.15 writes IsNaN and Where behind each softmax; the rows of a fixed mask decide. */
TEST(zeros_for_queries_without_keys)
{
    float causal[POSITIONS * POSITIONS], empty[POSITIONS * POSITIONS];
    for (int i = 0; i < POSITIONS * POSITIONS; i++) {
        causal[i] = i % POSITIONS > i / POSITIONS ? -INFINITY : 0;
        empty[i] = i / POSITIONS == 1 ? -INFINITY : causal[i];
    }
    const struct {
        const float *mask;
        bool fixed;
        int zeros;
    } cases[] = {{causal, true, 0}, {empty, true, 1}, {causal, false, 1}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct graph *g = guarded_graph(cases[k].mask, cases[k].fixed);
        struct exe_options options = {.threads = 1, .no_tune = true};
        MUST(graph_check, g);
        struct exe *exe = compiled(g, &options);
        assert_true(run_error(exe, g) < 1e-5);
        exe_free(exe);
        pass_over(g);
        assert_int_equal(count_ops(g, "Attention"), 1);
        assert_int_equal(count_ops(g, "IsNaN") + count_ops(g, "Where"), 0);
        assert_int_equal(node_int(node_of(g, "Attention"), "zero_empty", 0), cases[k].zeros);
        graph_free(g);
    }
}

/* ---- views ---- */

/* Element by element: the value holds what the view says of the origin. */
static void assert_view(struct graph *g, int value, int moves, int origin)
{
    struct view view;
    struct ref_tensor out[2] = {{0}, {0}};
    view_of(g, value, moves, &view);
    assert_int_equal(view.origin, origin);
    g->output_count = 0;
    graph_output(g, value);
    graph_output(g, origin);
    MUST(graph_check, g);
    MUST(reference_run, g, NULL, out, NULL);
    assert_true(shape_equal(&view.shape, &out[0].shape));
    for (int64_t i = 0; i < out[0].count; i++) {
        int64_t rest = i, at = view.start;
        for (int k = view.parts - 1; k >= 0; k--) {
            at += rest % view.dim[k] * view.step[k];
            rest /= view.dim[k];
        }
        assert_true(fabs(out[0].f[i] - view.factor * out[1].f[at]) < 1e-6);
    }
    ref_release(&out[0]);
    ref_release(&out[1]);
}

TEST(views_say_where_elements_lie)
{
    static const int64_t cyclic[] = {2, 0, 1}, mixed[] = {3, 4, 1, 0, 2};
    struct graph *g = graph_new("views");
    int x = noise_input(g, "x", shape_of(4, 6, 5));
    int y = scaled(g, turned(g, x, cyclic), 3);                        /* [5, 4, 6] */
    y = slice(g, y, (struct range){.axis = 2, .start = 1, .stop = 5}); /* [5, 4, 4] */
    y = reshaped(g, scaled(g, y, 0.5F), (struct shape){5, {5, 1, 2, 2, 4}});
    assert_view(g, turned(g, y, mixed), 8, x);
    assert_view(g, reshaped(g, turned(g, y, mixed), shape_of(8, 10)), 8, x);
    assert_view(g, x, 8, x);
    graph_free(g);
}

/* Rows and columns that were exchanged and then called one axis are two parts of it: what cuts them
 * elsewhere is no view of what they were. */
TEST(an_axis_of_two_parts)
{
    static const int64_t back[] = {1, 0};
    struct graph *g = graph_new("parts");
    int x = noise_input(g, "x", shape_of(4, 6)), column = turned(g, x, back);
    int line = reshaped(g, column, shape_of(24));
    assert_view(g, line, 8, x);
    assert_view(g, reshaped(g, line, shape_of(3, 8)), 8, x);
    int cut = slice(g, line, (struct range){.start = 3, .stop = 9});
    int third = reshaped(g, line, shape_of(8, 3));
    assert_view(g, cut, 8, cut);
    assert_view(g, cut, 2, column);
    assert_view(g, third, 8, third);
    assert_view(g, third, 2, column);
    graph_free(g);
}
