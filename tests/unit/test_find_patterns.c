/* SPDX-License-Identifier: Apache-2.0
 *
 * Gelu, LayerNormalization and Attention are found in what exporters write, and not in what differs
 * from it by a rank, a constant or a size; whatever becomes of a graph, its result stays. */
#include <math.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/ops/lib/op_args.h"
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
    pass_keeps_result(g, pass, 1e-5);
    int count = count_ops(g, op);
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

/* The reference computes each node of 16 bits in double: rounded constants are all that differs. */
static void narrow_found(struct graph *g, int expected)
{
    MUST(graph_check, g);
    MUST(pass_find_gelu, g);
    graph_compact(g);
    MUST(graph_check, g);
    assert_int_equal(count_ops(g, "Gelu"), expected);
    graph_free(g);
}

/* A scalar of 16 bits, as exporters write whole models. */
static int narrow_number(struct graph *g, enum dtype type, float value)
{
    uint16_t bits;
    floats_store(type, &value, &bits, 1);
    return graph_const(g, NULL, type, (struct shape){0}, &bits);
}

static struct graph *narrow_gelu(enum dtype type, const char *by, float root, float one)
{
    struct graph *g = graph_new("gelu");
    int x = graph_node(g, "Cast", NULL, INPUTS(noise_input(g, "x", shape_of(4, 5))),
                       ATTRS(attr_int("to", dtype_to_onnx(type))));
    int argument = graph_node(g, by, NULL, INPUTS(x, narrow_number(g, type, root)), NO_ATTRS);
    int bell = add(g, unary(g, "Erf", argument), narrow_number(g, type, one));
    int y = mul(g, mul(g, x, bell), narrow_number(g, type, 0.5F));
    graph_output(g, cast(g, y, DTYPE_F32));
    return g;
}

/* Constants of 16 bits were not read, and are not as near to their numbers as six digits. */
TEST(a_gelu_of_16_bits_is_found)
{
    static const enum dtype types[] = {DTYPE_F16, DTYPE_BF16};
    for (int k = 0; k < 2; k++) {
        float above = k ? 1 + 0x1p-7F : 1 + 0x1p-10F, below = k ? 1 - 0x1p-8F : 1 - 0x1p-11F;
        float next = k ? 0.70703125F + 0x1p-8F : 0.70703125F + 0x1p-11F + 0x1p-11F;
        narrow_found(narrow_gelu(types[k], "Mul", 0.70710678F, 1), 1);
        narrow_found(narrow_gelu(types[k], "Div", 1.41421356F, 1), 1);
        narrow_found(narrow_gelu(types[k], "Mul", 0.70710678F, above), 0);
        narrow_found(narrow_gelu(types[k], "Mul", 0.70710678F, below), 0);
        narrow_found(narrow_gelu(types[k], "Mul", next, 1), 0);
    }
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

enum root { DIVIDES, RECIPROCAL, ONE_DIVIDED, TWO_DIVIDED };

/* x / sqrt(mean(of^2) + eps) * scale */
static struct graph *rms_graph(enum root how, bool of_another, struct shape scale, bool left)
{
    struct graph *g = graph_new("norm");
    int x = noise_input(g, "x", shape_of(2, 4, 5));
    int of = of_another ? noise_input(g, "z", shape_of(2, 4, 5)) : x;
    int square = left ? mul(g, of, of) : binary(g, "Pow", of, number(g, 2, false));
    int root = unary(g, "Sqrt", add(g, mean(g, square), number(g, 1e-3F, false)));
    int w = noise_param(g, "scale", scale), y;
    if (how == DIVIDES)
        y = binary(g, "Div", x, root);
    else if (how == RECIPROCAL)
        y = mul(g, x, unary(g, "Reciprocal", root));
    else
        y = mul(g, binary(g, "Div", number(g, how == ONE_DIVIDED ? 1 : 2, false), root), x);
    graph_output(g, left ? mul(g, w, y) : mul(g, y, w));
    return g;
}

TEST(norms_without_a_mean)
{
    static const struct {
        enum root how;
        bool of_another;
        struct shape scale;
        int found;
    } cases[] = {{DIVIDES, false, {1, {5}}, 1},     {RECIPROCAL, false, {1, {5}}, 1},
                 {ONE_DIVIDED, false, {1, {5}}, 1}, {TWO_DIVIDED, false, {1, {5}}, 0},
                 {DIVIDES, true, {1, {5}}, 0},      {RECIPROCAL, true, {1, {5}}, 0},
                 {DIVIDES, false, {2, {4, 5}}, 0},  {RECIPROCAL, false, {1, {1}}, 0}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++)
        for (int left = 0; left < 2; left++) {
            struct graph *g =
                rms_graph(cases[k].how, cases[k].of_another, cases[k].scale, left == 1);
            assert_int_equal(found(g, pass_find_layer_norm, "RMSNormalization"), cases[k].found);
        }
}

enum { BATCH = 2, QUERIES = 5, KEYS = 7, HEADS = 3, SIZE = 4 };

struct sizes {
    int64_t q, k, v, mask; /* batch of each; 0: no mask */
    int64_t size_v;        /* of a head of v */
};

/* [B, S, G D] -> [B, G, S, D], or other axes. */
static int heads(struct graph *g, const char *name, struct shape s, const int64_t *perm)
{
    int x = noise_input(g, name, shape_of(s.dim[0], s.dim[1], HEADS * s.dim[2]));
    x = reshape(g, x, 4, (const int64_t[]){s.dim[0], s.dim[1], HEADS, s.dim[2]});
    return transpose(g, x, 4, perm);
}

static struct graph *attention_graph(const struct sizes *s)
{
    static const int64_t plain[] = {0, 2, 1, 3}, turned[] = {0, 2, 3, 1};
    struct graph *g = graph_new("attention");
    int q = heads(g, "q", shape_of(s->q, QUERIES, SIZE), plain);
    int k = heads(g, "k", shape_of(s->k, KEYS, SIZE), turned);
    int v = heads(g, "v", shape_of(s->v, KEYS, s->size_v), plain);
    int scores = mul(g, binary(g, "MatMul", q, k), number(g, 0.5F, false));
    if (s->mask)
        scores = add(g, scores, noise_input(g, "mask", shape_of(s->mask, 1, 1, KEYS)));
    int y = transpose(g, binary(g, "MatMul", softmax(g, scores, -1), v), 4, plain);
    graph_output(g, reshape(g, y, 3, (const int64_t[]){BATCH, QUERIES, HEADS * s->size_v}));
    return g;
}

/* Sizes that Attention does not have: such models could not be compiled. */
TEST(attention_with_another_batch_or_size_of_v_stays)
{
    static const struct {
        struct sizes sizes;
        int found;
    } cases[] = {{{BATCH, BATCH, BATCH, 0, SIZE}, 1}, {{BATCH, BATCH, BATCH, 1, SIZE}, 1},
                 {{BATCH, BATCH, BATCH, 0, 6}, 0},    {{1, BATCH, BATCH, 0, SIZE}, 0},
                 {{BATCH, 1, BATCH, 0, SIZE}, 0},     {{BATCH, BATCH, 1, 0, SIZE}, 0},
                 {{1, 1, BATCH, 0, SIZE}, 0},         {{1, 1, BATCH, BATCH, SIZE}, 0},
                 {{1, 1, 1, BATCH, SIZE}, 0}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++)
        assert_int_equal(found(attention_graph(&cases[k].sizes), pass_find_attention, "Attention"),
                         cases[k].found);
}
