/* SPDX-License-Identifier: Apache-2.0
 * The notation of operator test cases: what it makes, and what it says about mistakes. */

#include <math.h>
#include <string.h>

#include "tests/lib/op_case.h"
#include "tests/lib/unit.h"

static struct graph *made(const char *op, const char *inputs, const char *attrs)
{
    struct error err = {0};
    struct op_case c = {.name = "test", .inputs = inputs, .attrs = attrs};
    struct graph *g = op_case_graph(op_find(op, NULL), &c, &err);
    if (!g)
        fail_msg("%s", err.message);
    return g;
}

static const struct value *input(const struct graph *g, int k)
{
    return &g->values[g->nodes[0].inputs[k]];
}

TEST(test_literals_become_constants)
{
    struct graph *g =
        made("Where", "bool[2,2]=1,0,true,false f32[2,2]=1,nan,-inf,1e-3 f32[]=7", "");
    const struct value *mask = input(g, 0), *x = input(g, 1), *y = input(g, 2);
    assert_int_equal(mask->kind, VALUE_CONST);
    assert_int_equal(mask->dtype, DTYPE_BOOL);
    assert_memory_equal(mask->data, ((uint8_t[]){1, 0, 1, 0}), 4);
    const float *data = x->data;
    assert_true(data[0] == 1 && isnan(data[1]) && data[2] == -INFINITY && data[3] == 1e-3f);
    assert_int_equal(y->shape.rank, 0);
    graph_free(g);
}

TEST(test_one_literal_repeats)
{
    struct graph *g = made("Add", "i64[3]=-5 i64[3]=1,2,3", NULL);
    assert_memory_equal(input(g, 0)->data, ((int64_t[]){-5, -5, -5}), 24);
    graph_free(g);
}

TEST(test_widest_literals)
{
    struct graph *g = made("Min", "u64[2]=18446744073709551615,0 u64[1]=3", NULL);
    assert_true(((const uint64_t *)input(g, 0)->data)[0] == UINT64_MAX);
    graph_free(g);
    g = made("Abs", "i64[1]=-9223372036854775808", NULL);
    assert_true(((const int64_t *)input(g, 0)->data)[0] == INT64_MIN);
    graph_free(g);
}

TEST(test_random_inputs)
{
    struct graph *g = made("Add", "f32[64]{0.5:2} f32[64]!", NULL);
    const struct value *x = input(g, 0), *w = input(g, 1);
    float data[64];
    assert_int_equal(x->kind, VALUE_INPUT);
    assert_int_equal(w->kind, VALUE_PARAM);
    assert_int_equal(g->input_count, 1);
    value_materialise(x, data);
    for (int k = 0; k < 64; k++)
        assert_true(data[k] >= 0.5f && data[k] < 2);
    assert_true(w->fill.a == -1 && w->fill.b == 1);
    graph_free(g);
    g = made("Not", "bool[64]", NULL);
    assert_true(input(g, 0)->fill.kind == FILL_INDEX && input(g, 0)->fill.b == 2);
    graph_free(g);
}

TEST(test_absent_inputs)
{
    struct graph *g = made("Clip", "f32[4] - f32[]=1", NULL);
    assert_int_equal(g->nodes[0].input_count, 3);
    assert_int_equal(g->nodes[0].inputs[1], NONE);
    graph_free(g);
}

TEST(test_attributes)
{
    struct graph *g = made("HardSigmoid", "f32[4]", "alpha=0.5 beta=1e-1");
    assert_true(node_float(&g->nodes[0], "alpha", 0) == 0.5);
    assert_true(node_float(&g->nodes[0], "beta", 0) == 0.1);
    graph_free(g);
    g = made("Transpose", "f32[2,3]", "perm=[1,0]");
    int64_t perm[2];
    assert_int_equal(node_ints(&g->nodes[0], "perm", perm, 2), 2);
    assert_true(perm[0] == 1 && perm[1] == 0);
    graph_free(g);
    g = made("Gelu", "f32[4]", "approximate=\"tanh\"");
    assert_string_equal(node_string(&g->nodes[0], "approximate", ""), "tanh");
    graph_free(g);
    g = made("Constant", "", "value=i32[2]=4,-5");
    assert_memory_equal(node_attr(&g->nodes[0], "value")->data, ((int32_t[]){4, -5}), 8);
    graph_free(g);
}

/* Each mistake must be named; the text is part of the message. */
static const struct {
    const char *op, *inputs, *attrs, *message;
} mistakes[] = {
    {"Relu", "f32", NULL, "TYPE[DIMS] is expected"},
    {"Relu", "float[2]", NULL, "no element type"},
    {"Relu", "f32[2", NULL, "',' or ']' is expected"},
    {"Relu", "f32[-2]", NULL, "negative"},
    {"Relu", "f32[1,1,1,1,1,1,1,1,1]", NULL, "too many dimensions"},
    {"Relu", "f32[2]?", NULL, "'=', '{', '!' or a blank"},
    {"Relu", "f32[2]{1}", NULL, "':' is expected"},
    {"Relu", "f32[2]{2:1}", NULL, "low is above high"},
    {"Relu", "f32[2]{1:2", NULL, "'}' is expected"},
    {"Relu", "f32[3]=1,2", NULL, "2 literals for 3 elements"},
    {"Relu", "f32[2]=1,2,3,4,5", NULL, "5 literals for 2 elements"},
    {"Relu", "f32[2]=1,x", NULL, "a number is expected"},
    {"Relu", "f32[1]!=1", NULL, "exclude"},
    {"Neg", "i8[1]=128", NULL, "does not fit its type"},
    {"Neg", "i8[1]=-129", NULL, "does not fit its type"},
    {"Abs", "u8[1]=-1", NULL, "does not fit its type"},
    {"Abs", "i32[1]=true", NULL, "for bool only"},
    {"Abs", "i32[1]=0.5", NULL, "'=', '{', '!' or a blank"},
    {"Not", "bool[1]=2", NULL, "does not fit its type"},
    {"Elu", "f32[2]", "alpha", "NAME=VALUE"},
    {"Elu", "f32[2]", "beta=1.0", "does not list this attribute"},
    {"Gelu", "f32[2]", "approximate=\"tanh", "missing after the text"},
    {"Transpose", "f32[2,3]", "perm=[1,0", "',' or ']' is expected"},
    {"Transpose", "f32[2,3]", "perm=[1,\"a\"]", "mixed"},
    {"Transpose", "f32[2,3]", "perm=[1,0]x", "a blank is expected"},
    {"Constant", "", "value=i32[2]", "needs literal contents"},
    {"Add", "f32[2] f32[3]", NULL, "do not broadcast"},
    {"Add", "f32[2] i32[2]", NULL, "Add/test"},
};

TEST(test_mistakes_are_named)
{
    for (int k = 0; k < ARRAY_COUNT(mistakes); k++) {
        struct error err = {0};
        struct op_case c = {
            .name = "test", .inputs = mistakes[k].inputs, .attrs = mistakes[k].attrs};
        struct graph *g = op_case_graph(op_find(mistakes[k].op, NULL), &c, &err);
        if (g || !strstr(err.message, mistakes[k].message))
            fail_msg("%s \"%s\": \"%s\" does not say \"%s\"", mistakes[k].op, mistakes[k].inputs,
                     g ? "(accepted)" : err.message, mistakes[k].message);
    }
}
