/* SPDX-License-Identifier: Apache-2.0
 * The pass that narrows a graph to 16 bits: which edges change, how many casts there are, how
 * weights are rounded, and that every workload comes out whole. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/compile/stages.h"
#include "engine/ops/family/narrow.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"
#include "workloads/workload.h"

static int input(struct graph *g, const char *name, int64_t rows, int64_t columns)
{
    return noise_input(g, name, shape_of(rows, columns));
}

static int product(struct graph *g, int x, const char *name, int64_t rows, int64_t columns)
{
    int w = noise_param(g, name, shape_of(rows, columns));
    return graph_node(g, "MatMul", NULL, INPUTS(x, w), NO_ATTRS);
}

static void narrowed(struct graph *g, enum dtype to)
{
    MUST(graph_check, g);
    MUST(pass_narrow, g, to, NULL);
    graph_compact(g);
    MUST(graph_check, g);
}

static enum dtype in_type(const struct graph *g, const char *op, int k)
{
    return g->values[node_of(g, op)->inputs[k]].dtype;
}

static enum dtype out_type(const struct graph *g, const char *op)
{
    return g->values[node_of(g, op)->outputs[0]].dtype;
}

/* ---- edges and casts ---- */

TEST(casts_stand_at_the_borders_alone)
{
    struct graph *g = graph_new("borders");
    int x = input(g, "x", 4, 8);
    int a = relu(g, product(g, x, "w1", 8, 8)), b = product(g, x, "w2", 8, 8);
    int y = add(g, a, b);
    graph_rename(g, y, "result");
    graph_output(g, y);
    narrowed(g, DTYPE_BF16);
    assert_int_equal(count_ops(g, "Cast"), 2); /* x is read twice and cast once */
    assert_int_equal(in_type(g, "MatMul", 0), DTYPE_BF16);
    assert_int_equal(in_type(g, "MatMul", 1), DTYPE_BF16);
    assert_int_equal(in_type(g, "Relu", 0), DTYPE_BF16);
    assert_int_equal(out_type(g, "Add"), DTYPE_BF16);
    assert_int_equal(g->values[g->inputs[0]].dtype, DTYPE_F32);
    assert_int_equal(g->values[g->outputs[0]].dtype, DTYPE_F32);
    assert_string_equal(g->values[g->outputs[0]].name, "result");
    graph_free(g);
}

/* A cache in 16 bits beside a network in f32: what it is given is rounded once, and what is read of
 * it is not widened on the way to a product in 16 bits. */
TEST(casts_of_the_graph_have_nothing_left_to_do)
{
    struct graph *g = graph_new("cache");
    struct fill fill = {.kind = FILL_NORMAL, .a = 0, .b = 1};
    int x = input(g, "x", 4, 8), y = product(g, x, "w1", 8, 8);
    int cache = graph_input(g, "cache", DTYPE_BF16, shape_of(8, 8), fill);
    int rounded = cast(g, y, DTYPE_BF16);
    int read = graph_node(g, "MatMul", NULL, INPUTS(y, cast(g, cache, DTYPE_F32)), NO_ATTRS);
    graph_rename(g, rounded, "row");
    graph_rename(g, read, "result");
    graph_output(g, rounded);
    graph_output(g, read);
    narrowed(g, DTYPE_BF16);
    assert_int_equal(count_ops(g, "Cast"), 2); /* of x and of the result */
    assert_int_equal(g->values[g->outputs[0]].dtype, DTYPE_BF16);
    assert_string_equal(g->values[g->outputs[0]].name, "row");
    assert_string_equal(g->values[g->outputs[1]].name, "result");
    graph_free(g);
}

/* What is both rounded by the graph and asked for in f32 stays two values. */
TEST(a_cast_of_the_graph_that_is_an_output_stays)
{
    struct graph *g = graph_new("both");
    int y = product(g, input(g, "x", 4, 8), "w1", 8, 8), rounded = cast(g, y, DTYPE_BF16);
    graph_rename(g, y, "wide");
    graph_rename(g, rounded, "narrow");
    graph_output(g, rounded);
    graph_output(g, y);
    narrowed(g, DTYPE_BF16);
    assert_int_equal(g->values[g->outputs[0]].dtype, DTYPE_BF16);
    assert_int_equal(g->values[g->outputs[1]].dtype, DTYPE_F32);
    assert_string_equal(g->values[g->outputs[0]].name, "narrow");
    assert_string_equal(g->values[g->outputs[1]].name, "wide");
    graph_free(g);
}

