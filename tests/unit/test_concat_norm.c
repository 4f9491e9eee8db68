/* SPDX-License-Identifier: Apache-2.0
 * Batch norms after concatenations: the pass, and its kernel in both layouts. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compile/stages.h"
#include "engine/graph/op.h"
#include "engine/run/exe.h"
#include "engine/run/plugin.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

static int input(struct graph *g, const char *name, int64_t channels, int64_t width)
{
    return noise_input(g, name, shape_of(2, channels, 6, width));
}

/* Two nested concatenations, each normalised; the inner one is read elsewhere too. `images`: the
 * pieces come from convolutions and lie channels-last. All sizes are multiples of `multiple`, which
 * is 1, 4 or 8. */
static struct graph *dense_graph(bool images, int multiple)
{
    struct graph *g = graph_new("dense");
    int64_t width = multiple == 8 ? 8 : multiple == 4 ? 6 : 5;
    int a = input(g, "a", 7, width), b = input(g, "b", 19, width), c = input(g, "c", 32, width);
    if (images) {
        a = conv2d(g, a, .name = "conv_a",
                   .out = multiple == 8   ? 16
                          : multiple == 4 ? 12
                                          : 13,
                   .kernel = 3, .pad = 1);
        b = conv2d(g, b, .name = "conv_b", .out = 32, .kernel = 1);
        c = conv2d(g, c, .name = "conv_c", .out = multiple > 1 ? 8 : 5, .kernel = 1);
    }
    int inner = concat(g, 1, 2, (const int[]){a, b});
    int outer = concat(g, 1, 2, (const int[]){inner, c});
    graph_output(g, relu(g, batch_norm(g, inner, "bn_inner", 1e-3, 1.0)));
    graph_output(g, sigmoid(g, batch_norm(g, outer, "bn_outer", 1e-5, 0.5)));
    graph_output(g, batch_norm(g, outer, "bn_bare", 1e-5, 2.0));
    return g;
}

static struct exe_options quick(enum isa isa)
{
    return (struct exe_options){.threads = 2, .isa = isa, .no_tune = true, .only_variant = NONE};
}

TEST(norms_join_their_concatenations)
{
    struct exe_options options = quick(isa_detect());
    struct graph *g = dense_graph(true, 1);
    MUST(graph_check, g);
    MUST(passes_run, g, &options, NULL, NULL);
    assert_int_equal(count_ops(g, "BatchNormalization") + count_ops(g, "Relu"), 0);
    assert_int_equal(count_ops(g, "Sigmoid"), 0);
    assert_int_equal(count_ops(g, "Concat"), 3);
    for (int n = 0; n < g->node_count; n++)
        if (strcmp(g->nodes[n].name, "bn_outer") == 0)
            assert_int_equal(g->nodes[n].op_inputs, 3); /* flattened */
    graph_free(g);
}

static void compare(const struct graph *g, const struct exe_options *options, const char *kernel,
                    double bound)
{
    struct exe *exe = compiled(g, options);
    int joined = 0;
    for (int s = 0; s < exe_step_count(exe); s++)
        joined += strstr(exe_step_at(exe, s).kernel->name, kernel) != NULL;
    assert_int_equal(joined, 3);
    assert_true(run_error(exe, g) <= bound);
    exe_free(exe);
}

TEST(results_are_right_in_both_layouts)
{
    static const double bounds[] = {1e-5, 1e-2}; /* of floats and bf16 */
    for (int kind = 0; kind < 4; kind++) {
        struct graph *g = dense_graph(kind & 1, 1);
        struct exe_options narrow = quick(isa_detect());
        narrow.precision = PRECISION_BF16;
        if (kind & 2)
            MUST(passes_run, g, &narrow, NULL, NULL);
        for (enum isa isa = ISA_SCALAR; isa <= isa_detect(); isa++) {
            struct exe_options options = quick(isa);
            options.max_error = 1e-5; /* no Winograd */
            compare(g, &options, "concat_norm", bounds[kind / 2]);
        }
        graph_free(g);
    }
}

/* On the device that the host plays (tests/gpu/host/). */
TEST(results_are_right_on_a_device)
{
    if (!plugin_version("cuda"))
        skip();
    static const enum precision precisions[] = {PRECISION_F32, PRECISION_F16, PRECISION_BF16};
    static const double bounds[] = {1e-5, 5e-3, 4e-2};
    for (int kind = 0; kind < 6; kind++) {
        struct graph *g = dense_graph(kind & 1, kind < 2 ? 1 : kind & 2 ? 4 : 8);
        for (int p = 0; p < ARRAY_COUNT(precisions); p++) {
            struct exe_options options = quick(isa_detect());
            options.device = "cuda";
            options.precision = precisions[p];
            compare(g, &options, "cuda_concat_norm", bounds[p]);
        }
        graph_free(g);
    }
}

/* Under sanitizers the plug-in is not built. */
static int start(int argc, char **argv)
{
    (void)argc;
    plugins_of_build(argv[0], "gpu/host/plugins", "cuda");
    return UNIT_RUN;
}

const struct unit_fixture unit_fixture = {.start = start};
