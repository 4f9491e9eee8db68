/* SPDX-License-Identifier: Apache-2.0
 *
 * A network's own images, of few channels, stay as they come only where a kernel reads planes:
 * else the first layer was computed by the reference, however long that took. */
#include <string.h>

#include "engine/graph/op_list.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

struct first {
    const char *op;
    struct shape image, weights; /* weights of rank 0: none */
    struct attr attr;            /* without a name: none */
    bool planes;                 /* the image is read as it comes */
};

#define IMAGE        .image = {4, {2, 3, 12, 13}}
#define LIST(n, a)   .attr = {.name = (n), .kind = ATTR_INTS, .ints = (a), .count = ARRAY_COUNT(a)}
#define NUMBER(n, x) .attr = {.name = (n), .kind = ATTR_INT, .i = (x)}

static const int64_t three[] = {3, 3}, two[] = {2, 2}, cube[] = {3, 3, 3};

static const struct first layers[] = {
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

static struct graph *graph_of(const struct first *layer)
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

TEST(every_first_layer_has_a_kernel)
{
    for (int k = 0; k < ARRAY_COUNT(layers); k++) {
        struct graph *g = graph_of(&layers[k]);
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