/* What leads to a decision and nothing else is f32 from the last product on; elements that only
 * move do so before they are widened. */
TEST(decisions_and_what_leads_to_them_are_f32)
{
    const int64_t few[] = {3};
    struct graph *g = graph_new("decisions");
    int x = product(g, input(g, "x", 4, 8), "w", 8, 8);
    int turned = transpose(g, x, 2, (const int64_t[]){1, 0});
    int score = sigmoid(g, turned), best[2];
    assert_int_equal(graph_node_many(g, "TopK", NULL, INPUTS(score, graph_const_i64(g, 1, few)),
                                     NO_ATTRS, 2, best),
                     STATUS_OK);
    graph_output(g, best[0]);
    graph_output(g, best[1]);
    narrowed(g, DTYPE_F16);
    assert_int_equal(count_ops(g, "Cast"), 2);
    assert_int_equal(in_type(g, "MatMul", 0), DTYPE_F16);
    assert_int_equal(out_type(g, "Transpose"), DTYPE_F16);
    assert_int_equal(in_type(g, "Sigmoid", 0), DTYPE_F32);
    assert_int_equal(in_type(g, "TopK", 0), DTYPE_F32);
    assert_int_equal(g->values[g->outputs[1]].dtype, DTYPE_I64);
    graph_free(g);
}

/* A comparison reads its f32 input itself, and a value that came in f32 moves in f32. */
TEST(inputs_reach_decisions_unrounded)
{
    struct graph *g = graph_new("inputs");
    int x = input(g, "x", 4, 8), zero = graph_const_f32(g, 0.0f);
    int turned = transpose(g, x, 2, (const int64_t[]){1, 0});
    graph_output(g, graph_node(g, "Greater", NULL, INPUTS(turned, zero), NO_ATTRS));
    graph_output(g, product(g, turned, "w", 4, 4));
    narrowed(g, DTYPE_BF16);
    assert_int_equal(out_type(g, "Transpose"), DTYPE_F32);
    assert_int_equal(in_type(g, "Greater", 0), DTYPE_F32);
    assert_int_equal(in_type(g, "Greater", 1), DTYPE_F32);
    assert_int_equal(in_type(g, "MatMul", 0), DTYPE_BF16);
    assert_int_equal(count_ops(g, "Cast"), 2);
    graph_free(g);
}

/* Integers are cast to the narrow type at once; sums of them that become indices stay in f32. */
/* The product by which experts are chosen is f32 with all that follows it up to the choice; what
 * the experts themselves make is not. */
TEST(choices_of_experts_are_f32_from_their_product_on)
{
    struct graph *g = graph_new("experts");
    int x = product(g, input(g, "x", 6, 8), "first", 8, 8), top[2], sorted[2];
    int router =
        graph_node(g, "MatMul", "router", INPUTS(x, noise_param(g, "w", shape_of(8, 5))), NO_ATTRS);
    graph_node_many(g, "TopK", NULL,
                    INPUTS(softmax(g, router, 1), graph_const_i64(g, 1, (int64_t[]){2})), NO_ATTRS,
                    2, top);
    graph_node_many(g, "ExpertSort", NULL, INPUTS(top[1]), ATTRS(attr_int("experts", 5)), 2,
                    sorted);
    int y = graph_node(g, "GroupedMatMul", NULL,
                       INPUTS(x, noise_param(g, "all", shape_of(5, 8, 8)), sorted[1], sorted[0]),
                       ATTRS(attr_int("chosen", 2)));
    y = graph_node(g, "ExpertCombine", NULL, INPUTS(y, sorted[0], top[0]), NO_ATTRS);
    graph_output(g, product(g, y, "last", 8, 8));
    narrowed(g, DTYPE_BF16);
    for (int n = 0; n < g->node_count; n++)
        if (strcmp(g->nodes[n].name, "router") == 0)
            assert_int_equal(g->values[g->nodes[n].inputs[1]].dtype, DTYPE_F32);
    assert_int_equal(out_type(g, "Softmax"), DTYPE_F32);
    assert_int_equal(out_type(g, "TopK"), DTYPE_F32);
    assert_int_equal(in_type(g, "GroupedMatMul", 0), DTYPE_BF16);
    assert_int_equal(in_type(g, "GroupedMatMul", 1), DTYPE_BF16);
    assert_int_equal(in_type(g, "ExpertCombine", 0), DTYPE_BF16);
    assert_int_equal(in_type(g, "ExpertCombine", 2), DTYPE_F32);
    assert_int_equal(out_type(g, "ExpertCombine"), DTYPE_BF16);
    graph_free(g);
}

