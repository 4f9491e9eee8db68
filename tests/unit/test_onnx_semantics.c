/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are well formed and mean nothing, or something absurd: what is said of them.
 * `test_onnx_semantics --write FOLDER` writes them as NAME.onnx for tests of the command line. */

#include <stdio.h>
#include <string.h>

#include "base/registry.h"
#include "tests/lib/onnx_build.h"
#include "tests/lib/unit.h"
#include "workloads/onnx/onnx.h"

enum { F32 = 1, I64 = 7 };

struct made {
    const char *name;
    void (*build)(struct builder *b);
    const char *says[4]; /* all of it stands in the error; none: the file is taken */
};

/* ---- files that are taken ---- */

/* Only the reference computes Det. */
static void det(struct builder *b)
{
    build_model(b, 17);
    build_input(b, "x", F32, "64,3,3");
    build_node(b, "Det", "x", "d");
    build_close(b);
    build_node(b, "Relu", "d", "y");
    build_close(b);
    build_output(b, "y", F32, "64");
    build_end(b);
}

/* The indices come with each run. */
static void gather_at(struct builder *b)
{
    build_model(b, 17);
    build_input(b, "x", F32, "5,4");
    build_input(b, "i", I64, "N");
    build_node(b, "Gather", "x i", "y");
    build_text(b, 3, "look_up");
    build_close(b);
    build_output(b, "y", F32, "N,4");
    build_end(b);
}

/* They are computed. */
static void gather_of_sum(struct builder *b)
{
    build_model(b, 17);
    build_input(b, "x", F32, "5,4");
    build_input(b, "i", I64, "N");
    build_i64(b, "one", "", 1);
    build_node(b, "Add", "i one", "j");
    build_close(b);
    build_node(b, "Gather", "x j", "y");
    build_text(b, 3, "look_up");
    build_close(b);
    build_output(b, "y", F32, "N,4");
    build_end(b);
}

/* ---- names ---- */

static void two_inputs(struct builder *b)
{
    build_model(b, 17);
    build_input(b, "x", F32, "2");
    build_input(b, "x", F32, "3");
    build_node(b, "Relu", "x", "y");
    build_close(b);
    build_output(b, "y", F32, "2");
    build_end(b);
}

static void two_outputs(struct builder *b)
{
    build_model(b, 17);
    build_input(b, "x", F32, "2");
    build_node(b, "Relu", "x", "y");
    build_close(b);
    build_output(b, "y", F32, "2");
    build_output(b, "y", F32, "2");
    build_end(b);
}

static void two_initializers(struct builder *b)
{
    build_model(b, 17);
    build_input(b, "x", I64, "1");
    build_i64(b, "w", "1", 1);
    build_i64(b, "w", "1", 2);
    build_node(b, "Add", "x w", "y");
    build_close(b);
    build_output(b, "y", I64, "1");
    build_end(b);
}

/* ---- constant indices ---- */

static void indexed(struct builder *b, const char *op, const char *dims, int64_t index,
                    const char *updates)
{
    build_model(b, 17);
    build_input(b, "x", F32, "5,4");
    if (*updates)
        build_input(b, "u", F32, updates);
    build_i64(b, "i", dims, index);
    build_node(b, op, *updates ? "x i u" : "x i", "y");
    build_text(b, 3, "look_up");
    build_close(b);
    build_output(b, "y", F32, "a,b");
    build_end(b);
}

static void gather(struct builder *b)
{
    indexed(b, "Gather", "1", 7, "");
}

static void gather_negative(struct builder *b)
{
    indexed(b, "Gather", "1", -6, "");
}

static void gather_nd(struct builder *b)
{
    indexed(b, "GatherND", "1,1", 5, "");
}

static void gather_elements(struct builder *b)
{
    indexed(b, "GatherElements", "1,1", 5, "");
}

static void scatter_nd(struct builder *b)
{
    indexed(b, "ScatterND", "1,1", 1000, "1,4");
}

static void scatter_elements(struct builder *b)
{
    indexed(b, "ScatterElements", "1,1", -9, "1,1");
}

/* ---- calls and sizes ---- */

static void recursion(struct builder *b)
{
    build_model(b, 17);
    build_input(b, "x", F32, "2");
    build_node(b, "Recursive", "x", "y");
    build_text(b, 7, "own");
    build_close(b);
    build_output(b, "y", F32, "2");
    build_close(b);
    build_open(b, 25);
    build_text(b, 1, "Recursive");
    build_text(b, 4, "a");
    build_text(b, 5, "b");
    build_open(b, 7);
    build_text(b, 1, "a");
    build_text(b, 2, "b");
    build_text(b, 4, "Recursive");
    build_text(b, 7, "own");
    build_close(b);
    build_text(b, 10, "own");
    build_end(b);
}

