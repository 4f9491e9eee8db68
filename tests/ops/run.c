/* SPDX-License-Identifier: Apache-2.0
 *
 * Proves every kernel on every case of its operator: alone, between guard zones, in each layout
 * that an executable may bring about, with one thread and two, with constants known before or not,
 * with fused epilogues, with results that lie inside larger ones; then through an executable. All
 * of it against the operator's reference in double. A kernel may refuse; --verbose says why.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/text/options.h"
#include "engine/compile/compile.h"
#include "engine/graph/cost.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/run/exe.h"
#include "engine/run/kernels.h"
#include "engine/run/plugin.h"
#include "tests/lib/child.h"
#include "tests/lib/kernel_case.h"
#include "tests/lib/op_case.h"
#include "tests/lib/posts.h"
#include "tests/lib/rows_apart.h"
#include "tests/lib/subject.h"

enum { POOLS = 2, CASE_LIMIT_S = 1800 };

struct settings {
    const char *filter, *isa, *kernel, *providers, *device, *floats;
    bool plain, fused, verbose, no_fork, help;
};

struct tally {
    int cases, passed, failed, refused;
    double worst; /* relative error as a part of what is allowed */
};

/* What a child that runs one case tells its parent, even if it crashes. */
struct progress {
    struct tally op; /* of the operator so far */
    char at[256];    /* what is being tried */
};

struct suite {
    struct settings settings;
    enum isa isa;
    enum dtype floats;
    bool tf32;
    struct pool *pools[POOLS]; /* in the child; pools[k] has k + 1 threads */
    struct device device;      /* in the child; kind NULL: the CPU */
    struct progress *progress; /* shared */
    struct tally total;
};

static const struct option table[] = {
    {"filter", 'f', OPTION_TEXT, offsetof(struct settings, filter), "TEXT",
     "only cases whose OP/CASE contains TEXT"},
    {"isa", 'i', OPTION_TEXT, offsetof(struct settings, isa), "NAME",
     "highest instruction set: scalar, avx2 or avx512"},
    {"kernel", 'k', OPTION_TEXT, offsetof(struct settings, kernel), "NAME", "only this kernel"},
    {"providers", 'p', OPTION_TEXT, offsetof(struct settings, providers), "LIST",
     "only kernels of these, e.g. native,onednn"},
    {"device", 'd', OPTION_TEXT, offsetof(struct settings, device), "NAME",
     "kernels of this device instead of the CPU's: cuda, cuda:1"},
    {"floats", 0, OPTION_TEXT, offsetof(struct settings, floats), "TYPE",
     "bf16 or f16: what f32 becomes where the operator bears it; tf32: how it is multiplied"},
    {"plain", 0, OPTION_FLAG, offsetof(struct settings, plain), NULL, "no fused epilogues"},
    {"fused", 0, OPTION_FLAG, offsetof(struct settings, fused), NULL, "fused epilogues alone"},
    {"verbose", 'v', OPTION_FLAG, offsetof(struct settings, verbose), NULL,
     "print refusals and a table per operator"},
    {"no-fork", 0, OPTION_FLAG, offsetof(struct settings, no_fork), NULL,
     "stay in one process, for a debugger"},
    {"help", 'h', OPTION_FLAG, offsetof(struct settings, help), NULL, "print this"},
    {.name = NULL},
};

/* ---- counting ---- */

/* Names what is tried from here on; results are counted under it. */
static void try_at(struct suite *suite, const struct subject *s, const char *how)
{
    char *at = suite->progress->at;
    snprintf(at, sizeof(suite->progress->at), "%s/%s%s%s %s", s->op->name, s->c->name,
             s->posts ? "+" : "", s->posts ? s->posts : "", how);
}

static void count_result(struct suite *suite, enum status status, const struct error *err)
{
    if (status == STATUS_OK) {
        suite->progress->op.passed++;
        return;
    }
    suite->progress->op.failed++;
    printf("not ok - %s: %s\n", suite->progress->at, err->message);
}

static void count_refusal(struct suite *suite, const struct error *why)
{
    suite->progress->op.refused++;
    if (suite->settings.verbose)
        printf("# refused %s: %s\n", suite->progress->at, why->message);
}

/* ---- one kernel alone ---- */

static void note_error(struct suite *suite, double part)
{
    if (part > suite->progress->op.worst)
        suite->progress->op.worst = part;
}

static enum status run_variant(struct suite *suite, const struct subject *s, struct kernel_case *kc,
                               int variant, const struct kernel *kernel, struct error *err)
{
    double part = 0;
    TRY(kernel_case_run(kc, variant, err));
    for (int k = 0; k < s->g->output_count; k++) {
        TRY(subject_check(s, k, kernel_case_output(kc, k), kernel->rel_error, &part, err));
        note_error(suite, part);
    }
    return STATUS_OK;
}