TEST(integers_are_left_alone)
{
    struct graph *g = graph_new("integers");
    int id = graph_input(g, "id", DTYPE_I32, shape_of(4),
                         (struct fill){.kind = FILL_INDEX, .a = 0, .b = 5});
    int row = embedding(g, id, "table", 12, 8), flag = cast(g, id, DTYPE_F32);
    graph_output(g, mul(g, product(g, row, "w", 8, 4), flag));
    int next = cast(g, add(g, cast(g, id, DTYPE_F32), graph_const_f32(g, 1)), DTYPE_I32);
    graph_output(g, embedding(g, next, "other", 12, 8));
    narrowed(g, DTYPE_BF16);
    assert_int_equal(in_type(g, "Gather", 0), DTYPE_BF16);
    assert_int_equal(in_type(g, "Gather", 1), DTYPE_I32);
    assert_int_equal(in_type(g, "Mul", 1), DTYPE_BF16);
    assert_int_equal(in_type(g, "Add", 0), DTYPE_F32);
    assert_int_equal(in_type(g, "Add", 1), DTYPE_F32);
    assert_int_equal(count_ops(g, "Cast"), 3 + 2); /* the graph's own, and its two outputs */
    graph_free(g);
}

TEST(statistics_stay_in_f32)
{
    struct graph *g = graph_new("norm");
    int x = noise_input(g, "x", shape_of(1, 4, 3, 3));
    graph_output(g,
                 batch_norm(g, max_pool(g, x, (struct window2d){2, 1, 0, 0, 0, 0}), "bn", 1e-5, 1));
    narrowed(g, DTYPE_F16);
    assert_int_equal(in_type(g, "BatchNormalization", 0), DTYPE_F16);
    for (int k = 1; k < 5; k++)
        assert_int_equal(in_type(g, "BatchNormalization", k), DTYPE_F32);
    graph_free(g);
}

/* The images of regions are narrow, their corners are not: in bf16 they would be off by pixels. */
TEST(regions_keep_their_corners)
{
    struct graph *g = graph_new("regions");
    int x =
        conv2d(g, noise_input(g, "x", shape_of(1, 4, 9, 9)), .name = "c", .out = 4, .kernel = 3);
    int rois = noise_input(g, "rois", shape_of(2, 4));
    int image = graph_const_i64(g, 2, (const int64_t[]){0, 0});
    int crops = graph_node(g, "RoiAlign", NULL, INPUTS(x, rois, image),
                           ATTRS(attr_int("output_height", 3), attr_int("output_width", 3)));
    graph_output(g, conv2d(g, crops, .name = "d", .out = 4, .kernel = 3));
    narrowed(g, DTYPE_BF16);
    assert_int_equal(in_type(g, "RoiAlign", 0), DTYPE_BF16);
    assert_int_equal(in_type(g, "RoiAlign", 1), DTYPE_F32);
    assert_int_equal(out_type(g, "RoiAlign"), DTYPE_BF16);
    assert_int_equal(count_ops(g, "Cast"), 2); /* of the graph's input and its output */
    graph_free(g);
}

static int scattered(struct graph *g, const char *reduction)
{
    int x = input(g, "x", 4, 8), updates = product(g, input(g, "u", 2, 8), "w", 8, 8);
    int at = graph_const(g, "at", DTYPE_I64, shape_of(2, 1), (const int64_t[]){1, 3});
    return graph_node(g, "ScatterND", NULL, INPUTS(x, at, updates),
                      ATTRS(attr_string("reduction", reduction)));
}