static void put_pair(struct builder *b, const char *name, int64_t first, int64_t second)
{
    build_open(b, 5);
    build_text(b, 1, name);
    build_number(b, 20, 7);
    build_number(b, 8, first);
    build_number(b, 8, second);
    build_close(b);
}

static void strided(struct builder *b, int64_t stride)
{
    static const float weights[9] = {1};
    build_model(b, 17);
    build_input(b, "x", F32, "1,1,8,8");
    build_tensor(b, "w", F32, "1,1,3,3", weights, sizeof(weights));
    build_node(b, "ConvTranspose", "x w", "y");
    put_pair(b, "strides", stride, stride);
    build_close(b);
    build_output(b, "y", F32, "1,1,a,b");
    build_end(b);
}

static void wide_stride(struct builder *b)
{
    strided(b, 1000000);
}

/* 160 GB, which the format allows. */
static void stride_of_160_gb(struct builder *b)
{
    strided(b, 28570);
}

/* A shape, or how much of each axis, as a constant. */
static void sized(struct builder *b, const char *op, const char *inputs, const int64_t *sizes,
                  int count)
{
    char dims[16];
    snprintf(dims, sizeof(dims), "%d", count);
    build_model(b, 17);
    build_input(b, "x", F32, "1,1,8,8");
    build_tensor(b, "s", I64, dims, sizes, (size_t)count * sizeof(*sizes));
    build_node(b, op, inputs, "y");
    build_close(b);
    build_output(b, "y", F32, "a,b,c,d");
    build_end(b);
}

static const int64_t large[8] = {1, 1, 1000000, 1000000, 1, 1, 1000000, 1000000};

static void pad(struct builder *b)
{
    sized(b, "Pad", "x s", large, 8);
}

static void tile(struct builder *b)
{
    sized(b, "Tile", "x s", large, 4);
}

static void resize(struct builder *b)
{
    sized(b, "Resize", "x - - s", large, 4);
}

static void expand(struct builder *b)
{
    static const int64_t shape[5] = {1000000, 1000000, 1, 8, 8};
    sized(b, "Expand", "x s", shape, 5);
}

static void constant_of_shape(struct builder *b)
{
    sized(b, "ConstantOfShape", "s", large, 4);
}

/* An attribute of another kind than the operator's would be ignored, or read as what it is not. */
static void activations_as_integer(struct builder *b)
{
    build_model(b, 17);
    build_input(b, "x", F32, "1,3,2");
    build_input(b, "w", F32, "1,12,2");
    build_input(b, "r", F32, "1,12,3");
    build_node(b, "LSTM", "x w r", "y");
    build_attr_int(b, "hidden_size", 3);
    build_attr_int(b, "activations", 0);
    build_close(b);
    build_output(b, "y", F32, "1,1,1,3");
    build_end(b);
}

static void axis_as_float(struct builder *b)
{
    build_model(b, 17);
    build_input(b, "x", F32, "2,3");
    build_node(b, "Softmax", "x", "y");
    build_attr_float(b, "axis", 0);
    build_close(b);
    build_output(b, "y", F32, "2,3");
    build_end(b);
}

static void alpha_as_integer(struct builder *b)
{
    build_model(b, 17);
    build_input(b, "x", F32, "2,3");
    build_node(b, "LeakyRelu", "x", "y");
    build_attr_int(b, "alpha", 2);
    build_close(b);
    build_output(b, "y", F32, "2,3");
    build_end(b);
}

