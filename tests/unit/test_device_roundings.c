/* SPDX-License-Identifier: Apache-2.0
 * A quantised network on a device: in 16 bits more numbers lie near a tie than in f32, and no more
 * is forgiven than the precision's bound explains. */

#include <stdlib.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/reference/reference.h"
#include "harness/model/roundings.h"
#include "harness/model/verify.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"

/* Its outputs: integers of 8 bits, and a product of what they stand for. */
static struct graph *quantised(float scale)
{
    struct graph *g = graph_new("quantised");
    const uint8_t offset = 128;
    int x = noise_input(g, "x", shape_of(32, 64));
    int sums =
        graph_node(g, "MatMul", "sums", INPUTS(x, noise_param(g, "w", shape_of(64, 48))), NO_ATTRS);
    int zero = graph_const(g, NULL, DTYPE_U8, shape_scalar(), &offset);
    int unit = graph_const_f32(g, scale);
    int q = graph_node(g, "QuantizeLinear", "rounded", INPUTS(sums, unit, zero), NO_ATTRS);
    int y = graph_node(g, "DequantizeLinear", NULL, INPUTS(q, unit, zero), NO_ATTRS);
    graph_output(g, q);
    graph_output(g, graph_node(g, "MatMul", "y", INPUTS(y, noise_param(g, "w2", shape_of(48, 8))),
                               NO_ATTRS));
    MUST(graph_check, g);
    return g;
}

static struct exe *compiled(const struct graph *g, enum precision precision)
{
    struct exe *exe;
    struct exe_options options = gpu_options(gpu_name());
    options.precision = precision;
    MUST(exe_new, g, &options, &exe);
    return exe;
}

/* The note begins with their number. */
static long ties_in(enum precision precision)
{
    struct graph *g = quantised(0.12F);
    struct exe *exe = compiled(g, precision);
    struct verification v;
    MUST(verify_exe, g, exe, &v);
    assert_string_equal(v.odd, "");
    assert_true(v.error <= v.bound);
    assert_true(v.note[0] == '\0' || strstr(v.note, " of 1536 roundings") != NULL);
    exe_free(exe);
    graph_free(g);
    return strtol(v.note, NULL, 10);
}

TEST(in_16_bits_more_lies_on_ties)
{
    long f32 = ties_in(PRECISION_F32), f16 = ties_in(PRECISION_F16);
    long bf16 = ties_in(PRECISION_BF16);
    assert_true(f32 <= 2);
    assert_true(f16 > f32 && bf16 > f16);
}

/* A scale that is 5 % off moves the largest by six units, where the bound allows two or three. */
TEST(in_16_bits_a_wrong_rounding_is_found)
{
    struct graph *g = quantised(0.12F), *other = quantised(0.126F), *with;
    struct ref_tensor outputs[2];
    MUST(graph_with_roundings, g, &with);
    struct exe *made = compiled(other, PRECISION_BF16);
    struct roundings r = {
        .with = with, .made = made, .bound = verify_bound(exe_graph(made), PRECISION_BF16)};
    exe_run(made);
    MUST(roundings_follow, &r, g, outputs);
    assert_true(r.wrong > 0 && r.ties > 0);
    assert_non_null(strstr(r.odd, "of 1536 roundings are wrong, first "));
    for (int k = 0; k < 2; k++)
        ref_release(&outputs[k]);
    exe_free(made);
    graph_free(with);
    graph_free(other);
    graph_free(g);
}

const struct unit_fixture unit_fixture = {.start = host_gpu_start};
