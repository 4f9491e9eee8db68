/* SPDX-License-Identifier: Apache-2.0
 * Quantised networks are computed on bytes wherever that gives the same integers: which patterns
 * become which operators, which must stay as they are, and that all of them are right. */
#include <string.h>

#include "harness/model/verify.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"

enum { CHANNELS = 20, SIZE = 9 };

/* What the tensors of a network are quantised to. */
struct kind {
    enum dtype type;
    int zero;
};

static const struct kind unsigned_bytes = {DTYPE_U8, 114}, signed_bytes = {DTYPE_I8, -9};

static int zero_of(struct graph *g, struct kind kind)
{
    const int8_t code = (int8_t)kind.zero;
    return graph_const(g, NULL, kind.type, shape_scalar(), &code);
}

static int quantise(struct graph *g, struct kind kind, int x, float scale)
{
    return graph_node(g, "QuantizeLinear", NULL,
                      INPUTS(x, graph_const_f32(g, scale), zero_of(g, kind)), NO_ATTRS);
}

static int dequantise(struct graph *g, struct kind kind, int x, float scale)
{
    return graph_node(g, "DequantizeLinear", NULL,
                      INPUTS(x, graph_const_f32(g, scale), zero_of(g, kind)), NO_ATTRS);
}

/* Both, as every tensor of such a network has them. */
static int rounded(struct graph *g, struct kind kind, int x, float scale)
{
    return dequantise(g, kind, quantise(g, kind, x, scale), scale);
}

/* Weights with a scale for each index of `axis`. */
static int weights(struct graph *g, struct shape shape, int64_t axis)
{
    struct fill codes = {.kind = FILL_INDEX, .a = -127, .b = 128};
    struct fill scales = {.kind = FILL_UNIFORM, .a = 0.001, .b = 0.01};
    int w = graph_param(g, NULL, DTYPE_I8, shape, codes);
    int scale = graph_param(g, NULL, DTYPE_F32, shape_of(shape.dim[axis]), scales);
    return graph_node(g, "DequantizeLinear", NULL, INPUTS(w, scale), ATTRS(attr_int("axis", axis)));
}

static int image(struct graph *g, const char *name)
{
    return noise_input(g, name, shape_of(1, CHANNELS, SIZE, SIZE));
}

static int conv(struct graph *g, int x, int64_t group, int64_t out)
{
    int w = weights(g, shape_of(out, CHANNELS / group, 3, 3), 0);
    int bias = noise_param(g, "bias", shape_of(out));
    return graph_node(g, "Conv", "conv", INPUTS(x, w, bias),
                      ATTRS(attr_int("group", group), attr_ints_of("pads", 1, 1, 1, 1)));
}

static int one(struct graph *g, const char *op, int x)
{
    return graph_node(g, op, NULL, INPUTS(x), NO_ATTRS);
}

/* ---- what becomes of it ---- */

static int steps_of(const struct exe *exe, const char *op)
{
    int count = 0;
    for (int s = 0; s < exe_step_count(exe); s++)
        count += strcmp(exe_step_at(exe, s).node->op->name, op) == 0;
    return count;
}

/* Takes the graph, whose output is y: it has `count` steps of the operator, `others` of Conv,
 * MatMul and Add among the rest, and is right, whatever its results are called outputs. */
static void becomes(struct graph *g, int y, const char *op, int count, int floats)
{
    static const char *const of_floats[] = {"Conv",   "MatMul",  "Gemm",       "Add",
                                            "Concat", "MaxPool", "MatMulNBits"};
    struct exe_options options = {
        .threads = 2, .isa = isa_detect(), .no_tune = true, .only_variant = NONE};
    struct verification v;
    graph_output(g, y);
    MUST(graph_check, g);
    struct exe *exe = compiled(g, &options);
    int left = 0;
    for (int k = 0; k < ARRAY_COUNT(of_floats); k++)
        left += strcmp(op, of_floats[k]) ? steps_of(exe, of_floats[k]) : 0;
    assert_int_equal(steps_of(exe, op), count);
    assert_int_equal(left, floats);
    MUST(verify_exe, g, exe, &v);
    if (v.error > v.bound || v.odd[0])
        fail_msg("error %g (bound %g) %s", v.error, v.bound, v.odd);
    exe_free(exe);
    graph_free(g);
}

