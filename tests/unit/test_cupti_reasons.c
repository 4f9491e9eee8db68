/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CUPTI profilers say when they cannot count, and what to do about it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/cupti_run.h"
#include "tests/lib/unit.h"

static const struct fake_control *fake;

/* A failure of the name of a failure. */
TEST(codes_without_a_name)
{
    struct fake_script script = cupti_usual;
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

static void expect(const char *profiler, const char *device, const char *message)
{
    struct cupti_outcome out;
    struct error err = {.message = ""};
    enum status status = cupti_run(profiler, device, &out, &err);
    if (status == STATUS_OK || !strstr(err.message, message))
        fail_msg("\"%s\" does not say %s", err.message, message);
    assert_string_equal(fake->broken_rule(), "");
    assert_int_equal(fake->open_objects(), 0);
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
     {"cuptiPmSamplingDecodeData says 8: the GPU's buffer", "overflowed: fewer executions"}},
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
     {.version = 130000, .chip = "GH100", .devices = 1, .passes = 1},
     {"CUPTI 130000 may hang", "Update 1 does not: install it"}},
    {"cupti_trace",
     {.alien_records = 1, .version = 130200, .chip = "GH100", .devices = 1, .passes = 1},
     {"blocks of 70000 x 1 x 1 threads", "records of CUPTI 130200 are not those of 13"}},
    {"cupti_trace",
     {.call = "cuInit", .nth = 1, .code = 34, .version = 130001, .devices = 1},
     {"cuInit says 34", "stub"}},
};

TEST(reasons_say_what_to_do)
{
    for (int k = 0; k < ARRAY_COUNT(reasons); k++)
        for (int m = 0; m < 2; m++) {
            struct fake_script script = reasons[k].script;
            script.zero_metric = -1;
            fake->set(&script);
            expect(reasons[k].profiler, "cuda", reasons[k].messages[m]);
        }
}

TEST(devices_that_are_none)
{
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

TEST(missing_libraries)
{
    char reason[CUPTI_REASON];
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
    bool explained = strstr(reason, "RmProfilingAdminOnly: 1 in") &&
                     strstr(reason, "options nvidia NVreg_RestrictProfilingToAdminUsers=0");
    bool attached = backend->attach(cupti, 0, CUPTI_SAMPLES, chip, reason);
    if (stayed || !trace || counters || !explained || attached)
        fprintf(stderr, "%d %d %d %d %d: %s\n", stayed, trace, counters, explained, attached,
                reason);
    _exit(stayed || !trace || counters || !explained || attached);
}

/* The X become a name. */
static void write_temporary(char *path, const char *text)
{
    int file = mkstemp(path);
    assert_true(file >= 0 && fchmod(file, 0644) == 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
}

/* The driver's file says that counters are for the administrator, which this process is not. */
TEST(permission_is_looked_up)
{
    static const char text[] = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n";
    char path[] = "/tmp/ridge-params-XXXXXX", reason[CUPTI_REASON] = "";
    int ended = 1;
    write_temporary(path, text);
    const struct cupti_files files = {fake_path(), fake_path(), path, NULL};
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

/* Either capability is enough, whoever the user is. */
TEST(capabilities_to_count)
{
    static const struct {
        const char *effective;
        bool may;
    } cases[] = {{"CapEff:\t0000000000000000\n", false},
                 {"CapPrm:\t000001ffffffffff\nCapEff:\t0000000000000001\n", false},
                 {"CapEff:\t0000000000200000\n", true},  /* CAP_SYS_ADMIN */
                 {"CapEff:\t0000004000000000\n", true}}; /* CAP_PERFMON */
    char params[] = "/tmp/ridge-params-XXXXXX", status[] = "/tmp/ridge-status-XXXXXX";
    write_temporary(params, "RmProfilingAdminOnly: 1\n");
    write_temporary(status, "");
    const struct cupti_files files = {fake_path(), fake_path(), params, status};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        char reason[CUPTI_REASON] = "";
        FILE *file = fopen(status, "w");
        assert_true(file && fputs(cases[k].effective, file) >= 0 && fclose(file) == 0);
        const struct cupti_backend *backend = cupti_plugin(reason, sizeof(reason));
        struct cupti *cupti = backend->open(&files, reason);
        assert_true(backend->ready(cupti, CUPTI_RANGES, reason) == cases[k].may);
        assert_true((strstr(reason, "--cap-add=PERFMON") != NULL) == !cases[k].may);
        backend->close(cupti);
    }
    unlink(params);
    unlink(status);
}

/* A level that the headers do not know yet. */
TEST(limited_support_is_support)
{
    struct fake_script script = cupti_usual;
    struct cupti_outcome out;
    script.unsupported = "limited";
    fake->set(&script);
    MUST(cupti_run, "cupti", "cuda", &out);
    assert_string_equal(fake->broken_rule(), "");
}

static int start(int argc, char **argv)
{
    (void)argc, (void)argv;
    fake = fake_of_build();
    return UNIT_RUN;
}

const struct unit_fixture unit_fixture = {.start = start, .before_each = fake_begin_each};
