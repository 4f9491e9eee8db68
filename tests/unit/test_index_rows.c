/* SPDX-License-Identifier: Apache-2.0
 * Operators with indices on the CPU where ONNX leaves the result open, and kernels of devices may
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

static const struct outside {
    const struct op *op;
    struct op_case c;
    float want[4];
} outside[] = {
    {&op_scatter_nd,
     {.name = "scatter", .inputs = "f32[2,2]=1,2,3,4 i64[3,2]=0,1,-3,0,1,2 f32[3]=7,8,9"},
     {1, 7, 3, 4}},
    {&op_gather_nd,
     {.name = "gather", .inputs = "f32[2,2]=1,2,3,4 i64[4,2]=0,1,-3,0,1,2,-1,-1"},
     {2, 0, 0, 4}},
    {&op_tensor_scatter,
     {.name = "half of a run", .inputs = "f32[2,2,1]=1,2,3,4 f32[2,2,1]=7,8,9,5 i64[2]=1,-1"},
     {1, 7, 5, 4}},
    {&op_tensor_scatter,
     {.name = "all of a run",
      .inputs = "f32[2,2,1]=1,2,3,4 f32[2,1,1]=7,8 i64[2]=9223372036854775807,"
                "-9223372036854775807"},
     {1, 2, 3, 4}},
    {&op_rotary_embedding,
     {.name = "positions", .inputs = "f32[1,1,2,2]=1,2,3,4 f32[2,1]=1 f32[2,1]=0 i64[1,2]=2,-1"},
     {0, 0, 0, 0}},
    {&op_rotary_embedding,
     {.name = "the rest of a head",
      .inputs = "f32[1,1,1,4]=1,2,3,4 f32[2,1]=1 f32[2,1]=0 i64[1,1]=9223372036854775807",
      .attrs = "rotary_embedding_dim=2 interleaved=1"},
     {0, 0, 3, 4}},
};

static const void *want_of(const struct op_case *c)
{
    int k = 0;
    while (&outside[k].c != c)
        k++;
    return outside[k].want;
}

static void check_outside(const struct op *op, const struct op_case *c,
                          const struct kernel_setup *given)
{
    struct error err = {0};
    struct kernel_setup setup = *given;
    struct kernel_case *kc;
    struct graph *g = op_case_graph(op, c, &err);
    assert_non_null(g);
    setup.graph = g;
    MUST(kernel_case_new, &setup, &kc);
    MUST(kernel_case_run, kc, 0);
    if (memcmp(kernel_case_output(kc, 0), want_of(c), 4 * sizeof(float)) != 0)
        fail_msg("%s by %s on %d threads", c->name, setup.kernel->name, pool_threads(setup.pool));
    kernel_case_free(kc);
    graph_free(g);
}

TEST(an_index_outside_reads_a_zero_and_writes_nothing)
{
    for (int k = 0; k < ARRAY_COUNT(outside); k++)
        for_kernels(outside[k].op, &outside[k].c, check_outside);
}
