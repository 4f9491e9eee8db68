/* SPDX-License-Identifier: Apache-2.0
 *
 * Ceilings in the views: a point is judged by those of its own device alone, whatever the others
 * of the run can do. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "results/query.h"
#include "results/store.h"
#include "tests/lib/made_results.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/place.h"

/* The CPU's ceilings are those of made_ceilings: 1e11 FLOP/s, 1e10 B/s with 2 threads. */
static int open_run(void **state)
{
    struct run_head head = made_head("00000000-0000-0000-0000-000000000001", 1);
    int count;
    const struct ceiling_record *cpu = made_ceilings(&count);
    if (place_open(state))
        return -1;
    struct place *place = *state;
    place_begin_run(place, &head);
    MUST(run_put_ceilings, place->store, place->run, cpu, count);
    return 0;
}

static struct ceiling_record ceiling(const char *device, enum ceiling_kind kind, const char *name,
                                     const char *word, double value)
{
    bool compute = kind == CEILING_COMPUTE;
    return (struct ceiling_record){.device = device,
                                   .kind = kind,
                                   .name = name,
                                   .level = compute ? "" : word,
                                   .precision = compute ? word : "",
                                   .isa = "",
                                   .pattern = strncmp(name, "fma", 3) == 0 ? "fma" : "mma",
                                   .working_set_bytes = RECORD_NONE,
                                   .value = value,
                                   .unit = compute ? "FLOP/s" : "B/s",
                                   .reason = "",
                                   .n = 5,
                                   .min = value,
                                   .max = value};
}

/* A GPU that is a hundred times the CPU, with a cache that holds the points (10 MB). */
static void put_gpu(struct place *place, const char *device)
{
    const struct ceiling_record records[] = {
        ceiling(device, CEILING_COMPUTE, "fma f32", "f32", 1e13),
        ceiling(device, CEILING_COMPUTE, "mma tf32", "tf32", 4e13),
        ceiling(device, CEILING_COMPUTE, "wgmma tf32", "tf32", 5e13),
        ceiling(device, CEILING_BANDWIDTH, "read DRAM", "DRAM", 1e12),
        ceiling(device, CEILING_BANDWIDTH, "read L2", "L2", 4e12),
        ceiling(device, CEILING_BANDWIDTH, "copy to device", "link", 5e10),
        ceiling(device, CEILING_LATENCY, "launch", "", 2e-6),
        ceiling(device, CEILING_CAPACITY, "cache L2", "L2", 50e6),
    };
    MUST(run_put_ceilings, place->store, place->run, records, ARRAY_COUNT(records));
}

/* 1 GFLOP and 10 MB in time_s, in two equal steps. */
static void put(struct place *place, const char *device, const char *precision, double time_s)
{
    struct made_record made;
    assert_int_equal(made_record(&made, place->next++, time_s, 30, 2), STATUS_OK);
    made.record.point.device = device;
    made.record.point.precision = precision;
    MUST(run_put, place->store, place->run, &made.record);
    made_release(&made);
}

TEST(points_are_judged_by_their_device)
{
    struct place *place = *state;
    put_gpu(place, "cuda");
    put(place, "cpu", "f32", 0.02);
    put(place, "cuda", "f32", 2e-4);
    put(place, "cuda", "tf32", 2e-4);
    struct grid grid = place_view(place, "bounds", "run", (double)place->run);
    assert_int_equal(grid.row_count, 3);
    grid_is(&grid, 0, "peak", 1e11);
    grid_is(&grid, 0, "dram_bandwidth", 1e10);
    grid_is(&grid, 1, "peak", 1e13);
    grid_is(&grid, 1, "dram_bandwidth", 1e12);
    grid_is(&grid, 1, "largest_cache", 50e6);
    grid_is(&grid, 1, "roof_time", 1e-4); /* 1e9 / 1e13; the bytes take 1e7 / 4e12 in the cache */
    grid_is(&grid, 1, "memory_time", 2.5e-6);
    grid_is(&grid, 1, "recoverable", 1e-4);
    grid_is(&grid, 2, "peak", 5e13); /* the best of its precision */
    grid = place_view(place, "offenders", "result", 2);
    assert_int_equal(grid.row_count, 2);
    grid_is(&grid, 0, "roof_time", 5e-5);
    struct query_value key = {"point", "0000000000001001", 0};
    MUST(query_view, place->store, "history_roofs", &key, 1, &grid);
    grid_is(&grid, 0, "fraction_of_roof", 0.5);
    grid_release(&grid);
}

/* The CPU's cache is none of the GPU's, and without own ceilings nothing is said of a point. */
TEST(ceilings_of_others_are_not_used)
{
    struct place *place = *state;
    put_gpu(place, "cuda");
    put(place, "cuda:1", "f32", 2e-4);
    put(place, "cuda", "bf16", 2e-4);
    struct grid grid = place_view(place, "bounds", "run", (double)place->run);
    assert_string_equal(grid_text(&grid, 0, "bound"), "unknown");
    assert_string_equal(grid_text(&grid, 0, "note"),
                        "no ceiling of arithmetic for f32 on cuda:1 in this run");
    grid_is(&grid, 0, "recoverable", NAN);
    grid_is(&grid, 0, "largest_cache", NAN);
    assert_string_equal(grid_text(&grid, 1, "bound"), "unknown");
    grid_is(&grid, 1, "peak", NAN);
}

static int64_t labelled(const struct grid *grid, const char *label)
{
    for (int64_t row = 0; row < grid->row_count; row++)
        if (strcmp(grid_text(grid, row, "label"), label) == 0)
            return row;
    fail_msg("no roof is called \"%s\"", label);
    return -1;
}

/* Every device that was used, in the precisions that it was used in; of one result only its own. */
TEST(roofs_are_drawn_by_device_and_precision)
{
    struct place *place = *state;
    put_gpu(place, "cuda");
    put_gpu(place, "cuda:1"); /* measured, but no point ran there */
    put(place, "cpu", "f32", 0.02);
    put(place, "cuda", "f32", 2e-4);
    put(place, "cuda", "tf32", 2e-4);
    struct grid grid = place_view(place, "report_roofs", "run", (double)place->run);
    assert_int_equal(grid.row_count, 7);
    labelled(&grid, "cpu f32 peak 100 GFLOP/s");
    labelled(&grid, "cpu DRAM 10 GB/s");
    labelled(&grid, "cpu L3 50 GB/s");
    labelled(&grid, "cuda f32 peak 10 TFLOP/s");
    grid_is(&grid, labelled(&grid, "cuda tf32 tensor peak 50 TFLOP/s"), "value", 5e13);
    labelled(&grid, "cuda DRAM 1 TB/s");
    labelled(&grid, "cuda L2 4 TB/s");
    grid = place_view(place, "report_roofs", "result", 3);
    assert_int_equal(grid.row_count, 3);
    labelled(&grid, "tf32 tensor peak 50 TFLOP/s");
    labelled(&grid, "DRAM 1 TB/s");
}

const struct unit_fixture unit_fixture = {.before_each = open_run, .after_each = place_close};
