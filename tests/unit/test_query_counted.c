/* SPDX-License-Identifier: Apache-2.0
 *
 * Counted operations and bytes in the views: each device has its own sources, and none is mixed up
 * with the model's numbers or with those of the other device. */

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

static int open_run(void **state)
{
    struct run_head head = made_head("00000000-0000-0000-0000-000000000001", 1);
    if (place_open(state))
        return -1;
    struct place *place = *state;
    place_begin_run(place, &head);
    return 0;
}

struct counted {
    int op;
    const char *source, *name;
    double value;
};

/* The model: 1 GFLOP, 10 MB, in 20 ms; steps: half of the GFLOP and 10 MB each. */
static void put(struct place *place, const char *device, const struct counted *counted, int count)
{
    struct made_record made;
    assert_int_equal(made_record(&made, place->next++, 0.02, 30, 2), STATUS_OK);
    made.record.point.device = device;
    for (int k = 0; k < count; k++)
        made.metrics[made.record.metric_count++] =
            (struct metric_record){.op = counted[k].op,
                                   .name = counted[k].name,
                                   .unit = "1",
                                   .source = counted[k].source,
                                   .better = BETTER_NONE,
                                   .value = counted[k].value,
                                   .reason = isnan(counted[k].value) ? "forbidden" : "",
                                   .formula = ""};
    MUST(run_put, place->store, place->run, &made.record);
    made_release(&made);
}

static const struct counted both[] = {
    {-1, "papi", "flops", 7e9},
    {-1, "cupti", "flops", 1.25e9},
    {-1, "papi", "dram_read_bytes", 3e6},
    {-1, "papi", "dram_write_bytes", 1e6},
    {-1, "cupti", "dram_read_bytes", 8e6},
    {-1, "cupti", "dram_write_bytes", 2e6},
    {-1, "cupti_pm", "dram_read_bytes", 9e6},
    {-1, "cupti_pm", "dram_write_bytes", 4e6},
    {-1, "powercap", "energy_j", 5},
    {-1, "nvml", "energy_j", 11},
    {0, "cupti", "flops", 6e8},
    {0, "cupti", "dram_read_bytes", 5e6},
    {0, "cupti", "dram_write_bytes", 5e6},
};

/* Twice per result that was counted: over all bytes, and hollow over those read. */
TEST(counted_points_are_drawn_twice)
{
    struct place *place = *state;
    put(place, "cuda", both, ARRAY_COUNT(both));
    put(place, "cuda", NULL, 0);
    struct grid grid = place_view(place, "report_points_counted", "run", (double)place->run);
    assert_int_equal(grid.row_count, 2);
    grid_is(&grid, 0, "intensity", 100);
    grid_is(&grid, 0, "named", 1);
    grid_is(&grid, 1, "intensity", 125);
    grid_is(&grid, 1, "valid", 0);
    grid_is(&grid, 1, "flop_rate", 5e10);
}

TEST(each_device_has_its_counters)
{
    struct place *place = *state;
    put(place, "cuda", both, ARRAY_COUNT(both));
    put(place, "cuda:1", both, ARRAY_COUNT(both));
    put(place, "cpu", both, 10); /* a CPU's steps are not counted */
    struct grid grid = place_view(place, "roofline", "run", (double)place->run);
    assert_int_equal(grid.row_count, 3);
    for (int row = 0; row < 2; row++) {
        grid_is(&grid, row, "flops_counted", 1.25e9);
        grid_is(&grid, row, "executed_ratio", 1.25);
        grid_is(&grid, row, "intensity", 100);
        grid_is(&grid, row, "intensity_counted", 100);
        grid_is(&grid, row, "intensity_read", 125);
        grid_is(&grid, row, "intensity_executed", 125);
    }
    grid_is(&grid, 2, "executed_ratio", 7);
    grid_is(&grid, 2, "intensity_counted", 250);
    grid_is(&grid, 2, "intensity_read", 1e3 / 3);
    grid = place_view(place, "results", "run", (double)place->run);
    grid_is(&grid, 0, "flops", 1e9);
    grid_is(&grid, 0, "energy", 11);
    grid_is(&grid, 2, "energy", 5);
    grid_is(&grid, 0, "dram_read", 8e6);
    grid_is(&grid, 2, "dram_write", 1e6);
    grid = place_view(place, "compare_points", "run", (double)place->run);
    grid_is(&grid, 0, "dram", 1e7);
    grid_is(&grid, 2, "dram", 4e6);
}

TEST(steps_keep_model_and_count_apart)
{
    struct place *place = *state;
    put(place, "cuda", both, ARRAY_COUNT(both));
    struct grid grid = place_view(place, "roofline_ops", "result", 1);
    assert_int_equal(grid.row_count, 2);
    grid_is(&grid, 0, "intensity", 50);
    grid_is(&grid, 0, "intensity_counted", 50);
    grid_is(&grid, 0, "intensity_read", 100);
    grid_is(&grid, 0, "executed_ratio", 1.2);
    grid_is(&grid, 1, "executed_ratio", NAN);
    grid = place_view(place, "ops", "result", 1);
    grid_is(&grid, 0, "flops", 5e8);
    grid_is(&grid, 0, "flops_counted", 6e8);
    grid_is(&grid, 0, "dram_write", 5e6);
    grid = place_view(place, "breakdown", "result", 1);
    grid_is(&grid, 0, "flops", 5e8);
}

/* Where ranges are forbidden, samples tell the bytes; nothing else stands in for a count. */
TEST(samples_stand_in_for_ranges)
{
    static const struct counted sampled[] = {
        {-1, "papi", "flops", 7e9},
        {-1, "cupti", "flops", NAN},
        {-1, "cupti", "dram_read_bytes", NAN},
        {-1, "cupti_pm", "dram_read_bytes", 9e6},
        {-1, "cupti_pm", "dram_write_bytes", 1e6},
        {-1, "papi", "dram_read_bytes", 1},
        {-1, "powercap", "energy_j", 5},
    };
    struct place *place = *state;
    put(place, "cuda", sampled, ARRAY_COUNT(sampled));
    put(place, "cpu", sampled + 1, 4);
    struct grid grid = place_view(place, "roofline", "run", (double)place->run);
    grid_is(&grid, 0, "flops_counted", NAN);
    grid_is(&grid, 0, "intensity_counted", 100);
    grid_is(&grid, 1, "intensity_counted", NAN);
    grid = place_view(place, "results", "run", (double)place->run);
    grid_is(&grid, 0, "energy", NAN);
}

const struct unit_fixture unit_fixture = {.before_each = open_run, .after_each = place_close};
