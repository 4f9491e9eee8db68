/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting on a GPU without a GPU and without CUPTI: the tables of all chips on made numbers, and
 * the order, number and failures of passes, behind a backend that does what the test wants. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "profilers/lib/gpu_counting.h"
#include "tests/lib/made_cupti.h"
#include "tests/lib/unit.h"

enum { EXECUTIONS = 8 };

/* ---- a session ---- */

struct tables {
    struct arena arena;
    const struct group *groups;
    int count;
};

static enum status open_on(const struct tables *t, struct cupti *cupti, const char *chip,
                           struct gpu_counting **out, struct error *err)
{
    struct gpu_counting_setup setup = {.backend = &made_backend,
                                       .cupti = cupti,
                                       .use = CUPTI_RANGES,
                                       .groups = t->groups,
                                       .group_count = t->count,
                                       .chip = chip,
                                       .halves = !cupti->exact,
                                       .tensor_cores = !cupti->exact,
                                       .steps = 3};
    return gpu_counting_open(&setup, out, err);
}

static enum status one_pass(struct gpu_counting *c, int64_t executions, struct error *err)
{
    bool by_step = gpu_counting_by_step(c);
    TRY(gpu_counting_begin(c, err));
    for (int s = 0; s < 3 && by_step; s++) {
        gpu_counting_step_begin(c, s);
        gpu_counting_step_end(c);
    }
    return gpu_counting_end(c, by_step ? 1 : executions, err);
}

static enum status all_passes(struct gpu_counting *c, int *made, struct error *err)
{
    *made = 0;
    for (int pass = 0; pass < gpu_counting_passes(c); pass++, (*made)++)
        TRY(one_pass(c, EXECUTIONS, err));
    return STATUS_OK;
}

static double value_of(const struct profiler_metric *metrics, int count, const char *name)
{
    for (int k = 0; k < count; k++)
        if (strcmp(metrics[k].name, name) == 0)
            return metrics[k].value;
    fail_msg("no metric %s", name);
    return NAN;
}

static struct group read_group(struct arena *arena, const char *text)
{
    struct group group;
    MUST(group_read, "made.toml", text, strlen(text), arena, &group);
    return group;
}

/* ---- the tables ---- */

/* Operations that one count of a metric stands for, by its name alone. A point in f32 has none of
 * halves and of tensor cores, whatever instructions of theirs ran. */
static double weight_of(const char *name, bool exact)
{
    const char *op = strstr(name, "thread_inst_executed_op_");
    if (strstr(name, "ops_path_tensor_src"))
        return strstr(name, "int8") || exact ? 0 : 1;
    if (!op)
        return 0;
    op += strlen("thread_inst_executed_op_");
    if (exact && op[0] == 'h')
        return 0;
    double weight = strncmp(op + 1, "fma", 3) == 0 ? 2 : 1;
    return op[4] == '2' ? 2 * weight : weight;
}

/* What the groups of a chip must say, from the metrics that they count. */
static double expected_flops(const struct tables *t, const char *chip, bool exact, int range)
{
    double sum = 0;
    for (int k = 0; k < t->count; k++)
        for (int e = 0; e < t->groups[k].event_count; e++)
            if (group_is_for_chip(&t->groups[k], chip) && !t->groups[k].samples)
                sum += weight_of(t->groups[k].events[e].name, exact) *
                       made_number(t->groups[k].events[e].name, range);
    return sum;
}

static double number_of(const struct tables *t, const char *chip, const char *part, bool samples)
{
    double sum = 0;
    for (int k = 0; k < t->count; k++)
        for (int e = 0; e < t->groups[k].event_count; e++)
            if (group_is_for_chip(&t->groups[k], chip) && t->groups[k].samples == samples &&
                strstr(t->groups[k].events[e].name, part))
                sum += made_number(t->groups[k].events[e].name, 0);
    return sum;
}

static void near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