/* Returns whether the kernel accepted. A library may do so in one setup and not in another. */
static bool test_setup(struct suite *suite, const struct subject *s,
                       const struct kernel_setup *setup)
{
    char how[160];
    struct error err = {0};
    struct kernel_case *kc = NULL;
    const struct kernel *kernel = setup->kernel;
    int threads = pool_threads(setup->pool);
    snprintf(how, sizeof(how), "%s %s%s%s, %d thread%s", kernel->name, plan_name(setup->plan),
             setup->at_run_time ? ", constants at run time" : "",
             setup->apart ? ", rows apart" : "", threads, threads > 1 ? "s" : "");
    try_at(suite, s, how);
    enum status status = kernel_case_new(setup, &kc, &err);
    if (status == STATUS_UNSUPPORTED)
        count_refusal(suite, &err);
    else if (status != STATUS_OK)
        count_result(suite, status, &err);
    for (int v = 0; kc && v < kernel_case_variants(kc); v++) {
        char text[200];
        snprintf(text, sizeof(text), "%s, variant %d", how, v);
        try_at(suite, s, text);
        status = run_variant(suite, s, kc, v, kernel, &err);
        if (status == STATUS_UNSUPPORTED)
            count_refusal(suite, &err);
        else
            count_result(suite, status, &err);
    }
    bool accepted = kc != NULL;
    kernel_case_free(kc);
    return accepted;
}

static struct kernel_setup setup_of(const struct suite *suite, const struct subject *s,
                                    const struct kernel *kernel, int plan)
{
    return (struct kernel_setup){.graph = s->g,
                                 .kernel = kernel,
                                 .plan = (enum layout_plan)plan,
                                 .tf32 = suite->tf32,
                                 .pool = suite->pools[POOLS - 1],
                                 .device = suite->device.kind ? &suite->device : NULL};
}

/* Epilogues multiply the cases by eight: with them two threads are enough, and known constants
 * where the operator's kernels pack none. */
static bool test_kernel_alone(struct suite *suite, const struct subject *s,
                              const struct kernel *kernel)
{
    bool accepted = false, all = !s->posts, threads = all && !suite->device.kind;
    for (int plan = 0; plan < PLAN_COUNT; plan++) {
        if (!plan_applies(s->g, (enum layout_plan)plan))
            continue;
        struct kernel_setup setup = setup_of(suite, s, kernel, plan);
        int kinds = (all || s->op->packs) && has_constants(s->g) ? 2 : 1;
        for (setup.at_run_time = false; kinds > 0; kinds--, setup.at_run_time = true) {
            for (int p = threads ? 0 : POOLS - 1; p < POOLS; p++) {
                setup.pool = suite->pools[p];
                accepted = test_setup(suite, s, &setup) || accepted;
            }
        }
    }
    return accepted;
}

/* Whether results inside larger ones are tried: not on devices, which have none, and of epilogues
 * only with those that read operands. */
static bool lies_apart(const struct suite *suite, const struct subject *s)
{
    const struct node *node = &s->g->nodes[0];
    bool operands = !node->post_count;
    for (int k = 0; k < node->post_count; k++)
        operands = operands || node->posts[k].kind != POST_ACT;
    return operands && !suite->device.kind && !s->op->update && has_rows(s->g);
}

static void test_kernel_apart(struct suite *suite, const struct subject *s,
                              const struct kernel *kernel)
{
    for (int plan = 0; plan < PLAN_COUNT; plan++) {
        struct kernel_setup setup = setup_of(suite, s, kernel, plan);
        setup.apart = true;
        if (plan_applies(s->g, (enum layout_plan)plan))
            test_setup(suite, s, &setup);
    }
}

/* ---- through an executable ---- */

static enum status run_exe(struct suite *suite, const struct subject *s, struct exe *exe, int runs,
                           struct error *err)
{
    double part = 0;
    for (int run = 0; run < runs; run++) {
        exe_run(exe);
        TRY(exe_status(exe, err));
        for (int k = 0; k < s->g->output_count; k++) {
            TRY(subject_check_exe(s, k, exe, &part, err));
            note_error(suite, part);
        }
    }
    return STATUS_OK;
}

/* only NULL: all passes, and the first kernel that accepts each step; then a device, which is slow
 * where a host plays it, runs once. may_refuse: that kernel has refused the case in some setup, and
 * the executable's may be one like it. */