TEST(convolutions_multiply_bytes)
{
    const struct kind kinds[] = {unsigned_bytes, signed_bytes};
    for (int k = 0; k < 4; k++) {
        struct graph *g = graph_new("conv");
        int y = conv(g, rounded(g, kinds[k % 2], image(g, "x"), 0.02F), 1, 7);
        if (k > 1)
            y = one(g, "Relu", y);
        becomes(g, rounded(g, kinds[k % 2], y, 0.07F), "ConvBytes", 1, 0);
    }
}

TEST(a_result_that_is_not_rounded_stays_floats)
{
    struct graph *g = graph_new("floats");
    int y = conv(g, rounded(g, unsigned_bytes, image(g, "x"), 0.02F), 1, CHANNELS);
    y = graph_node(g, "Add", NULL, INPUTS(y, image(g, "beside")), NO_ATTRS);
    becomes(g, one(g, "Sigmoid", y), "ConvBytes", 1, 0);
    struct graph *both = graph_new("both");
    y = conv(both, rounded(both, unsigned_bytes, image(both, "x"), 0.02F), 1, CHANNELS);
    graph_output(both, y);
    becomes(both, rounded(both, unsigned_bytes, y, 0.05F), "ConvBytes", 1, 0);
}

TEST(one_channel_per_group_multiplies_bytes)
{
    struct graph *g = graph_new("depthwise");
    int y = conv(g, rounded(g, signed_bytes, image(g, "x"), 0.02F), CHANNELS, CHANNELS);
    becomes(g, rounded(g, signed_bytes, y, 0.03F), "ConvBytes", 1, 0);
}

TEST(groups_of_whole_words_multiply_bytes)
{
    struct graph *g = graph_new("groups");
    int y = conv(g, rounded(g, signed_bytes, image(g, "x"), 0.02F), CHANNELS / 4, CHANNELS);
    becomes(g, rounded(g, signed_bytes, y, 0.03F), "ConvBytes", 1, 0);
}

/* No kernel multiplies bytes there, so floats must be left. */
TEST(other_groups_stay_floats)
{
    struct graph *g = graph_new("groups");
    int y = conv(g, rounded(g, signed_bytes, image(g, "x"), 0.02F), CHANNELS / 2, CHANNELS);
    becomes(g, rounded(g, signed_bytes, y, 0.03F), "ConvBytes", 0, 1);
    struct graph *deep = graph_new("depthwise");
    y = conv(deep, rounded(deep, signed_bytes, image(deep, "x"), 0.02F), CHANNELS, CHANNELS);
    becomes(deep, one(deep, "Sigmoid", y), "ConvBytes", 0, 1);
}

TEST(weights_off_the_middle_stay_floats)
{
    struct graph *g = graph_new("asymmetric");
    struct fill codes = {.kind = FILL_INDEX, .a = 0, .b = 256};
    int w = graph_param(g, NULL, DTYPE_U8, shape_of(7, CHANNELS, 3, 3), codes);
    int x = rounded(g, unsigned_bytes, image(g, "x"), 0.02F);
    int y =
        graph_node(g, "Conv", NULL, INPUTS(x, dequantise(g, unsigned_bytes, w, 0.01F)), NO_ATTRS);
    becomes(g, rounded(g, unsigned_bytes, y, 0.03F), "ConvBytes", 0, 1);
}

