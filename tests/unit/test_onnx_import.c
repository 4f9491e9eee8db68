/* SPDX-License-Identifier: Apache-2.0
 *
 * What the node tests of ONNX do not cover: control flow, functions, sizes known at run time,
 * messages. */

#include <string.h>

#include "engine/reference/reference.h"
#include "engine/run/exe.h"
#include "tests/lib/onnx_build.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/onnx/onnx.h"

static struct graph *import_with(struct builder *b, const struct onnx_import_options *options,
                                 struct error *err)
{
    struct graph *g = NULL;
    build_end(b);
    *err = (struct error){0};
    onnx_import_memory(b->bytes, b->size, NULL, "test.onnx", options, &g, err);
    build_release(b);
    return g;
}

static struct graph *import(struct builder *b)
{
    struct error err;
    struct graph *g = import_with(b, NULL, &err);
    if (!g)
        print_error("%s\n", err.message);
    assert_non_null(g);
    return g;
}

/* The import must fail, saying this. */
static void refused(struct builder *b, const char *message)
{
    struct error err;
    struct graph *g = import_with(b, NULL, &err);
    assert_null(g);
    if (!strstr(err.message, message))
        print_error("\"%s\" should say \"%s\"\n", err.message, message);
    assert_non_null(strstr(err.message, message));
}

/* Runs the graph on 1, 2, 3 ... and compares output k. */
static void gives(const struct graph *g, int k, int count, const double *want)
{
    struct ref_tensor in[4] = {0}, out[4] = {0};
    for (int i = 0; i < g->input_count; i++) {
        const struct value *value = &g->values[g->inputs[i]];
        float data[64];
        for (int e = 0; e < 64; e++)
            data[e] = (float)(e + 1);
        MUST(ref_from_data, &in[i], value->dtype, &value->shape, data);
    }
    MUST(reference_run, g, in, out, NULL);
    assert_int_equal(out[k].count, count);
    for (int e = 0; e < count; e++)
        assert_true(ref_get(&out[k], e) == want[e]);
    for (int i = 0; i < 4; i++) {
        ref_release(&in[i]);
        ref_release(&out[i]);
    }
}

/* ---- folding ---- */

TEST(shape_chains_vanish)
{
    struct builder b = {0};
    build_model(&b, 17);
    build_input(&b, "x", 1, "N,2,3");
    build_i64(&b, "zero", "", 0);
    build_i64(&b, "axis", "1", 0);
    build_i64(&b, "rest", "1", -1);
    build_node(&b, "Shape", "x", "s");
    build_close(&b);
    build_node(&b, "Gather", "s zero", "n");
    build_close(&b);
    build_node(&b, "Unsqueeze", "n axis", "n1");
    build_close(&b);
    build_node(&b, "Concat", "n1 rest", "to");
    build_attr_int(&b, "axis", 0);
    build_close(&b);
    build_node(&b, "Reshape", "x to", "y");
    build_close(&b);
    build_output(&b, "y", 1, "N,6");
    struct error err;
    struct onnx_import_options options = {.batch = 5};
    struct graph *g = import_with(&b, &options, &err);
    assert_non_null(g);
    assert_int_equal(g->node_count, 1);
    struct shape want = shape_of(5, 6);
    assert_true(shape_equal(&g->values[g->outputs[0]].shape, &want));
    assert_string_equal(g->values[g->outputs[0]].name, "y");
    graph_free(g);
}

/* ---- control flow ---- */

