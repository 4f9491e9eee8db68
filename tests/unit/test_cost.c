/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "engine/graph/cost.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"

static int image(struct graph *g, int64_t batch)
{
    return noise_input(g, "x", shape_of(batch, 8, 4, 4));
}

static int param(struct graph *g, const char *name, struct shape shape)
{
    return noise_param(g, name, shape);
}

static struct graph_cost cost_of(struct graph *g)
{
    struct graph_cost cost;
    MUST(graph_check, g);
    graph_cost(g, &cost);
    graph_free(g);
    return cost;
}

static int conv(struct graph *g, int x, const char *name, int64_t out)
{
    char weight[64];
    snprintf(weight, sizeof(weight), "%s.weight", name);
    return graph_node(g, "Conv", name, INPUTS(x, param(g, weight, shape_of(out, 8, 1, 1))),
                      NO_ATTRS);
}

/* x [2,8,4,4], 1x1 convolution to 16 channels: 2*16*16*8 MACs, 256 + 128 + 512 floats moved. */
TEST(a_convolution_is_counted_by_hand)
{
    struct graph *g = graph_new("conv");
    graph_output(g, conv(g, image(g, 2), "c", 16));
    struct graph_cost cost = cost_of(g);
    assert_true(cost.work.macs == 4096);
    assert_true(cost.flops == 8192);
    assert_true(cost.params == 128 && cost.buffers == 0);
    assert_int_equal(cost.batch, 2);
    assert_true(cost.bytes_streamed == 4 * (256 + 128 + 512));
    assert_true(cost.bytes_compulsory == cost.bytes_streamed);
}

static int batch_norm(struct graph *g, int x)
{
    struct shape c = shape_of(8);
    return graph_node(
        g, "BatchNormalization", "bn",
        INPUTS(x, param(g, "scale", c), param(g, "shift", c), param(g, "m", c), param(g, "v", c)),
        NO_ATTRS);
}

/* conv, batch norm, residual addition, relu: one tensor is written; the other operand of the
 * addition is the graph's input. Mean and variance are no parameters. */
TEST(fused_work_moves_nothing)
{
    struct graph *g = graph_new("residual");
    int x = image(g, 1);
    int y = batch_norm(g, conv(g, x, "c", 8));
    y = graph_node(g, "Add", NULL, INPUTS(y, x), NO_ATTRS);
    graph_output(g, graph_node(g, "Relu", NULL, INPUTS(y), NO_ATTRS));
    struct graph_cost cost = cost_of(g);
    assert_true(cost.params == 64 + 16);
    assert_true(cost.buffers == 16);
    assert_true(cost.bytes_compulsory == 4 * (64 + 32 + 128 + 128));
    assert_true(cost.flops == 2 * 1024 + 128 * (2 + 1 + 1));
}

/* Both operands of the addition are convolutions: one of them has to be kept. */
TEST(one_branch_is_kept)
{
    struct graph *g = graph_new("branches");
    int x = image(g, 1), a = conv(g, x, "a", 8), b = conv(g, x, "b", 8);
    graph_output(g, graph_node(g, "Add", NULL, INPUTS(a, b), NO_ATTRS));
    assert_true(cost_of(g).bytes_compulsory == 4 * (128 + 2 * 64 + 2 * 128));
}

/* A gate that depends on the mean over the whole image cannot be applied where the image is made:
 * the image is kept, and the gated one as well. */
TEST(a_gate_from_the_whole_image_waits)
{
    struct graph *g = graph_new("gate");
    int y = conv(g, image(g, 1), "c", 8);
    int gate = graph_node(g, "GlobalAveragePool", NULL, INPUTS(y), NO_ATTRS);
    gate = graph_node(g, "Sigmoid", NULL, INPUTS(gate), NO_ATTRS);
    graph_output(g, graph_node(g, "Mul", NULL, INPUTS(y, gate), NO_ATTRS));
    assert_true(cost_of(g).bytes_compulsory == 4 * (128 + 64 + 128 + 8 + 128));
}

