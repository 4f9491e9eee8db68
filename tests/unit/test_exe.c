/* SPDX-License-Identifier: Apache-2.0
 * Executables: passes, layouts, memory, and that a run allocates nothing. */

#include <malloc.h>
#include <stdatomic.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/compile/stages.h"
#include "engine/graph/op.h"
#include "engine/run/exe.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"
#include "workloads/workload.h"

static struct exe_options quick(void)
{
    return (struct exe_options){
        .threads = 2, .isa = isa_detect(), .no_tune = true, .only_variant = NONE};
}

/* Largest relative error of all outputs against the graph's float64 reference. */
static double error_of(const struct graph *g, const struct exe_options *options)
{
    struct exe *exe = compiled(g, options);
    double error = run_error(exe, g);
    exe_free(exe);
    return error;
}

static void model_runs_right(const char *spec)
{
    struct graph *g;
    struct exe_options options = quick();
    MUST(workload_open, spec, 2, PRECISION_F32, &g);
    assert_true(error_of(g, &options) <= 1e-3);
    options.no_fuse = true;
    assert_true(error_of(g, &options) <= 1e-3);
    options.no_fuse = false;
    options.keep_values = true;
    assert_true(error_of(g, &options) <= 1e-3);
    graph_free(g);
}

TEST(small_resnet_runs_right)
{
    model_runs_right("resnet50:image=64,version=1.5");
}

/* Callers have it on their stack, and compile again by what an executable says it was made of. */
TEST(names_of_options_outlive_what_they_were_given_in)
{
    struct graph *g;
    struct exe_options options = quick();
    char cache[] = "a cache", providers[] = "native", device[] = "cpu";
    MUST(workload_open, "fc", 1, PRECISION_F32, &g);
    options.cache = cache;
    options.providers = providers;
    options.device = device;
    struct exe *exe = compiled(g, &options);
    cache[0] = providers[0] = device[0] = '?';
    assert_string_equal(exe_options(exe)->cache, "a cache");
    assert_string_equal(exe_options(exe)->providers, "native");
    assert_string_equal(exe_options(exe)->device, "cpu");
    exe_free(exe);
    graph_free(g);
}

TEST(small_bert_runs_right)
{
    model_runs_right("bert_base:tokens=8");
}

TEST(recommenders_run_right)
{
    model_runs_right("wide_deep");
    model_runs_right("ncf:embedding=gather");
}

/* Heads of detectors: a convolution's map read cell by cell. */
TEST(transposes_to_cells_move_nothing)
{
    struct exe *exe;
    struct exe_options options = quick();
    struct graph *g = graph_new("head");
    int x = noise_input(g, "x", shape_of(2, 8, 7, 5));
    x = conv2d(g, x, .name = "conv", .out = 6, .kernel = 3, .pad = 1);
    x = transpose(g, x, 4, (const int64_t[]){0, 2, 3, 1});
    x = reshape(g, x, 3, (const int64_t[]){2, 35, 6});
    graph_output(g, softmax(g, x, -1));
    MUST(exe_new, g, &options, &exe);
    int moves = 0;
    for (int s = 0; s < exe_step_count(exe); s++)
        moves += strcmp(exe_step_at(exe, s).node->op->name, "Transpose") == 0;
    assert_int_equal(moves, 0);
    assert_int_equal(exe_step_count(exe), 3); /* Reorder of the input, Conv, Softmax */
    exe_free(exe);
    assert_true(error_of(g, &options) <= 1e-3);
    options.keep_values = true;
    assert_true(error_of(g, &options) <= 1e-3);
    graph_free(g);
}

/* Bug: a model that TensorFlow had exported, whose images become channels-first by a Transpose, had
 * them transposed, and put back by a Reorder. */
TEST(images_of_tensorflow_are_not_moved)
{
    static const int64_t to_second[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};
    struct exe *exe;
    struct exe_options options = quick();
    struct graph *g = graph_new("exported");
    int x = transpose(g, noise_input(g, "x", shape_of(2, 7, 5, 8)), 4, to_second);
    int y = relu(g, conv2d(g, x, .name = "conv", .out = 6, .kernel = 3, .pad = 1));
    graph_output(g, transpose(g, y, 4, to_last));
    MUST(exe_new, g, &options, &exe);
    assert_int_equal(exe_step_count(exe), 1);
    assert_string_equal(exe_step_at(exe, 0).node->op->name, "Conv");
    exe_free(exe);
    assert_true(error_of(g, &options) <= 1e-3);
    options.keep_values = true;
    assert_true(error_of(g, &options) <= 1e-3);
    graph_free(g);
}

TEST(transposed_images_may_be_plain_for_others)
{
    static const int64_t to_second[] = {0, 3, 1, 2};
    struct exe_options options = quick();
    struct graph *g = graph_new("rows");
    int x = transpose(g, noise_input(g, "x", shape_of(2, 7, 5, 8)), 4, to_second);
    graph_output(g, x);
    graph_output(g, softmax(g, x, -1));
    graph_output(g, relu(g, x));
    graph_output(g, reshape(g, x, 2, (const int64_t[]){16, 35}));
    assert_true(error_of(g, &options) <= 1e-5);
    options.keep_values = true;
    assert_true(error_of(g, &options) <= 1e-5);
    graph_free(g);
}