/* y = 8 x after three doublings, and the doubled values on the way. */
TEST(loops_are_unrolled)
{
    static const uint8_t yes = 1;
    static const double y[2] = {8, 16}, all[6] = {2, 4, 4, 8, 8, 16};
    struct builder b = {0};
    build_model(&b, 17);
    build_input(&b, "x", 1, "2");
    build_i64(&b, "trips", "", 3);
    build_tensor(&b, "go", 9, "", &yes, 1);
    build_node(&b, "Loop", "trips go x", "y all");
    build_attr_graph(&b, "body");
    build_node(&b, "Add", "v v", "w");
    build_close(&b);
    build_input(&b, "i", 7, "");
    build_input(&b, "c", 9, "");
    build_input(&b, "v", 1, "2");
    build_output(&b, "c", 9, "");
    build_output(&b, "w", 1, "2");
    build_output(&b, "w", 1, "2");
    build_close(&b);
    build_close(&b);
    build_close(&b);
    build_output(&b, "y", 1, "2");
    build_output(&b, "all", 1, "3,2");
    struct graph *g = import(&b);
    assert_int_equal(count_ops(g, "Add"), 3);
    gives(g, 0, 2, y);
    gives(g, 1, 6, all);
    graph_free(g);
}

/* v doubles while its sum is below the limit, which only the run can tell; at most five times. */
static void build_while(struct builder *b, float limit, bool collects)
{
    build_model(b, 17);
    build_input(b, "x", 1, "2");
    build_i64(b, "trips", "", 5);
    build_tensor(b, "limit", 1, "", &limit, sizeof(limit));
    build_node(b, "ReduceSum", "x", "sum");
    build_attr_int(b, "keepdims", 0);
    build_close(b);
    build_node(b, "Less", "sum limit", "go");
    build_close(b);
    build_node(b, "Loop", "trips go x", collects ? "y all" : "y");
    build_attr_graph(b, "body");
    build_node(b, "Add", "v v", "w");
    build_close(b);
    build_node(b, "ReduceSum", "w", "total");
    build_attr_int(b, "keepdims", 0);
    build_close(b);
    build_node(b, "Less", "total limit", "more");
    build_close(b);
    build_input(b, "i", 7, "");
    build_input(b, "c", 9, "");
    build_input(b, "v", 1, "2");
    build_output(b, "more", 9, "");
    build_output(b, "w", 1, "2");
    if (collects)
        build_output(b, "w", 1, "2");
    build_close(b);
    build_close(b);
    build_close(b);
    build_output(b, "y", 1, "2");
}

TEST(loops_end_where_only_the_run_can_tell)
{
    static const struct {
        float limit;
        double y[2];
    } cases[] = {{1, {1, 2}}, {4, {2, 4}}, {10, {4, 8}}, {1000, {32, 64}}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct builder b = {0};
        build_while(&b, cases[k].limit, false);
        struct graph *g = import(&b);
        gives(g, 0, 2, cases[k].y);
        graph_free(g);
    }
    struct builder b = {0};
    build_while(&b, 10, true);
    refused(&b, "only at run time, and there are scan outputs");
}

static void build_if(struct builder *b, const char *condition)
{
    static const float three = 3;
    build_node(b, "If", condition, "y");
    build_attr_graph(b, "then_branch");
    build_node(b, "Add", "x x", "t");
    build_close(b);
    build_output(b, "t", 1, "2");
    build_close(b);
    build_close(b);
    build_attr_graph(b, "else_branch");
    build_tensor(b, "k", 1, "", &three, 4);
    build_node(b, "Mul", "x k", "e");
    build_close(b);
    build_output(b, "e", 1, "2");
    build_close(b);
    build_close(b);
    build_close(b);
    build_output(b, "y", 1, "2");
}

TEST(known_branches_are_inlined)
{
    static const uint8_t yes = 1, no = 0;
    static const double twice[2] = {2, 4}, thrice[2] = {3, 6};
    for (int k = 0; k < 2; k++) {
        struct builder b = {0};
        build_model(&b, 17);
        build_input(&b, "x", 1, "2");
        build_tensor(&b, "c", 9, "", k ? &yes : &no, 1);
        build_if(&b, "c");
        struct graph *g = import(&b);
        assert_int_equal(g->node_count, 1);
        gives(g, 0, 2, k ? twice : thrice);
        graph_free(g);
    }
}