/* x * sigmoid(x) written out: the operand is read twice, inside one kernel. */
TEST(a_diamond_of_elementwise_nodes_is_one_kernel)
{
    struct graph *g = graph_new("swish");
    int y = conv(g, image(g, 1), "c", 8);
    int s = graph_node(g, "Sigmoid", NULL, INPUTS(y), NO_ATTRS);
    graph_output(g, graph_node(g, "Mul", NULL, INPUTS(y, s), NO_ATTRS));
    assert_true(cost_of(g).bytes_compulsory == 4 * (128 + 64 + 128));
}

TEST(renaming_and_permuting_are_free)
{
    struct graph *g = graph_new("views");
    int x = noise_input(g, "x", shape_of(4, 6));
    int y = graph_node(g, "MatMul", NULL, INPUTS(x, param(g, "w", shape_of(6, 6))), NO_ATTRS);
    y = graph_node(g, "Transpose", NULL, INPUTS(y), NO_ATTRS);
    y = graph_node(g, "Flatten", NULL, INPUTS(y), NO_ATTRS);
    graph_output(g, graph_node(g, "Relu", NULL, INPUTS(y), NO_ATTRS));
    struct graph_cost cost = cost_of(g);
    assert_true(cost.bytes_compulsory == 4 * (24 + 36 + 24));
    /* streamed: the permutation is a node that reads and writes, the renaming is not */
    assert_true(cost.bytes_streamed == 4 * (24 + 36 + 24 + 2 * 24 + 2 * 24));
}

/* What an alias shows is moved by no kernel: compulsory bytes were more than those streamed. */
TEST(an_input_that_is_a_result_moves_nothing)
{
    struct graph *g = graph_new("pass");
    graph_output(g, graph_node(g, "Identity", NULL, INPUTS(image(g, 2)), NO_ATTRS));
    struct graph_cost cost = cost_of(g);
    assert_true(cost.bytes_streamed == 0 && cost.bytes_compulsory == 0);

    g = graph_new("pass_and_read");
    int x = image(g, 2);
    graph_output(g, graph_node(g, "Identity", NULL, INPUTS(x), NO_ATTRS));
    graph_output(g, graph_node(g, "Relu", NULL, INPUTS(x), NO_ATTRS));
    cost = cost_of(g);
    assert_true(cost.bytes_streamed == 4 * 2 * 256 && cost.bytes_compulsory == 4 * 2 * 256);
}

TEST(tables_cost_the_rows_that_are_picked)
{
    struct graph *g = graph_new("table");
    int table = param(g, "table", shape_of(1000, 16));
    int index = graph_input(g, "index", DTYPE_I32, shape_of(8),
                            (struct fill){.kind = FILL_INDEX, .a = 0, .b = 1000});
    graph_output(g, graph_node(g, "Gather", NULL, INPUTS(table, index), NO_ATTRS));
    struct graph_cost cost = cost_of(g);
    assert_true(cost.params == 16000);
    assert_true(cost.bytes_compulsory == 4 * (8 * 16 + 8 + 8 * 16));
    assert_true(cost.bytes_streamed == cost.bytes_compulsory);
}

/* Inputs after the 64th cost nothing once, as those of an update of all weights are. */
TEST(every_input_counts)
{
    enum { INPUTS_WANTED = 100, ELEMENTS = 8 };
    struct graph *g = graph_new("sum");
    int inputs[INPUTS_WANTED], output;
    for (int k = 0; k < INPUTS_WANTED; k++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", k);
        inputs[k] = param(g, name, shape_of(ELEMENTS));
    }
    assert_int_equal(graph_node_many(g, "Sum", NULL, INPUTS_WANTED, inputs, NO_ATTRS, 1, &output),
                     STATUS_OK);
    graph_output(g, output);
    struct graph_cost cost = cost_of(g);
    assert_true(cost.flops == (INPUTS_WANTED - 1) * ELEMENTS);
}

