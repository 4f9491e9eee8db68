/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUPTI plug-in and its profilers over a library that keeps the real one's rules, makes up
 * counts, and fails at every call once: no crash, nothing left open, the right message. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cupti_run.h"
#include "tests/lib/unit.h"

enum { NTH_MAX = 400 };

static const struct fake_control *fake;

static double value_of(const struct cupti_outcome *out, const char *name)
{
    for (int k = 0; k < out->count; k++)
        if (strcmp(out->names[k], name) == 0)
            return out->metrics[k].value;
    fail_msg("no metric %s", name);
    return NAN;
}

static const char *reason_of(const struct cupti_outcome *out, const char *name)
{
    for (int k = 0; k < out->count; k++)
        if (strcmp(out->names[k], name) == 0)
            return out->reasons[k];
    fail_msg("no metric %s", name);
    return "";
}

static void check_sound(const struct cupti_outcome *out)
{
    assert_string_equal(fake->broken_rule(), "");
    assert_int_equal(fake->open_objects(), 0);
    for (int k = 0; k < out->count; k++)
        assert_true(isnan(out->metrics[k].value) == (out->reasons[k][0] != '\0'));
}

static void near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* ---- what is counted ---- */

/* Of gh100_counts: read, write, l2, l1, cycles, tensor, fadd, fmul, ffma, dadd ... in this order.
 */
static double ops_of_cuda_cores(int range)
{
    double sum = 0;
    for (int type = 0; type < 3; type++)
        sum += FAKE_COUNT(6 + 3 * type, range) + FAKE_COUNT(7 + 3 * type, range) +
               2 * FAKE_COUNT(8 + 3 * type, range);
    return sum;
}

/* Of gh100_tensor: bf16, tf32, f16, f64, f8, int8. */
static double ops_of_tensor_cores(int range)
{
    double sum = 0;
    for (int k = 0; k < 5; k++)
        sum += FAKE_COUNT(k, range);
    return sum;
}

TEST(ranges_count_the_whole_and_each_step)
{
    struct cupti_outcome out;
    MUST(cupti_run, "cupti", "cuda:1", &out);
    check_sound(&out);
    /* counts, fill and tensor as a whole; counts and tensor by step. */
    assert_int_equal(out.passes, 5 * RUN_PASSES);
    assert_int_equal(out.step_passes, 2 * RUN_PASSES);
    near(value_of(&out, "dram_read_bytes"), FAKE_COUNT(0, 0) / RUN_EXECUTIONS);
    near(value_of(&out, "dram_write_bytes"), FAKE_COUNT(1, 0) / RUN_EXECUTIONS);
    near(value_of(&out, "sm_write_bytes"), FAKE_COUNT(1, 0) / RUN_EXECUTIONS);
    near(value_of(&out, "flops_cuda_cores"), ops_of_cuda_cores(0) / RUN_EXECUTIONS);
    near(value_of(&out, "tensor_ops_int8"), FAKE_COUNT(5, 0) / RUN_EXECUTIONS);
    near(value_of(&out, "flops"), (ops_of_cuda_cores(0) + ops_of_tensor_cores(0)) / RUN_EXECUTIONS);
    for (int s = 0; s < RUN_STEPS; s++) {
        out.count = out.step_counts[s];
        memcpy(out.metrics, out.steps[s], sizeof(out.metrics));
        double flops = NAN, read = NAN;
        assert_true(out.count > 10);
        /* gh100_counts' metrics come first and in the order of the file. */
        read = out.metrics[0].value;
        flops = out.metrics[out.count - 1].value;
        near(read, FAKE_COUNT(0, s));
        near(flops, ops_of_cuda_cores(s) + ops_of_tensor_cores(s));
    }
}

