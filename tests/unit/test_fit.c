/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/fit.h"
#include "tests/lib/unit.h"

enum { POINTS = 12 };

static void points_of(struct fit_point *points, double message_s, double byte_s)
{
    double bytes = 8;
    for (int k = 0; k < POINTS; k++, bytes *= 4)
        points[k] = (struct fit_point){6, bytes, 6 * message_s + bytes * byte_s};
}

TEST(finds_what_the_times_were_made_of)
{
    struct fit_point points[POINTS];
    struct alpha_beta fit;
    points_of(points, 2e-6, 1e-10);
    assert_true(alpha_beta_fit(points, POINTS, &fit));
    assert_float_equal((float)(fit.message_s * 1e6), 2, 1e-6);
    assert_float_equal((float)(fit.byte_s * 1e10), 1, 1e-6);
    assert_true(fit.residual < 1e-9);
    assert_int_equal(fit.points, POINTS);
    assert_float_equal((float)(alpha_beta_seconds(&fit, 6, 8) * 1e6), 12.0008, 1e-3);
}

/* Every other time 10 % longer: the model lies between, 5 % off each. */
TEST(says_how_far_off_it_is)
{
    struct fit_point points[POINTS];
    struct alpha_beta fit;
    points_of(points, 2e-6, 1e-10);
    for (int k = 0; k < POINTS; k += 2)
        points[k].seconds *= 1.1;
    assert_true(alpha_beta_fit(points, POINTS, &fit));
    assert_true(fit.message_s > 2e-6 && fit.message_s < 2.2e-6);
    assert_true(fit.residual > 0.04 && fit.residual < 0.06);
}

TEST(gives_no_negative_costs)
{
    struct fit_point points[] = {{1, 100, 1}, {1, 200, 3}, {1, 400, 7}};
    struct alpha_beta fit;
    assert_true(alpha_beta_fit(points, 3, &fit));
    assert_true(fit.message_s == 0 && fit.byte_s > 0);
}

TEST(refuses_what_cannot_be_told_apart)
{
    struct fit_point points[] = {{2, 100, 1}, {4, 200, 2}};
    struct alpha_beta fit;
    assert_false(alpha_beta_fit(points, 2, &fit));
    assert_false(alpha_beta_fit(points, 1, &fit));
    assert_false(alpha_beta_fit(points, 0, &fit));
}