static void test_exe(struct suite *suite, const struct subject *s, const char *only,
                     bool may_refuse)
{
    char how[160];
    struct error err = {0};
    struct exe *exe = NULL;
    struct exe_options options = {.isa = suite->isa,
                                  .no_tune = true,
                                  .no_fuse = only,
                                  .only = only,
                                  .providers = suite->settings.providers,
                                  .device = suite->settings.device,
                                  .precision = suite->tf32 ? PRECISION_TF32 : PRECISION_F32,
                                  .pool = suite->pools[POOLS - 1]};
    snprintf(how, sizeof(how), "executable with %s", only ? only : "all passes");
    try_at(suite, s, how);
    enum status status = exe_new(s->g, &options, &exe, &err);
    if (status == STATUS_OK)
        status = run_exe(suite, s, exe, only || !suite->device.kind ? 2 : 1, &err);
    exe_free(exe);
    if (status == STATUS_UNSUPPORTED && may_refuse)
        count_refusal(suite, &err);
    else
        count_result(suite, status, &err);
}

/* ---- subjects ---- */

static bool listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return !list;
}

static bool kernel_wanted(const struct suite *suite, const struct kernel *kernel,
                          const struct op *op)
{
    const char *name = suite->settings.kernel, *device = kernel->device ? kernel->device : "cpu";
    return kernel_computes(kernel, op) && kernel->isa <= suite->isa &&
           strcmp(device, suite->device.kind ? suite->device.kind->name : "cpu") == 0 &&
           (!name || strcmp(name, kernel->name) == 0) &&
           listed(suite->settings.providers, kernel->provider);
}

/* Where no pass fuses epilogues only kernels of their own are asked: their plan is all that
 * stands between them and a node with posts. */
static void test_subject(struct suite *suite, const struct subject *s)
{
    bool foreign = s->posts && !s->op->epilogue;
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        if (!kernel_wanted(suite, kernel, s->op) || (foreign && kernel_is_reference(kernel)))
            continue;
        int refused = suite->progress->op.refused;
        if (test_kernel_alone(suite, s, kernel) && !foreign)
            test_exe(suite, s, kernel->name, suite->progress->op.refused > refused);
        if (lies_apart(suite, s))
            test_kernel_apart(suite, s, kernel);
    }
    if (!suite->settings.kernel && !foreign)
        test_exe(suite, s, NULL, false);
}

struct case_job {
    struct suite *suite;
    const struct op *op;
    const struct op_case *c;
};

/* Kernels of a device are played on the host, where such a case takes seconds per epilogue. */
enum { LARGE_FLOPS = 200000 };

static bool is_large(const struct case_job *job)
{
    struct error err = {0};
    struct graph *g = op_case_graph_in(job->op, job->c, DTYPE_F32, &err);
    bool large = g && graph_flops(g) > LARGE_FLOPS;
    graph_free(g);
    return large;
}

static void test_subjects(const struct case_job *job)
{
    struct suite *suite = job->suite;
    int kinds = suite->settings.plain ? NONE + 1 : posts_count();
    bool large = is_large(job);
    for (int posts = NONE; posts < kinds; posts++) {
        if (large && posts != NONE && !posts_has_operands(posts))
            continue;
        struct error err = {0};
        struct subject s = {.op = job->op,
                            .c = job->c,
                            .floats = suite->floats,
                            .tf32 = suite->tf32,
                            .posts = posts == NONE ? NULL : posts_name(posts)};
        bool may_refuse = posts != NONE || suite->floats != DTYPE_F32;
        try_at(suite, &s, "reference");
        enum status status = subject_open(&s, posts, &err);
        bool wanted = posts != NONE || !suite->settings.fused;
        if (status == STATUS_OK && wanted)
            test_subject(suite, &s);
        else if (status != STATUS_OK && (!may_refuse || status != STATUS_UNSUPPORTED))
            count_result(suite, status, &err);
        subject_close(&s);
        if (posts == NONE && status != STATUS_OK)
            return;
    }
}

/* Pools and the device, which a child opens for its case, and a process without children once. */
static enum status suite_open(struct suite *suite, struct error *err)
{
    const char *device = suite->settings.device;
    for (int k = 0; k < POOLS; k++)
        TRY(pool_new(device ? 1 : k + 1, &suite->pools[k], err));
    return device ? device_open(device, &suite->device, err) : STATUS_OK;
}

static void suite_close(struct suite *suite)
{
    device_close(&suite->device);
    for (int k = 0; k < POOLS; k++)
        pool_free(suite->pools[k]);
}

static void test_in_child(void *context)
{
    const struct case_job *job = context;
    struct error err = {0};
    enum status status = suite_open(job->suite, &err);
    if (status == STATUS_OK)
        test_subjects(job);
    else
        count_result(job->suite, status, &err);
    suite_close(job->suite);
}

/* Whether a kernel of those that --kernel and --providers name computes this: no reference is
 * needed for what nobody is asked for. */
static bool op_wanted(const struct suite *suite, const struct op *op)
{
    bool wanted = !suite->settings.kernel;
    for (int k = 0; k < kernel_count() && !wanted; k++)
        wanted = strcmp(kernel_at(k)->name, suite->settings.kernel) == 0 &&
                 kernel_computes(kernel_at(k), op);
    return wanted;
}

