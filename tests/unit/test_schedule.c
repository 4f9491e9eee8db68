/* SPDX-License-Identifier: Apache-2.0
 * Learning rates over time: those of PyTorch and TensorFlow, which tests/oracle/optimisers.py wrote
 * to tests/golden/optimisers.txt, and formulae where neither has one. */

#include <math.h>
#include <string.h>

#include "base/registry.h"
#include "engine/train/recipe.h"
#include "tests/lib/golden_lines.h"
#include "tests/lib/unit.h"

enum { STEPS = 24 };

static const struct {
    const char *name;
    struct schedule schedule;
} subjects[] = {
    {"step", {.kind = SCHEDULE_STEP, .rate = 0.1, .factor = 0.5, .every = 5}},
    {"multistep", {.kind = SCHEDULE_MULTISTEP, .rate = 0.1, .factor = 0.1, .at = {3, 11}}},
    {"cosine", {.kind = SCHEDULE_COSINE, .rate = 0.1, .end = 0.01, .steps = 24}},
    {"polynomial", {.kind = SCHEDULE_POLYNOMIAL, .rate = 0.1, .power = 2, .steps = 20}},
    {"polynomial_tensorflow",
     {.kind = SCHEDULE_POLYNOMIAL, .rate = 0.1, .end = 0.02, .power = 0.5, .steps = 16}},
    {"exponential", {.kind = SCHEDULE_EXPONENTIAL, .rate = 0.1, .factor = 0.9, .every = 1}},
    {"cosine_after_warm_up",
     {.kind = SCHEDULE_COSINE,
      .rate = 0.1,
      .end = 0.01,
      .warm_up = 4,
      .start = 0.025,
      .steps = 24}},
    {"multistep_after_warm_up",
     {.kind = SCHEDULE_MULTISTEP,
      .rate = 0.1,
      .factor = 0.1,
      .at = {10, 16},
      .warm_up = 4,
      .start = 0.025}},
    {"bert",
     {.kind = SCHEDULE_POLYNOMIAL,
      .rate = 0.1,
      .power = 1,
      .warm_up = 4,
      .over_warm_up = true,
      .steps = 20}},
};

static void assert_rate(const char *name, const struct schedule *schedule, int step, double wanted)
{
    double rate = schedule_rate(schedule, step);
    if (!(fabs(rate - wanted) < 1e-12))
        fail_msg("%s, step %d: %.15g instead of %.15g", name, step, rate, wanted);
}

TEST(rates_are_those_of_pytorch_and_tensorflow)
{
    struct file golden;
    MUST(file_map, "tests/golden/optimisers.txt", &golden);
    for (int k = 0; k < ARRAY_COUNT(subjects); k++) {
        double rates[STEPS];
        int count;
        MUST(golden_line, &golden, "schedule", subjects[k].name, rates, STEPS, &count);
        assert_int_equal(count, STEPS);
        for (int step = 0; step < STEPS; step++)
            assert_rate(subjects[k].name, &subjects[k].schedule, step, rates[step]);
    }
    file_unmap(&golden);
}

TEST(a_constant_rate_stays)
{
    static const struct schedule constant = {.kind = SCHEDULE_CONSTANT, .rate = 0.3};
    assert_rate("constant", &constant, 0, 0.3);
    assert_rate("constant", &constant, 1000000, 0.3);
}

/* PAISoar's: a line from 1e-4 to 1e-3, then 0.96 every 10 000 steps, without stairs. */
TEST(smooth_exponential_decay_follows_a_warm_up)
{
    static const struct schedule smooth = {.kind = SCHEDULE_EXPONENTIAL,
                                           .rate = 1e-3,
                                           .factor = 0.96,
                                           .every = 10000,
                                           .warm_up = 50000,
                                           .start = 1e-4};
    assert_rate("smooth", &smooth, 0, 1e-4);
    assert_rate("smooth", &smooth, 25000, 5.5e-4);
    assert_rate("smooth", &smooth, 50000, 1e-3);
    assert_rate("smooth", &smooth, 55000, 1e-3 * sqrt(0.96));
    assert_rate("smooth", &smooth, 70000, 1e-3 * 0.96 * 0.96);
}

/* luong10: from half of 2000 steps on, halved ten times at equal intervals. */
TEST(stairs_may_begin_late)
{
    static const struct schedule luong10 = {
        .kind = SCHEDULE_STEP, .rate = 1, .factor = 0.5, .every = 100, .from = 1000};
    assert_rate("luong10", &luong10, 999, 1);
    assert_rate("luong10", &luong10, 1099, 1);
    assert_rate("luong10", &luong10, 1100, 0.5);
    assert_rate("luong10", &luong10, 1999, pow(0.5, 9));
}

/* SegLink's: 5e-4 times 0.64, 0.8, 1, 0.1, 0.01 and 1 again. */
TEST(a_table_goes_up_and_down)
{
    static const struct schedule seglink = {.kind = SCHEDULE_TABLE,
                                            .rate = 5e-4,
                                            .at = {10000, 20000, 60000, 75000, 90000},
                                            .scale = {0.64, 0.8, 1, 0.1, 0.01, 1}};
    static const int step[] = {0, 9999, 10000, 20000, 59999, 60000, 75000, 89999, 90000};
    static const double scale[] = {0.64, 0.64, 0.8, 1, 1, 0.1, 0.01, 0.01, 1};
    for (int k = 0; k < ARRAY_COUNT(step); k++)
        assert_rate("seglink", &seglink, step[k], 5e-4 * scale[k]);
}