TEST(products_multiply_bytes)
{
    for (int k = 0; k < 3; k++) {
        struct graph *g = graph_new("product");
        struct shape shape = k ? shape_of(2, 5, 33) : shape_of(5, 33);
        int x = rounded(g, signed_bytes, noise_input(g, "x", shape), 0.02F);
        int w = weights(g, k ? shape_of(33, 12) : shape_of(12, 33), k > 0);
        int bias = noise_param(g, "bias", shape_of(12));
        int y = k ? graph_node(g, "MatMul", NULL, INPUTS(x, w), NO_ATTRS)
                  : graph_node(g, "Gemm", NULL, INPUTS(x, w, bias), ATTRS(attr_int("transB", 1)));
        if (k == 2) /* which the epilogue takes */
            y = graph_node(g, "Gelu", NULL,
                           INPUTS(graph_node(g, "Add", NULL, INPUTS(y, bias), NO_ATTRS)), NO_ATTRS);
        else
            y = rounded(g, unsigned_bytes, y, 0.05F);
        becomes(g, y, "MatMulBytes", 1, 0);
    }
}

/* 32 bits might not hold their sums. */
TEST(very_deep_products_stay_floats)
{
    for (int k = 0; k < 2; k++) {
        struct graph *g = graph_new("deep");
        int64_t depth = 65535 + k;
        int x = rounded(g, unsigned_bytes, noise_input(g, "x", shape_of(2, depth)), 0.02F);
        int y =
            graph_node(g, "MatMul", NULL, INPUTS(x, weights(g, shape_of(depth, 3), 1)), NO_ATTRS);
        becomes(g, rounded(g, unsigned_bytes, y, 0.7F), "MatMulBytes", !k, k);
    }
}

/* ---- weights alone ---- */

/* How weights of 33 rows and 12 columns, or the other way round, are dequantised. */
struct lone {
    enum dtype type;
    int low, high; /* of the codes */
    int block;     /* along the reduction; 0: a factor per column, -1: one for all */
    bool turned, zeros;
    int rows; /* of what they are multiplied by */
    int bits; /* of the codes in MatMulNBits; 0: they stay floats */
};

static int lone_weights(struct graph *g, const struct lone *l)
{
    enum { K = 70, N = 12 };
    struct fill codes = {.kind = FILL_INDEX, .a = l->low, .b = l->high};
    struct fill scales = {.kind = FILL_UNIFORM, .a = 0.01, .b = 0.1};
    int64_t blocks = l->block > 0 ? (K + l->block - 1) / l->block : 0;
    struct shape all = l->turned ? shape_of(N, K) : shape_of(K, N);
    struct shape factors = blocks           ? l->turned ? shape_of(N, blocks) : shape_of(blocks, N)
                                     : l->block == -1 ? shape_scalar()
                                            : shape_of(N);
    int w = graph_param(g, NULL, l->type, all, codes);
    int scale = graph_param(g, NULL, DTYPE_F32, factors, scales);
    int zero = l->zeros ? graph_param(g, NULL, l->type, factors, codes) : NONE;
    int axis = (blocks ? 0 : 1) ^ l->turned;
    return graph_node(g, "DequantizeLinear", NULL, INPUTS(w, scale, zero),
                      ATTRS(attr_int("axis", axis), attr_int("block_size", blocks ? l->block : 0)));
}

static void lone_becomes(const struct lone *l)
{
    struct graph *g = graph_new("weights");
    int x = noise_input(g, "x", shape_of(l->rows, 70)), w = lone_weights(g, l);
    int bias = noise_param(g, "bias", shape_of(12));
    int y = l->turned
                ? graph_node(g, "Gemm", NULL, INPUTS(x, w, bias), ATTRS(attr_int("transB", 1)))
                : graph_node(g, "MatMul", NULL, INPUTS(x, w), NO_ATTRS);
    becomes(g, y, "MatMulNBits", l->bits != 0, l->bits == 0);
}