/* With a reduction and without: in 16 bits, unless only a decision wants it. */
TEST(scatters_are_narrow_unless_a_decision_reads_them)
{
    for (int sums = 0; sums < 2; sums++) {
        const char *reduction = sums ? "add" : "none";
        struct graph *g = graph_new("decision");
        int y = scattered(g, reduction);
        graph_output(g, graph_node(g, "Greater", NULL, INPUTS(y, graph_const_f32(g, 0)), NO_ATTRS));
        narrowed(g, DTYPE_F16);
        assert_int_equal(out_type(g, "ScatterND"), DTYPE_F32);
        graph_free(g);
        g = graph_new("product");
        graph_output(g, product(g, scattered(g, reduction), "v", 8, 8));
        narrowed(g, DTYPE_F16);
        assert_int_equal(in_type(g, "ScatterND", 0), DTYPE_F16);
        assert_int_equal(in_type(g, "ScatterND", 2), DTYPE_F16);
        assert_int_equal(out_type(g, "ScatterND"), DTYPE_F16);
        graph_free(g);
    }
}

/* ---- weights ---- */

static const uint16_t *weights(const struct graph *g, uint16_t *made)
{
    value_materialise(&g->values[node_of(g, "MatMul")->inputs[1]], made);
    return made;
}

TEST(weights_are_rounded_to_nearest_even)
{
    /* halfway to even below, halfway to even above, above halfway, too large, f32's smallest mask
     */
    const float data[] = {0x1.01p0f, 0x1.03p0f, 0x1.010002p0f, 1e38f, -3.4e38f, 70000.0f};
    const uint16_t bf16[] = {0x3f80, 0x3f82, 0x3f81, 0x7e96, 0xff7f, 0x4789};
    struct graph *g = graph_new("weights");
    int w = graph_const(g, "w", DTYPE_F32, shape_of(6, 1), data);
    graph_output(g, graph_node(g, "MatMul", NULL, INPUTS(input(g, "x", 2, 6), w), NO_ATTRS));
    struct graph *copy = graph_copy(g);
    uint16_t made[6];
    narrowed(g, DTYPE_BF16);
    assert_memory_equal(weights(g, made), bf16, sizeof(bf16));
    narrowed(copy, DTYPE_F16);
    assert_int_equal(weights(copy, made)[5], 0x7bff); /* the largest f16, no infinity */
    assert_int_equal(made[1], half_from_float(data[1]));
    graph_free(copy);
    graph_free(g);
}

/* Weights that are made from a seed are those of the f32 graph, each rounded. */
/* Positions of words in RoBERTa and MPNet became bf16. */
TEST(integers_cast_to_integers_stay_integers)
{
    struct graph *g = graph_new("positions");
    struct fill fill = {.kind = FILL_INDEX, .a = 0, .b = 7};
    int id = graph_input(g, "id", DTYPE_I32, shape_of(4, 8), fill);
    int wide = graph_node(g, "Cast", "wide", INPUTS(id), ATTRS(attr_int("to", 7)));
    int twice = graph_node(g, "Add", "twice", INPUTS(wide, wide), NO_ATTRS);
    int x = graph_node(g, "Cast", "x", INPUTS(twice), ATTRS(attr_int("to", 1)));
    graph_output(g, product(g, x, "w", 8, 6));
    narrowed(g, DTYPE_BF16);
    assert_int_equal(in_type(g, "Add", 0), DTYPE_I64);
    assert_int_equal(in_type(g, "MatMul", 0), DTYPE_BF16);
    graph_free(g);
}

TEST(generated_weights_are_the_same_ones)
{
    const enum fill_kind kinds[] = {FILL_UNIFORM, FILL_NORMAL};
    for (int i = 0; i < 2; i++) {
        float wide[35];
        uint16_t made[35];
        struct graph *g = graph_new("weights");
        int w = graph_param(g, "w", DTYPE_F32, shape_of(7, 5),
                            (struct fill){.kind = kinds[i], .a = -0.3, .b = 0.7});
        value_materialise(&g->values[w], wide);
        graph_output(g, graph_node(g, "MatMul", NULL, INPUTS(input(g, "x", 2, 7), w), NO_ATTRS));
        narrowed(g, DTYPE_BF16);
        assert_null(g->values[node_of(g, "MatMul")->inputs[1]].data);
        weights(g, made);
        for (int k = 0; k < 35; k++)
            assert_int_equal(made[k], bfloat_from_float(wide[k]));
        graph_free(g);
    }
}

/* A lone tiny number does not vanish: it may be what a division is guarded with. */
TEST(small_scalars_do_not_vanish)
{
    struct graph *g = graph_new("guard");
    int x = relu(g, product(g, input(g, "x", 2, 7), "w", 7, 3));
    graph_output(g, add(g, x, graph_const_f32(g, 1e-12f)));
    narrowed(g, DTYPE_F16);
    uint16_t guard = 0;
    value_materialise(&g->values[node_of(g, "Add")->inputs[1]], &guard);
    assert_int_equal(guard, 1);
    graph_free(g);
}

