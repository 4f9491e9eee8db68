/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials of kernels on the host, by the sample plug-in's Relus. */
#include <stdlib.h>
#include <string.h>

#include "engine/run/plugin.h"
#include "tests/lib/noise.h"
#include "tests/lib/sample_plugin.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"
#include "tests/lib/unit/graphs.h"

/* The first run tells whether a long launch is worth a second. It waited for the pages of the
 * workspace, so that the fastest kernel for a gradient of weights, which has 40 MB, took 120 ms
 * instead of 7 and was left out. */
TEST(the_first_run_has_its_workspace_in_memory)
{
    struct graph *g = graph_new("relu");
    int x = noise_input(g, "x", shape_of(1 << 16));
    graph_output(g, graph_node(g, "Relu", NULL, INPUTS(x), NO_ATTRS));
    struct exe_options options = {
        .threads = 1, .isa = isa_detect(), .only_variant = NONE, .providers = "sample"};
    struct exe *exe = compiled(g, &options);
    struct exe_step step = exe_step_at(exe, 0);
    bool found = false;
    for (int k = 0; k < step.candidate_count; k++)
        if (strcmp(step.candidates[k].kernel->name, "sample_paged") == 0) {
            assert_string_equal(step.candidates[k].reason, "");
            found = true;
        }
    assert_true(found);
    exe_graph_free(exe, g);
}

static int load(void **state)
{
    (void)state;
    char folder[256];
    folder_with_sample("sample.so", folder, sizeof(folder));
    setenv("RIDGE_PLUGIN_PATH", folder, 1);
    setenv("RIDGE_SAMPLE", "paged", 1);
    plugins_load("sample");
    folder_remove(folder);
    return plugin_kernel_count() > 0 ? 0 : -1;
}

const struct unit_fixture unit_fixture = {.before_all = load};