TEST(weights_alone_are_read_as_they_are)
{
    static const struct lone cases[] = {
        {DTYPE_I8, -8, 8, 32, false, false, 3, 4},
        {DTYPE_I8, -8, 8, 16, true, true, 40, 4},
        {DTYPE_U8, 0, 16, 32, false, true, 1, 4},
        {DTYPE_U8, 0, 16, 0, true, true, 5, 4},
        {DTYPE_I8, -128, 128, 0, false, false, 2, 8},
        {DTYPE_U8, 0, 256, 32, true, true, 2, 8},
        {DTYPE_I8, -128, 128, -1, false, true, 4, 8},
        {DTYPE_U8, 0, 16, -1, false, false, 4, 4},
        /* Floats, made once, are better for many rows; blocks of other sizes have no kernel. */
        {DTYPE_I8, -128, 128, 0, false, false, 40, 0},
        {DTYPE_I8, -8, 8, 24, false, false, 3, 0}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++)
        lone_becomes(&cases[k]);
}

/* Their product is more than 64 bits hold. */
TEST(sizes_of_codes_that_make_no_sense_are_refused)
{
    struct error err = {0};
    struct graph *g = graph_new("sizes");
    int x = noise_input(g, "x", shape_of(1, 32)), w = noise_input(g, "scales", shape_of(1));
    int codes = graph_param(g, "codes", DTYPE_U8, shape_of(16), (struct fill){0});
    graph_node(g, "MatMulNBits", NULL, INPUTS(x, codes, w),
               ATTRS(attr_int("K", INT64_MAX / 2), attr_int("N", INT64_MAX / 2),
                     attr_int("bits", 8), attr_int("block_size", 16)));
    assert_int_equal(graph_check(g, &err), STATUS_FAILED);
    assert_non_null(strstr(err.message, "rows of"));
    graph_free(g);
}

TEST(sums_add_bytes)
{
    struct graph *g = graph_new("sum");
    int a = rounded(g, unsigned_bytes, image(g, "a"), 0.02F);
    int b = rounded(g, signed_bytes, image(g, "b"), 0.013F);
    int y = one(g, "Relu", graph_node(g, "Add", NULL, INPUTS(a, b), NO_ATTRS));
    becomes(g, rounded(g, unsigned_bytes, y, 0.03F), "AddBytes", 1, 0);
}

TEST(a_sum_with_a_row_stays_floats)
{
    struct graph *g = graph_new("row");
    int a = rounded(g, unsigned_bytes, image(g, "a"), 0.02F);
    int b = rounded(g, unsigned_bytes, noise_input(g, "b", shape_of(1, CHANNELS, 1, 1)), 0.02F);
    int y = graph_node(g, "Add", NULL, INPUTS(a, b), NO_ATTRS);
    becomes(g, rounded(g, unsigned_bytes, y, 0.03F), "AddBytes", 0, 1);
}

/* ---- what moves, and functions ---- */

TEST(pools_move_bytes)
{
    const struct kind kinds[] = {unsigned_bytes, signed_bytes};
    for (int k = 0; k < 2; k++) {
        struct graph *g = graph_new("pool");
        int x = rounded(g, kinds[k], image(g, "x"), 0.02F);
        int y = graph_node(g, "MaxPool", NULL, INPUTS(x),
                           ATTRS(attr_ints_of("kernel_shape", 3, 3), attr_ints_of("strides", 2, 2),
                                 attr_ints_of("pads", 1, 1, 1, 1)));
        becomes(g, rounded(g, kinds[k], y, 0.02F), "DequantizeLinear", 1, 1);
    }
}

TEST(parts_of_bytes_are_cut_off)
{
    struct graph *g = graph_new("split");
    int parts[2], x = rounded(g, unsigned_bytes, image(g, "x"), 0.02F);
    int sizes = graph_const_i64(g, 2, (const int64_t[]){7, CHANNELS - 7});
    graph_node_many(g, "Split", NULL, INPUTS(x, sizes), ATTRS(attr_int("axis", 1)), 2, parts);
    graph_output(g, rounded(g, unsigned_bytes, parts[0], 0.02F));
    becomes(g, rounded(g, unsigned_bytes, parts[1], 0.02F), "Split", 0, 0);
}

