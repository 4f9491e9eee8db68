/* SPDX-License-Identifier: Apache-2.0
 *
 * Watching a GPU through a scripted NVML: sums, looks, every call failing once, missing libraries.
 */

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/registry.h"
#include "profilers/lib/nvml.h"
#include "profilers/lib/profiler.h"
#include "tests/lib/unit.h"

enum call {
    INIT,
    COUNT,
    BY_INDEX,
    BY_PCI,
    ENERGY,
    CLOCK,
    TEMPERATURE,
    REASONS,
    FIELDS,
    CUDA_INIT,
    CUDA_DEVICE,
    CUDA_BUS,
    CALLS
};

static const char *const call_names[CALLS] = {"nvmlInit_v2", "nvmlDeviceGetCount_v2",
                                              "nvmlDeviceGetHandleByIndex_v2",
                                              "nvmlDeviceGetHandleByPciBusId_v2"};

/* The library looks from a thread of its own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int fail_call, fail_nth, code; /* fail_call -1: none; fail_nth 0: always */
    int uses[CALLS], opened;
    unsigned long long millijoules, held_ns;
    unsigned clock;
    unsigned long long reasons;
    char bus[32];
} gpu;

static int use(enum call call)
{
    pthread_mutex_lock(&lock);
    gpu.uses[call]++;
    bool fails =
        gpu.fail_call == (int)call && (gpu.fail_nth == 0 || gpu.fail_nth == gpu.uses[call]);
    pthread_mutex_unlock(&lock);
    return fails ? gpu.code : 0;
}

static int fake_init(void)
{
    int code = use(INIT);
    gpu.opened += code == 0;
    return code;
}

static int fake_shutdown(void)
{
    gpu.opened--;
    return 0;
}

static const char *fake_error_string(int code)
{
    return code == NVML_ERROR_NO_PERMISSION ? "Insufficient Permissions" : "Made up";
}

static int fake_count(unsigned *count)
{
    *count = 2;
    return use(COUNT);
}

static int fake_by_index(unsigned index, nvml_device *device)
{
    *device = &gpu;
    (void)index;
    return use(BY_INDEX);
}

static int fake_by_pci(const char *bus, nvml_device *device)
{
    *device = &gpu;
    snprintf(gpu.bus, sizeof(gpu.bus), "%s", bus);
    return use(BY_PCI);
}

static int fake_energy(nvml_device device, unsigned long long *millijoules)
{
    (void)device;
    *millijoules = gpu.millijoules += 1500;
    return use(ENERGY);
}

static int fake_clock(nvml_device device, int kind, unsigned *megahertz)
{
    (void)device;
    *megahertz = kind == NVML_CLOCK_MEMORY ? 3000 : gpu.clock;
    return use(CLOCK);
}

static int fake_temperature(nvml_device device, int sensor, unsigned *celsius)
{
    (void)device;
    (void)sensor;
    *celsius = 61;
    return use(TEMPERATURE);
}

static int fake_reasons(nvml_device device, unsigned long long *bits)
{
    (void)device;
    *bits = gpu.reasons;
    return use(REASONS);
}

/* Power in milliwatts; the others count nanoseconds, each its own; boost is not reported. */
static int fake_fields(nvml_device device, int count, struct nvml_field *fields)
{
    (void)device;
    for (int k = 0; k < count; k++) {
        struct nvml_field *f = &fields[k];
        f->code = f->id == NVML_FIELD_HELD_BY_BOOST ? 3 : 0;
        f->value_type = f->id == NVML_FIELD_POWER_INSTANT ? NVML_UNSIGNED : NVML_UNSIGNED_LONG_LONG;
        if (f->id == NVML_FIELD_POWER_INSTANT)
            f->value.u32 = 650000;
        else
            f->value.ull = gpu.held_ns * f->id;
    }
    if (count > 1) /* the thread asks for power alone */
        gpu.held_ns++;
    return use(FIELDS);
}

static int fake_cuda_init(unsigned flags)
{
    (void)flags;
    return use(CUDA_INIT);
}

static int fake_cuda_device(int *device, int index)
{
    *device = index;
    return use(CUDA_DEVICE);
}

