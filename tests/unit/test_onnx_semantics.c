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

struct made {
    const char *name;
    const char *graph;   /* NULL: `recursion` builds it */
    const char *says[4]; /* all of it stands in the error; none: the file is taken */
};

/* The indices come with each run. */
static const char gather_at[] =
    "in x f32[5,4]; in i i64[N]; y = Gather(x i) \"look_up\"; out y f32[N,4]";

/* A function that calls itself. */
static void recursion(struct builder *b)
{
    build_model(b, 17);
    build_graph(b, "in x f32[2]; y = own.Recursive(x); out y f32[2]");
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

static const struct made models[] = {
    /* An attribute of another kind than the operator's would be ignored, or read as what it is
     * not. */
    {"alpha_as_integer", "in x f32[2,3]; y = LeakyRelu(x) alpha=2; out y f32[2,3]", {NULL}},
    {"axis_as_float",
     "in x f32[2,3]; y = Softmax(x) axis=0.0; out y f32[2,3]",
     {"Softmax", "attribute \"axis\" must be an integer"}},
    {"activations_as_integer",
     "in x f32[1,3,2]; in w f32[1,12,2]; in r f32[1,12,3];"
     "y = LSTM(x w r) hidden_size=3 activations=0; out y f32[1,1,1,3]",
     {"LSTM", "attribute \"activations\" must be a list of strings"}},
    /* Only the reference computes Det. */
    {"det", "in x f32[64,3,3]; d = Det(x); y = Relu(d); out y f32[64]", {NULL}},
    {"gather_at", gather_at, {NULL}},
    {"gather_of_sum",
     "in x f32[5,4]; in i i64[N]; const one i64[]=1; j = Add(i one);"
     "y = Gather(x j) \"look_up\"; out y f32[N,4]",
     {NULL}},
    {"open_length",
     "in ids f32[batch,sequence]; in positions f32[sequence]; y = Add(ids positions); "
     "out y f32[batch,sequence]",
     {"\"sequence\"", "left open by the file"}},
    /* Outputs whose files would have one name, and outputs that are inputs or constants. */
    {"same_file",
     "in x f32[2]; a/b = Relu(x); a_b = Abs(x); a:b = Neg(x); \u51fa\u529b = Exp(x);"
     "\u5165\u529b = Sqrt(x); out a/b f32[2]; out a_b f32[2]; out a:b f32[2];"
     "out \u51fa\u529b f32[2]; out \u5165\u529b f32[2]",
     {NULL}},
    {"pass",
     "in x f32[2]; const w f32[2]=1,2; y = Relu(x); z = Identity(y); out x f32[2];"
     "out w f32[2]; out y f32[2]; out z f32[2]",
     {NULL}},
    {"quantised",
     "in x f32[8,16]; const w f32[16,4]=0.5,-0.25,0.125; const s f32[]=0.02; const z u8[]=128;"
     "p = MatMul(x w); q = QuantizeLinear(p s z); y = DequantizeLinear(q s z); out y f32[8,4]",
     {NULL}},
    {"zero", "in x f32[0,8]; y = Relu(x); out y f32[N,8]", {NULL}},
    {"only_pass", "in x f32[2]; out x f32[2]", {NULL}},
    /* 160 GB, which the format allows. */
    {"stride_of_160_gb",
     "in x f32[1,1,8,8]; const w f32[1,1,3,3]=1,0;"
     "y = ConvTranspose(x w) strides=[28570,28570]; out y f32[1,1,a,b]",
     {NULL}},
    {"two_inputs",
     "in x f32[2]; in x f32[3]; y = Relu(x); out y f32[2]",
     {"f.onnx", "two inputs are called \"x\""}},
    {"two_outputs",
     "in x f32[2]; y = Relu(x); out y f32[2]; out y f32[2]",
     {"f.onnx", "two outputs are called \"y\""}},
    {"two_initializers",
     "in x i64[1]; const w i64[1]=1; const w i64[1]=2; y = Add(x w); out y i64[1]",
     {"f.onnx", "two initializers are called \"w\""}},
    {"gather",
     "in x f32[5,4]; const i i64[1]=7; y = Gather(x i) \"look_up\"; out y f32[a,b]",
     {"f.onnx: Gather node \"look_up\": index 7", "axis 0", "size 5"}},
    {"gather_negative",
     "in x f32[5,4]; const i i64[1]=-6; y = Gather(x i) \"look_up\"; out y f32[a,b]",
     {"Gather node \"look_up\": index -6", "size 5"}},
    {"gather_nd",
     "in x f32[5,4]; const i i64[1,1]=5; y = GatherND(x i) \"look_up\"; out y f32[a,b]",
     {"GatherND node \"look_up\": index 5", "axis 0", "size 5"}},
    {"gather_elements",
     "in x f32[5,4]; const i i64[1,1]=5; y = GatherElements(x i) \"look_up\"; out y f32[a,b]",
     {"GatherElements node \"look_up\": index 5", "size 5"}},
    {"scatter_nd",
     "in x f32[5,4]; in u f32[1,4]; const i i64[1,1]=1000;"
     "y = ScatterND(x i u) \"look_up\"; out y f32[a,b]",
     {"ScatterND node \"look_up\": index 1000", "size 5"}},
    {"scatter_elements",
     "in x f32[5,4]; in u f32[1,1]; const i i64[1,1]=-9;"
     "y = ScatterElements(x i u) \"look_up\"; out y f32[a,b]",
     {"node \"look_up\": index -9", "axis 0", "size 5"}},
    {"bytes_zero_points",
     "in a u8[3,8]; in b u8[8,4]; const p u8[2]=1; const q u8[4]=2; y = MatMulInteger(a b p q);"
     "out y i32[3,4]",
     {"MatMulInteger", "input 2, a scale or zero point [2], does not fit [3,8]"}},
    {"bytes_zero_point_of_nothing",
     "in a u8[3,8]; in b u8[8,4]; const p u8[0]=1; y = MatMulInteger(a b p); out y i32[3,4]",
     {"MatMulInteger", "input 2, a scale or zero point [0], does not fit [3,8]"}},
    {"convolution_zero_points",
     "in x u8[1,2,5,5]; in w u8[4,2,3,3]; const p u8[1]=1; const q u8[0]=2;"
     "y = ConvInteger(x w p q); out y i32[1,4,3,3]",
     {"ConvInteger", "input 3, a scale or zero point [0], does not fit [4,2,3,3]"}},
    {"product_scales",
     "in a u8[3,8]; in b u8[8,4]; const s f32[1]=1; const t f32[2]=1; const p u8[1]=1;"
     "y = QLinearMatMul(a s p b t p s p); out y u8[3,4]",
     {"QLinearMatMul", "input 4, a scale or zero point [2], does not fit [3,4]"}},
    {"convolution_scales",
     "in x u8[1,2,5,5]; in w u8[4,2,3,3]; const s f32[1]=1; const t f32[2]=1; const p u8[1]=1;"
     "y = QLinearConv(x s p w t p s p); out y u8[1,4,3,3]",
     {"QLinearConv", "input 4, a scale or zero point [2], does not fit [4]"}},
    {"convolution_bias",
     "in x u8[1,2,5,5]; in w u8[4,2,3,3]; const s f32[1]=1; const p u8[1]=1; const b i32[2]=1;"
     "y = QLinearConv(x s p w s p s p b); out y u8[1,4,3,3]",
     {"QLinearConv", "bias", "4 channels"}},
    {"dequantised_zero_points",
     "in x u8[2,4]; const s f32[4]=1; const p u8[1]=1; y = DequantizeLinear(x s p) axis=1;"
     "out y f32[2,4]",
     {"DequantizeLinear", "zero point [1] does not fit scale [4]"}},
    {"recursion",
     NULL,
     {"f.onnx: ", "function \"Recursive\" calls itself, or calls nest too deep"}},
    {"wide_stride",
     "in x f32[1,1,8,8]; const w f32[1,1,3,3]=1,0;"
     "y = ConvTranspose(x w) strides=[1000000,1000000]; out y f32[1,1,a,b]",
     {"ConvTranspose", "4.9e+13 positions", " 1.96e+05 GB"}},
    {"pad",
     "in x f32[1,1,8,8]; const s i64[8]=1,1,1000000,1000000,1,1,1000000,1000000;"
     "y = Pad(x s); out y f32[a,b,c,d]",
     {"Pad", " GB"}},
    {"tile",
     "in x f32[1,1,8,8]; const s i64[4]=1,1,1000000; y = Tile(x s); out y f32[a,b,c,d]",
     {"Tile", " GB"}},
    {"resize",
     "in x f32[1,1,8,8]; const s i64[4]=1,1,1000000; y = Resize(x - - s); out y f32[a,b,c,d]",
     {"Resize", " GB"}},
    {"expand",
     "in x f32[1,1,8,8]; const s i64[5]=1000000,1000000,1,8; y = Expand(x s);"
     "out y f32[a,b,c,d]",
     {"Expand", " GB"}},
    {"constant_of_shape",
     "in x f32[1,1,8,8]; const s i64[4]=1,1,1000000; y = ConstantOfShape(s);"
     "out y f32[a,b,c,d]",
     {"ConstantOfShape", " GB"}},
};

static void build(const struct made *model, struct builder *b)
{
    if (model->graph)
        build_file(b, model->graph);
    else
        recursion(b);
}

/* ---- the tests ---- */

TEST(files_are_refused_with_the_reason)
{
    for (int k = 0; k < ARRAY_COUNT(models); k++) {
        struct builder b = {0};
        struct graph *g;
        struct error err = {0};
        build(&models[k], &b);
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
        build_file(&b, gather_at);
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
        build(&models[k], &b);
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
