/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks in bf16 on the CPU: what no kernel computes so stays f32, and nothing is left to the
 * reference that another kernel would compute in f32. */
#include <string.h>

#include "engine/run/kernels.h"
#include "tests/lib/lowered.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "workloads/workload.h"

static void lower(struct lowered *l, struct graph *g, enum precision precision,
                  const char *providers)
{
    struct error err = {0};
    struct exe_options options = {
        .threads = 1, .precision = precision, .providers = providers, .isa = isa_detect()};
    if (lowered_open_with(l, g, &options, &err) != STATUS_OK)
        fail_msg("%s", err.message);
}

static bool is_computed(const struct step *step)
{
    struct error why;
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        if (!kernel->device && !kernel_is_reference(kernel) && kernel->isa <= isa_detect() &&
            kernel_computes(kernel, step->query.node->op) &&
            kernel_accepts(kernel, &step->query, &why) == STATUS_OK)
            return true;
    }
    return false;
}

static int left_to_reference(const struct lowered *l, const char **op)
{
    int count = 0;
    for (int s = 0; s < lowered_count(l); s++) {
        if (is_computed(lowered_step(l, s)))
            continue;
        *op = lowered_step(l, s)->query.node->op->name;
        count++;
    }
    return count;
}

static int steps_in(const struct lowered *l, enum dtype dtype, const char *op)
{
    int count = 0;
    for (int s = 0; s < lowered_count(l); s++) {
        const struct kernel_query *q = &lowered_step(l, s)->query;
        count += q->out[0].dtype == dtype && (!op || strcmp(q->node->op->name, op) == 0);
    }
    return count;
}

TEST(no_workload_leaves_more_to_the_reference_in_bf16_than_in_f32)
{
    for (int w = 0; w < workload_count(); w++) {
        const char *name = workload_at(w)->name, *op = "", *ignored;
        struct lowered narrow, wide;
        struct graph *g;
        MUST(workload_open, name, 1, PRECISION_F32, &g);
        lower(&wide, graph_copy(g), PRECISION_F32, NULL);
        lower(&narrow, g, PRECISION_BF16, NULL);
        if (left_to_reference(&narrow, &op) > left_to_reference(&wide, &ignored))
            fail_msg("%s: %s is left to the reference", name, op);
        if (steps_in(&narrow, DTYPE_BF16, NULL) == 0)
            fail_msg("%s: nothing is in bf16", name);
        lowered_close(&narrow);
        lowered_close(&wide);
    }
}

/* alpha a b, times another matrix. */
static struct graph *scaled_product(double alpha)
{
    struct graph *g = graph_new("scaled");
    int a = noise_input(g, "a", shape_of(96, 32)), b = noise_param(g, "b", shape_of(32, 80));
    int y = graph_node(g, "Gemm", "y", INPUTS(a, b), ATTRS(attr_float("alpha", alpha)));
    int c = noise_param(g, "c", shape_of(80, 64));
    graph_output(g, graph_node(g, "MatMul", "z", INPUTS(y, c), NO_ATTRS));
    MUST(graph_check, g);
    return g;
}

TEST(what_no_kernel_computes_in_bf16_stays_f32)
{
    struct lowered l;
    lower(&l, scaled_product(1), PRECISION_BF16, NULL);
    assert_int_equal(steps_in(&l, DTYPE_BF16, "Gemm"), 1);
    lowered_close(&l);
    lower(&l, scaled_product(0.5), PRECISION_BF16, NULL);
    assert_int_equal(steps_in(&l, DTYPE_BF16, "Gemm"), 0);
    assert_int_equal(steps_in(&l, DTYPE_F32, "Gemm"), 1);
    lowered_close(&l);
}

/* Else f32 would be measured under the name of bf16. */
TEST(kernels_that_are_not_allowed_are_not_asked)
{
    struct lowered l;
    struct error err = {0};
    struct exe_options options = {
        .threads = 1, .precision = PRECISION_BF16, .providers = "openblas", .isa = isa_detect()};
    assert_int_equal(lowered_open_with(&l, scaled_product(1), &options, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "computes any of it in bf16"));
    lowered_close(&l);
    lower(&l, scaled_product(0.5), PRECISION_BF16, "reference");
    assert_int_equal(steps_in(&l, DTYPE_BF16, "Gemm"), 1);
    lowered_close(&l);
}