static const struct made models[] = {
    {"alpha_as_integer", alpha_as_integer, {NULL}},
    {"axis_as_float", axis_as_float, {"Softmax", "attribute \"axis\" must be an integer"}},
    {"activations_as_integer",
     activations_as_integer,
     {"LSTM", "attribute \"activations\" must be a list of strings"}},
    {"det", det, {NULL}},
    {"gather_at", gather_at, {NULL}},
    {"gather_of_sum", gather_of_sum, {NULL}},
    {"stride_of_160_gb", stride_of_160_gb, {NULL}},
    {"two_inputs", two_inputs, {"f.onnx", "two inputs are called \"x\""}},
    {"two_outputs", two_outputs, {"f.onnx", "two outputs are called \"y\""}},
    {"two_initializers", two_initializers, {"f.onnx", "two initializers are called \"w\""}},
    {"gather", gather, {"f.onnx: Gather node \"look_up\": index 7", "axis 0", "size 5"}},
    {"gather_negative", gather_negative, {"Gather node \"look_up\": index -6", "size 5"}},
    {"gather_nd", gather_nd, {"GatherND node \"look_up\": index 5", "axis 0", "size 5"}},
    {"gather_elements", gather_elements, {"GatherElements node \"look_up\": index 5", "size 5"}},
    {"scatter_nd", scatter_nd, {"ScatterND node \"look_up\": index 1000", "size 5"}},
    {"scatter_elements", scatter_elements, {"node \"look_up\": index -9", "axis 0", "size 5"}},
    {"recursion",
     recursion,
     {"f.onnx: ", "function \"Recursive\" calls itself, or calls nest too deep"}},
    {"wide_stride", wide_stride, {"ConvTranspose", "4.9e+13 positions", " 1.96e+05 GB"}},
    {"pad", pad, {"Pad", " GB"}},
    {"tile", tile, {"Tile", " GB"}},
    {"resize", resize, {"Resize", " GB"}},
    {"expand", expand, {"Expand", " GB"}},
    {"constant_of_shape", constant_of_shape, {"ConstantOfShape", " GB"}},
};

/* ---- the tests ---- */

TEST(files_are_refused_with_the_reason)
{
    for (int k = 0; k < ARRAY_COUNT(models); k++) {
        struct builder b = {0};
        struct graph *g;
        struct error err = {0};
        models[k].build(&b);
        enum status status = onnx_import_memory(b.bytes, b.size, "/tmp", "f.onnx", NULL, &g, &err);
        build_release(&b);
        bool taken = status == STATUS_OK;
        if (taken != !models[k].says[0])
            print_error("%s: %s\n", models[k].name, taken ? "was taken" : err.message);
        assert_true(taken == !models[k].says[0]);
        for (int s = 0; s < ARRAY_COUNT(models[k].says) && models[k].says[s]; s++) {
            if (!strstr(err.message, models[k].says[s]))
                print_error("%s: \"%s\" lacks \"%s\"\n", models[k].name, err.message,
                            models[k].says[s]);
            assert_non_null(strstr(err.message, models[k].says[s]));
        }
        if (taken)
            graph_free(g);
    }
}

/* A .npy of another shape than the file says was taken, and the file's shape forgotten. */
TEST(contents_do_not_contradict_the_file)
{
    static const float x[24] = {1};
    static const int64_t i[2] = {1, 2};
    const struct {
        struct shape x;
        const char *dims;
        const char *says[2];
    } rows[] = {
        {shape_of(5, 4), NULL, {NULL}},          {shape_of(6, 4), NULL, {"[6,4]", "[5,4]"}},
        {shape_of(20), NULL, {"[20]", "[5,4]"}}, {shape_of(5, 4), "N=2", {NULL}},
        {shape_of(5, 4), "N=3", {"[2]", "[N]"}},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        struct builder b = {0};
        struct graph *g = NULL;
        struct error err = {0};
        struct shape pair = shape_of(2);
        const struct onnx_binding bindings[] = {
            {.name = "x", .desc = desc_dense(DTYPE_F32, &rows[k].x, LAYOUT_PLAIN), .data = x},
            {.name = "i", .desc = desc_dense(DTYPE_I64, &pair, LAYOUT_PLAIN), .data = i},
        };
        const char *dims[] = {rows[k].dims};
        struct onnx_import_options options = {.bindings = bindings,
                                              .binding_count = 2,
                                              .dims = dims,
                                              .dim_count = rows[k].dims != NULL};
        gather_at(&b);
        enum status status =
            onnx_import_memory(b.bytes, b.size, "/tmp", "f.onnx", &options, &g, &err);
        build_release(&b);
        assert_int_equal(status, rows[k].says[0] ? STATUS_FAILED : STATUS_OK);
        for (int s = 0; rows[k].says[0] && s < 2; s++)
            assert_non_null(strstr(err.message, rows[k].says[s]));
        graph_free(g);
    }
}

static int write_all(const char *folder)
{
    for (int k = 0; k < ARRAY_COUNT(models); k++) {
        char path[512];
        struct builder b = {0};
        snprintf(path, sizeof(path), "%s/%s.onnx", folder, models[k].name);
        FILE *stream = fopen(path, "wb");
        if (!stream)
            return 2;
        models[k].build(&b);
        bool fine = fwrite(b.bytes, 1, b.size, stream) == b.size;
        build_release(&b);
        if (fclose(stream) != 0 || !fine)
            return 2;
    }
    return 0;
}

static int start(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_all(argv[2]);
    return UNIT_RUN;
}

const struct unit_fixture unit_fixture = {.start = start};