TEST(two_scales_side_by_side_are_a_table)
{
    struct graph *g = graph_new("concat");
    int a = rounded(g, unsigned_bytes, image(g, "a"), 0.02F);
    int b = rounded(g, unsigned_bytes, image(g, "b"), 0.013F);
    int y = graph_node(g, "Concat", NULL, INPUTS(a, b), ATTRS(attr_int("axis", 1)));
    becomes(g, rounded(g, unsigned_bytes, y, 0.02F), "TableBytes", 1,
            0); /* parts lie in the whole */
}

TEST(functions_are_tables)
{
    static const char *const functions[] = {"Sigmoid", "Tanh", "HardSwish", "Erf", "Relu", "Abs"};
    for (int k = 0; k < ARRAY_COUNT(functions); k++) {
        struct graph *g = graph_new("function");
        int x = rounded(g, k % 2 ? signed_bytes : unsigned_bytes, image(g, "x"), 0.03F);
        int y = one(g, functions[k], x);
        if (k > 2)
            y = graph_node(g, "Mul", NULL, INPUTS(y, graph_const_f32(g, 1.7F)), NO_ATTRS);
        becomes(g, rounded(g, signed_bytes, y, 0.01F), "TableBytes", 1, 0);
    }
}

TEST(two_tensors_are_multiplied_as_bytes)
{
    struct graph *g = graph_new("swish");
    int x = rounded(g, unsigned_bytes, image(g, "x"), 0.03F);
    int gate = rounded(g, signed_bytes, one(g, "HardSigmoid", x), 0.01F);
    int y = graph_node(g, "Mul", NULL, INPUTS(x, gate), NO_ATTRS);
    becomes(g, rounded(g, unsigned_bytes, y, 0.02F), "MulBytes", 1, 0);
}

TEST(a_gate_of_channels_is_multiplied_as_bytes)
{
    struct graph *g = graph_new("gate");
    int x = rounded(g, unsigned_bytes, image(g, "x"), 0.03F);
    int gate = noise_input(g, "gate", shape_of(1, CHANNELS, 1, 1));
    int y = graph_node(g, "Mul", NULL, INPUTS(rounded(g, signed_bytes, gate, 0.01F), x), NO_ATTRS);
    becomes(g, rounded(g, unsigned_bytes, y, 0.02F), "MulBytes", 1, 0);
}

/* One of them is not rounded before. */
TEST(a_function_of_two_tensors_is_no_table)
{
    struct graph *g = graph_new("gate");
    int x = rounded(g, unsigned_bytes, image(g, "x"), 0.03F);
    int y = graph_node(g, "Mul", NULL, INPUTS(x, one(g, "Sigmoid", x)), NO_ATTRS);
    becomes(g, rounded(g, unsigned_bytes, y, 0.01F), "TableBytes", 0, 0);
}

TEST(a_composed_function_is_a_table)
{
    struct graph *g = graph_new("gelu");
    int x = rounded(g, unsigned_bytes, image(g, "x"), 0.03F);
    int y = graph_node(g, "Mul", NULL, INPUTS(x, graph_const_f32(g, 0.70710678F)), NO_ATTRS);
    y = graph_node(g, "Add", NULL, INPUTS(one(g, "Erf", y), graph_const_f32(g, 1)), NO_ATTRS);
    y = graph_node(g, "Mul", NULL, INPUTS(x, y), NO_ATTRS);
    y = graph_node(g, "Mul", NULL, INPUTS(y, graph_const_f32(g, 0.5F)), NO_ATTRS);
    struct shape flat = shape_of(CHANNELS, SIZE * SIZE); /* what is rounded lies otherwise */
    y = graph_node(g, "Reshape", NULL, INPUTS(y, graph_const_i64(g, 2, flat.dim)), NO_ATTRS);
    becomes(g, rounded(g, signed_bytes, y, 0.02F), "TableBytes", 1, 0);
}

