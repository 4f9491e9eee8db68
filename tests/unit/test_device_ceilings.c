/* SPDX-License-Identifier: Apache-2.0
 * Ceilings of a device, on the host's CUDA runtime (tests/gpu/host/) with a small GPU and a made
 * clock: each roof does the work that it claims, values are exact, what cannot be had says why, and
 * no failing call is lost or leaks. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/run/device_roof.h"
#include "harness/roofs/device_ceilings.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/unit.h"

enum { LAUNCH_FAILED = 719, COMMAND_NS = 400000000 };

static const struct ceiling_options quick = {.quick = true};

struct list {
    struct arena arena;
    const struct ceiling_record *records;
    int count;
};

static void measure(struct list *list)
{
    struct error err = {0};
    *list = (struct list){.count = 0};
    if (device_ceilings_measure("cuda", &quick, &list->arena, &list->records, &list->count, &err) !=
        STATUS_OK)
        fail_msg("%s", err.message);
}

static const struct ceiling_record *find(const struct list *list, const char *name)
{
    const struct ceiling_record *found = NULL;
    for (int k = 0; k < list->count; k++)
        if (strcmp(list->records[k].name, name) == 0) {
            assert_null(found); /* the store wants them unique */
            found = &list->records[k];
        }
    if (!found)
        fail_msg("%s is missing", name);
    return found;
}

/* What a roof says of a round is what its kernels do in one. */
TEST(roofs_do_what_they_claim)
{
    struct device device;
    struct error err = {0};
    MUST(device_open, "cuda", &device);
    assert_in_range(device_roof_count(), 15, 100);
    for (int k = 0; k < device_roof_count(); k++) {
        const struct device_roof *roof = device_roof_at(k);
        struct roof_work work = {.amount = 0};
        struct roof_state *made = NULL;
        if (roof->prepare(roof, &device, &work, &made, &err) != STATUS_OK)
            fail_msg("%s: %s", roof->name, err.message);
        double before = host_gpu()->counted();
        MUST(roof->run, made, 3, NULL);
        double done = host_gpu()->counted() - before;
        if (done != 3 * work.amount || !(done > 0))
            fail_msg("%s: %.0f in three rounds of %.0f", roof->name, done, work.amount);
        roof->release(made);
    }
    device_close(&device);
}

/* Every command takes 0.4 s, so one round is a pass, and nothing scatters. */
TEST(values_follow_from_the_clock)
{
    struct list list;
    const double command = COMMAND_NS * 1e-9;
    const struct {
        const char *name, *unit;
        enum ceiling_kind kind;
        double value;
    } wanted[] = {
        /* 16 chains x 32 steps x 2, 1024 threads */
        {"fma f32", "FLOP/s", CEILING_COMPUTE, 2.0 * 16 * 32 * 1024 / command},
        /* 16 x 8 x 16 x 2, 16 steps of 8 sums, 32 warps */
        {"mma bf16", "FLOP/s", CEILING_COMPUTE, 4096.0 * 128 * 32 / command},
        {"mma i8", "OP/s", CEILING_COMPUTE, 8192.0 * 128 * 32 / command},
        /* 64 x 256 x 16 x 2, 8 times 4 steps, 2 warp groups */
        {"wgmma f16", "FLOP/s", CEILING_COMPUTE, 524288.0 * 32 * 2 / command},
        {"copy to device", "B/s", CEILING_BANDWIDTH, (32 << 20) / command},
        {"copy to host", "B/s", CEILING_BANDWIDTH, (32 << 20) / command},
        {"launch stream", "s", CEILING_LATENCY, command},
        {"launch graph", "s", CEILING_LATENCY, command},
        {"size L2", "B", CEILING_CAPACITY, 300000},
    };
    measure(&list);
    for (int k = 0; k < ARRAY_COUNT(wanted); k++) {
        const struct ceiling_record *r = find(&list, wanted[k].name);
        bool near = fabs(r->value / wanted[k].value - 1) < 1e-6;
        if (!near || r->kind != wanted[k].kind || strcmp(r->unit, wanted[k].unit) != 0)
            fail_msg("%s: %g %s, not %g", r->name, r->value, r->unit, wanted[k].value);
    }
    const struct ceiling_record *dram = find(&list, "copy DRAM"), *l2 = find(&list, "copy L2");
    assert_true(dram->working_set_bytes > 10 * 300000 && l2->working_set_bytes < 300000);
    assert_true(fabs(dram->value * command / (double)dram->working_set_bytes - 1) < 1e-6);
    for (int k = 0; k < list.count; k++) {
        const struct ceiling_record *r = &list.records[k];
        assert_string_equal(r->device, "cuda");
        assert_true(r->threads == 0 && r->value > 0 && !*r->reason);
        assert_true(r->datasheet ? r->n == 0 : r->n > 30 && r->min <= r->max);
    }
    arena_release(&list.arena);
}

