/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUPTI plug-in and its profilers over a library that keeps the real one's rules, makes up
 * counts, and fails at every call once: no crash, nothing left open, the right message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profilers/lib/profiler.h"
#include "tests/lib/cupti_fake.h"

enum { SKIP = 77, STEPS = 3, EXECUTIONS = 4, PASSES = 2, NTH_MAX = 400 };

static const struct fake_control *fake;

static const struct fake_script usual = {
    .chip = "GH100", .passes = PASSES, .version = 130001, .devices = 2, .zero_metric = -1};

static int begin_each(void **state)
{
    (void)state;
    fake->set(&usual);
    setenv("RIDGE_CUPTI", fake_path(), 1);
    setenv("RIDGE_LIBCUDA", fake_path(), 1);
    return 0;
}

/* ---- a session ---- */

struct outcome {
    struct profiler_metric metrics[PROFILER_METRICS_MAX], steps[STEPS][PROFILER_METRICS_MAX];
    int count, step_counts[STEPS], passes, step_passes;
    char names[PROFILER_METRICS_MAX][64]; /* text of the session goes with it */
    bool has_reason[PROFILER_METRICS_MAX];
};

static enum status one_pass(const struct profiler *p, void *session, int pass, struct outcome *out,
                            struct error *err)
{
    bool by_step = p->by_step && p->by_step(session);
    TRY(p->begin(session, pass, err));
    for (int s = 0; s < STEPS && by_step; s++) {
        p->step_begin(session, s);
        p->step_end(session, s);
    }
    out->passes++;
    out->step_passes += by_step;
    return p->end(session, pass, by_step ? 1 : EXECUTIONS, err);
}

static enum status run_session(const char *name, const char *device, struct outcome *out,
                               struct error *err)
{
    const struct profiler *p = profiler_find(name);
    const struct profiler_model model = {.device = device, .steps = STEPS};
    void *session;
    *out = (struct outcome){.count = 0};
    enum status status = p->open(&model, 1, &session, err);
    if (status != STATUS_OK)
        return status;
    for (int pass = 0; pass < p->passes(session) && status == STATUS_OK; pass++)
        status = one_pass(p, session, pass, out, err);
    if (status == STATUS_OK) {
        out->count = p->read(session, out->metrics);
        for (int k = 0; k < out->count; k++) {
            snprintf(out->names[k], sizeof(out->names[k]), "%s", out->metrics[k].name);
            out->has_reason[k] = out->metrics[k].reason[0] != '\0';
        }
        for (int s = 0; s < STEPS && p->read_step; s++)
            out->step_counts[s] = p->read_step(session, s, out->steps[s]);
    }
    p->close(session);
    return status;
}

static double value_of(const struct outcome *out, const char *name)
{
    for (int k = 0; k < out->count; k++)
        if (strcmp(out->names[k], name) == 0)
            return out->metrics[k].value;
    fail_msg("no metric %s", name);
    return NAN;
}