/* Folding comes first: one rounding of the product, not a product of rounded numbers. */
TEST(batch_norms_are_folded_before_rounding)
{
    struct graph *g = graph_new("fold"), *wide;
    int x = noise_input(g, "x", shape_of(1, 4, 6, 6));
    graph_output(g, batch_norm(g, conv2d(g, x, .name = "c", .out = 8, .kernel = 3), "bn", 1e-3, 1));
    wide = graph_copy(g);
    struct exe_options options = {.precision = PRECISION_BF16};
    MUST(passes_run, g, &options, NULL, NULL);
    options.precision = PRECISION_F32;
    MUST(passes_run, wide, &options, NULL, NULL);
    float exact[8 * 4 * 9];
    uint16_t made[8 * 4 * 9];
    assert_int_equal(count_ops(g, "BatchNormalization"), 0);
    value_materialise(&wide->values[node_of(wide, "Conv")->inputs[1]], exact);
    value_materialise(&g->values[node_of(g, "Conv")->inputs[1]], made);
    for (int k = 0; k < 8 * 4 * 9; k++)
        assert_int_equal(made[k], bfloat_from_float(exact[k]));
    graph_free(wide);
    graph_free(g);
}

/* ---- whole networks ---- */

/* Every type is what the operator's own rule gives, and no Cast reads a Cast of the pass. */
static void check_types(struct graph *g, const char *name)
{
    for (int n = 0; n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        bool cast = strcmp(node->op->name, "Cast") == 0;
        enum dtype first = DTYPE_NONE;
        for (int k = 0; k < node->input_count && !cast; k++) {
            if (node->inputs[k] == NONE || (k < node->op_inputs && !narrow_takes(node->op, k)))
                continue;
            enum dtype type = g->values[node->inputs[k]].dtype;
            if (!dtype_is_float(type))
                continue;
            if (first != DTYPE_NONE && type != first)
                fail_msg("%s: node \"%s\" (%s) reads %s and %s", name, node->name, node->op->name,
                         dtype_name(first), dtype_name(type));
            first = type;
        }
        int from = cast ? g->values[node->inputs[0]].producer : NONE;
        if (from != NONE && strcmp(g->nodes[from].op->name, "Cast") == 0 &&
            dtype_is_float(g->values[g->nodes[from].inputs[0]].dtype))
            fail_msg("%s: \"%s\" casts what \"%s\" has cast", name, node->name,
                     g->nodes[from].name);
    }
}

static int count_f32_work(const struct graph *g)
{
    int count = 0;
    for (int n = 0; n < g->node_count; n++)
        count += narrow_class_of(g->nodes[n].op) == NARROW_WORK &&
                 g->values[g->nodes[n].outputs[0]].dtype == DTYPE_F32;
    return count;
}

TEST(all_workloads_are_narrowed_and_only_once)
{
    const enum dtype types[] = {DTYPE_BF16, DTYPE_F16};
    for (int w = 0; w < workload_count(); w++) {
        const char *name = workload_at(w)->name;
        struct error err = {0};
        struct graph *g;
        struct exe_options options = {.precision = w % 2 ? PRECISION_F16 : PRECISION_BF16};
        MUST(workload_open, name, 1, PRECISION_F32, &g);
        int inputs = g->input_count, outputs = g->output_count;
        if (passes_run(g, &options, NULL, NULL, &err) != STATUS_OK)
            fail_msg("%s: %s", name, err.message);
        check_types(g, name);
        /* The products by which experts are chosen, one for each choice. */
        assert_int_equal(count_f32_work(g), count_ops(g, "ExpertSort"));
        for (int k = 0; k < inputs; k++)
            assert_true(dtype_size(g->values[g->inputs[k]].dtype) != 2);
        for (int k = 0; k < outputs; k++)
            assert_true(dtype_size(g->values[g->outputs[k]].dtype) != 2);
        int nodes = g->node_count, values = g->value_count;
        narrowed(g, types[w % 2]);
        assert_int_equal(g->node_count, nodes);
        assert_int_equal(g->value_count, values);
        graph_free(g);
    }
}
