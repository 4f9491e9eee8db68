/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of volumes: which kernels take them, and that the result is right. */
#include <stdio.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/run/exe.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

/* A convolution of 1 x 3 x 3, and the same with something added that differs from image to image
 * and from plane to plane. */
static struct graph *planes_graph(int64_t batch, int64_t channels, int64_t out, bool residual)
{
    static const int64_t pads[] = {0, 1, 1, 0, 1, 1};
    struct graph *g = graph_new("planes");
    int x = noise_input(g, "x", shape_of(batch, channels, 4, 9, 9));
    int weights = noise_param(g, "weights", shape_of(out, channels, 1, 3, 3));
    int y = graph_node(g, "Conv", "conv", INPUTS(x, weights), ATTRS(attr_ints("pads", 6, pads)));
    if (residual)
        y = relu(g, add(g, y, noise_input(g, "r", shape_of(batch, out, 4, 9, 9))));
    graph_output(g, y);
    return g;
}

/* A network's own volume of few channels, as video begins. */
static struct graph *video_graph(void)
{
    static const int64_t pads[] = {1, 1, 1, 1, 1, 1}, strides[] = {1, 2, 2};
    struct graph *g = graph_new("video");
    int x = noise_input(g, "x", shape_of(2, 3, 4, 9, 9));
    int weights = noise_param(g, "weights", shape_of(16, 3, 3, 3, 3));
    graph_output(g,
                 graph_node(g, "Conv", "conv", INPUTS(x, weights),
                            ATTRS(attr_ints("pads", 6, pads), attr_ints("strides", 3, strides))));
    return g;
}

/* Whether a kernel of the name takes the convolution, with which the result is right. */
static bool takes(const struct graph *g, const char *name)
{
    struct exe_options options = {
        .threads = 2, .isa = isa_detect(), .no_tune = true, .only_variant = NONE};
    char only[64];
    bool found = false;
    snprintf(only, sizeof(only), "%s_%s", name, isa_name(options.isa));
    options.only = only;
    struct exe *exe = compiled(g, &options);
    for (int s = 0; s < exe_step_count(exe); s++)
        found = found || strcmp(exe_step_at(exe, s).kernel->name, only) == 0;
    double error = run_error(exe, g);
    if (error > 1e-3)
        fail_msg("%s: error %g", only, error);
    exe_free(exe);
    return found;
}

/* Bug: such an input kept its planes, which no kernel of the CPU reads. */
TEST(volumes_of_few_channels_find_a_kernel)
{
    struct graph *g = video_graph();
    assert_true(takes(g, "conv_igemm"));
    graph_free(g);
}

/* Bug: all but conv_igemm refused them. */
TEST(planes_apart_are_images)
{
    for (int64_t batch = 1; batch <= 2; batch++) {
        struct graph *wide = planes_graph(batch, 24, 32, false);
        struct graph *narrow = planes_graph(batch, 3, 32, false);
        assert_true(takes(wide, "conv_winograd"));
        assert_true(takes(wide, "conv_igemm"));
        assert_true(takes(narrow, "conv_stem"));
        graph_free(wide);
        graph_free(narrow);
    }
}

TEST(what_is_added_follows_images_and_planes)
{
    for (int64_t batch = 1; batch <= 2; batch++) {
        struct graph *wide = planes_graph(batch, 24, 32, true);
        struct graph *narrow = planes_graph(batch, 3, 32, true);
        assert_true(takes(wide, "conv_winograd") == (batch == 1));
        assert_true(takes(wide, "conv_igemm"));
        assert_true(takes(narrow, "conv_stem") == (batch == 1));
        graph_free(wide);
        graph_free(narrow);
    }
}