static void check_chip(const struct tables *t, const char *chip, bool exact)
{
    struct profiler_metric metrics[PROFILER_METRICS_MAX];
    struct cupti cupti = {.passes = 2, .needed = -1, .exact = exact};
    struct gpu_counting *c;
    struct error err;
    int made;
    if (open_on(t, &cupti, chip, &c, &err) != STATUS_OK || all_passes(c, &made, &err) != STATUS_OK)
        fail_msg("%s: %s", chip, err.message);
    int count = gpu_counting_read(c, metrics);
    for (int k = 0; k < count; k++)
        assert_true(isnan(metrics[k].value) == (metrics[k].reason[0] != '\0') &&
                    metrics[k].formula);
    near(value_of(metrics, count, "flops"), expected_flops(t, chip, exact, 0) / EXECUTIONS);
    near(value_of(metrics, count, "dram_read_bytes"),
         (number_of(t, chip, "dram__bytes_read", false) +
          number_of(t, chip, "dram__bytes_op_read", false)) /
             EXECUTIONS);
    near(value_of(metrics, count, "l2_bytes"),
         number_of(t, chip, "lts__t_bytes", false) / EXECUTIONS);
    for (int s = 0; s < 3; s++) {
        count = gpu_counting_read_step(c, s, metrics);
        near(value_of(metrics, count, "flops"), expected_flops(t, chip, exact, s));
    }
    gpu_counting_close(c);
    assert_int_equal(cupti.open, 0);
}

TEST(formulas_of_all_chips)
{
    const struct tables *t = *state;
    int chips = 0;
    for (int k = 0; k < t->count; k++)
        for (int n = 0; n < t->groups[k].chip_count && t->groups[k].samples; n++, chips++) {
            check_chip(t, t->groups[k].chips[n], false);
            check_chip(t, t->groups[k].chips[n], true);
        }
    assert_true(chips >= 24);
}

TEST(samples_of_all_chips)
{
    const struct tables *t = *state;
    for (int k = 0; k < t->count; k++)
        for (int n = 0; n < t->groups[k].chip_count && t->groups[k].samples; n++) {
            const char *chip = t->groups[k].chips[n];
            struct profiler_metric metrics[PROFILER_METRICS_MAX];
            struct cupti cupti = {.passes = 1, .needed = -1};
            struct gpu_counting *c;
            int made;
            struct gpu_counting_setup setup = {.backend = &made_backend,
                                               .cupti = &cupti,
                                               .use = CUPTI_SAMPLES,
                                               .groups = t->groups,
                                               .group_count = t->count,
                                               .chip = chip};
            MUST(gpu_counting_open, &setup, &c);
            MUST(all_passes, c, &made);
            assert_int_equal(made, 1);
            int count = gpu_counting_read(c, metrics);
            near(value_of(metrics, count, "dram_write_bytes"),
                 (number_of(t, chip, "dram__bytes_write", true) +
                  number_of(t, chip, "dram__bytes_op_write", true)) /
                     EXECUTIONS);
            gpu_counting_close(c);
            assert_int_equal(cupti.open, 0);
        }
}

/* ---- passes ---- */

#define HEAD "summary = \"s\"\nchips = [\"C1\"]\nmethod = \"ranges\"\n"
#define A                                                                                          \
    HEAD "passes = 2\nsteps = true\n[[event]]\nid = \"a\"\nname = \"m__a.sum\"\n"                  \
         "[[metric]]\nname = \"base\"\nunit = \"1\"\nformula = \"2 * a\"\n"
#define B                                                                                          \
    HEAD "passes = 2\nuses = [\"base\"]\nzero_when = \"tensor_cores * base\"\n"                    \
         "[[event]]\nid = \"b\"\nname = \"m__b.sum\"\n"                                            \
         "[[metric]]\nname = \"flops\"\nunit = \"1\"\nformula = \"base + b\"\n"

/* B is counted after A, whose metric it uses, wherever it stands; CUPTI may want another number of
 * passes than it said. */