/* A table of words of 94 MB was made floats in every run. */
TEST(rows_of_a_quantised_table_are_dequantised_alone)
{
    struct graph *g = graph_new("words");
    struct fill codes = {.kind = FILL_INDEX, .a = -128, .b = 128};
    struct fill rows = {.kind = FILL_INDEX, .a = 0, .b = 22000};
    int table = graph_param(g, NULL, DTYPE_I8, shape_of(22000, 768), codes);
    int ids = graph_input(g, "ids", DTYPE_I64, shape_of(1, 13), rows);
    int y = graph_node(g, "Gather", NULL, INPUTS(dequantise(g, signed_bytes, table, 0.02F), ids),
                       NO_ATTRS);
    struct exe_options options = {
        .threads = 2, .isa = isa_detect(), .no_tune = true, .only_variant = NONE};
    graph_output(g, y);
    MUST(graph_check, g);
    struct exe *exe = compiled(g, &options);
    struct exe_step last = exe_step_at(exe, exe_step_count(exe) - 1);
    assert_string_equal(last.node->op->name, "DequantizeLinear");
    assert_int_equal(last.query->in[0].shape.dim[1], 13);
    assert_true(run_error(exe, g) < 1e-6);
    exe_graph_free(exe, g);
}

/* With other kernels alone, the reference would have been left. */
TEST(what_only_native_kernels_compute_is_made_for_them)
{
    struct graph *g = graph_new("conv");
    int y = conv(g, rounded(g, unsigned_bytes, image(g, "x"), 0.02F), 1, 7);
    struct exe_options options = {.threads = 2,
                                  .isa = isa_detect(),
                                  .providers = "reference",
                                  .no_tune = true,
                                  .only_variant = NONE};
    graph_output(g, rounded(g, unsigned_bytes, y, 0.07F));
    MUST(graph_check, g);
    struct exe *exe = compiled(g, &options);
    assert_int_equal(steps_of(exe, "Conv"), 1);
    exe_graph_free(exe, g);
}

/* ---- one node that says it all ---- */

TEST(q_linear_nodes_multiply_bytes)
{
    for (int k = 0; k < 2; k++) {
        struct graph *g = graph_new("q_linear");
        struct fill codes = {.kind = FILL_INDEX, .a = -127, .b = 128};
        struct fill units = {.kind = FILL_INDEX, .a = -3000, .b = 3000};
        struct shape x_shape = k ? shape_of(5, 32) : shape_of(1, CHANNELS, SIZE, SIZE);
        struct shape w_shape = k ? shape_of(32, 9) : shape_of(9, CHANNELS, 3, 3);
        int x = quantise(g, unsigned_bytes, noise_input(g, "x", x_shape), 0.02F);
        int w = graph_param(g, NULL, DTYPE_I8, w_shape, codes);
        int scales = noise_param(g, "scales", shape_of(9));
        int zeros = graph_const(g, NULL, DTYPE_I8, shape_of(9), (const int8_t[9]){0});
        int bias = graph_param(g, NULL, DTYPE_I32, shape_of(9), units);
        const int inputs[] = {
            x,     graph_const_f32(g, 0.02F), zero_of(g, unsigned_bytes), w,   scales,
            zeros, graph_const_f32(g, 0.7F),  zero_of(g, signed_bytes),   bias};
        int y =
            graph_node(g, k ? "QLinearMatMul" : "QLinearConv", NULL, k ? 8 : 9, inputs, NO_ATTRS);
        becomes(g, dequantise(g, signed_bytes, y, 0.7F), k ? "MatMulBytes" : "ConvBytes", 1, 0);
    }
}