/* Enabled once, before kernels are loaded, for all groups. */
TEST(counters_may_be_held)
{
    struct cupti_outcome out;
    const struct profiler *p = profiler_find("cupti");
    void *attached;
    MUST(p->attach, "cuda:1", &attached);
    assert_int_equal(fake->uses("cuptiRangeProfilerEnable"), 1);
    p->detach(attached);
    check_sound(&(struct cupti_outcome){.count = 0});
    fake->set(&cupti_usual);
    MUST(cupti_run_held, "cuda", &out);
    check_sound(&out);
    assert_int_equal(fake->uses("cuptiRangeProfilerEnable"), 1);
    assert_int_equal(out.passes, 5 * RUN_PASSES);
    near(value_of(&out, "dram_read_bytes"), FAKE_COUNT(0, 0) / RUN_EXECUTIONS);
    near(value_of(&out, "flops"), (ops_of_cuda_cores(0) + ops_of_tensor_cores(0)) / RUN_EXECUTIONS);
    near(out.steps[2][0].value, FAKE_COUNT(0, 2));
}

/* No tensor instruction: the group of their types costs no pass, and its counts are 0. */
TEST(idle_tensor_cores_cost_nothing)
{
    struct fake_script script = cupti_usual;
    struct cupti_outcome out;
    script.zero_metric = 5;
    fake->set(&script);
    MUST(cupti_run, "cupti", "cuda", &out);
    check_sound(&out);
    assert_int_equal(out.passes, 3 * RUN_PASSES);
    assert_true(value_of(&out, "flops_tensor_cores") == 0);
    near(value_of(&out, "flops"), ops_of_cuda_cores(0) / RUN_EXECUTIONS);
}

/* Work that the model knows of, and not one operation counted: no value, rather than 0. */
TEST(no_operation_is_no_count)
{
    struct fake_script script = cupti_usual;
    struct profiler_metric metrics[PROFILER_METRICS_MAX];
    const struct profiler *p = profiler_find("cupti");
    struct profiler_model model = {.device = "cuda", .flops = 1e9, .steps = RUN_STEPS};
    struct cupti_outcome out = {.count = 0};
    void *session;
    script.zero_from = 5;
    for (int work = 0; work < 2; work++) {
        fake->set(&script);
        model.flops = work ? 1e9 : 0;
        MUST(p->open, &model, 1, &session);
        for (int pass = 0; pass < p->passes(session); pass++)
            MUST(cupti_one_pass, p, session, pass, &out);
        int count = p->read(session, metrics), counted = 0;
        for (int k = 0; k < count; k++) {
            bool operations = strncmp(metrics[k].name, "flops", 5) == 0;
            assert_true(isnan(metrics[k].value) == (metrics[k].reason[0] != '\0'));
            if (operations)
                assert_true(isnan(metrics[k].value) == (work > 0));
            counted += !operations && !isnan(metrics[k].value);
        }
        assert_true(counted > 5); /* bytes are believed */
        count = p->read_step(session, 1, metrics);
        assert_true(isnan(metrics[count - 1].value) == (work > 0));
        p->close(session);
        assert_int_equal(fake->open_objects(), 0);
    }
}

/* One step without a kernel costs its own counts alone, and none if it ran on the host. */
TEST(a_step_without_kernels_is_no_range)
{
    static const bool on_host[RUN_STEPS] = {false, true, false};
    for (int host = 0; host < 2; host++) {
        const struct profiler_model model = {
            .device = "cuda", .steps = RUN_STEPS, .on_host = host ? on_host : NULL};
        struct fake_script script = cupti_usual;
        struct cupti_outcome out;
        script.idle_range = "1";
        fake->set(&script);
        MUST(cupti_run_model, "cupti", &model, &out);
        check_sound(&out);
        near(value_of(&out, "dram_read_bytes"), FAKE_COUNT(0, 0) / RUN_EXECUTIONS);
        near(out.steps[0][0].value, FAKE_COUNT(0, 0));
        near(out.steps[2][0].value, FAKE_COUNT(0, 2));
        assert_true(host ? out.steps[1][0].value == 0 : isnan(out.steps[1][0].value));
        assert_string_equal(out.step_reasons[1], host ? "" : "CUPTI saw no kernel in this step");
    }
}