/* A node's parameters are the graph's: a file may call running statistics anything. */
TEST(running_statistics_are_no_parameters_of_a_node)
{
    struct graph *g = graph_new("bn");
    struct node_cost node;
    graph_output(g, batch_norm(g, image(g, 1)));
    node_cost(g, 0, &node);
    struct graph_cost cost = cost_of(g);
    assert_true(node.params == 16 && cost.params == 16 && cost.buffers == 16);
}

/* Of a table and its moments UpdateRows reads and writes the rows that indices name, not all of
 * them: 5 and 3 rows of 4 floats, twice each; gradients, indices and scalars are read whole. */
TEST(an_update_of_rows_costs_these_rows)
{
    struct graph *g = graph_new("rows");
    struct shape table = shape_of(1000, 4);
    int inputs[] = {noise_input(g, "rate", shape_scalar()),
                    graph_input(g, "step", DTYPE_I64, shape_scalar(), (struct fill){0}),
                    NONE,
                    noise_input(g, "w", table),
                    noise_input(g, "moment", table),
                    noise_input(g, "dy", shape_of(5, 4)),
                    graph_input(g, "rows", DTYPE_I64, shape_of(5), (struct fill){0}),
                    noise_input(g, "dz", shape_of(3, 4)),
                    graph_input(g, "more", DTYPE_I64, shape_of(3), (struct fill){0})};
    const struct attr attrs[] = {attr_string("optimiser", "adagrad")};
    int outputs[2];
    assert_int_equal(graph_node_many(g, "UpdateRows", NULL, ARRAY_COUNT(inputs), inputs,
                                     ARRAY_COUNT(attrs), attrs, 2, outputs),
                     STATUS_OK);
    graph_output(g, outputs[0]);
    graph_output(g, outputs[1]);
    struct node_cost node;
    node_cost(g, 0, &node);
    double states = 2 * 8 * 4 * 4;
    assert_true(node.bytes_written == states);
    assert_true(node.bytes_read == states + 8 * 4 * 4 + 8 * 8 + 4 + 8);
    graph_free(g);
}

static struct node_cost cost_of_cache(bool state, bool read, double *compulsory)
{
    struct graph *g = graph_new("cache");
    struct shape shape = shape_of(2, 3, 1000, 4);
    int past = state ? graph_state(g, "cache", DTYPE_F32, shape, (struct fill){.kind = FILL_CONST})
                     : noise_input(g, "cache", shape);
    int update = noise_input(g, "key", shape_of(2, 3, 1, 4));
    int at = graph_input(g, "at", DTYPE_I64, shape_of(2), (struct fill){0});
    int now = graph_node(g, "TensorScatter", NULL, INPUTS(past, update, at), NO_ATTRS);
    if (state)
        graph_state_after(g, past, now);
    if (read)
        graph_output(g, graph_node(g, "ReduceSum", NULL, INPUTS(now), NO_ATTRS));
    struct node_cost node;
    node_cost(g, 0, &node);
    *compulsory = cost_of(g).bytes_compulsory;
    return node;
}

/* A cache that is a state is changed in place; else all of it is copied. Who reads all of it after
 * that reads it once, wherever it lies. */
TEST(a_part_that_is_replaced_costs_that_part)
{
    double cache = 2 * 3 * 1000 * 4 * 4, key = 2 * 3 * 4 * 4, indices = 2 * 8, all;
    struct node_cost cost = cost_of_cache(true, true, &all);
    assert_true(cost.bytes_written == key && cost.bytes_read == key + indices);
    assert_true(all == cache + key + indices + 4);
    cost_of_cache(true, false, &all);
    assert_true(all == key + indices);
    cost = cost_of_cache(false, true, &all);
    assert_true(cost.bytes_written == cache && cost.bytes_read == cache + key + indices);
    assert_true(all == 2 * cache + key + indices + 4);
}

/* A graph that learns has its weights and running statistics as states. Moments belong to the
 * optimiser. */
/* Two tokens choose 2 of 8 experts each: 8 (1 - (3/4)^2) of them are read, of f32[4,5]. The weights
 * are parameters all the same. */
