/* SPDX-License-Identifier: Apache-2.0
 *
 * What is found by its file: everything says the name of its file, and has what its kind asks for.
 * A hook that was forgotten is said here, before anybody calls it. */
#include <string.h>

#include "base/registry.h"
#include "collective/algorithm.h"
#include "collective/backend.h"
#include "engine/graph/op.h"
#include "engine/run/kernels.h"
#include "harness/cli/command.h"
#include "profilers/lib/profiler.h"
#include "results/format.h"
#include "tests/lib/unit.h"
#include "workloads/data/data.h"
#include "workloads/workload.h"

#define X(file) #file,
static const char *const workloads[] = {
#include "workload_list.inc"
};
static const char *const commands[] = {
#include "command_list.inc"
};
static const char *const formats[] = {
#include "format_list.inc"
};
static const char *const profilers[] = {
#include "profiler_list.inc"
};
static const char *const algorithms[] = {
#include "algorithm_list.inc"
};
static const char *const backends[] = {
#include "backend_list.inc"
};
static const char *const data_formats[] = {
#include "data_format_list.inc"
};
#undef X

static int wrong; /* of the test that runs */

static void begin(void)
{
    wrong = 0;
}

static void need(bool there, const char *kind, const char *name, const char *what)
{
    if (!there)
        print_error("%s %s %s\n", kind, name, what);
    wrong += !there;
}

static void same_name(const char *kind, const char *file, const char *name)
{
    bool same = name && strcmp(file, name) == 0;
    if (!same)
        print_error("%s: file %s.c says the name \"%s\"\n", kind, file, name ? name : "");
    wrong += !same;
}

#define SAME_NAMES(kind, files, at)                                                                \
    for (int k = 0; k < ARRAY_COUNT(files); k++)                                                   \
    same_name(kind, (files)[k], at(k)->name)

/* `.name` may be another one than the file's and REGISTER's, which nobody but this test sees. */
TEST(everything_says_the_name_of_its_file)
{
    begin();
    SAME_NAMES("workload", workloads, workload_at);
    SAME_NAMES("command", commands, command_at);
    SAME_NAMES("format", formats, format_at);
    SAME_NAMES("profiler", profilers, profiler_at);
    SAME_NAMES("algorithm", algorithms, algorithm_at);
    SAME_NAMES("backend", backends, backend_at);
    SAME_NAMES("format of data", data_formats, data_format_at);
    assert_int_equal(wrong, 0);
}

/* One without `infer` or `reference` ended every program that looked at it with a crash. */
TEST(operators_have_what_they_need)
{
    begin();
    for (int k = 0; k < op_count(); k++) {
        const struct op *op = op_at(k);
        need(op->name != NULL, "operator", op->name ? op->name : "?", "has no name");
        need(op->infer != NULL, "operator", op->name, "has no shape rule (infer)");
        need(op->reference != NULL, "operator", op->name, "has no reference");
        need(op->case_count > 0, "operator", op->name, "has no test case (OP_CASES)");
        for (int c = 0; c < op->case_count; c++)
            need(op->cases[c].name && op->cases[c].inputs, "operator", op->name,
                 "has a case without name or inputs");
    }
    assert_int_equal(wrong, 0);
}

static bool op_is_there(const char *name)
{
    return op_named(name) != NULL;
}

/* One for an operator that is spelt wrongly was never asked, and no test failed. */
TEST(kernels_name_operators_that_there_are)
{
    begin();
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        need(kernel->plan && kernel->launch, "kernel", kernel->name, "lacks plan or launch");
        for (const char *const *op = kernel->ops; op && *op; op++)
            if (!op_is_there(*op))
                need(false, kernel->name, *op, "is no operator");
    }
    assert_int_equal(wrong, 0);
}

TEST(commands_explain_themselves)
{
    begin();
    for (int k = 0; k < command_count(); k++) {
        const struct command *command = command_at(k);
        need(command->summary && command->summary[0], "command", command->name, "has no summary");
        need(command->main != NULL, "command", command->name, "has no main");
    }
    assert_int_equal(wrong, 0);
}

TEST(algorithms_have_a_schedule)
{
    begin();
    for (int k = 0; k < algorithm_count(); k++) {
        const struct algorithm *a = algorithm_at(k);
        need(a->summary && a->summary[0], "algorithm", a->name, "has no summary");
        need(a->operations != 0, "algorithm", a->name, "serves no operation");
        need(!a->plan == (a->own != OWN_NONE), "algorithm", a->name,
             "has neither plan nor own, or both");
    }
    assert_int_equal(wrong, 0);
}

static bool has_parameter(const struct workload *w, const char *name)
{
    for (const struct param *p = w->params; p && p->name; p++)
        if (strcmp(p->name, name) == 0)
            return true;
    return false;
}

TEST(workloads_have_what_they_need)
{
    begin();
    for (int k = 0; k < workload_count(); k++) {
        const struct workload *w = workload_at(k);
        need(w->domain && w->task && w->summary && w->source, "workload", w->name,
             "lacks domain, task, summary or source");
        need(w->build != NULL, "workload", w->name, "has no build");
        need(w->batch > 0, "workload", w->name, "has no batch");
        need(!w->stated || has_parameter(w, w->stated), "workload", w->name,
             "states a parameter that it has not");
    }
    assert_int_equal(wrong, 0);
}
