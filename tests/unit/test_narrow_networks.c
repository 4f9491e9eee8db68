/* SPDX-License-Identifier: Apache-2.0
 * Networks in 16 bits: no node loses its kernel of ours on a device, and the error is within what
 * `ridge verify` allows. For that the narrowed network is computed by the references, which round
 * each result to the type of its tensor. Small networks; `test_narrow_networks NAME...`: others. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/run/kernels.h"
#include "harness/model/decisions.h"
#include "harness/model/verify.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/lowered.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/workload.h"

static const enum precision precisions[] = {PRECISION_BF16, PRECISION_F16};

static const char *const small[] = {"ncf", "wide_deep", "gcn", "din", "dien", "crnn"};

static const char *const *networks = small;
static int network_count = ARRAY_COUNT(small);

static struct graph *opened(const char *spec, int64_t batch)
{
    struct error err = {0};
    struct graph *g;
    if (workload_open(spec, batch, PRECISION_F32, &g, &err) != STATUS_OK)
        fail_msg("%s: %s", spec, err.message);
    return g;
}

/* ---- kernels ---- */

static bool is_taken(const struct kernel_query *q, char *reason, size_t size)
{
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        struct error why = {0};
        if (!kernel->device || !kernel_computes(kernel, q->node->op))
            continue;
        if (kernel_accepts(kernel, q, &why) == STATUS_OK)
            return true;
        snprintf(reason, size, "%.60s: %.300s", kernel->name, why.message);
    }
    return false;
}

/* Operators of the network that no kernel takes: their names, each between blanks. */
static void refused(const char *name, enum precision precision, const struct device *device,
                    char *names, size_t size)
{
    struct error err = {0};
    struct lowered l;
    struct exe_options options = {.threads = 1, .precision = precision, .device = "cuda"};
    if (lowered_open_with(&l, opened(name, 1), &options, &err) != STATUS_OK)
        fail_msg("%s: %s", name, err.message);
    snprintf(names, size, " ");
    for (int s = 0; s < lowered_count(&l); s++) {
        struct kernel_query q = lowered_step(&l, s)->query;
        char word[80], reason[400] = "no kernel of this operator";
        size_t used = strlen(names);
        q.device = device;
        snprintf(word, sizeof(word), " %.70s ", q.node->op->name);
        if (is_taken(&q, reason, sizeof(reason)) || strstr(names, word))
            continue;
        printf("# %s in %s: \"%s\" (%s): %s\n", name, precision_name(precision), q.node->name,
               q.node->op->name, reason);
        snprintf(names + used, size - used, "%s ", word + 1);
    }
    lowered_close(&l);
}

TEST(no_node_loses_its_kernel)
{
    struct device device;
    MUST(device_open, "cuda", &device);
    for (int k = 0; k < network_count; k++) {
        char wide[2000], narrow[2000];
        refused(networks[k], PRECISION_F32, &device, wide, sizeof(wide));
        for (int p = 0; p < ARRAY_COUNT(precisions); p++) {
            refused(networks[k], precisions[p], &device, narrow, sizeof(narrow));
            assert_string_equal(narrow, wide);
        }
    }
    device_close(&device);
}

/* ---- errors ---- */

static void check_error(const char *spec, enum precision precision, struct pool *pool)
{
    struct error err = {0};
    struct graph *g = opened(spec, 1), *before = NULL;
    struct exe_options passes = {.precision = precision};
    struct exe_options options = {
        .pool = pool, .no_tune = true, .no_fuse = true, .only = "reference", .only_variant = NONE};
    struct exe *exe;
    MUST(graph_before_decisions, g, &before);
    const struct graph *wide = before ? before : g;
    struct graph *narrow = graph_copy(wide);
    MUST(passes_run, narrow, &passes, NULL, NULL);
    double bound = verify_bound(narrow, precision);
    if (exe_new(narrow, &options, &exe, &err) != STATUS_OK)
        fail_msg("%s: %s", spec, err.message);
    double error = run_error(exe, wide);
    printf("# %-24s %-4s error %.2e, bound %.2e: %2.0f %%%s\n", spec, precision_name(precision),
           error, bound, 100 * error / bound, before ? ", before decisions" : "");
    fflush(stdout);
    assert_true(error <= bound);
    assert_true(error > 0); /* something was rounded */
    exe_free(exe);
    graph_free(narrow);
    graph_free(before);
    graph_free(g);
}

TEST(errors_are_within_the_bound)
{
    struct pool *pool;
    MUST(pool_new, 0, &pool);
    for (int k = 0; k < network_count; k++)
        for (int p = 0; p < ARRAY_COUNT(precisions); p++)
            check_error(networks[k], precisions[p], pool);
    pool_free(pool);
}

static int start(int argc, char **argv)
{
    if (argc > 1) {
        networks = (const char *const *)argv + 1;
        network_count = argc - 1;
    }
    return host_gpu_start(argc, argv);
}

const struct unit_fixture unit_fixture = {.start = start};