TEST(of_experts_those_that_are_chosen_are_read)
{
    struct graph *g = graph_new("experts");
    int x = noise_input(g, "x", shape_of(2, 4)), w = param(g, "w", shape_of(8, 4, 5));
    int choice = graph_input(g, "choice", DTYPE_I64, shape_of(2, 2), (struct fill){0});
    int sorted[2];
    graph_node_many(g, "ExpertSort", NULL, INPUTS(choice), ATTRS(attr_int("experts", 8)), 2,
                    sorted);
    graph_output(g, graph_node(g, "GroupedMatMul", NULL, INPUTS(x, w, sorted[1], sorted[0]),
                               ATTRS(attr_int("chosen", 2))));
    struct node_cost node;
    node_cost(g, 1, &node);
    double weights = 3.5 * 4 * 5 * 4, lists = 8 * (4 + 9);
    assert_true(node.flops == 2 * 4 * 4 * 5);
    assert_true(node.bytes_read == 2 * 4 * 4 + weights + lists);
    assert_true(node.bytes_written == 4 * 5 * 4);
    struct graph_cost cost = cost_of(g);
    assert_true(cost.params == 8 * 4 * 5);
    assert_true(cost.bytes_compulsory == 2 * 4 * 4 + weights + lists + 8 * 4 + 4 * 5 * 4);
}

TEST(a_graph_that_learns_has_its_parameters)
{
    struct graph *g = graph_new("learns");
    int x = image(g, 1), weight = param(g, "c.weight", shape_of(8, 8, 1, 1));
    int mean = graph_state(g, "c.running_mean", DTYPE_F32, shape_of(8, 1, 1), (struct fill){0});
    int moment =
        graph_state(g, "c.weight.adam0", DTYPE_F32, shape_of(8, 8, 1, 1), (struct fill){0});
    int y = graph_node(g, "Conv", NULL, INPUTS(x, weight), NO_ATTRS);
    graph_output(g, graph_node(g, "Add", NULL, INPUTS(y, mean), NO_ATTRS));
    graph_output(g, graph_node(g, "Add", NULL, INPUTS(moment, weight), NO_ATTRS));
    graph_make_state(g, weight);
    struct graph_cost cost = cost_of(g);
    assert_true(cost.params == 64);
    assert_true(cost.buffers == 8);
}

/* A fused activation costs the same as the operator. */
TEST(posts_cost_what_operators_cost)
{
    static const struct {
        enum function act;
        const char *op, *form;
    } rows[] = {
        {FN_RELU, "Relu", NULL},
        {FN_SIGMOID, "Sigmoid", NULL},
        {FN_TANH, "Tanh", NULL},
        {FN_LEAKY_RELU, "LeakyRelu", NULL},
        {FN_GELU_ERF, "Gelu", "none"},
        {FN_GELU_TANH, "Gelu", "tanh"},
        {FN_HARD_SWISH, "HardSwish", NULL},
        {FN_ELU, "Elu", NULL},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        struct graph *g = graph_new("post");
        struct node_cost apart, fused, product;
        struct attr form = attr_string("approximate", rows[k].form ? rows[k].form : "none");
        int x = noise_input(g, "x", shape_of(4, 6));
        int y = graph_node(g, "MatMul", NULL, INPUTS(x, param(g, "w", shape_of(6, 5))), NO_ATTRS);
        graph_output(g, graph_node(g, rows[k].op, NULL, INPUTS(y), rows[k].form ? 1 : 0, &form));
        assert_int_equal(g->node_count, 2);
        node_cost(g, 0, &product);
        node_cost(g, 1, &apart);
        g->nodes[0].post_count = 1;
        g->nodes[0].posts[0] = (struct post){.kind = POST_ACT, .act = rows[k].act};
        node_cost(g, 0, &fused);
        assert_true(apart.flops > 0);
        assert_true(fused.flops == product.flops + apart.flops);
        assert_true(fused.work.transcendentals == apart.work.transcendentals);
        graph_free(g);
    }
}
