/* SPDX-License-Identifier: Apache-2.0
 * Embeddings that end in one concatenation or sum: what the pass leaves, and that it computes the
 * same to the last bit. */
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/reference/reference.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { BATCH = 300, TABLE = 40 };

static int ids(struct graph *g, const char *name, int64_t rows)
{
    return graph_input(g, name, DTYPE_I32, shape_of(BATCH),
                       (struct fill){.kind = FILL_INDEX, .a = 0, .b = (double)rows});
}

static int column(struct graph *g, const char *name, int64_t width)
{
    return noise_input(g, name, shape_of(BATCH, width));
}

static struct ref_tensor result_of(const struct graph *g)
{
    struct ref_tensor result[2] = {0};
    MUST(graph_check, g);
    MUST(reference_run, g, NULL, result, NULL);
    ref_release(&result[1]);
    return result[0];
}

static struct exe *with_passes(const struct graph *g, bool no_fuse)
{
    struct exe_options options = {.threads = 2,
                                  .isa = isa_detect(),
                                  .no_tune = true,
                                  .no_fuse = no_fuse,
                                  .only_variant = NONE};
    return compiled(g, &options);
}

/* Both as the passes leave it and as it is. */
static void runs_alike(const struct graph *g)
{
    struct exe *joined = with_passes(g, false), *plain = with_passes(g, true);
    const struct value *y = &g->values[g->outputs[0]];
    exe_run(joined);
    exe_run(plain);
    assert_memory_equal(exe_output(joined, 0), exe_output(plain, 0),
                        (size_t)shape_count(&y->shape) * dtype_size(y->dtype));
    exe_free(joined);
    exe_free(plain);
}

/* Takes the graph; how many Embeddings the pass makes of it. */
static int joined(struct graph *g)
{
    struct ref_tensor before = result_of(g);
    runs_alike(g);
    MUST(pass_join_embeddings, g);
    graph_compact(g);
    struct ref_tensor after = result_of(g);
    assert_true(ref_rel_error(&after, &before) == 0);
    int count = count_ops(g, op_embeddings.name);
    ref_release(&before);
    ref_release(&after);
    graph_free(g);
    return count;
}

/* All kinds of columns: numbers, one-hot rows, rows of tables small and large. */
TEST(features_of_all_kinds)
{
    struct graph *g = graph_new("features");
    int a = ids(g, "a", 7), b = ids(g, "b", TABLE), c = ids(g, "c", 9000);
    int parts[] = {column(g, "x", 1),
                   one_hot(g, a, 7),
                   embedding(g, b, "t", TABLE, 8),
                   column(g, "y", 3),
                   embedding(g, c, "u", 9000, 64),
                   one_hot(g, b, 5)}; /* some outside */
    graph_output(g, concat(g, -1, 6, parts));
    assert_int_equal(joined(g), 1);
}

TEST(sums_keep_their_order)
{
    static const int64_t widths[] = {1, 19, 64};
    for (int k = 0; k < 3; k++)
        for (int base = 0; base < 3; base++) {
            struct graph *g = graph_new("sum");
            int index = ids(g, "a", TABLE), sum = NONE;
            if (base)
                sum = column(g, "x", widths[k]);
            for (int t = 0; t < 5; t++) {
                int rows = embedding(g, index, name_of(g, "t%d", t), TABLE, widths[k]);
                sum = sum == NONE ? rows : t % 2 ? add(g, rows, sum) : add(g, sum, rows);
            }
            graph_output(g, base == 2 ? relu(g, add(g, sum, column(g, "y", widths[k]))) : sum);
            assert_int_equal(joined(g), 1);
        }
}

/* One of two tables: what else reads its rows must have them. */
static struct graph *two_tables(int kind)
{
    struct graph *g = graph_new("two");
    int a = ids(g, "a", TABLE), x = embedding(g, a, "t", TABLE, 6);
    int y = embedding(g, a, "u", TABLE, 6);
    int parts[] = {x, kind == 1 ? x : y, y}; /* 1: the same rows twice */
    graph_output(g, concat(g, 1, kind == 1 ? 3 : 2, parts));
    if (kind == 2)
        graph_output(g, x);
    if (kind == 3)
        graph_output(g, relu(g, x));
    return g;
}