TEST(samples_add_up)
{
    static const char *const chips[] = {"GH100", "GA100", "TU104", "GB202"};
    for (int k = 0; k < ARRAY_COUNT(chips); k++) {
        struct fake_script script = cupti_usual;
        struct cupti_outcome out;
        struct error err;
        script.chip = chips[k];
        fake->set(&script);
        if (cupti_run("cupti_pm", "cuda", &out, &err) != STATUS_OK)
            fail_msg("%s: %s", chips[k], err.message);
        check_sound(&out);
        assert_int_equal(out.passes, 1);
        near(value_of(&out, "dram_read_bytes"), FAKE_SAMPLES * FAKE_COUNT(0, 0) / RUN_EXECUTIONS);
        near(value_of(&out, "sm_active_share"), FAKE_COUNT(5, 0) / FAKE_COUNT(4, 0));
    }
}

/* The interval follows the length of the pass, and samples that an image has no place for are an
 * error: on the real library what comes between two images is lost. */
TEST(samples_fit_into_one_image)
{
    static const struct {
        double expected_s, run_s;
        double samples; /* 0: it fails */
    } passes[] = {{0, 1, 5000},   {0.02, 0.02, 100}, {1, 1, 4000}, {60, 60, 4000},
                  {60, 90, 6000}, {0, 2, 0},         {60, 150, 0}};
    for (int k = 0; k < ARRAY_COUNT(passes); k++) {
        const struct profiler_model model = {.device = "cuda", .pass_s = passes[k].expected_s};
        struct fake_script script = cupti_usual;
        struct cupti_outcome out;
        struct error err = {.message = ""};
        script.run_ns = passes[k].run_s * 1e9 + 1;
        fake->set(&script);
        enum status status = cupti_run_model("cupti_pm", &model, &out, &err);
        check_sound(&out);
        if ((status == STATUS_OK) != (passes[k].samples > 0))
            fail_msg("pass %d: \"%s\"", k, err.message);
        if (status == STATUS_OK)
            near(value_of(&out, "dram_read_bytes"),
                 passes[k].samples * FAKE_COUNT(0, 0) / RUN_EXECUTIONS);
        else
            assert_non_null(strstr(err.message, "more than 8192 samples"));
    }
}

TEST(a_trace_adds_up)
{
    struct cupti_outcome out;
    MUST(cupti_run, "cupti_trace", "cuda", &out);
    check_sound(&out);
    near(value_of(&out, "kernels"), 3.0 / RUN_EXECUTIONS);
    near(value_of(&out, "copy_bytes"), 4096.0 / RUN_EXECUTIONS);
    /* 0-15, 23-27, 35-46 us: 30 us busy, gaps of 8 and 8. */
    near(value_of(&out, "gpu_busy_s"), 30e-6 / RUN_EXECUTIONS);
    near(value_of(&out, "kernel_s"), 30e-6 / RUN_EXECUTIONS);
    near(value_of(&out, "gap_s"), 16e-6 / RUN_EXECUTIONS);
    near(value_of(&out, "gap_longest_s"), 8e-6);
    near(value_of(&out, "gap_share"), 16.0 / 46.0);
    near(value_of(&out, "trace_overhead_s"), 2e-6 / RUN_EXECUTIONS);
    near(value_of(&out, "graph_launches"), 1.0 / RUN_EXECUTIONS);
    near(value_of(&out, "graph_s"), 45e-6 / RUN_EXECUTIONS);
}

TEST(records_that_were_dropped_make_no_sum)
{
    for (int counted = 0; counted < 2; counted++) {
        struct fake_script script = cupti_usual;
        struct cupti_outcome out;
        script.dropped_at_start = 5; /* as long as nothing counts */
        script.dropped_records = counted;
        fake->set(&script);
        MUST(cupti_run, "cupti_trace", "cuda", &out);
        check_sound(&out);
        assert_true(isnan(value_of(&out, "kernels")) == (counted > 0));
        assert_true((strstr(reason_of(&out, "kernels"), "dropped") != NULL) == (counted > 0));
    }
}

