/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator on images channels-last that reads the network's own image, whose few channels
 * convolutions read as they come: others were given an order of memory that none of their kernels
 * takes, and the reference computed them. */
#include <string.h>

#include "engine/graph/kernel.h"
#include "engine/graph/op_list.h"
#include "engine/run/device.h"
#include "engine/run/kernels.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/lowered.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { CHANNELS = 3 };

static int of_channels(struct graph *g, const char *name)
{
    static const float numbers[CHANNELS] = {0.5f, 1, 2};
    return graph_const(g, name, DTYPE_F32, shape_of(CHANNELS), numbers);
}

static struct graph *first(const char *op)
{
    static const struct window2d window = {.kernel = 2, .stride = 1};
    struct graph *g = graph_new(op);
    int x = noise_input(g, "x", shape_of(2, CHANNELS, 6, 5)), y = NONE;
    if (strcmp(op, "BatchNormalization") == 0)
        y = batch_norm(g, x, "norm", 1e-5, 1);
    else if (strcmp(op, "InstanceNormalization") == 0)
        y = graph_node(g, op, NULL, INPUTS(x, of_channels(g, "scale"), of_channels(g, "bias")),
                       NO_ATTRS);
    else if (strcmp(op, "LRN") == 0)
        y = graph_node(g, op, NULL, INPUTS(x), ATTRS(attr_int("size", 3)));
    else
        y = strcmp(op, "MaxPool") == 0 ? max_pool(g, x, window) : average_pool(g, x, window);
    graph_output(g, y);
    return g;
}

static bool is_computed(const struct kernel_query *q)
{
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        struct error why = {0};
        bool here =
            q->device ? kernel->device && strcmp(kernel->device, "cuda") == 0 : !kernel->device;
        if (here && strcmp(kernel->provider, "reference") != 0 &&
            kernel_computes(kernel, q->node->op) && kernel_accepts(kernel, q, &why) == STATUS_OK)
            return true;
    }
    return false;
}

/* Steps of a network of one operator; none of them is left to the reference. */
static int steps_of(const char *op, const struct device *device)
{
    struct lowered lowered;
    struct error err = {0};
    struct exe_options options = {.threads = 1, .device = device ? "cuda" : NULL};
    if (lowered_open_with(&lowered, first(op), &options, &err) != STATUS_OK)
        fail_msg("%s: %s", op, err.message);
    int steps = lowered_count(&lowered);
    for (int s = 0; s < steps; s++) {
        struct kernel_query q = lowered_step(&lowered, s)->query;
        q.device = device;
        if (!is_computed(&q))
            fail_msg("no kernel for %s after %s", q.node->op->name, op);
    }
    lowered_close(&lowered);
    return steps;
}

static const char *const ops[] = {"BatchNormalization", "InstanceNormalization", "LRN", "MaxPool",
                                  "AveragePool"};

TEST(cpu_kernels_compute_what_reads_the_image)
{
    for (int k = 0; k < ARRAY_COUNT(ops); k++)
        (void)steps_of(ops[k], NULL);
}

TEST(device_kernels_compute_what_reads_the_image)
{
    struct device device;
    MUST(device_open, "cuda", &device);
    for (int k = 0; k < ARRAY_COUNT(ops); k++)
        (void)steps_of(ops[k], &device);
    device_close(&device);
}

struct layer {
    const char *op;
    struct shape image, weights; /* weights of rank 0: none */
    struct attr attr;            /* without a name: none */
    bool planes;                 /* the image is read as it comes */
};

#define IMAGE        .image = {4, {2, 3, 12, 13}}
#define LIST(n, a)   .attr = {.name = (n), .kind = ATTR_INTS, .ints = (a), .count = ARRAY_COUNT(a)}
#define NUMBER(n, x) .attr = {.name = (n), .kind = ATTR_INT, .i = (x)}

static const int64_t three[] = {3, 3}, two[] = {2, 2}, cube[] = {3, 3, 3};

static const struct layer layers[] = {
    {.op = "Conv", IMAGE, .weights = {4, {16, 3, 3, 3}}, .planes = true},
    {.op = "Conv", .image = {3, {2, 2, 40}}, .weights = {3, {16, 2, 5}}, .planes = true},
    {.op = "Conv", IMAGE, .weights = {4, {16, 3, 3, 3}}, LIST("dilations", two)},
    {.op = "Conv", IMAGE, .weights = {4, {3, 1, 3, 3}}, NUMBER("group", 3)},
    {.op = "Conv", .image = {5, {1, 3, 4, 8, 9}}, .weights = {5, {16, 3, 3, 3, 3}}},
    {.op = "ConvTranspose", IMAGE, .weights = {4, {3, 16, 2, 2}}, LIST("strides", two)},
    {.op = "MaxPool", IMAGE, LIST("kernel_shape", three)},
    {.op = "AveragePool", .image = {5, {1, 2, 6, 8, 9}}, LIST("kernel_shape", cube)},
    {.op = "LRN", IMAGE, NUMBER("size", 3)},
};

static struct graph *graph_of_layer(const struct layer *layer)
{
    struct graph *g = graph_new("first");
    int in[2] = {noise_input(g, "image", layer->image)};
    int count = layer->weights.rank ? 2 : 1;
    if (count > 1)
        in[1] = noise_param(g, "weights", layer->weights);
    graph_output(g,
                 graph_node(g, layer->op, NULL, count, in, layer->attr.name != NULL, &layer->attr));
    return g;
}

/* Compiled: conv_stem reads no volumes, groups or dilated lines. */
TEST(every_form_has_a_native_kernel)
{
    for (int k = 0; k < ARRAY_COUNT(layers); k++) {
        struct graph *g = graph_of_layer(&layers[k]);
        struct exe_options options = {.threads = 1, .no_tune = true, .providers = "native"};
        MUST(graph_check, g);
        struct exe *exe = compiled(g, &options);
        for (int s = 0; s < exe_step_count(exe); s++)
            if (strcmp(exe_step_at(exe, s).kernel->name, "reference") == 0)
                fail_msg("layer %d, %s: step %d is computed by the reference", k, layers[k].op, s);
        bool reordered = exe_step_at(exe, 0).node->op == &op_reorder;
        assert_int_equal(reordered, !layers[k].planes);
        assert_true(run_error(exe, g) < 1e-5);
        exe_graph_free(exe, g);
    }
}

const struct unit_fixture unit_fixture = {.start = host_gpu_start};