TEST(order_and_number_of_passes)
{
    static const int needed[] = {-1, 1, 5};
    for (int k = 0; k < ARRAY_COUNT(needed); k++) {
        struct tables t = {.count = 2};
        struct group groups[] = {read_group(&t.arena, B), read_group(&t.arena, A)};
        struct profiler_metric metrics[PROFILER_METRICS_MAX];
        struct cupti cupti = {.passes = 2, .needed = needed[k]};
        struct gpu_counting *c;
        struct error err;
        int made, each = needed[k] < 0 ? 2 : needed[k];
        t.groups = groups;
        MUST(open_on, &t, &cupti, "C1", &c);
        assert_int_equal(gpu_counting_passes(c), 6); /* A, B, and the steps of A */
        assert_false(gpu_counting_by_step(c));
        MUST(all_passes, c, &made);
        assert_int_equal(made, 3 * each);
        assert_int_equal(gpu_counting_begin(c, &err), STATUS_FAILED);
        int count = gpu_counting_read(c, metrics);
        near(value_of(metrics, count, "flops"),
             (2 * made_number("m__a.sum", 0) + made_number("m__b.sum", 0)) / EXECUTIONS);
        assert_true(isnan(value_of(metrics, count, "dram_read_bytes"))); /* no group has it */
        count = gpu_counting_read_step(c, 2, metrics);
        assert_int_equal(count, 1);
        near(metrics[0].value, 2 * made_number("m__a.sum", 2));
        gpu_counting_close(c);
        assert_int_equal(cupti.open, 0);
        arena_release(&t.arena);
    }
}

static void no_pass_of_the_second(struct cupti cupti, double flops)
{
    struct tables t = {.count = 2};
    struct group groups[] = {read_group(&t.arena, A), read_group(&t.arena, B)};
    struct profiler_metric metrics[PROFILER_METRICS_MAX];
    struct gpu_counting *c;
    int made;
    t.groups = groups;
    MUST(open_on, &t, &cupti, "C1", &c);
    MUST(all_passes, c, &made);
    assert_int_equal(made, 4);
    int count = gpu_counting_read(c, metrics);
    near(value_of(metrics, count, "flops"), flops);
    for (int k = 0; k < count; k++)
        if (strcmp(metrics[k].name, "flops") == 0)
            assert_non_null(strstr(metrics[k].formula, "all 0, as tensor_cores * base was"));
    gpu_counting_close(c);
    arena_release(&t.arena);
}

/* Where the instructions that the gate looks at did not run, and where they ran as moves in f32. */
TEST(zero_costs_no_pass)
{
    (void)state;
    no_pass_of_the_second((struct cupti){.passes = 2, .needed = -1, .zero = true}, 0);
    no_pass_of_the_second((struct cupti){.passes = 2, .needed = -1, .exact = true},
                          2 * made_number("m__a.sum", 0) / EXECUTIONS);
}

/* What cannot be scheduled has no value and a reason; the rest is counted. */
TEST(a_group_that_cannot_be)
{
    struct tables t = {.count = 2};
    struct group groups[] = {read_group(&t.arena, A), read_group(&t.arena, B)};
    struct profiler_metric metrics[PROFILER_METRICS_MAX];
    struct cupti cupti = {.passes = 1, .needed = -1, .bad_name = "m__b"};
    struct gpu_counting *c;
    int made;
    t.groups = groups;
    MUST(open_on, &t, &cupti, "C1", &c);
    MUST(all_passes, c, &made);
    int count = gpu_counting_read(c, metrics);
    near(value_of(metrics, count, "base"), 2 * made_number("m__a.sum", 0) / EXECUTIONS);
    for (int k = 0; k < count; k++)
        if (strcmp(metrics[k].name, "flops") == 0)
            assert_string_equal(metrics[k].reason, "metric unknown");
    gpu_counting_close(c);
    cupti.bad_name = "m__";
    FAILS(STATUS_UNSUPPORTED, "metric unknown", open_on, &t, &cupti, "C1", &c);
    FAILS(STATUS_UNSUPPORTED, "the chip C2", open_on, &t, &cupti, "C2", &c);
    assert_int_equal(cupti.open, 0);
    arena_release(&t.arena);
}

