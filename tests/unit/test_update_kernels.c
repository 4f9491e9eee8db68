/* SPDX-License-Identifier: Apache-2.0
 * Kernels of optimisers and of norms over all weights give the same bits on any number of threads:
 * a training can be repeated on another machine of the same instruction set. */

#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/run/kernels.h"
#include "tests/lib/kernel_case.h"
#include "tests/lib/op_case.h"
#include "tests/lib/unit.h"

enum { THREADS = 3 };

static struct pool *pools[THREADS]; /* pools[k] has k + 1 threads */

static int make_pools(void **state)
{
    struct error err;
    (void)state;
    for (int k = 0; k < THREADS; k++)
        if (pool_new(k + 1, &pools[k], &err) != STATUS_OK)
            return 1;
    return 0;
}

static int free_pools(void **state)
{
    (void)state;
    for (int k = 0; k < THREADS; k++)
        pool_free(pools[k]);
    return 0;
}

const struct unit_fixture unit_fixture = {.before_all = make_pools, .after_all = free_pools};

/* The node's results by the threads of a pool; kernel_case_free. */
static struct kernel_case *results_of(const struct graph *g, const struct kernel *kernel,
                                      struct pool *pool)
{
    struct kernel_setup setup = {
        .graph = g, .kernel = kernel, .plan = PLAN_PLAIN, .at_run_time = true, .pool = pool};
    struct kernel_case *c;
    MUST(kernel_case_new, &setup, &c);
    MUST(kernel_case_run, c, 0);
    return c;
}

static void compare_threads(const struct op *op, const struct op_case *c,
                            const struct kernel *kernel)
{
    struct error err = {0};
    struct graph *g = op_case_graph(op, c, &err);
    assert_non_null(g);
    struct kernel_case *one = results_of(g, kernel, pools[0]);
    for (int p = 1; p < THREADS; p++) {
        struct kernel_case *many = results_of(g, kernel, pools[p]);
        for (int k = 0; k < g->nodes[0].output_count; k++) {
            const struct value *value = &g->values[g->nodes[0].outputs[k]];
            size_t bytes = value_size(value);
            if (memcmp(kernel_case_output(one, k), kernel_case_output(many, k), bytes) != 0)
                fail_msg("%s/%s by %s: output %d differs on %d threads", op->name, c->name,
                         kernel->name, k, p + 1);
        }
        kernel_case_free(many);
    }
    kernel_case_free(one);
    graph_free(g);
}

static void compare_cases(const struct op *op)
{
    int kernels = 0;
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        if (strcmp(kernel->provider, "native") != 0 || !kernel_computes(kernel, op) ||
            kernel->isa > isa_detect())
            continue;
        kernels++;
        for (int c = 0; c < op->case_count; c++)
            compare_threads(op, &op->cases[c], kernel);
    }
    if (!kernels)
        fail_msg("no kernel for %s", op->name);
}

TEST(updates_do_not_depend_on_threads)
{
    for (int k = 0; k < op_count(); k++)
        if (op_at(k)->update)
            compare_cases(op_at(k));
}

TEST(the_global_norm_does_not_depend_on_threads)
{
    compare_cases(&op_global_norm);
}