TEST(rows_that_are_read_elsewhere)
{
    assert_int_equal(joined(two_tables(0)), 1);
    for (int kind = 1; kind < 4; kind++)
        assert_int_equal(joined(two_tables(kind)), 0);
}

/* What looks alike and is not. */
TEST(others_stay)
{
    for (int kind = 0; kind < 5; kind++) {
        struct graph *g = graph_new("other");
        int a = ids(g, "a", 6), x = embedding(g, a, "t", TABLE, 6), y;
        y = kind == 0 ? column(g, "x", 6) : embedding(g, a, "u", TABLE, 6);
        if (kind == 1) { /* along another axis */
            graph_output(g, concat(g, 0, 2, (const int[]){x, y}));
        } else if (kind == 2) { /* a sum that repeats rows */
            int one = graph_const_i64(g, -1, &(int64_t){0});
            int first = gather(g, graph_find_value(g, "u.weight"), one, 0);
            graph_output(g, add(g, x, first));
        } else if (kind == 3) { /* columns of a table, not rows */
            int w = noise_param(g, "w", shape_of(BATCH, 6));
            int of = graph_input(g, "of", DTYPE_I32, shape_of(4),
                                 (struct fill){.kind = FILL_INDEX, .a = 0, .b = 6});
            graph_output(g, concat(g, 1, 2, (const int[]){x, gather(g, w, of, 1)}));
        } else if (kind == 4) { /* not zeros and ones */
            const float values[] = {-1, 2};
            int range = graph_const(g, NULL, DTYPE_F32, shape_of(2), values);
            int depth = graph_const_i64(g, -1, &(int64_t){6});
            int hot = graph_node(g, "OneHot", NULL, INPUTS(a, depth, range), NO_ATTRS);
            graph_output(g, concat(g, 1, 2, (const int[]){x, hot}));
        } else {
            graph_output(g, concat(g, 1, 2, (const int[]){x, y}));
        }
        assert_int_equal(joined(g), 0);
    }
}

/* An index outside any of the tables is reported, as it is of Gather. */
TEST(indices_of_all_tables_are_checked)
{
    struct error err = {0};
    struct graph *g = two_tables(0);
    struct exe *exe = with_passes(g, false);
    MUST(exe_run_checked, exe);
    ((int32_t *)exe_input(exe, 0))[BATCH - 1] = TABLE;
    assert_int_equal(exe_run_checked(exe, &err), STATUS_FAILED);
    assert_non_null(strstr(err.message, "index 40"));
    exe_graph_free(exe, g);
}

/* relu(rows + bias) side by side, as NCF has it: one sum and one activation of all. */
TEST(what_all_rows_have_alike_comes_after)
{
    for (int kind = 0; kind < 3; kind++) {
        struct graph *g = graph_new("dressed");
        int parts[2];
        for (int k = 0; k < 2; k++) {
            int rows = embedding(g, ids(g, k ? "b" : "a", TABLE), k ? "u" : "t", TABLE, 6 + k);
            int bias = noise_param(g, k ? "y" : "x", shape_of(6 + k));
            parts[k] = k ? add(g, bias, rows) : add(g, rows, bias);
            if (kind == 2 && k)
                parts[k] = sigmoid(g, parts[k]); /* unlike the other */
            else if (kind)
                parts[k] = relu(g, parts[k]);
        }
        graph_output(g, concat(g, 1, 2, parts));
        runs_alike(g);
        struct ref_tensor before = result_of(g);
        MUST(pass_join_embeddings, g);
        graph_compact(g);
        struct ref_tensor after = result_of(g);
        assert_true(ref_rel_error(&after, &before) == 0);
        assert_int_equal(count_ops(g, op_embeddings.name), kind < 2);
        assert_int_equal(count_ops(g, op_add.name), kind < 2 ? 1 : 2);
        ref_release(&before);
        ref_release(&after);
        graph_free(g);
    }
}