TEST(failures_of_passes)
{
    static const struct {
        struct cupti cupti;
        const char *message;
    } bad[] = {
        {{.passes = 1, .needed = -1, .fail_open = true}, "cuptiRangeProfilerEnable says 35"},
        {{.passes = 1, .needed = -1, .fail_start = true}, "made.toml: no start"},
        {{.passes = 1, .needed = -1, .fail_push = true}, "made.toml: no push"},
        {{.passes = 1, .needed = -1, .fail_decode = true}, "made.toml: no data"},
        {{.passes = 1, .needed = -1, .extra_range = 1}, "CUPTI has 2 ranges, not 1"},
        {{.passes = 1, .needed = 1000}, "not content after 64 passes"},
    };
    for (int k = 0; k < ARRAY_COUNT(bad); k++) {
        struct tables t = {.count = 1};
        struct group group = read_group(&t.arena, A);
        struct cupti cupti = bad[k].cupti;
        struct gpu_counting *c;
        struct error err;
        int made;
        t.groups = &group;
        enum status status = open_on(&t, &cupti, "C1", &c, &err);
        if (status == STATUS_OK) {
            status = all_passes(c, &made, &err);
            gpu_counting_close(c);
        }
        if (status == STATUS_OK || !strstr(err.message, bad[k].message))
            fail_msg("\"%s\" does not say %s", err.message, bad[k].message);
        assert_int_equal(cupti.open, 0);
        arena_release(&t.arena);
    }
}

/* Counts of passes over different work make no sum. */
TEST(passes_must_be_alike)
{
    struct tables t = {.count = 1};
    struct group group = read_group(&t.arena, A);
    struct cupti cupti = {.passes = 2, .needed = -1};
    struct gpu_counting *c;
    t.groups = &group;
    MUST(open_on, &t, &cupti, "C1", &c);
    MUST(one_pass, c, 3);
    FAILS(STATUS_FAILED, "passes of 3 and of 4 executions", one_pass, c, 4);
    gpu_counting_close(c);
    assert_int_equal(cupti.open, 0);
    arena_release(&t.arena);
}

/* Two groups that use each other's metric: no value, and an end. */
TEST(circles_end)
{
    struct tables t = {.count = 2};
    struct group groups[] = {
        read_group(&t.arena, HEAD "passes = 0\nuses = [\"y\"]\n[[metric]]\nname = \"x\"\n"
                                  "unit = \"1\"\nformula = \"y\"\n"),
        read_group(&t.arena, HEAD "passes = 1\nuses = [\"x\"]\n[[event]]\nid = \"e\"\n"
                                  "name = \"m__e.sum\"\n[[metric]]\nname = \"y\"\n"
                                  "unit = \"1\"\nformula = \"x + e\"\n")};
    struct profiler_metric metrics[PROFILER_METRICS_MAX];
    struct cupti cupti = {.passes = 1, .needed = -1};
    struct gpu_counting *c;
    int made;
    t.groups = groups;
    MUST(open_on, &t, &cupti, "C1", &c);
    MUST(all_passes, c, &made);
    int count = gpu_counting_read(c, metrics);
    assert_true(isnan(value_of(metrics, count, "x")) && isnan(value_of(metrics, count, "y")));
    gpu_counting_close(c);
    arena_release(&t.arena);
}

static int read_tables(void **state)
{
    static struct tables t;
    struct error err;
    *state = &t;
    return group_read_all(&t.arena, &t.groups, &t.count, &err) == STATUS_OK ? 0 : -1;
}

static int release_tables(void **state)
{
    struct tables *t = *state;
    arena_release(&t->arena);
    return 0;
}

const struct unit_fixture unit_fixture = {.before_all = read_tables, .after_all = release_tables};