static int fake_cuda_bus(char *bus, int size, int device)
{
    snprintf(bus, (size_t)size, "0000:%02x:00.0", device + 16);
    return use(CUDA_BUS);
}

static const struct nvml_api api = {.init = fake_init,
                                    .shutdown = fake_shutdown,
                                    .error_string = fake_error_string,
                                    .count = fake_count,
                                    .by_index = fake_by_index,
                                    .by_pci = fake_by_pci,
                                    .energy = fake_energy,
                                    .clock = fake_clock,
                                    .temperature = fake_temperature,
                                    .reasons = fake_reasons,
                                    .fields = fake_fields,
                                    .has_cuda = true,
                                    .cuda_init = fake_cuda_init,
                                    .cuda_device = fake_cuda_device,
                                    .cuda_bus = fake_cuda_bus};

static int begin_each(void **state)
{
    (void)state;
    memset(&gpu, 0, sizeof(gpu));
    gpu.fail_call = -1;
    gpu.clock = 1980;
    gpu.reasons = 0x4;
    return 0;
}

static void sleep_ms(long ms)
{
    struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

static enum status watch_once(const struct nvml_api *calls, struct nvml_seen *seen,
                              struct error *err)
{
    struct nvml_watch *watch;
    *seen = (struct nvml_seen){.looks = 0};
    TRY(nvml_watch_open(calls, 1, &watch, err));
    enum status status = nvml_watch_begin(watch, err);
    sleep_ms(50);
    if (status == STATUS_OK)
        status = nvml_watch_end(watch, err);
    *seen = nvml_watch_seen(watch);
    nvml_watch_close(watch);
    return status;
}

TEST(what_is_seen)
{
    struct nvml_seen seen;
    MUST(watch_once, &api, &seen);
    assert_string_equal(gpu.bus, "0000:11:00.0"); /* the device that CUDA calls 1 */
    assert_true(seen.energy_j == 1.5);
    assert_true(seen.seconds >= 0.05 && seen.seconds < 30);
    assert_true(fabs(seen.held_s[HELD_POWER] - 74e-9) < 1e-15);
    assert_true(fabs(seen.held_s[HELD_HEAT] - 75e-9) < 1e-15);
    assert_true(fabs(seen.held_s[HELD_BOARD] - 77e-9) < 1e-15);
    assert_true(isnan(seen.held_s[HELD_BOOST])); /* not reported */
    assert_true(seen.power_max_w == 650 && seen.temperature_max_c == 61);
    assert_true(seen.clock_sm_hz == 1980e6 && seen.clock_sm_min_hz == 1980e6);
    assert_true(seen.clock_memory_hz == 3000e6);
    assert_true(seen.reasons == 4);
    assert_true(seen.looks >= 2); /* 50 ms, every 20 ms, and the last */
    assert_int_equal(gpu.opened, 0);
}

TEST(passes_add_up)
{
    struct nvml_watch *watch;
    MUST(nvml_watch_open, &api, 0, &watch);
    for (int pass = 0; pass < 2; pass++) {
        gpu.clock = pass ? 1000 : 2000;
        MUST(nvml_watch_begin, watch);
        MUST(nvml_watch_end, watch);
    }
    struct nvml_seen seen = nvml_watch_seen(watch);
    assert_true(seen.energy_j == 3);
    assert_true(seen.clock_sm_min_hz == 1000e6);
    assert_true(seen.clock_sm_hz >= 1000e6 && seen.clock_sm_hz <= 2000e6);
    nvml_watch_close(watch);
}

/* A call that always fails costs its own number only, or the session, which then says why. */
TEST(every_call_may_fail)
{
    for (int call = 0; call < CALLS; call++)
        for (int nth = 0; nth < 3; nth++) {
            struct nvml_seen seen;
            struct error err = {.message = ""};
            struct nvml_api calls = api;
            begin_each(NULL);
            gpu.fail_call = call;
            gpu.fail_nth = nth;
            gpu.code = NVML_ERROR_NO_PERMISSION;
            calls.has_cuda = call != COUNT && call != BY_INDEX;
            enum status status = watch_once(&calls, &seen, &err);
            bool vital = call <= BY_PCI && nth < 2;
            if ((status == STATUS_OK) == vital)
                fail_msg("call %d, use %d: status %d, \"%s\"", call, nth, (int)status, err.message);
            if (vital && (!strstr(err.message, call_names[call]) ||
                          !strstr(err.message, "4 (Insufficient Permissions)") ||
                          !strstr(err.message, "/dev/nvidia")))
                fail_msg("call %d: \"%s\"", call, err.message);
            assert_int_equal(gpu.opened, 0);
            if (call == ENERGY)
                assert_true(isnan(seen.energy_j));
            if (call == FIELDS && nth == 0)
                assert_true(isnan(seen.power_max_w) && isnan(seen.held_s[HELD_POWER]));
            if (call == CLOCK && nth == 0)
                assert_true(isnan(seen.clock_sm_hz) && isnan(seen.clock_memory_hz));
            if (call == TEMPERATURE && nth == 0)
                assert_true(isnan(seen.temperature_max_c));
        }
}

/* Clock and heat at one moment, for the samples of a run. */
TEST(a_gauge_tells_what_is)
{
    struct nvml_gauge gauge;
    MUST(nvml_gauge_open, &api, 1, &gauge);
    gpu.held_ns = 1000;
    struct nvml_now now = nvml_gauge_read(&gauge);
    assert_true(now.clock_hz == 1980e6 && fabs(now.heat_s - 75e-6) < 1e-12);
    assert_true(now.slow == 0); /* a power limit is usual */
    gpu.reasons = 0x1ff;
    assert_true(nvml_gauge_read(&gauge).slow == 0xe8);
    gpu.code = NVML_ERROR_NO_PERMISSION;
    gpu.fail_call = CLOCK;
    assert_true(isnan(nvml_gauge_read(&gauge).clock_hz));
    gpu.fail_call = FIELDS;
    assert_true(isnan(nvml_gauge_read(&gauge).heat_s));
    gpu.fail_call = REASONS;
    assert_true(nvml_gauge_read(&gauge).slow == 0);
    nvml_gauge_close(&gauge);
    nvml_gauge_close(&gauge);
    assert_int_equal(gpu.opened, 0);
    for (int call = INIT; call <= BY_PCI; call++) {
        struct nvml_api calls = api;
        begin_each(NULL);
        gpu.fail_call = call;
        gpu.code = NVML_ERROR_NO_PERMISSION;
        calls.has_cuda = call == BY_PCI;
        FAILS(STATUS_UNSUPPORTED, call_names[call], nvml_gauge_open, &calls, 1, &gauge);
        nvml_gauge_close(&gauge);
        assert_int_equal(gpu.opened, 0);
    }
}

/* Without CUDA's word the indices are believed to be the same, and must exist. */
TEST(without_cuda)
{
    struct nvml_watch *watch;
    struct nvml_api calls = api;
    calls.has_cuda = false;
    MUST(nvml_watch_open, &calls, 1, &watch);
    assert_int_equal(gpu.uses[BY_INDEX], 1);
    nvml_watch_close(watch);
    FAILS(STATUS_UNSUPPORTED, "NVML knows 2 GPUs", nvml_watch_open, &calls, 2, &watch);
    assert_int_equal(gpu.opened, 0);
}

TEST(missing_libraries)
{
    struct nvml_api calls;
    FAILS(STATUS_UNSUPPORTED, "install NVIDIA's driver", nvml_load, "/nonexistent.so", NULL,
          &calls);
    FAILS(STATUS_UNSUPPORTED, "NVML has no nvmlInit_v2", nvml_load, "libm.so.6", NULL, &calls);
}

TEST(only_for_gpus)
{
    const struct profiler_model model = {.device = "cpu"};
    struct error err = {.message = ""};
    void *session;
    const struct profiler *p = profiler_find("nvml");
    assert_int_equal(p->open(&model, 1, &session, &err), STATUS_UNSUPPORTED);
    assert_true(strstr(err.message, "driver") || strstr(err.message, "--device cuda"));
    assert_true(p->pass_s >= 2); /* its counters move ten times a second */
}

const struct unit_fixture unit_fixture = {.before_each = begin_each};
