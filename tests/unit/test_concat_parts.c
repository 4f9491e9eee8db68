/* SPDX-License-Identifier: Apache-2.0
 * Concatenations without a copy: which inputs are computed inside the result, which are copied, and
 * that the results are right either way. */
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/reference/reference.h"
#include "engine/run/exe_internal.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { ROWS = 37, WIDTH = 24, OUTPUTS_MAX = 4 };

static int matrix(struct graph *g)
{
    return noise_input(g, "x", shape_of(ROWS, WIDTH));
}

static int side_by_side(struct graph *g, int a, int b)
{
    return concat(g, 1, 2, (const int[]){a, b});
}

static struct exe *compiled_with(const struct graph *g, struct exe_options options)
{
    options.threads = 2;
    options.isa = isa_detect();
    options.no_tune = true;
    options.only_variant = NONE;
    return compiled(g, &options);
}

static int copies_of(const struct exe *exe)
{
    int count = 0;
    for (int s = 0; s < exe_step_count(exe); s++)
        count += exe_step_at(exe, s).node->op == &op_concat;
    return count;
}

/* No result lies in another's memory but as a name of it, or as a part of a concatenation. */
static void parts_are_apart(const struct exe *exe)
{
    for (int n = 0; n < exe->g->node_count; n++) {
        const struct node *node = &exe->g->nodes[n];
        size_t at = 0;
        for (int k = 0; node->op == &op_concat && k < node->op_inputs; k++) {
            const struct place *part = &exe->places[node->inputs[k]];
            const struct place *whole = &exe->places[node->outputs[0]];
            if (part->root != whole->root)
                continue;
            assert_true(k == 0 || part->shift > at);
            at = part->shift;
            assert_true(part->shift + part->bytes <= exe->places[whole->root].bytes);
        }
    }
}

/* Takes the graph: compiles and runs it, compares with the reference and with the same graph
 * without parts bit by bit, and returns how many concatenations are still steps. */
static int copies_left(struct graph *g)
{
    struct ref_tensor expected[OUTPUTS_MAX];
    assert_in_range(g->output_count, 1, OUTPUTS_MAX);
    MUST(graph_check, g);
    MUST(reference_run, g, NULL, expected, NULL);
    struct exe *exe = compiled_with(g, (struct exe_options){0});
    struct exe *apart = compiled_with(g, (struct exe_options){.keep_values = true});
    int copies = copies_of(exe);
    parts_are_apart(exe);
    exe_run(apart);
    for (int run = 0; run < 2; run++) {
        exe_run(exe);
        for (int k = 0; k < g->output_count; k++) {
            const struct value *v = &g->values[g->outputs[k]];
            struct ref_tensor got;
            size_t bytes = value_size(v);
            MUST(ref_from_data, &got, v->dtype, &v->shape, exe_output(exe, k));
            assert_true(ref_rel_error(&got, &expected[k]) <= 2e-5);
            assert_memory_equal(exe_output(exe, k), exe_output(apart, k), bytes);
            ref_release(&got);
        }
    }
    for (int k = 0; k < g->output_count; k++)
        ref_release(&expected[k]);
    exe_free(exe);
    exe_free(apart);
    graph_free(g);
    return copies;
}

TEST(convolutions_write_their_channels)
{
    for (int batch = 1; batch < 3; batch++) {
        struct graph *g = graph_new("inception");
        int x = noise_input(g, "x", shape_of(batch, 16, 9, 7));
        int a = relu(g, conv2d(g, x, .name = "a", .out = 5, .kernel = 1, .bias = true));
        int b = conv2d(g, x, .name = "b", .out = 32, .kernel = 3, .pad = 1, .bias = true);
        int c = sigmoid(g, conv2d(g, x, .name = "c", .out = 7, .kernel = 5, .pad = 2));
        int y = concat(g, 1, 3, (const int[]){a, b, c});
        graph_output(g, conv2d(g, y, .name = "d", .out = 8, .kernel = 3, .pad = 1));
        assert_int_equal(copies_left(g), 0);
    }
}

/* The heads of a detector: what is concatenated is another shape of what a convolution computes. */
TEST(heads_write_their_boxes)
{
    for (int batch = 1; batch < 4; batch += 2) {
        static const int64_t to_last[] = {0, 2, 3, 1};
        struct graph *g = graph_new("heads");
        int parts[2];
        for (int k = 0; k < 2; k++) {
            int64_t side = 6 - 3 * k;
            int x = noise_input(g, k ? "small" : "large", shape_of(batch, 8, side, side));
            x = conv2d(g, x, .name = k ? "b" : "a", .out = 12, .kernel = 3, .pad = 1, .bias = true);
            parts[k] = reshape(g, transpose(g, x, 4, to_last), 3,
                               (const int64_t[]){batch, side * side * 3, 4});
        }
        graph_output(g, sigmoid(g, concat(g, 1, 2, parts)));
        assert_int_equal(copies_left(g), 0);
    }
}

/* Pairs of results of all kinds, of which at most one is a lookup: two would be joined by a pass.
 */