static void test_case(struct suite *suite, const struct op *op, const struct op_case *c)
{
    struct error err = {0};
    struct case_job job = {suite, op, c};
    suite->progress->op.cases++;
    if (suite->settings.no_fork) {
        test_subjects(&job);
        return;
    }
    enum status status = child_run(test_in_child, &job, CASE_LIMIT_S, &err);
    if (status != STATUS_OK)
        count_result(suite, status, &err);
}

static void test_op(struct suite *suite, const struct op *op)
{
    uint64_t start_ns = clock_now_ns();
    *suite->progress = (struct progress){0};
    for (int k = 0; k < op->case_count && op_wanted(suite, op); k++) {
        char name[160];
        const char *filter = suite->settings.filter;
        snprintf(name, sizeof(name), "%s/%s", op->name, op->cases[k].name);
        if (!filter || strstr(name, filter))
            test_case(suite, op, &op->cases[k]);
    }
    const struct tally *t = &suite->progress->op;
    if (suite->settings.verbose && t->cases)
        printf("# %-28s %4d cases %6d passed %5d failed %6d refused, worst error %5.1f %%, "
               "%.2f s\n",
               op->name, t->cases, t->passed, t->failed, t->refused, 100 * t->worst,
               (double)(clock_now_ns() - start_ns) * 1e-9);
    suite->total.cases += t->cases;
    suite->total.passed += t->passed;
    suite->total.failed += t->failed;
    suite->total.refused += t->refused;
    fflush(stdout);
}

/* ---- the program ---- */

static enum status choose_isa(struct suite *suite, struct error *err)
{
    const char *wanted = suite->settings.isa;
    suite->isa = isa_detect();
    if (!wanted)
        return STATUS_OK;
    for (int k = 0; k < ISA_COUNT; k++) {
        if (strcmp(wanted, isa_name((enum isa)k)) != 0)
            continue;
        if (k > (int)suite->isa)
            return UNSUPPORTED(err, "this CPU has no %s", wanted);
        suite->isa = (enum isa)k;
        return STATUS_OK;
    }
    return FAIL(err, STATUS_FAILED, "--isa \"%s\": it may be scalar, avx2 or avx512", wanted);
}

/* Plug-ins lie in BUILD/plugins, this program in BUILD/tests/ops. */
static void load_plugins(const struct suite *suite, const char *program)
{
    char folder[4096];
    const char *slash = strrchr(program, '/');
    int length = slash ? (int)(slash - program) : 1;
    snprintf(folder, sizeof(folder), "%.*s/../../plugins", length, slash ? program : ".");
    setenv("RIDGE_PLUGIN_PATH", folder, 0);
    plugins_load(suite->settings.providers);
    for (int k = 0; k < plugin_info_count(); k++) {
        const struct plugin_info *info = plugin_info_at(k);
        if (info->state == PLUGIN_LOADED)
            printf("# plug-in %s %s\n", info->name, info->version);
        else
            printf("# no plug-in %s: %s\n", info->name, info->reason);
    }
}

static enum status run_all(struct suite *suite, const char *program, struct error *err)
{
    TRY(choose_isa(suite, err));
    const char *floats = suite->settings.floats ? suite->settings.floats : "f32";
    suite->tf32 = strcmp(floats, "tf32") == 0;
    suite->floats = suite->tf32 ? DTYPE_F32 : dtype_from_name(floats);
    if (suite->floats == DTYPE_NONE)
        return FAIL(err, STATUS_FAILED, "--floats \"%s\" is no type", suite->settings.floats);
    load_plugins(suite, program);
    suite->progress = child_shared(sizeof(*suite->progress));
    if (!suite->progress)
        return FAIL_NO_MEMORY(err);
    if (suite->settings.no_fork)
        TRY(suite_open(suite, err));
    for (int k = 0; k < op_count(); k++)
        test_op(suite, op_at(k));
    if (!suite->total.passed && !suite->total.failed)
        return FAIL(err, STATUS_FAILED, "no case and kernel match the options");
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    struct suite suite = {0};
    struct error err = {0};
    setvbuf(stdout, NULL, _IOLBF, 0); /* lines survive the crash of a child */
    enum status status = options_parse(table, &argc, argv, &suite.settings, &err);
    if (status == STATUS_OK && suite.settings.help) {
        char text[2048];
        options_usage(table, text, sizeof(text));
        printf("usage: %s [options]\n%s", argv[0], text);
        return 0;
    }
    if (status == STATUS_OK) {
        status = run_all(&suite, argv[0], &err);
        if (suite.settings.no_fork)
            suite_close(&suite);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], err.message);
        return 2;
    }
    printf("%d passed, %d failed\n", suite.total.passed, suite.total.failed);
    return suite.total.failed ? 1 : 0;
}
