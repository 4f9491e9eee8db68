/* SPDX-License-Identifier: Apache-2.0
 * What is too large for a device's kernels, which count in 32 bits, they have to refuse: cut off, a
 * size is a smaller one, and the result is wrong. Nothing of such a size is allocated here. */
#include "engine/graph/kernel.h"
#include "engine/run/device.h"
#include "engine/run/kernels.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/op_case.h"
#include "tests/lib/unit.h"

enum { TENSORS = 16 };

static const char weights[1]; /* plans ask whether there are some, not what they are */

static const struct large {
    const char *op;
    struct op_case c;
} large[] = {
    {"ArgMax", {.name = "line", .inputs = "f32[2,4294967299]", .attrs = "axis=1"}},
    {"Attention",
     {.name = "keys",
      .inputs = "f32[1,2,4] f32[1,4294967299,4] f32[1,4294967299,4]",
      .attrs = "heads=1"}},
    {"Conv",
     {.name = "taps",
      .inputs = "f32[1,1,1,1] f32[1,1,65537,65537]!",
      .attrs = "pads=[65536,65536,0,0]"}},
    {"EmbeddingBag", {.name = "rows", .inputs = "f32[4294967299,1] i32[2,3]"}},
    {"EmbeddingBag", {.name = "bag", .inputs = "f32[5,1] i32[1,4294967299]"}},
    {"Embeddings", {.name = "rows", .inputs = "f32[4294967299,1] i32[3]"}},
    {"Gather", {.name = "rows", .inputs = "f32[4294967299,1] i32[3]"}},
    {"Gemm", {.name = "depth", .inputs = "f32[2,4294967299] f32[4294967299,3]"}},
    {"MatMul", {.name = "depth", .inputs = "f32[2,4294967299] f32[4294967299,3]"}},
    {"MatMul", {.name = "depth of half", .inputs = "f16[2,4294967299] f16[4294967299,3]"}},
    {"MatMulF8",
     {.name = "depth", .inputs = "f8e4m3[2,4294967299] f8e4m3[4294967299,3]", .attrs = "to=1"}},
    {"MatMulInteger", {.name = "depth", .inputs = "u8[2,4294967299] u8[4294967299,3]"}},
    {"SpMM", {.name = "rows", .inputs = "f32[5] i32[5] i32[4]=0,2,2,5 f32[4294967299,1]"}},
    {"ReduceSum", {.name = "terms", .inputs = "f32[2,4294967299] i64[1]=1"}},
    {"Softmax", {.name = "line", .inputs = "f32[2,4294967299]"}},
};

static void describe(const struct graph *g, const int *values, int count, struct desc *to)
{
    for (int k = 0; k < count && k < TENSORS; k++)
        if (values[k] != NONE)
            to[k] =
                desc_dense(g->values[values[k]].dtype, &g->values[values[k]].shape, LAYOUT_PLAIN);
}

/* How many kernels accept it. */
static int accepting(const struct large *of, const struct device *device)
{
    struct error err = {0};
    struct desc in[TENSORS] = {0}, out[TENSORS] = {0};
    const void *fixed[TENSORS] = {NULL};
    struct graph *g = op_case_graph(op_named(of->op), &of->c, &err);
    if (!g)
        fail_msg("%s", err.message);
    const struct node *node = &g->nodes[0];
    describe(g, node->inputs, node->input_count, in);
    describe(g, node->outputs, node->output_count, out);
    for (int k = 0; k < node->input_count; k++) {
        const struct value *v = &g->values[node->inputs[k]];
        fixed[k] = v->kind == VALUE_PARAM ? weights : v->data;
    }
    struct kernel_query q = {.node = node,
                             .in_count = node->input_count,
                             .out_count = node->output_count,
                             .in = in,
                             .out = out,
                             .fixed = fixed,
                             .threads = 1,
                             .device = device,
                             .tf32 = true};
    int found = 0;
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        struct error why = {0};
        if (!kernel->device || !kernel_computes(kernel, node->op) ||
            kernel_accepts(kernel, &q, &why) != STATUS_OK)
            continue;
        print_message("%s accepts %s of too many %s\n", kernel->name, of->op, of->c.name);
        found++;
    }
    graph_free(g);
    return found;
}

TEST(what_32_bits_do_not_count_is_refused)
{
    struct device device;
    int found = 0;
    MUST(device_open, "cuda", &device);
    for (int k = 0; k < ARRAY_COUNT(large); k++)
        found += accepting(&large[k], &device);
    device_close(&device);
    assert_int_equal(found, 0);
}

const struct unit_fixture unit_fixture = {.start = host_gpu_start};
