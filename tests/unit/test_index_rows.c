/* SPDX-License-Identifier: Apache-2.0
 * GatherND and ScatterND of the CPU where ONNX leaves the result open, and kernels of devices may
 * differ: places that are named twice, on any number of threads, and indices outside. */
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/run/kernels.h"
#include "tests/lib/kernel_case.h"
#include "tests/lib/op_case.h"
#include "tests/lib/subject.h"
#include "tests/lib/unit.h"

enum { THREADS = 3 };

typedef void check_fn(const struct op *op, const struct op_case *c,
                      const struct kernel_setup *setup);

/* Each native kernel of the operator, on 1 to THREADS threads; setup->graph is left open. */
static void for_kernels(const struct op *op, const struct op_case *c, check_fn *check)
{
    int kernels = 0;
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        if (strcmp(kernel->provider, "native") != 0 || !kernel_computes(kernel, op) ||
            kernel->device || kernel->isa > isa_detect())
            continue;
        for (int threads = 1; threads <= THREADS; threads++) {
            struct kernel_setup setup = {.kernel = kernel, .at_run_time = true};
            MUST(pool_new, threads, &setup.pool);
            check(op, c, &setup);
            pool_free(setup.pool);
        }
        kernels++;
    }
    assert_true(kernels > 0);
}

/* As the reference has it, which goes through the updates in their order. */
static void check_order(const struct op *op, const struct op_case *c,
                        const struct kernel_setup *given)
{
    struct error err = {0};
    struct kernel_setup setup = *given;
    struct kernel_case *kc;
    struct subject s = {.op = op, .c = c, .floats = DTYPE_F32};
    double part = 0;
    MUST(subject_open, &s, NONE);
    setup.graph = s.g;
    MUST(kernel_case_new, &setup, &kc);
    MUST(kernel_case_run, kc, 0);
    if (subject_check(&s, 0, kernel_case_output(kc, 0), 0, &part, &err) != STATUS_OK)
        fail_msg("%s by %s on %d threads: %s", c->name, setup.kernel->name,
                 pool_threads(setup.pool), err.message);
    kernel_case_free(kc);
    subject_close(&s);
}

TEST(the_last_of_several_updates_of_a_place_stands)
{
    static const struct op_case cases[] = {
        {.name = "elements", .inputs = "i64[7] i32[6,1]=3,-4,0,3,6,-7 i64[6]"},
        {.name = "runs across blocks", .inputs = "f32[10,5,1021] i64[97,2]{-5:5} f32[97,1021]"},
        {.name = "many elements", .inputs = "f32[300,301] i64[5003,2]{-300:300} f32[5003]"},
        {.name = "bytes", .inputs = "u8[40,5003] i32[90,1]{-40:40} u8[90,5003]"},
    };
    for (int k = 0; k < ARRAY_COUNT(cases); k++)
        for_kernels(&op_scatter_nd, &cases[k], check_order);
}

static void check_outside(const struct op *op, const struct op_case *c,
                          const struct kernel_setup *given)
{
    static const float scattered[] = {1, 7, 3, 4}, gathered[] = {2, 0, 0, 4};
    const float *want = op == &op_scatter_nd ? scattered : gathered;
    struct error err = {0};
    struct kernel_setup setup = *given;
    struct kernel_case *kc;
    struct graph *g = op_case_graph(op, c, &err);
    assert_non_null(g);
    setup.graph = g;
    MUST(kernel_case_new, &setup, &kc);
    MUST(kernel_case_run, kc, 0);
    if (memcmp(kernel_case_output(kc, 0), want, sizeof(scattered)) != 0)
        fail_msg("%s by %s on %d threads", op->name, setup.kernel->name, pool_threads(setup.pool));
    kernel_case_free(kc);
    graph_free(g);
}

TEST(an_index_outside_reads_a_zero_and_writes_nothing)
{
    static const struct op_case scatter = {
        .name = "scatter", .inputs = "f32[2,2]=1,2,3,4 i64[3,2]=0,1,-3,0,1,2 f32[3]=7,8,9"};
    static const struct op_case gather = {.name = "gather",
                                          .inputs = "f32[2,2]=1,2,3,4 i64[4,2]=0,1,-3,0,1,2,-1,-1"};
    for_kernels(&op_scatter_nd, &scatter, check_outside);
    for_kernels(&op_gather_nd, &gather, check_outside);
}
