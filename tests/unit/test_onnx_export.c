/* SPDX-License-Identifier: Apache-2.0
 *
 * What is exported and imported again computes the same. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "engine/graph/op_list.h"
#include "engine/reference/reference.h"
#include "engine/run/exe.h"
#include "tests/lib/noise.h"
#include "tests/lib/op_case.h"
#include "tests/lib/unit.h"
#include "workloads/onnx/onnx.h"

enum { TENSORS_MAX = 8 };

struct folder {
    char path[64], model[96], data[128];
};

static void folder_open(struct folder *f)
{
    snprintf(f->path, sizeof(f->path), "/tmp/ridge-export-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    snprintf(f->model, sizeof(f->model), "%s/m.onnx", f->path);
    snprintf(f->data, sizeof(f->data), "%s.data", f->model);
}

static void folder_close(struct folder *f)
{
    unlink(f->model);
    unlink(f->data);
    rmdir(f->path);
}

static void materialise(const struct graph *g, struct ref_tensor *tensors)
{
    for (int k = 0; k < g->input_count; k++) {
        const struct value *value = &g->values[g->inputs[k]];
        void *data = malloc((size_t)shape_count(&value->shape) * 8 + 8);
        value_materialise(value, data);
        MUST(ref_from_data, &tensors[k], value->dtype, &value->shape, data);
        free(data);
    }
}

static void release(struct ref_tensor *tensors)
{
    for (int k = 0; k < TENSORS_MAX; k++)
        ref_release(&tensors[k]);
}

/* Exports, imports, and runs both on the original's inputs. Frees g. */
static void survives_within(double bound, struct graph *g, bool external)
{
    struct error err = {0};
    struct folder folder;
    struct graph *back = NULL;
    struct onnx_export_options options = {.external = external};
    struct ref_tensor in[TENSORS_MAX] = {0}, want[TENSORS_MAX] = {0}, got[TENSORS_MAX] = {0};
    MUST(graph_check, g);
    folder_open(&folder);
    if (onnx_export(g, folder.model, &options, &err) != STATUS_OK ||
        onnx_import(folder.model, NULL, &back, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    assert_int_equal(back->input_count, g->input_count);
    assert_int_equal(back->output_count, g->output_count);
    materialise(g, in);
    MUST(reference_run, g, in, want, NULL);
    MUST(reference_run, back, in, got, NULL);
    for (int k = 0; k < g->output_count; k++) {
        assert_string_equal(back->values[back->outputs[k]].name, g->values[g->outputs[k]].name);
        assert_true(shape_equal(&got[k].shape, &want[k].shape));
        assert_true(ref_rel_error(&got[k], &want[k]) < bound);
    }
    release(in);
    release(want);
    release(got);
    graph_free(back);
    graph_free(g);
    folder_close(&folder);
}

static void survives(struct graph *g, bool external)
{
    survives_within(1e-6, g, external);
}

static struct graph *start(int *x)
{
    struct graph *g = graph_new("test");
    *x = noise_input(g, "x", shape_of(2, 3, 4));
    return g;
}

static struct graph *finish(struct graph *g, int value)
{
    graph_rename(g, value, "y");
    graph_output(g, value);
    return g;
}

TEST(weights_survive)
{
    for (int external = 0; external < 2; external++) {
        int x;
        struct graph *g = start(&x);
        int w = noise_param(g, "w", shape_of(4, 5));
        int b = noise_param(g, "b", shape_of(5));
        int m = graph_node(g, "MatMul", "m", INPUTS(x, w), NO_ATTRS);
        survives(finish(g, graph_node(g, "Add", "a", INPUTS(m, b), NO_ATTRS)), external);
    }
}

/* Readers look into shapes before they load data: ONNX Runtime refused a Slice whose starts lay in
 * the data file. */
TEST(small_tensors_stay_in_the_model)
{
    struct folder folder;
    struct stat data;
    struct onnx_export_options options = {.external = true};
    int x;
    struct graph *g = start(&x);
    int large = noise_param(g, "large", shape_of(512, 1, 1, 1));
    int small = noise_param(g, "small", shape_of(4));
    int sum = graph_node(g, "Add", "a", INPUTS(x, small), NO_ATTRS);
    finish(g, graph_node(g, "Mul", "m", INPUTS(sum, large), NO_ATTRS));
    folder_open(&folder);
    MUST(graph_check, g);
    MUST(onnx_export, g, folder.model, &options);
    assert_int_equal(stat(folder.data, &data), 0);
    assert_int_equal(data.st_size, 512 * 4);
    folder_close(&folder);
    graph_free(g);
}

TEST(lists_go_where_opset_17_wants_them)
{
    int x;
    struct graph *g = start(&x);
    int64_t one = 1;
    int axis = graph_const_i64(g, 1, &one);
    int a = graph_node(g, "ReduceSum", "a", INPUTS(x), ATTRS(attr_ints_of("axes", 1)));
    int b = graph_node(g, "ReduceMean", "b", INPUTS(x, axis), NO_ATTRS);
    int c = graph_node(g, "Add", "c", INPUTS(a, b), NO_ATTRS);
    int d = graph_node(g, "Squeeze", "d", INPUTS(c), ATTRS(attr_ints_of("axes", 1)));
    int e = graph_node(g, "Unsqueeze", "e", INPUTS(d), ATTRS(attr_ints_of("axes", 0)));
    int h = graph_node(g, "Clip", "h", INPUTS(e),
                       ATTRS(attr_float("min", -0.25), attr_float("max", 0.5)));
    int i = graph_node(
        g, "Slice", "i", INPUTS(h),
        ATTRS(attr_ints_of("starts", 1), attr_ints_of("ends", 4), attr_ints_of("axes", 2)));
    int j = graph_node(g, "Pad", "j", INPUTS(i),
                       ATTRS(attr_ints_of("pads", 0, 1, 0, 0, 0, 2), attr_float("value", 0.5)));
    survives(finish(g, j), false);
}

TEST(parts_survive)
{
    int x, parts[2], top[2];
    struct graph *g = start(&x);
    assert_int_equal(graph_node_many(g, "Split", "s", INPUTS(x),
                                     ATTRS(attr_int("axis", 2), attr_int("num_outputs", 2)), 2,
                                     parts),
                     STATUS_OK);
    assert_int_equal(
        graph_node_many(g, "TopK", "t", INPUTS(parts[1]), ATTRS(attr_int("k", 1)), 2, top),
        STATUS_OK);
    graph_output(g, top[1]);
    graph_output(g, parts[0]);
    survives(finish(g, top[0]), false);
}

TEST(newer_operators_are_decomposed)
{
    static const char *const kinds[] = {"none", "tanh"};
    for (int k = 0; k < 2; k++) {
        int x;
        struct graph *g = start(&x);
        int y =
            graph_node(g, "Gelu", "gelu", INPUTS(x), ATTRS(attr_string("approximate", kinds[k])));
        survives(finish(g, y), false);
    }
}

TEST(own_operators_are_decomposed)
{
    static const char *const modes[] = {"sum", "mean"};
    for (int k = 0; k < 2; k++) {
        struct graph *g = graph_new("bags");
        struct fill rows = {.kind = FILL_INDEX, .a = 0, .b = 9};
        int ids = graph_input(g, "ids", DTYPE_I64, shape_of(4, 3), rows);
        int table = noise_param(g, "table", shape_of(9, 5));
        int y = graph_node(g, "EmbeddingBag", "bag", INPUTS(table, ids),
                           ATTRS(attr_string("mode", modes[k])));
        survives(finish(g, y), false);
    }
}

/* Rank 3 and 4, halves and pairs, all of a head and a part of it, by position and by token. */
TEST(turned_heads_survive)
{
    for (int k = 0; k < 16; k++) {
        bool by_position = k & 1, beside = k & 2, part = k & 4, rank_3 = k & 8;
        struct graph *g = graph_new("heads");
        struct fill positions = {.kind = FILL_INDEX, .a = 0, .b = 9};
        int64_t half = part ? 3 : 5;
        int x = noise_input(g, "x", rank_3 ? shape_of(2, 4, 30) : shape_of(2, 3, 4, 10));
        half += k / 4 == 1 ? 2 : 0; /* more columns than are read */
        struct shape cache = by_position ? shape_of(9, half) : shape_of(2, 4, half);
        int cosines = noise_input(g, "cosines", cache), sines = noise_input(g, "sines", cache);
        int at = by_position ? graph_input(g, "at", DTYPE_I64, shape_of(2, 4), positions) : NONE;
        int y = graph_node(g, "RotaryEmbedding", "turn", INPUTS(x, cosines, sines, at),
                           ATTRS(attr_int("interleaved", beside), attr_int("num_heads", 3),
                                 attr_int("rotary_embedding_dim", part ? 6 : 0)));
        survives(finish(g, y), false);
    }
}

TEST(parts_of_caches_are_replaced_all_the_same)
{
    static const char *const modes[] = {"linear", "circular"};
    static const int64_t axes[] = {1, 2, -2, -1};
    struct fill starts = {.kind = FILL_INDEX, .a = 0, .b = 4};
    for (int k = 0; k < 24; k++) {
        struct graph *g = graph_new("cache");
        struct shape past = shape_of(2, 6, 7, 8), update = past;
        struct attr attrs[] = {attr_string("mode", modes[k / 4 % 2]),
                               attr_int("axis", axes[k % 4])};
        int axis = shape_axis(&past, axes[k % 4]);
        enum dtype index = k < 8 ? DTYPE_I64 : DTYPE_I32;
        update.dim[axis] = k < 16 ? 3 : past.dim[axis];
        int cache = noise_input(g, "cache", past), key = noise_input(g, "key", update);
        bool given = k < 16 && k % 3;
        int at = given ? graph_input(g, "at", index, shape_of(2), starts) : NONE;
        int y = graph_node(g, "TensorScatter", "put", INPUTS(cache, key, at), ARRAY_COUNT(attrs),
                           attrs);
        survives(finish(g, y), false);
    }
}

static bool is_empty(const struct graph *g)
{
    return shape_count(&g->values[g->outputs[0]].shape) == 0;
}

/* All cases of an operator, also in 16 bits, where the nodes of the file round more often. An input
 * of a file has no dimension of 0. */
static void cases_survive(const struct op *op)
{
    static const struct {
        enum dtype floats;
        double bound;
    } types[] = {{DTYPE_F32, 1e-6}, {DTYPE_BF16, 0.03}, {DTYPE_F16, 0.004}};
    for (int k = 0; k < op->case_count * ARRAY_COUNT(types); k++) {
        int t = k % ARRAY_COUNT(types);
        struct error err = {0};
        struct graph *of_case =
            op_case_graph_in(op, &op->cases[k / ARRAY_COUNT(types)], types[t].floats, &err);
        if (!of_case)
            fail_msg("%s", err.message);
        if (is_empty(of_case))
            graph_free(of_case);
        else
            survives_within(types[t].bound, of_case, false);
    }
}

TEST(norms_without_a_mean_are_decomposed)
{
    cases_survive(&op_rms_normalization);
}

TEST(attention_is_decomposed)
{
    cases_survive(&op_attention);
    int x;
    struct graph *g = start(&x); /* one value as three inputs */
    survives(finish(g, graph_node(g, "Attention", "att", INPUTS(x, x, x),
                                  ATTRS(attr_int("heads", 2), attr_int("causal", 1)))),
             false);
}

/* With few rows and with more than there are experts. */
TEST(rows_by_expert_are_decomposed)
{
    cases_survive(&op_expert_sort);
    cases_survive(&op_grouped_mat_mul);
    cases_survive(&op_expert_combine);
}

static struct graph *components(int64_t rows, int64_t nodes, int64_t edges, const int64_t *ends)
{
    struct graph *g = graph_new("components");
    struct fill bits = {.kind = FILL_INDEX, .a = 0, .b = 2};
    struct fill all = {.kind = FILL_CONST, .a = 1};
    bool chain = edges == nodes - 1;
    int on = graph_input(g, "on", DTYPE_BOOL, shape_of(rows, nodes), chain ? all : bits);
    int links = graph_input(g, "links", DTYPE_BOOL, shape_of(rows, edges), chain ? all : bits);
    int table = graph_const(g, NULL, DTYPE_I64, shape_of(edges, 2), ends);
    return finish(
        g, graph_node(g, "ConnectedComponents", "group", INPUTS(on, links, table), NO_ATTRS));
}

/* seglink in ONNX Runtime found 142 words instead of 141: labels went one neighbour per round where
 * shortcuts did not help, and there were only 32 rounds. */
TEST(long_chains_are_connected)
{
    enum { NODES = 400, PRIME = 173, EDGES = 700 };
    int64_t ends[2 * EDGES];
    for (int64_t k = 0; k < 2 * (NODES - 1); k++) /* in an order without order */
        ends[k] = (k / 2 + k % 2) * PRIME % NODES;
    survives(components(1, NODES, NODES - 1, ends), false);
    for (int64_t k = 0; k < 2 * (NODES - 1); k++) /* 0, 399, 398 ...: no shortcut knows of 0 */
        ends[k] = (NODES - (k / 2 + k % 2)) % NODES;
    survives(components(2, NODES, NODES - 1, ends), false);
    uint64_t random = 1;
    for (int64_t k = 0; k < 2 * EDGES; k++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        ends[k] = (int64_t)(random >> 33) % (NODES + 1) - 1; /* -1 is no edge */
    }
    survives(components(3, NODES, EDGES, ends), false);
}

TEST(old_softmax_survives)
{
    int x;
    struct graph *g = start(&x);
    int y = graph_node(g, "Softmax", "s", INPUTS(x),
                       ATTRS(attr_int("axis", 1), attr_int("flatten", 1)));
    survives(finish(g, y), false);
}

TEST(fixed_outputs_survive)
{
    int x;
    struct graph *g = start(&x);
    int w = graph_param(g, "w", DTYPE_F16, shape_of(4), noise());
    graph_output(g, w);
    survives(finish(g, graph_node(g, "Relu", "r", INPUTS(x), NO_ATTRS)), false);
}

static struct graph *quantised(int *y)
{
    const float scale = 0.5f;
    struct graph *g = graph_new("f8");
    struct shape scalar = shape_scalar();
    int x = graph_input(g, "x", DTYPE_F8E4M3, shape_of(3, 16), noise());
    int w = graph_param(g, "w", DTYPE_F8E4M3, shape_of(16, 5), noise());
    int s = graph_const(g, "s", DTYPE_F32, scalar, &scale);
    int wide = graph_node(g, "Cast", "c", INPUTS(x), ATTRS(attr_int("to", 1)));
    int scaled = graph_node(g, "DequantizeLinear", "d", INPUTS(w, s), NO_ATTRS);
    *y = graph_node(g, "MatMul", "m", INPUTS(wide, scaled), NO_ATTRS);
    return g;
}

TEST(f8_survives)
{
    int y;
    struct folder folder;
    struct graph *g = quantised(&y);
    survives(finish(g, y), false);
    g = quantised(&y);
    survives(finish(g, y), true);
    g = quantised(&y);
    finish(g, graph_node(g, "ReduceMax", "r", INPUTS(y), NO_ATTRS));
    folder_open(&folder);
    FAILS(STATUS_UNSUPPORTED, "beside f8", onnx_export, g, folder.model, NULL);
    folder_close(&folder);
    graph_free(g);
}

TEST(what_has_no_form_is_refused)
{
    int x;
    struct folder folder;
    struct stat info;
    folder_open(&folder);
    struct graph *g = start(&x);
    finish(g, graph_node(g, "GlobalNorm", "norm", INPUTS(x), NO_ATTRS));
    MUST(graph_check, g);
    FAILS(STATUS_UNSUPPORTED, "GlobalNorm", onnx_export, g, folder.model, NULL);
    assert_int_not_equal(stat(folder.model, &info), 0); /* nothing half-done stays */
    graph_free(g);

    g = start(&x);
    finish(g, graph_node(g, "Relu", "r", INPUTS(x), NO_ATTRS));
    FAILS(STATUS_FAILED, "/nonexistent/m.onnx", onnx_export, g, "/nonexistent/m.onnx", NULL);
    graph_free(g);
    folder_close(&folder);
}

static char *standard_operators(void)
{
    const char *const paths[] = {"/usr/include/onnx/defs/operator_sets.h",
                                 "/usr/local/include/onnx/defs/operator_sets.h"};
    for (int k = 0; k < ARRAY_COUNT(paths); k++) {
        struct file file;
        struct error err;
        if (file_map(paths[k], &file, &err) != STATUS_OK)
            continue;
        char *text = strndup(file.data, file.size);
        file_unmap(&file);
        return text;
    }
    return NULL;
}

/* One that ONNX has not and that has no domain was exported as an operator of ONNX, in a file that
 * no other program reads. */
TEST(what_onnx_lacks_is_not_said_to_be_of_onnx)
{
    char *text = standard_operators();
    if (!text) {
        print_message("operator_sets.h of ONNX is not installed\n");
        skip();
    }
    int wrong = 0;
    for (int k = 0; k < op_count(); k++) {
        const struct op *op = op_at(k);
        char entry[128];
        snprintf(entry, sizeof(entry), ", %s)", op->name);
        bool known = op->domain || op->since > 17 || strstr(text, entry);
        if (!known)
            print_error("%s is no operator of ONNX up to opset 17: set .domain = \"ridge\", or "
                        ".since to the opset that brought it\n",
                        op->name);
        wrong += !known;
    }
    free(text);
    assert_int_equal(wrong, 0);
}