TEST(passes_find_their_patterns)
{
    struct graph *g;
    struct exe_options options = quick();
    MUST(workload_open, "bert_base:tokens=8", 1, PRECISION_F32, &g);
    MUST(passes_run, g, &options, NULL, NULL);
    assert_int_equal(count_ops(g, "Attention"), 12);
    assert_int_equal(count_ops(g, "Softmax"), 0);
    assert_int_equal(count_ops(g, "Tanh") + count_ops(g, "Gelu"), 0); /* in epilogues */
    assert_int_equal(count_ops(g, "MatMul"), 12 * 4 + 1);
    graph_free(g);
    MUST(workload_open, "resnet50", 1, PRECISION_F32, &g);
    MUST(passes_run, g, &options, NULL, NULL);
    assert_int_equal(
        count_ops(g, "BatchNormalization") + count_ops(g, "Relu") + count_ops(g, "Add"), 0);
    assert_int_equal(count_ops(g, "Conv"), 53);
    graph_free(g);
}

/* A batch norm of no channels at all was folded by a division by their number. */
TEST(a_convolution_without_outputs_keeps_its_batch_norm)
{
    struct graph *g = graph_new("none");
    struct exe_options options = quick();
    struct shape none = shape_of(0);
    int x = noise_input(g, "x", shape_of(1, 3, 5, 5));
    int weights = noise_param(g, "weights", shape_of(0, 3, 3, 3));
    int vectors[4];
    for (int k = 0; k < 4; k++)
        vectors[k] = noise_param(g, (const char *[]){"scale", "shift", "mean", "var"}[k], none);
    int y = graph_node(g, "Conv", NULL, INPUTS(x, weights), 0, NULL);
    y = graph_node(g, "BatchNormalization", NULL,
                   INPUTS(y, vectors[0], vectors[1], vectors[2], vectors[3]), 0, NULL);
    graph_output(g, y);
    MUST(passes_run, g, &options, NULL, NULL);
    assert_int_equal(count_ops(g, "BatchNormalization"), 1);
    graph_free(g);
}

/* A residual that is read twice, and outputs that are also read inside, must stay intact. */
TEST(shared_values_are_not_fused_away)
{
    struct graph *g = graph_new("shared");
    struct exe_options options = quick();
    int x = noise_input(g, "x", shape_of(1, 8, 6, 6));
    int a = conv2d(g, x, .name = "a", .out = 8, .kernel = 3, .pad = 1);
    int b = relu(g, a);
    int c = conv2d(g, b, .name = "c", .out = 8, .kernel = 1);
    int d = add(g, c, a);
    graph_output(g, a);
    graph_output(g, d);
    graph_output(g, flatten(g, relu(g, d)));
    graph_output(g, flatten(g, x));
    assert_true(error_of(g, &options) <= 1e-5);
    graph_free(g);
}

/* Bug: a kernel that packs its bias (input 2) lost the fixed operand of an epilogue that stood at
 * input 2 because the convolution had no bias. */
TEST(epilogue_operands_are_not_taken_for_a_packed_bias)
{
    struct graph *g = graph_new("scale_shift");
    struct exe_options options = quick();
    int x = noise_input(g, "x", shape_of(1, 8, 6, 6));
    int y = conv2d(g, x, .name = "c", .out = 8, .kernel = 3, .pad = 1);
    int scale = noise_param(g, "scale", shape_of(8, 1, 1));
    int shift = noise_param(g, "shift", shape_of(8, 1, 1));
    graph_output(g, add(g, mul(g, y, scale), shift));
    for (int isa = 0; isa <= (int)isa_detect(); isa++) {
        options.isa = (enum isa)isa;
        assert_true(error_of(g, &options) <= 1e-5);
    }
    graph_free(g);
}

/* A convolution of a network's own images, and of its result the largest along some axes. */
static struct graph *reduced_graph(const int64_t *axes, int count)
{
    struct graph *g = graph_new("reduced");
    int y = conv2d(g, noise_input(g, "x", shape_of(2, 3, 9, 8)), .name = "c", .out = 20,
                   .kernel = 3, .pad = 1);
    graph_output(g, graph_node(g, "ReduceMax", NULL, INPUTS(y),
                               ATTRS(attr_ints("axes", count, axes), attr_int("keepdims", 0))));
    return g;
}

/* Bug: they were brought back to planes first, which took longer than the reduction. */
TEST(reductions_over_positions_read_images_as_they_lie)
{
    static const int64_t positions[] = {2, 3}, others[] = {0, 3};
    struct graph *g = reduced_graph(positions, 2), *other = reduced_graph(others, 2);
    struct exe_options options = quick();
    struct exe *exe = compiled(g, &options);
    assert_int_equal(count_ops(exe->g, "Reorder"), 0);
    exe_free(exe);
    for (int isa = 0; isa <= (int)isa_detect(); isa++) {
        options.isa = (enum isa)isa;
        assert_true(error_of(g, &options) <= 1e-5);
        assert_true(error_of(other, &options) <= 1e-5);
    }
    graph_free(g);
    graph_free(other);
}

