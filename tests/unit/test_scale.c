/* SPDX-License-Identifier: Apache-2.0
 * What is said of a training on several ranks: sums over what each of them has measured. */
#include <math.h>

#include "harness/scale/scale_print.h"
#include "tests/lib/unit.h"

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

/* On the first rank 8 ms moved behind 2 ms of standing still; the second one stood still for 5 ms,
 * of which only 1 ms was moving: the unit had not started before. */
TEST(hidden_is_of_each_rank_and_with_exposed_at_least_moving)
{
    struct scale_rank by_rank[] = {{.communication_s = 8e-3, .exposed_s = 2e-3},
                                   {.communication_s = 1e-3, .exposed_s = 5e-3}};
    const struct scale_result result = {.ranks = 2, .by_rank = by_rank};
    struct scale_sums sums = scale_sums_of(&result);
    assert_true(near(sums.communication_s, 4.5e-3));
    assert_true(near(sums.exposed_s, 3.5e-3));
    assert_true(near(sums.hidden_s, 3e-3)); /* of the first rank, 6 ms */
    assert_true(sums.hidden_s + sums.exposed_s >= sums.communication_s);
}

TEST(what_a_simulation_does_not_measure_is_not_zero)
{
    struct scale_rank by_rank[] = {{.communication_s = 1e-3}};
    const struct scale_result result = {.ranks = 1, .by_rank = by_rank, .simulated = true};
    struct scale_sums sums = scale_sums_of(&result);
    assert_true(isnan(sums.state_bytes) && isnan(sums.input_s));
    assert_true(near(sums.communication_s, 1e-3));
}