/* Known defects of CUPTI: a kernel's record whose times are 0, or of another clock. */
TEST(times_of_two_clocks_are_no_trace)
{
    static const char *const reasons[] = {"no time", "two clocks"};
    for (int k = 0; k < 2; k++) {
        struct fake_script script = cupti_usual;
        struct cupti_outcome out;
        script.zero_time = k == 0;
        script.foreign_time = k == 1;
        fake->set(&script);
        MUST(cupti_run, "cupti_trace", "cuda", &out);
        check_sound(&out);
        assert_true(isnan(value_of(&out, "gap_s")) && isnan(value_of(&out, "kernels")));
        assert_non_null(strstr(reason_of(&out, "gap_s"), reasons[k]));
        near(value_of(&out, "graph_s"), 45e-6 / RUN_EXECUTIONS); /* has no kernels */
    }
}

/* ---- failures ---- */

/* Giving back cannot fail for the caller; without a name for a code the number remains. */
static bool is_forgiven(const char *call)
{
    static const char *const calls[] = {
        "cuptiProfilerHostDeinitialize", "cuptiProfilerDeInitialize",
        "cuptiRangeProfilerDisable",     "cuptiPmSamplingDisable",
        "cuptiActivityDisable",          "cuptiGetResultString",
        "cuDevicePrimaryCtxRelease_v2",  "cuGetErrorName"};
    for (int k = 0; k < ARRAY_COUNT(calls); k++)
        if (strcmp(calls[k], call) == 0)
            return true;
    return false;
}

/* Groups whose metrics cannot be scheduled are left out with a reason, the others count. */
static bool says(const struct cupti_outcome *out, enum status status, const struct error *err,
                 const char *call)
{
    if (status != STATUS_OK)
        return strstr(err->message, call) && strstr(err->message, "31");
    for (int k = 0; k < out->count; k++)
        if (out->reasons[k][0])
            return true;
    for (int s = 0; s < RUN_STEPS; s++)
        for (int k = 0; k < out->step_counts[s]; k++)
            if (isnan(out->steps[s][k].value))
                return true;
    return false;
}

static const char held[] = "cupti, held";

/* Returns how often the call was used. */
static int fail_each_use(const char *profiler, const char *call)
{
    for (int nth = 1; nth <= NTH_MAX; nth++) {
        struct fake_script script = cupti_usual;
        struct cupti_outcome out;
        struct error err = {.message = ""};
        script.call = call;
        script.nth = nth;
        script.code = 31;
        fake->set(&script);
        enum status status = strcmp(profiler, held) == 0 ? cupti_run_held("cuda", &out, &err)
                                                         : cupti_run(profiler, "cuda", &out, &err);
        if (fake->uses(call) < nth)
            return nth - 1;
        check_sound(&out);
        if (!is_forgiven(call) && !says(&out, status, &err, call))
            fail_msg("%s: use %d of %s fails, and status %d says \"%s\"", profiler, nth, call,
                     (int)status, err.message);
    }
    fail_msg("%s is used too often", call);
    return 0;
}

TEST(every_call_may_fail)
{
    static const char *const profilers[] = {"cupti", "cupti_pm", "cupti_trace", held};
    const char *const *names = fake->names();
    int failures = 0;
    for (int n = 0; names[n]; n++) {
        int uses = 0;
        for (int p = 0; p < ARRAY_COUNT(profilers); p++)
            uses += fail_each_use(profilers[p], names[n]);
        bool unused = strcmp(names[n], "cuptiGetResultString") == 0 ||
                      strcmp(names[n], "cuGetErrorName") == 0 ||
                      strcmp(names[n], "cuptiProfilerHostGetSupportedChips") == 0;
        if (!uses && !unused)
            fail_msg("%s is in the table and never called", names[n]);
        failures += uses;
    }
    print_message("%d failures\n", failures);
    assert_true(failures > 150);
}

static int start(int argc, char **argv)
{
    (void)argc, (void)argv;
    fake = fake_of_build();
    return UNIT_RUN;
}

const struct unit_fixture unit_fixture = {.start = start, .before_each = fake_begin_each};
