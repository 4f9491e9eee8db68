/* SPDX-License-Identifier: Apache-2.0
 *
 * What the node tests of ONNX do not cover: control flow, functions, sizes known at run time,
 * messages. */

#include <stdlib.h>
#include <string.h>

#include "engine/reference/reference.h"
#include "engine/run/exe.h"
#include "tests/lib/onnx_build.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/onnx/onnx.h"

static struct graph *import_built(struct builder *b, const struct onnx_import_options *options,
                                  struct error *err)
{
    struct graph *g = NULL;
    build_end(b);
    *err = (struct error){0};
    onnx_import_memory(b->bytes, b->size, NULL, "test.onnx", options, &g, err);
    build_release(b);
    return g;
}

static struct graph *import_with(const char *text, const struct onnx_import_options *options,
                                 struct error *err)
{
    struct builder b = {0};
    build_file(&b, text);
    return import_built(&b, options, err);
}

static struct graph *import(const char *text)
{
    struct error err;
    struct graph *g = import_with(text, NULL, &err);
    if (!g)
        fail_msg("%s", err.message);
    return g;
}

/* The import must fail, saying this. */
static void refused(const char *text, const char *message)
{
    struct error err;
    struct graph *g = import_with(text, NULL, &err);
    if (g || !strstr(err.message, message))
        fail_msg("\"%s\" should say \"%s\"", err.message, message);
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

/* ---- numbers of 4 bits ---- */

static void numbers_are(const char *bytes, size_t size, enum dtype type, const int *want)
{
    struct desc desc;
    void *data;
    MUST(onnx_tensor_parse, bytes, size, &desc, &data, NULL);
    assert_int_equal(desc.dtype, type);
    assert_int_equal(shape_count(&desc.shape), 3);
    for (int k = 0; k < 3; k++)
        assert_int_equal(type == DTYPE_I8 ? ((int8_t *)data)[k] : ((uint8_t *)data)[k], want[k]);
    free(data);
}

/* Protocol buffers: dims, data_type (21 UINT4, 22 INT4), raw_data or int32_data. */
TEST(numbers_of_4_bits_become_bytes)
{
    static const char of_signed[] = "\x08\x03\x10\x16\x4a\x02\x8f\x07";
    static const char of_unsigned[] = "\x08\x03\x10\x15\x4a\x02\x8f\x07";
    static const char in_words[] = "\x08\x03\x10\x15\x2a\x03\x8f\x01\x07";
    static const char too_few[] = "\x08\x03\x10\x16\x4a\x01\x8f";
    struct desc desc;
    struct error err = {0};
    void *data;
    numbers_are(of_signed, 8, DTYPE_I8, (int[]){-1, -8, 7});
    numbers_are(of_unsigned, 8, DTYPE_U8, (int[]){15, 8, 7});
    numbers_are(in_words, 9, DTYPE_U8, (int[]){15, 8, 7});
    assert_int_equal(onnx_tensor_parse(too_few, 7, &desc, &data, NULL, &err), STATUS_FAILED);
    assert_string_equal(err.message, "raw_data has 1 bytes where 2 are needed");
}

/* ---- folding ---- */

TEST(shape_chains_vanish)
{
    struct error err;
    struct onnx_import_options options = {.batch = 5};
    struct graph *g = import_with("in x f32[N,2,3]; const zero i64[]=0; const axis i64[1]=0;"
                                  "const rest i64[1]=-1; s = Shape(x); n = Gather(s zero);"
                                  "n1 = Unsqueeze(n axis); to = Concat(n1 rest) axis=0;"
                                  "y = Reshape(x to); out y f32[N,6]",
                                  &options, &err);
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
    static const double y[2] = {8, 16}, all[6] = {2, 4, 4, 8, 8, 16};
    struct graph *g = import("in x f32[2]; const trips i64[]=3; const go bool[]=1;"
                             "y all = Loop(trips go x) body={"
                             "    in i i64[]; in c bool[]; in v f32[2]; w = Add(v v);"
                             "    out c bool[]; out w f32[2]; out w f32[2]};"
                             "out y f32[2]; out all f32[3,2]");
    assert_int_equal(count_ops(g, "Add"), 3);
    gives(g, 0, 2, y);
    gives(g, 1, 6, all);
    graph_free(g);
}

/* v doubles while its sum is below the limit, which only the run can tell; at most five times. */
#define WHILE(limit, outputs, collected)                                                           \
    "in x f32[2]; const trips i64[]=5; const limit f32[]=" limit ";"                               \
    "sum = ReduceSum(x) keepdims=0; go = Less(sum limit);" outputs " = Loop(trips go x) body={"    \
    "    in i i64[]; in c bool[]; in v f32[2]; w = Add(v v);"                                      \
    "    total = ReduceSum(w) keepdims=0; more = Less(total limit);"                               \
    "    out more bool[]; out w f32[2]" collected "}; out y f32[2]"

TEST(loops_end_where_only_the_run_can_tell)
{
    static const struct {
        const char *graph;
        double y[2];
    } cases[] = {{WHILE("1", "y", ""), {1, 2}},
                 {WHILE("4", "y", ""), {2, 4}},
                 {WHILE("10", "y", ""), {4, 8}},
                 {WHILE("1000", "y", ""), {32, 64}}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct graph *g = import(cases[k].graph);
        gives(g, 0, 2, cases[k].y);
        graph_free(g);
    }
    refused(WHILE("10", "y all", "; out w f32[2]"), "only at run time, and there are scan outputs");
}

/* Twice x if c, else three times. */
#define BRANCHES                                                                                   \
    "y = If(c) then_branch={t = Add(x x); out t f32[2]}"                                           \
    "          else_branch={const k f32[]=3; e = Mul(x k); out e f32[2]}; out y f32[2]"

TEST(branches_are_inlined_where_they_are_known_and_else_both_computed)
{
    static const struct {
        const char *graph;
        int nodes, choices;
        double y[2];
    } cases[] = {
        {"in x f32[2]; const c bool[]=1;" BRANCHES, 1, 0, {2, 4}},
        {"in x f32[2]; const c bool[]=0;" BRANCHES, 1, 0, {3, 6}},
        {"in x f32[2]; const limit f32[]=2.5; s = ReduceSum(x) keepdims=0;"
         "c = Greater(s limit);" BRANCHES,
         5,
         1,
         {2, 4}},
        {"in x f32[2]; const limit f32[]=3.5; s = ReduceSum(x) keepdims=0;"
         "c = Greater(s limit);" BRANCHES,
         5,
         1,
         {3, 6}},
    };
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct graph *g = import(cases[k].graph);
        assert_int_equal(g->node_count, cases[k].nodes);
        assert_int_equal(count_ops(g, "Where"), cases[k].choices);
        gives(g, 0, 2, cases[k].y);
        graph_free(g);
    }
}

