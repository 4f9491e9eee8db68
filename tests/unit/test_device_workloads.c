/* SPDX-License-Identifier: Apache-2.0
 *
 * Every node of every workload, in f32 with images plain and channels-last and in bf16, has an own
 * kernel on the GPU: a node without one is computed on the host, and then nothing of the network is
 * captured. */

#include <stdio.h>
#include <string.h>

#include "engine/graph/kernel.h"
#include "engine/graph/op_list.h"
#include "engine/run/device.h"
#include "engine/run/kernels.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/lowered.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "workloads/workload.h"

/* Settings that bring other operators than the default ones do. */
static const char *const variants[] = {
    "active:kind=Sigmoid",   "active:kind=Softmax",  "active:kind=Tanh",
    "active:elements=7",     "faster_rcnn:body=zf",  "googlenet:form=bvlc",
    "ncf:embedding=gather",  "nmt:beam=10",          "norm:kind=lrn",
    "pool:kind=average",     "rnn:cell=GRU",         "rnn:cell=RNN",
    "synnet:form=published", "llama3:phase=prefill", "qwen3:phase=prefill",
    "qwen3:weights=i4",      "llama3:weights=i8",    "qwen3:phase=prefill,weights=i4"};

/* These no device computes as yet. */
static const struct op *const on_host[] = {&op_expert_combine, &op_expert_sort,
                                           &op_grouped_mat_mul};

static bool is_on_host(const struct op *op)
{
    for (int k = 0; k < ARRAY_COUNT(on_host); k++)
        if (on_host[k] == op)
            return true;
    return false;
}

/* NULL, or why the last of the device's kernels for the operator refuses it. */
static const char *refusal(const struct kernel_query *q, struct error *why)
{
    snprintf(why->message, sizeof(why->message), "no kernel computes it");
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        if (!kernel->device || strcmp(kernel->device, q->device->kind->name) != 0 ||
            !kernel_computes(kernel, q->node->op))
            continue;
        if (kernel_accepts(kernel, q, why) == STATUS_OK)
            return NULL;
    }
    return why->message;
}

static int refused_of(const char *name, enum precision precision, enum images images,
                      const struct device *device)
{
    struct graph *graph;
    struct lowered lowered;
    struct error err = {0};
    int refused = 0;
    struct exe_options options = {
        .threads = 1, .precision = precision, .images = images, .device = "cuda"};
    if (workload_open(name, 0, PRECISION_F32, &graph, &err) != STATUS_OK ||
        lowered_open_with(&lowered, graph, &options, &err) != STATUS_OK)
        fail_msg("%s: %s", name, err.message);
    for (int s = 0; s < lowered_count(&lowered); s++) {
        struct error why = {0};
        struct kernel_query q = lowered_step(&lowered, s)->query;
        q.device = device;
        const char *reason = refusal(&q, &why);
        if (is_on_host(q.node->op)) {
            assert_non_null(reason);
            continue;
        }
        refused += reason != NULL;
        if (reason)
            print_message("%s in %s%s, %s \"%s\": %s\n", name, precision_name(precision),
                          images == IMAGES_PLAIN ? " with plain images" : "", q.node->op->name,
                          q.node->name, reason);
    }
    lowered_close(&lowered);
    return refused;
}

TEST(no_node_is_left_to_the_host)
{
    static const struct {
        enum precision precision;
        enum images images;
    } forms[] = {
        {PRECISION_F32, IMAGES_LAST}, {PRECISION_F32, IMAGES_PLAIN}, {PRECISION_BF16, IMAGES_LAST}};
    struct device device;
    int refused = 0;
    MUST(device_open, "cuda", &device);
    for (int p = 0; p < ARRAY_COUNT(forms); p++) {
        for (int k = 0; k < workload_count(); k++)
            refused +=
                refused_of(workload_at(k)->name, forms[p].precision, forms[p].images, &device);
        for (int k = 0; k < ARRAY_COUNT(variants); k++)
            refused += refused_of(variants[k], forms[p].precision, forms[p].images, &device);
    }
    device_close(&device);
    assert_int_equal(refused, 0);
}

/* Rows that are multiplied by weights of a few bits, with a bias. */
static struct graph *product_of_codes(int64_t rows, int64_t k)
{
    enum { N = 24, BLOCK = 32 };
    struct graph *g = graph_new("codes");
    int64_t blocks = (k + BLOCK - 1) / BLOCK;
    struct fill any = {.kind = FILL_INDEX, .a = 0, .b = 256};
    int x = noise_input(g, "x", shape_of(rows, k));
    int codes = graph_param(g, "codes", DTYPE_U8, shape_of(N, blocks, BLOCK / 2), any);
    int zeros = graph_param(g, "zeros", DTYPE_U8, shape_of(N, (blocks + 1) / 2), any);
    int scales = noise_param(g, "scales", shape_of(N, blocks));
    int bias = noise_param(g, "bias", shape_of(N));
    graph_output(g, graph_node(g, "MatMulNBits", NULL, INPUTS(x, codes, scales, zeros, NONE, bias),
                               ATTRS(attr_int("K", k), attr_int("N", N), attr_int("bits", 4),
                                     attr_int("block_size", BLOCK))));
    return g;
}

/* How many steps of the operator there are. */
static int count_steps(const struct lowered *l, const struct op *op)
{
    int count = 0;
    for (int s = 0; s < lowered_count(l); s++)
        count += lowered_step(l, s)->query.node->op == op;
    return count;
}

TEST(codes_become_floats_where_many_rows_are_multiplied)
{
    static const struct {
        int64_t rows, k;
        bool floats;
    } cases[] = {{1, 64, false}, {16, 64, false}, {17, 64, true}, {17, 70, false}};
    struct exe_options options = {.threads = 1, .device = "cuda"};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct lowered l;
        struct error err = {0};
        struct graph *g = product_of_codes(cases[k].rows, cases[k].k);
        if (lowered_open_with(&l, g, &options, &err) != STATUS_OK)
            fail_msg("%s", err.message);
        assert_int_equal(count_steps(&l, &op_mat_mul_n_bits), !cases[k].floats);
        assert_int_equal(count_steps(&l, &op_mat_mul), cases[k].floats);
        assert_int_equal(count_steps(&l, &op_gather_block_quantized), cases[k].floats);
        lowered_close(&l);
    }
}

const struct unit_fixture unit_fixture = {.start = host_gpu_start};