static void check_sound(const struct outcome *out)
{
    assert_string_equal(fake->broken_rule(), "");
    assert_int_equal(fake->open_objects(), 0);
    for (int k = 0; k < out->count; k++)
        assert_true(isnan(out->metrics[k].value) == out->has_reason[k]);
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

static void ranges_count_the_whole_and_each_step(void **state)
{
    (void)state;
    struct outcome out;
    struct error err;
    if (run_session("cupti", "cuda:1", &out, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    check_sound(&out);
    /* counts, fill and tensor as a whole; counts and tensor by step. */
    assert_int_equal(out.passes, 5 * PASSES);
    assert_int_equal(out.step_passes, 2 * PASSES);
    near(value_of(&out, "dram_read_bytes"), FAKE_COUNT(0, 0) / EXECUTIONS);
    near(value_of(&out, "dram_write_bytes"), FAKE_COUNT(1, 0) / EXECUTIONS);
    near(value_of(&out, "sm_write_bytes"), FAKE_COUNT(1, 0) / EXECUTIONS);
    near(value_of(&out, "flops_cuda_cores"), ops_of_cuda_cores(0) / EXECUTIONS);
    near(value_of(&out, "tensor_ops_int8"), FAKE_COUNT(5, 0) / EXECUTIONS);
    near(value_of(&out, "flops"), (ops_of_cuda_cores(0) + ops_of_tensor_cores(0)) / EXECUTIONS);
    for (int s = 0; s < STEPS; s++) {
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

/* No tensor instruction: the group of their types costs no pass, and its counts are 0. */
static void idle_tensor_cores_cost_nothing(void **state)
{
    (void)state;
    struct fake_script script = usual;
    struct outcome out;
    struct error err;
    script.zero_metric = 5;
    fake->set(&script);
    assert_int_equal(run_session("cupti", "cuda", &out, &err), STATUS_OK);
    check_sound(&out);
    assert_int_equal(out.passes, 3 * PASSES);
    assert_true(value_of(&out, "flops_tensor_cores") == 0);
    near(value_of(&out, "flops"), ops_of_cuda_cores(0) / EXECUTIONS);
}

/* Work that the model knows of, and not one operation counted: no value, rather than 0. */
static void no_operation_is_no_count(void **state)
{
    (void)state;
    struct fake_script script = usual;
    struct profiler_metric metrics[PROFILER_METRICS_MAX];
    const struct profiler *p = profiler_find("cupti");
    struct profiler_model model = {.device = "cuda", .flops = 1e9, .steps = STEPS};
    struct outcome out = {.count = 0};
    struct error err;
    void *session;
    script.zero_from = 5;
    for (int work = 0; work < 2; work++) {
        fake->set(&script);
        model.flops = work ? 1e9 : 0;
        assert_int_equal(p->open(&model, 1, &session, &err), STATUS_OK);
        for (int pass = 0; pass < p->passes(session); pass++)
            assert_int_equal(one_pass(p, session, pass, &out, &err), STATUS_OK);
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

static void samples_add_up(void **state)
{
    static const char *const chips[] = {"GH100", "GA100", "TU104", "GB202"};
    (void)state;
    for (int k = 0; k < (int)(sizeof(chips) / sizeof(chips[0])); k++) {
        struct fake_script script = usual;
        struct outcome out;
        struct error err;
        script.chip = chips[k];
        fake->set(&script);
        if (run_session("cupti_pm", "cuda", &out, &err) != STATUS_OK)
            fail_msg("%s: %s", chips[k], err.message);
        check_sound(&out);
        assert_int_equal(out.passes, 1);
        near(value_of(&out, "dram_read_bytes"), FAKE_SAMPLES * FAKE_COUNT(0, 0) / EXECUTIONS);
        near(value_of(&out, "sm_active_share"), FAKE_COUNT(5, 0) / FAKE_COUNT(4, 0));
    }
}

static void a_trace_adds_up(void **state)
{
    (void)state;
    struct outcome out;
    struct error err;
    if (run_session("cupti_trace", "cuda", &out, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    check_sound(&out);
    near(value_of(&out, "kernels"), 3.0 / EXECUTIONS);
    near(value_of(&out, "copy_bytes"), 4096.0 / EXECUTIONS);
    /* 0-15, 23-27, 35-46 us: 30 us busy, gaps of 8 and 8. */
    near(value_of(&out, "gpu_busy_s"), 30e-6 / EXECUTIONS);
    near(value_of(&out, "kernel_s"), 30e-6 / EXECUTIONS);
    near(value_of(&out, "gap_s"), 16e-6 / EXECUTIONS);
    near(value_of(&out, "gap_longest_s"), 8e-6);
    near(value_of(&out, "gap_share"), 16.0 / 46.0);
    near(value_of(&out, "trace_overhead_s"), 2e-6 / EXECUTIONS);
    near(value_of(&out, "graph_launches"), 1.0 / EXECUTIONS);
    near(value_of(&out, "graph_s"), 45e-6 / EXECUTIONS);
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
    for (int k = 0; k < (int)(sizeof(calls) / sizeof(calls[0])); k++)
        if (strcmp(calls[k], call) == 0)
            return true;
    return false;
}

/* Groups whose metrics cannot be scheduled are left out with a reason, the others count. */
static bool says(const struct outcome *out, enum status status, const struct error *err,
                 const char *call)
{
    if (status != STATUS_OK)
        return strstr(err->message, call) && strstr(err->message, "31");
    for (int k = 0; k < out->count; k++)
        if (out->has_reason[k])
            return true;
    for (int s = 0; s < STEPS; s++)
        for (int k = 0; k < out->step_counts[s]; k++)
            if (isnan(out->steps[s][k].value))
                return true;
    return false;
}

/* Returns how often the call was used. */
static int fail_each_use(const char *profiler, const char *call)
{
    for (int nth = 1; nth <= NTH_MAX; nth++) {
        struct fake_script script = usual;
        struct outcome out;
        struct error err = {.message = ""};
        script.call = call;
        script.nth = nth;
        script.code = 31;
        fake->set(&script);
        enum status status = run_session(profiler, "cuda", &out, &err);
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

static void every_call_may_fail(void **state)
{
    static const char *const profilers[] = {"cupti", "cupti_pm", "cupti_trace"};
    (void)state;
    const char *const *names = fake->names();
    int failures = 0;
    for (int n = 0; names[n]; n++) {
        int uses = 0;
        for (int p = 0; p < 3; p++)
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

/* A failure of the name of a failure. */
static void codes_without_a_name(void **state)
{
    (void)state;
    struct fake_script script = usual;
    struct cupti_files files = {.cupti = fake_path(), .driver = fake_path()};
    char reason[CUPTI_REASON] = "";
    const struct cupti_backend *backend = cupti_plugin(reason, sizeof(reason));
    script.call = "cuptiGetResultString";
    script.nth = 1;
    script.code = 1;
    fake->set(&script);
    struct cupti *cupti = backend->open(&files, reason);
    const char *metric = "no_such.sum";
    struct cupti_wanted wanted = {.chip = "GH100", .metrics = &metric, .count = 1};
    assert_null(backend->config_open(cupti, &wanted, reason));
    assert_non_null(strstr(reason, "17 (a code without a name)"));
    assert_int_equal(fake->open_objects(), 0);
    backend->close(cupti);
}

/* ---- why not, and what to do ---- */

static void expect(const char *profiler, const char *device, const char *message)
{
    struct outcome out;
    struct error err = {.message = ""};
    enum status status = run_session(profiler, device, &out, &err);
    if (status == STATUS_OK || !strstr(err.message, message))
        fail_msg("\"%s\" does not say %s", err.message, message);
    check_sound(&out);
}

static const struct {
    const char *profiler;
    struct fake_script script;
    const char *messages[2];
} reasons[] = {
    {"cupti",
     {.version = 120001, .chip = "GH100", .devices = 1, .passes = 1},
     {"libcupti is version 120001", "install CUPTI of CUDA 13"}},
    {"cupti",
     {.version = 130001, .chip = "GH100", .devices = 0, .passes = 1},
     {"no GPU", "CUDA_VISIBLE_DEVICES"}},
    {"cupti",
     {.call = "cuptiRangeProfilerEnable",
      .nth = 1,
      .code = 35,
      .version = 130001,
      .chip = "GH100",
      .devices = 1,
      .passes = 1},
     {"cuptiRangeProfilerEnable says 35 (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)",
      "options nvidia NVreg_RestrictProfilingToAdminUsers=0"}},
    {"cupti_pm",
     {.call = "cuptiPmSamplingEnable",
      .nth = 1,
      .code = 26,
      .version = 130001,
      .chip = "GH100",
      .devices = 1,
      .passes = 1},
     {"cuptiPmSamplingEnable says 26", "dcgmi profile --pause"}},
    {"cupti",
     {.unsupported = "architecture", .version = 130001, .chip = "GV100", .devices = 1, .passes = 1},
     {"Turing", "CUDA 12"}},
    {"cupti",
     {.unsupported = "vgpu", .version = 130001, .chip = "GH100", .devices = 1, .passes = 1},
     {"virtual GPU", "profiling"}},
    {"cupti",
     {.version = 130001, .chip = "XX100", .devices = 1, .passes = 1},
     {"profilers/groups", "XX100"}},
    {"cupti",
     {.dropped_ranges = 2, .version = 130001, .chip = "GH100", .devices = 1, .passes = 1},
     {"dropped 2 ranges", "too many"}},
    {"cupti_pm",
     {.overflow = 1, .version = 130001, .chip = "GH100", .devices = 1, .passes = 1},
     {"overflowed", "fewer executions"}},
    {"cupti_trace",
     {.call = "cuptiActivityEnable",
      .nth = 1,
      .code = 39,
      .version = 130001,
      .chip = "GH100",
      .devices = 1,
      .passes = 1},
     {"cuptiActivityEnable says 39", "run without ncu"}},
    {"cupti_trace",
     {.call = "cuInit", .nth = 1, .code = 34, .version = 130001, .devices = 1},
     {"cuInit says 34", "stub"}},
};

static void reasons_say_what_to_do(void **state)
{
    (void)state;
    for (int k = 0; k < (int)(sizeof(reasons) / sizeof(reasons[0])); k++)
        for (int m = 0; m < 2; m++) {
            struct fake_script script = reasons[k].script;
            script.zero_metric = -1;
            fake->set(&script);
            expect(reasons[k].profiler, "cuda", reasons[k].messages[m]);
        }
}

static void devices_that_are_none(void **state)
{
    (void)state;
    expect("cupti", "cpu", "this ran on cpu: --device cuda");
    expect("cupti", NULL, "this ran on the CPU");
    expect("cupti", "cuda:x", "this ran on cuda:x");
    expect("cupti_trace", "cuda:7", "cuDeviceGet says 101");
    assert_int_equal(profiler_cuda_index("cuda"), 0);
    assert_int_equal(profiler_cuda_index("cuda:12"), 12);
    assert_int_equal(profiler_cuda_index("cuda:"), -1);
    assert_int_equal(profiler_cuda_index("cudaa"), -1);
    assert_int_equal(profiler_cuda_index("cuda:1x"), -1);
}

static void missing_libraries(void **state)
{
    char reason[CUPTI_REASON];
    (void)state;
    const struct profiler *p = profiler_find("cupti");
    setenv("RIDGE_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
    assert_false(p->available(reason, sizeof(reason)));
    assert_non_null(strstr(reason, "no CUDA driver (/nonexistent/libcuda.so.1)"));
    assert_non_null(strstr(reason, "--device cpu"));
    setenv("RIDGE_CUPTI", "/nonexistent/libcupti.so.13", 1);
    assert_false(p->available(reason, sizeof(reason)));
    assert_non_null(strstr(reason, "RIDGE_CUPTI"));
    setenv("RIDGE_CUPTI", "libm.so.6", 1); /* opens, and is another library */
    assert_false(p->available(reason, sizeof(reason)));
    assert_non_null(strstr(reason, "libcupti has no cuptiGetVersion"));
}

/* In a child, which may give up being root: the library is open by then. */
static void check_forbidden(const struct cupti_backend *backend, struct cupti *cupti)
{
    char reason[CUPTI_REASON] = "", chip[CUPTI_CHIP];
    bool stayed = geteuid() == 0 && setuid(65534) != 0;
    bool trace = backend->ready(cupti, CUPTI_TRACE, reason);
    bool counters = backend->ready(cupti, CUPTI_RANGES, reason);
    bool told = strstr(reason, "RmProfilingAdminOnly: 1 in") &&
                strstr(reason, "options nvidia NVreg_RestrictProfilingToAdminUsers=0");
    bool attached = backend->attach(cupti, 0, CUPTI_SAMPLES, chip, reason);
    if (stayed || !trace || counters || !told || attached)
        fprintf(stderr, "%d %d %d %d %d: %s\n", stayed, trace, counters, told, attached, reason);
    _exit(stayed || !trace || counters || !told || attached);
}

/* The driver's file says that counters are for the administrator, which this process is not. */
static void permission_is_looked_up(void **state)
{
    static const char text[] = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n";
    char path[] = "/tmp/ridge-params-XXXXXX", reason[CUPTI_REASON] = "";
    int ended = 1;
    (void)state;
    int file = mkstemp(path);
    assert_true(file >= 0 && fchmod(file, 0644) == 0);
    assert_int_equal(write(file, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
    close(file);
    const struct cupti_files files = {fake_path(), fake_path(), path};
    const struct cupti_backend *backend = cupti_plugin(reason, sizeof(reason));
    struct cupti *cupti = backend->open(&files, reason);
    assert_non_null(cupti);
    assert_true(backend->ready(cupti, CUPTI_TRACE, reason));
    pid_t child = fork();
    if (child == 0)
        check_forbidden(backend, cupti);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    backend->close(cupti);
    unlink(path);
}

int main(void)
{
    char reason[CUPTI_REASON] = "";
    fake = fake_open();
    if (!fake || !cupti_plugin(reason, sizeof(reason))) {
        printf("skipped: %s\n", fake ? reason : "CUPTI's headers were not there when building");
        return SKIP;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ranges_count_the_whole_and_each_step, begin_each),
        cmocka_unit_test_setup(idle_tensor_cores_cost_nothing, begin_each),
        cmocka_unit_test_setup(no_operation_is_no_count, begin_each),
        cmocka_unit_test_setup(samples_add_up, begin_each),
        cmocka_unit_test_setup(a_trace_adds_up, begin_each),
        cmocka_unit_test_setup(every_call_may_fail, begin_each),
        cmocka_unit_test_setup(codes_without_a_name, begin_each),
        cmocka_unit_test_setup(reasons_say_what_to_do, begin_each),
        cmocka_unit_test_setup(devices_that_are_none, begin_each),
        cmocka_unit_test_setup(missing_libraries, begin_each),
        cmocka_unit_test_setup(permission_is_looked_up, begin_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