TEST(unknown_branches_are_both_computed)
{
    static const double twice[2] = {2, 4}, thrice[2] = {3, 6};
    for (int k = 0; k < 2; k++) {
        float limit = k ? 2.5f : 3.5f; /* the sum is 3 */
        struct builder b = {0};
        build_model(&b, 17);
        build_input(&b, "x", 1, "2");
        build_tensor(&b, "limit", 1, "", &limit, 4);
        build_node(&b, "ReduceSum", "x", "s");
        build_attr_int(&b, "keepdims", 0);
        build_close(&b);
        build_node(&b, "Greater", "s limit", "c");
        build_close(&b);
        build_if(&b, "c");
        struct graph *g = import(&b);
        assert_int_equal(count_ops(g, "Where"), 1);
        gives(g, 0, 2, k ? twice : thrice);
        graph_free(g);
    }
}

/* Scale(x, alpha) = alpha x; the model computes Scale(Scale(x, 2), 5). */
TEST(functions_are_inlined)
{
    static const double want[2] = {10, 20};
    struct builder b = {0};
    build_model(&b, 17);
    build_input(&b, "x", 1, "2");
    for (int k = 0; k < 2; k++) {
        build_node(&b, "Scale", k ? "m" : "x", k ? "y" : "m");
        build_text(&b, 7, "own");
        build_attr_float(&b, "alpha", k ? 5 : 2);
        build_close(&b);
    }
    build_output(&b, "y", 1, "2");
    build_close(&b);
    build_open(&b, 25);
    build_text(&b, 1, "Scale");
    build_text(&b, 4, "in");
    build_text(&b, 5, "out");
    build_text(&b, 6, "alpha");
    build_text(&b, 10, "own");
    build_open(&b, 7);
    build_text(&b, 2, "k");
    build_text(&b, 4, "Constant");
    build_attr_ref(&b, "value_float", "alpha", 1);
    build_close(&b);
    build_open(&b, 7);
    build_text(&b, 1, "in");
    build_text(&b, 1, "k");
    build_text(&b, 2, "out");
    build_text(&b, 4, "Mul");
    build_close(&b);
    struct graph *g = import(&b);
    assert_int_equal(g->node_count, 2);
    gives(g, 0, 2, want);
    graph_free(g);
}

/* ---- sizes known at run time ---- */

static void build_non_zero(struct builder *b)
{
    build_model(b, 17);
    build_input(b, "x", 1, "2,3");
    build_node(b, "NonZero", "x", "nz");
    build_close(b);
}

TEST(counts_follow)
{
    struct builder b = {0};
    build_non_zero(&b);
    build_node(&b, "Transpose", "nz", "rows");
    build_close(&b);
    build_node(&b, "GatherND", "x rows", "y");
    build_close(&b);
    build_output(&b, "rows", 7, "n,2");
    build_output(&b, "y", 1, "n");
    struct graph *g = import(&b);
    const struct value *rows = &g->values[g->outputs[0]], *y = &g->values[g->outputs[1]];
    assert_int_not_equal(rows->count, NONE);
    assert_int_equal(rows->count_axis, 0);
    assert_int_equal(y->count, rows->count);
    assert_int_equal(y->count_axis, 0);
    graph_free(g);
}

TEST(padding_is_not_computed_with)
{
    struct builder b = {0};
    build_non_zero(&b);
    build_node(&b, "ReduceSum", "nz", "y");
    build_close(&b);
    build_output(&b, "y", 7, "1,1");
    refused(&b, "known only at run time");
}

/* ---- what is missing is said ---- */