TEST(memory_plan_shares)
{
    struct graph *g;
    struct exe *exe;
    struct exe_options options = quick();
    MUST(workload_open, "resnet50:image=64", 2, PRECISION_F32, &g);
    MUST(exe_new, g, &options, &exe);
    struct exe_memory memory = exe_memory(exe);
    assert_true(memory.arena_bytes < memory.unshared_bytes / 4);
    exe_graph_free(exe, g);
}

/* No two tensors that live at the same time overlap: each writes its own pattern. */
TEST(planned_blocks_do_not_overlap)
{
    struct graph *g;
    struct exe *exe;
    struct exe_options options = quick();
    MUST(workload_open, "bert_base:tokens=8", 1, PRECISION_F32, &g);
    MUST(exe_new, g, &options, &exe);
    for (int a = 0; a < exe->g->value_count; a++) {
        const struct place *p = &exe->places[a];
        for (int b = 0; p->offset >= 0 && b < a; b++) {
            const struct place *q = &exe->places[b];
            if (q->offset < 0 || p->first > q->last || q->first > p->last)
                continue;
            assert_true(p->offset + (int64_t)p->bytes <= q->offset ||
                        q->offset + (int64_t)q->bytes <= p->offset);
        }
    }
    exe_graph_free(exe, g);
}

TEST(steady_run_allocates_nothing)
{
    struct graph *g;
    struct exe *exe;
    struct exe_options options = quick();
    options.providers = "native";
    MUST(workload_open, "resnet50:image=64", 1, PRECISION_F32, &g);
    MUST(exe_new, g, &options, &exe);
    exe_run(exe);
    for (int s = 0; s < exe_step_count(exe); s++) /* references may allocate: none may be left */
        assert_string_not_equal(exe_step_at(exe, s).kernel->provider, "reference");
    struct mallinfo2 before = mallinfo2();
    for (int k = 0; k < 10; k++)
        exe_run(exe);
    struct mallinfo2 after = mallinfo2();
    assert_int_equal(before.uordblks, after.uordblks);
    assert_int_equal(before.hblks, after.hblks);
    exe_graph_free(exe, g);
}

TEST(tuner_remembers)
{
    struct exe *exe;
    assert_int_equal(test_file_open(state), 0);
    struct graph *g = graph_new("tuned");
    int x = noise_input(g, "x", shape_of(4, 64));
    graph_output(g, dense(g, x, "fc", 32));
    struct exe_options options = quick();
    options.no_tune = false;
    options.cache = test_file;
    MUST(exe_new, g, &options, &exe);
    char kernel[64];
    strncpy(kernel, exe_step_at(exe, 0).kernel->name, sizeof(kernel) - 1);
    kernel[sizeof(kernel) - 1] = 0;
    exe_free(exe);
    struct tune_cache cache;
    tune_cache_load(&cache, test_file);
    assert_int_equal(cache.count, 1);
    assert_string_equal(cache.entries[0].kernel, kernel);
    tune_cache_release(&cache);
    MUST(exe_new, g, &options, &exe);
    assert_string_equal(exe_step_at(exe, 0).kernel->name, kernel);
    exe_graph_free(exe, g);
    test_file_remove(state);
}

/* BERT's embedding was said to read its whole table, 17 times what memory can deliver. */
TEST(look_ups_stream_only_the_rows_they_take)
{
    struct exe *exe;
    struct exe_options options = quick();
    struct graph *g = graph_new("look_up");
    int table = noise_param(g, "table", shape_of(1000, 8));
    int ids = graph_input(g, "ids", DTYPE_I64, shape_of(4),
                          (struct fill){.kind = FILL_INDEX, .a = 0, .b = 1000});
    graph_output(g, graph_node(g, "Gather", NULL, INPUTS(table, ids), NO_ATTRS));
    MUST(graph_check, g);
    MUST(exe_new, g, &options, &exe);
    assert_int_equal(exe_step_count(exe), 1);
    struct exe_step step = exe_step_at(exe, 0);
    assert_int_equal((int)step.bytes_in, 4 * 8 * 4 + 4 * 8);
    assert_int_equal((int)step.bytes_out, 4 * 8 * 4);
    exe_graph_free(exe, g);
}

/* dssd321 was wrong by 3.5e-5 with our own kernels: sums went on from block to block of depth, one
 * chain of thousands of roundings. */
TEST(long_sums_are_made_of_blocks)
{
    struct exe_options options = quick();
    options.providers = "native";
    struct graph *g = graph_new("deep");
    struct fill positive = {.kind = FILL_UNIFORM, .a = 0, .b = 1};
    int x = graph_input(g, "x", DTYPE_F32, shape_of(24, 1 << 15), positive);
    int w = graph_param(g, "w", DTYPE_F32, shape_of(1 << 15, 96), positive);
    graph_output(g, graph_node(g, "MatMul", NULL, INPUTS(x, w), NO_ATTRS));
    double error = error_of(g, &options);
    if (error > 1e-6)
        fail_msg("%g", error);
    graph_free(g);
}
