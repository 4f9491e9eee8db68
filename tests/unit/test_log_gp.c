/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/log_gp.h"

#include <math.h>
#include <stddef.h>

#include "tests/lib/unit.h"

enum { TRIPS_MAX = 32, MANY = 16 };

static const struct log_gp truth = {
    .latency_s = 3e-6, .overhead_s = 0.5e-6, .gap_s = 0.8e-6, .byte_s = 1e-10};

/* Trips of one and of many messages of each size, and one with pauses. */
static int trips_of(const struct log_gp *model, struct trip_time *trips)
{
    int count = 0;
    for (double bytes = 8; bytes <= 1 << 20; bytes *= 8)
        for (int many = 0; many < 2; many++) {
            double messages = many ? MANY : 1;
            trips[count++] =
                (struct trip_time){messages, bytes, 0, log_gp_seconds(model, messages, bytes)};
        }
    double apart_s = 1e-4;
    trips[count++] = (struct trip_time){
        MANY, 8, apart_s, log_gp_seconds(model, 1, 8) + (MANY - 1) * (apart_s + model->overhead_s)};
    return count;
}

static void assert_near(double value, double wanted)
{
    assert_true(fabs(value - wanted) <= 1e-6 * fabs(wanted));
}

TEST(finds_what_trips_were_made_of)
{
    struct trip_time trips[TRIPS_MAX];
    struct log_gp fit;
    int count = trips_of(&truth, trips);
    assert_true(log_gp_fit(trips, count, &fit));
    assert_near(fit.latency_s, truth.latency_s);
    assert_near(fit.overhead_s, truth.overhead_s);
    assert_near(fit.gap_s, truth.gap_s);
    assert_near(fit.byte_s, truth.byte_s);
    assert_true(fit.residual < 1e-9);
    assert_int_equal(fit.points, count - 1);
}

/* Every other time 10 % longer: the model lies between. */
TEST(says_how_far_off_a_model_is)
{
    struct trip_time trips[TRIPS_MAX];
    struct log_gp fit;
    int count = trips_of(&truth, trips);
    for (int k = 0; k < count; k += 3)
        trips[k].seconds *= 1.1;
    assert_true(log_gp_fit(trips, count, &fit));
    assert_true(fit.residual > 0.02 && fit.residual < 0.08);
    assert_true(fabs(fit.gap_s / truth.gap_s - 1) < 0.15);
}

TEST(no_cost_is_negative)
{
    struct log_gp fit, odd = truth;
    struct trip_time trips[TRIPS_MAX];
    odd.gap_s = -1e-7; /* a second message makes the trip shorter */
    int count = trips_of(&odd, trips);
    assert_true(log_gp_fit(trips, count, &fit));
    assert_true(fit.gap_s == 0 && fit.byte_s > 0 && fit.latency_s >= 0 && fit.overhead_s >= 0);
    assert_true(fit.residual > 0);
}

TEST(too_few_trips_are_refused)
{
    struct trip_time trips[TRIPS_MAX];
    struct log_gp fit;
    int count = trips_of(&truth, trips);
    assert_false(log_gp_fit(trips, count - 1, &fit)); /* nothing shows o */
    assert_false(log_gp_fit(trips + count - 1, 1, &fit));
    assert_false(log_gp_fit(NULL, 0, &fit));
}