/* Scale(x, alpha) = alpha x; the model computes Scale(Scale(x, 2), 5). */
TEST(functions_are_inlined)
{
    static const double want[2] = {10, 20};
    struct builder b = {0};
    build_model(&b, 17);
    build_graph(&b, "in x f32[2]; m = own.Scale(x) alpha=2.0; y = own.Scale(m) alpha=5.0;"
                    "out y f32[2]");
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
    struct error err;
    struct graph *g = import_built(&b, NULL, &err);
    assert_non_null(g);
    assert_int_equal(g->node_count, 2);
    gives(g, 0, 2, want);
    graph_free(g);
}

/* ---- sizes known at run time ---- */

TEST(counts_follow)
{
    struct graph *g = import("in x f32[2,3]; nz = NonZero(x); rows = Transpose(nz);"
                             "y = GatherND(x rows); out rows i64[n,2]; out y f32[n]");
    const struct value *rows = &g->values[g->outputs[0]], *y = &g->values[g->outputs[1]];
    assert_int_not_equal(rows->count, NONE);
    assert_int_equal(rows->count_axis, 0);
    assert_int_equal(y->count, rows->count);
    assert_int_equal(y->count_axis, 0);
    graph_free(g);
}

TEST(padding_is_not_computed_with)
{
    refused("in x f32[2,3]; nz = NonZero(x); y = ReduceSum(nz); out y i64[1,1]",
            "known only at run time");
}

