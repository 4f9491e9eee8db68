/* SPDX-License-Identifier: Apache-2.0
 * What follows a product or a convolution is fused into it on a device only where kernels there
 * take it: with any other operand the whole step would be left to the host. */
#include <stdlib.h>

#include "engine/compile/compile.h"
#include "engine/graph/op_list.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

static int product(struct graph *g, struct shape left, struct shape right)
{
    int a = noise_input(g, "a", left), b = graph_param(g, "b", DTYPE_F32, right, noise());
    return graph_node(g, op_mat_mul.name, NULL, INPUTS(a, b), NO_ATTRS);
}

static int convolution(struct graph *g)
{
    int x = noise_input(g, "x", shape_of(2, 8, 6, 5));
    int w = graph_param(g, "w", DTYPE_F32, shape_of(16, 8, 3, 3), noise());
    return graph_node(g, op_conv.name, NULL, INPUTS(x, w), NO_ATTRS);
}

static struct graph *network(int which)
{
    struct graph *g = graph_new("epilogue");
    int y;
    switch (which) {
    case 0: /* positions of a sequence */
        y = add(g, product(g, shape_of(2, 6, 8), shape_of(8, 12)),
                noise_input(g, "positions", shape_of(6, 12)));
        break;
    case 1: /* one number per row */
        y = add(g, product(g, shape_of(6, 8), shape_of(8, 12)),
                noise_input(g, "rows", shape_of(6, 1)));
        break;
    case 2: /* a mask of pixels */
        y = mul(g, convolution(g), noise_input(g, "mask", shape_of(2, 1, 4, 3)));
        break;
    default:
        y = relu(g, product(g, shape_of(6, 8), shape_of(8)));
    }
    graph_output(g, relu(g, y));
    return g;
}

TEST(what_kernels_of_devices_do_not_take_is_not_fused)
{
    for (int k = 0; k < 4; k++) {
        struct exe_options options = gpu_options("cuda"), plain = gpu_options(NULL);
        struct exe *exe = compiled_owned(network(k), &options);
        struct exe *host = compiled_owned(network(k), &plain);
        for (int s = 0; s < exe_step_count(exe); s++)
            if (!exe_step_at(exe, s).kernel->device)
                fail_msg("network %d: %s is left to the host", k,
                         exe_step_at(exe, s).node->op->name);
        exe_run(exe);
        exe_run(host);
        const float *got = exe_output(exe, 0), *want = exe_output(host, 0);
        const struct graph *g = exe_graph(exe);
        int64_t count = shape_count(&g->values[g->outputs[0]].shape);
        for (int64_t i = 0; i < count; i++)
            assert_float_equal(got[i], want[i], 1e-4);
        exe_free(exe);
        exe_free(host);
    }
}

const struct unit_fixture unit_fixture = {.start = host_gpu_start};