/* A chip without an instruction, a cache or enough memory says so beside the name. */
TEST(what_a_chip_lacks_is_said)
{
    struct list list;
    host_gpu()->dry(1);
    setenv("RIDGE_HOST_MAJOR", "8", 1);
    setenv("RIDGE_HOST_CACHE", "100000000", 1);
    measure(&list);
    SAYS(find(&list, "wgmma bf16")->reason, "sm_90 alone; this is sm_80");
    SAYS(find(&list, "mma f8")->reason, "sm_80 do not know f8: from sm_89 on");
    SAYS(find(&list, "read DRAM")->reason, "needs 953 MB");
    SAYS(find(&list, "memcpy DRAM")->reason, "half of what is free are 512 MB");
    assert_true(isnan(find(&list, "mma f8")->value) && find(&list, "mma f16")->value > 0);
    arena_release(&list.arena);
    setenv("RIDGE_HOST_CACHE", "0", 1);
    measure(&list);
    SAYS(find(&list, "read L2")->reason, "too small");
    SAYS(find(&list, "size L2")->reason, "does not say");
    arena_release(&list.arena);
    setenv("RIDGE_HOST_CACHE", "300000", 1);
    unsetenv("RIDGE_HOST_MAJOR");
    host_gpu()->dry(0);
}

TEST(a_device_that_is_not_there_is_reported)
{
    struct list list = {.count = 0};
    FAILS(STATUS_UNSUPPORTED, "there are 2 cuda devices", device_ceilings_measure, "cuda:5", &quick,
          &list.arena, &list.records, &list.count);
    arena_release(&list.arena);
}

/* ---- every call fails once ---- */

static const char *const calls[] = {
    "driver_version",
    "runtime_version",
    "device_count",
    "set_device",
    "facts",
    "memory_info",
    "malloc",
    "free",
    "malloc_host",
    "free_host",
    "stream_create",
    "stream_destroy",
    "stream_synchronize",
    "copy",
    "set",
    "event_create",
    "event_destroy",
    "event_record",
    "event_elapsed",
    "capture_begin",
    "capture_end",
    "graph_destroy",
    "graph_exec_destroy",
    "graph_instantiate",
    "graph_launch",
    "launch",
};

/* Calls whose failure nobody can act on: what they give back is given back. */
static bool is_silent(const char *call)
{
    static const char *const silent[] = {"free",          "free_host",          "stream_destroy",
                                         "event_destroy", "graph_exec_destroy", "graph_destroy"};
    for (int k = 0; k < ARRAY_COUNT(silent); k++)
        if (strcmp(call, silent[k]) == 0)
            return true;
    return false;
}

static int reported(const struct list *list)
{
    int count = 0;
    for (int k = 0; k < list->count; k++)
        count += strstr(list->records[k].reason, "unspecified launch failure") != NULL;
    return count;
}

/* Returns how often the call was used. */
static int fail_once(const char *call, int at)
{
    struct list list = {.count = 0};
    struct error err = {0};
    long before = host_gpu()->live();
    host_gpu()->script(call, at, LAUNCH_FAILED);
    enum status status =
        device_ceilings_measure("cuda", &quick, &list.arena, &list.records, &list.count, &err);
    int used = host_gpu()->calls();
    host_gpu()->script("", 0, 0);
    bool said = status == STATUS_OK ? reported(&list) > 0
                                    : strstr(err.message, "unspecified launch failure") != NULL;
    if (host_gpu()->live() != before)
        fail_msg("%s failed at use %d: %ld things were not given back", call, at,
                 host_gpu()->live() - before);
    if (at > 0 && said == is_silent(call))
        fail_msg("%s failed at use %d: %s", call, at, said ? "reported" : "not reported");
    arena_release(&list.arena);
    return used;
}

TEST(no_failing_call_is_lost_or_leaks)
{
    enum { ALL_BELOW = 16, PARTS = 3 };
    host_gpu()->dry(1); /* what is right is proven above */
    for (int c = 0; c < ARRAY_COUNT(calls); c++) {
        int used = fail_once(calls[c], 0), step = used > ALL_BELOW ? used / PARTS : 1;
        assert_true(used > 0);
        for (int at = 1; at <= used; at += step)
            fail_once(calls[c], at);
    }
    host_gpu()->dry(0);
}

static int start(int argc, char **argv)
{
    setenv("RIDGE_HOST_UNITS", "1", 1);
    setenv("RIDGE_HOST_CACHE", "300000", 1);
    host_gpu_start(argc, argv);
    host_gpu()->clock(COMMAND_NS);
    return UNIT_RUN;
}

const struct unit_fixture unit_fixture = {.start = start};