/* ---- what is missing is said ---- */

TEST(messages_help)
{
    struct error err;
    assert_null(import_with("in x f32[2]; y = Sigmod(x) \"activation\"; out y f32[2]", NULL, &err));
    assert_int_equal(err.code, STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "test.onnx"));
    assert_non_null(strstr(err.message, "activation"));
    assert_non_null(strstr(err.message, "Sigmod"));
    assert_non_null(strstr(err.message, "Sigmoid"));
    refused("in x f32[2]; y = Relu(x) leak=1; out y f32[2]", "attribute \"leak\" of Relu");
    refused("in x f32[2,T]; y = Relu(x); out y f32[2,T]", "dimension 1 (\"T\")");
    refused("in x f32[2,3]; in s i64[1]; y = Reshape(x s); out y f32[6]",
            "\"s\" is known only at run time");

    struct builder b = {0};
    build_model(&b, 99);
    build_graph(&b, "out y f32[6]");
    assert_null(import_built(&b, NULL, &err));
    assert_non_null(strstr(err.message, "operator set 99"));
}

static const char free_relu[] = "in x f32[N,T]; y = Relu(x); out y f32[N,T]",
                  fixed_relu[] = "in x f32[2,3]; y = Relu(x); out y f32[2,3]";

TEST(options_must_have_an_effect)
{
    static const char *const right[] = {"T=7"}, *const wrong[] = {"S=7"};
    struct error err;
    struct onnx_import_options options = {.batch = 3, .dims = right, .dim_count = 1};
    struct graph *g = import_with(free_relu, &options, &err);
    struct shape want = shape_of(3, 7);
    assert_non_null(g);
    assert_true(shape_equal(&g->values[g->outputs[0]].shape, &want));
    graph_free(g);

    options.dims = wrong;
    assert_null(import_with(free_relu, &options, &err));

    options = (struct onnx_import_options){.batch = 3};
    assert_null(import_with(fixed_relu, &options, &err));
    assert_non_null(strstr(err.message, "fixes the batch"));

    struct shape shape = shape_of(2, 3);
    struct onnx_binding binding = {.name = "z",
                                   .desc = desc_dense(DTYPE_F32, &shape, LAYOUT_PLAIN)};
    options = (struct onnx_import_options){.bindings = &binding, .binding_count = 1};
    assert_null(import_with(fixed_relu, &options, &err));
    assert_non_null(strstr(err.message, "no input \"z\""));
}

/* Contents decide a shape: the input becomes a constant. Otherwise it stays an input. */
TEST(needed_contents_become_constants)
{
    static const int64_t six = 6;
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    struct error err;
    struct shape matrix = shape_of(2, 3), one = shape_of(1);
    struct onnx_binding bindings[] = {
        {.name = "x", .desc = desc_dense(DTYPE_F32, &matrix, LAYOUT_PLAIN), .data = data},
        {.name = "s", .desc = desc_dense(DTYPE_I64, &one, LAYOUT_PLAIN), .data = &six}};
    struct onnx_import_options options = {.bindings = bindings, .binding_count = 2};
    struct graph *g = import_with(
        "in x f32[2,3]; in s i64[1]; t = Abs(s); y = Reshape(x t); out y f32[6]", &options, &err);
    assert_non_null(g);
    assert_int_equal(g->input_count, 1);
    assert_string_equal(g->values[g->inputs[0]].name, "x");
    assert_int_equal(g->node_count, 1);
    graph_free(g);
}