TEST(messages_help)
{
    struct builder b = {0};
    build_model(&b, 17);
    build_input(&b, "x", 1, "2");
    build_node(&b, "Sigmod", "x", "y");
    build_text(&b, 3, "activation");
    build_close(&b);
    build_output(&b, "y", 1, "2");
    struct error err;
    assert_null(import_with(&b, NULL, &err));
    assert_int_equal(err.code, STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "test.onnx"));
    assert_non_null(strstr(err.message, "activation"));
    assert_non_null(strstr(err.message, "Sigmod"));
    assert_non_null(strstr(err.message, "Sigmoid"));

    build_model(&b, 17);
    build_input(&b, "x", 1, "2");
    build_node(&b, "Relu", "x", "y");
    build_attr_int(&b, "leak", 1);
    build_close(&b);
    build_output(&b, "y", 1, "2");
    refused(&b, "attribute \"leak\" of Relu");

    build_model(&b, 17);
    build_input(&b, "x", 1, "2,T");
    build_node(&b, "Relu", "x", "y");
    build_close(&b);
    build_output(&b, "y", 1, "2,T");
    refused(&b, "dimension 1 (\"T\")");

    build_model(&b, 17);
    build_input(&b, "x", 1, "2,3");
    build_input(&b, "s", 7, "1");
    build_node(&b, "Reshape", "x s", "y");
    build_close(&b);
    build_output(&b, "y", 1, "6");
    refused(&b, "\"s\" is known only at run time");

    build_model(&b, 99);
    build_output(&b, "y", 1, "6");
    refused(&b, "operator set 99");
}

static void relu(struct builder *b, const char *dims)
{
    build_model(b, 17);
    build_input(b, "x", 1, dims);
    build_node(b, "Relu", "x", "y");
    build_close(b);
    build_output(b, "y", 1, dims);
}

TEST(options_must_have_an_effect)
{
    static const char *const right[] = {"T=7"}, *const wrong[] = {"S=7"};
    struct error err;
    struct builder b = {0};
    struct onnx_import_options options = {.batch = 3, .dims = right, .dim_count = 1};
    relu(&b, "N,T");
    struct graph *g = import_with(&b, &options, &err);
    struct shape want = shape_of(3, 7);
    assert_non_null(g);
    assert_true(shape_equal(&g->values[g->outputs[0]].shape, &want));
    graph_free(g);

    options.dims = wrong;
    relu(&b, "N,T");
    assert_null(import_with(&b, &options, &err));

    options = (struct onnx_import_options){.batch = 3};
    relu(&b, "2,3");
    assert_null(import_with(&b, &options, &err));
    assert_non_null(strstr(err.message, "fixes the batch"));

    struct shape shape = shape_of(2, 3);
    struct onnx_binding binding = {.name = "z",
                                   .desc = desc_dense(DTYPE_F32, &shape, LAYOUT_PLAIN)};
    options = (struct onnx_import_options){.bindings = &binding, .binding_count = 1};
    relu(&b, "2,3");
    assert_null(import_with(&b, &options, &err));
    assert_non_null(strstr(err.message, "no input \"z\""));
}

/* Contents decide a shape: the input becomes a constant. Otherwise it stays an input. */
TEST(needed_contents_become_constants)
{
    static const int64_t six = 6;
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    struct error err;
    struct builder b = {0};
    struct shape matrix = shape_of(2, 3), one = shape_of(1);
    struct onnx_binding bindings[] = {
        {.name = "x", .desc = desc_dense(DTYPE_F32, &matrix, LAYOUT_PLAIN), .data = data},
        {.name = "s", .desc = desc_dense(DTYPE_I64, &one, LAYOUT_PLAIN), .data = &six}};
    struct onnx_import_options options = {.bindings = bindings, .binding_count = 2};
    build_model(&b, 17);
    build_input(&b, "x", 1, "2,3");
    build_input(&b, "s", 7, "1");
    build_node(&b, "Abs", "s", "t");
    build_close(&b);
    build_node(&b, "Reshape", "x t", "y");
    build_close(&b);
    build_output(&b, "y", 1, "6");
    struct graph *g = import_with(&b, &options, &err);
    assert_non_null(g);
    assert_int_equal(g->input_count, 1);
    assert_string_equal(g->values[g->inputs[0]].name, "x");
    assert_int_equal(g->node_count, 1);
    graph_free(g);
}