TEST(products_rows_and_elementwise_results)
{
    static const int pairs[][2] = {{0, 3}, {4, 5}, {0, 1}, {2, 3}, {6, 0}};
    for (int p = 0; p < ARRAY_COUNT(pairs); p++) {
        struct graph *g = graph_new("columns");
        int x = matrix(g), halves[2];
        int ids = graph_input(g, "ids", DTYPE_I32, shape_of(ROWS),
                              (struct fill){.kind = FILL_INDEX, .a = 0, .b = 50});
        graph_node_many(g, "Split", NULL, INPUTS(x), ATTRS(attr_int("axis", 1)), 2, halves);
        int parts[] = {relu(g, dense(g, x, "a", 13)),
                       embedding(g, ids, "rows", 50, 9),
                       one_hot(g, ids, 6),
                       mul(g, x, x),
                       sigmoid(g, mul(g, x, sigmoid(g, x))),
                       slice(g, x, (struct range){1, 3, 8, 0}),
                       halves[1]};
        int y = side_by_side(g, parts[pairs[p][0]], parts[pairs[p][1]]);
        graph_output(g, dense(g, y, "y", 5));
        assert_int_equal(copies_left(g), 0);
    }
}

TEST(rows_below_each_other_may_be_read_elsewhere)
{
    struct graph *g = graph_new("below");
    int x = matrix(g), a = dense(g, x, "a", WIDTH), b = sigmoid(g, dense(g, a, "b", WIDTH));
    graph_output(g, relu(g, concat(g, 0, 2, (const int[]){a, b})));
    graph_output(g, dense(g, a, "c", 3));
    assert_int_equal(copies_left(g), 0);
}

TEST(concatenations_of_concatenations)
{
    struct graph *g = graph_new("nested");
    int x = matrix(g);
    int inner = side_by_side(g, dense(g, x, "a", 5), dense(g, x, "b", 17));
    int outer = concat(g, 1, 3, (const int[]){dense(g, x, "c", 3), inner, dense(g, x, "d", 8)});
    graph_output(g, dense(g, outer, "e", 4));
    assert_int_equal(copies_left(g), 0);
}

/* Of what nobody computes here, or what others want as it is, there is a copy. */
TEST(what_is_copied)
{
    for (int kind = 0; kind < 6; kind++) {
        struct graph *g = graph_new("copied");
        int x = matrix(g), a = relu(g, dense(g, x, "a", 5)), b = x;
        static const float data[3 * ROWS] = {1, 2, 3};
        if (kind == 1)
            b = graph_const(g, "b", DTYPE_F32, shape_of(ROWS, 3), data);
        if (kind == 2)
            b = a; /* twice the same */
        if (kind >= 3)
            b = relu(g, dense(g, x, "b", 6));
        int y = side_by_side(g, a, b);
        graph_output(g, dense(g, y, "c", 4));
        if (kind == 3)
            graph_output(g, b);
        if (kind == 4)
            graph_output(g, sigmoid(g, dense(g, b, "d", 2)));
        if (kind == 5)
            graph_output(g, dense(g, side_by_side(g, b, dense(g, x, "e", 3)), "f", 2));
        assert_int_equal(copies_left(g), kind == 5 ? 2 : 1);
    }
}

/* A step that stays copies the rest only: the bytes that are reported say so. */
TEST(a_part_is_counted_once)
{
    struct graph *g = graph_new("bytes");
    int x = matrix(g), y = side_by_side(g, relu(g, dense(g, x, "a", 5)), x);
    graph_output(g, dense(g, y, "b", 4));
    struct exe *exe = compiled_with(g, (struct exe_options){0});
    for (int s = 0; s < exe_step_count(exe); s++) {
        struct exe_step step = exe_step_at(exe, s);
        if (step.node->op == &op_concat) {
            assert_true(step.bytes_in == 4.0 * ROWS * WIDTH);
            assert_true(step.bytes_out == 4.0 * ROWS * WIDTH);
        }
    }
    assert_int_equal(copies_of(exe), 1);
    exe_graph_free(exe, g);
}

TEST(as_it_is_where_that_is_asked_for)
{
    for (int kind = 0; kind < 2; kind++) {
        struct graph *g = graph_new("as it is");
        int x = matrix(g), y = side_by_side(g, dense(g, x, "a", 5), dense(g, x, "b", 3));
        graph_output(g, dense(g, y, "c", 4));
        struct exe_options options = {.no_fuse = kind == 0, .keep_values = kind == 1};
        struct exe *exe = compiled_with(g, options);
        assert_int_equal(copies_of(exe), 1);
        exe_graph_free(exe, g);
    }
}

/* What comes after a state is put together of what it was: each part is read before it moves. */
TEST(a_state_moves_on)
{
    enum { LENGTH = 4 };
    struct graph *g = graph_new("queue");
    int s = graph_state(g, "s", DTYPE_F32, shape_of(LENGTH, WIDTH), noise());
    int x = noise_input(g, "x", shape_of(1, WIDTH));
    int rest = slice(g, s, (struct range){0, 1, LENGTH, 0});
    int y = concat(g, 0, 2, (const int[]){rest, relu(g, x)});
    graph_output(g, sigmoid(g, y));
    graph_state_after(g, s, y);
    struct exe *exe = compiled_with(g, (struct exe_options){0});
    assert_int_equal(copies_of(exe), 0);
    const float *kept = exe_input(exe, 0), *row = exe_input(exe, 1);
    for (int run = 0; run < LENGTH + 1; run++) {
        float before[LENGTH * WIDTH];
        memcpy(before, kept, sizeof(before));
        exe_run(exe);
        assert_memory_equal(kept, before + WIDTH, sizeof(before) / LENGTH * (LENGTH - 1));
        for (int k = 0; k < WIDTH; k++)
            assert_true(kept[(LENGTH - 1) * WIDTH + k] == (row[k] > 0 ? row[k] : 0));
    }
    exe_graph_free(exe, g);
}
