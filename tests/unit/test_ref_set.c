/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of rows are equal in any order, and in no other way. */

#include <math.h>

#include "engine/reference/reference.h"
#include "engine/run/exe.h"
#include "tests/lib/unit.h"

enum { ROWS = 3, COLUMNS = 2 };

static double error_of(double *a, double *b)
{
    struct ref_tensor x = {.dtype = DTYPE_F32, .shape = shape_of(ROWS, COLUMNS), .f = a};
    struct ref_tensor y = {.dtype = DTYPE_F32, .shape = shape_of(ROWS, COLUMNS), .f = b};
    x.count = y.count = ROWS * COLUMNS;
    return ref_set_error(&x, &y);
}

TEST(order_is_ignored)
{
    double a[] = {1, 10, 2, 20, 3, 30}, b[] = {3, 30, 1, 10, 2, 20};
    assert_true(error_of(a, b) == 0);
}

TEST(errors_are_relative_to_the_column)
{
    double a[] = {1, 10, 2, 20, 3, 33}, b[] = {3, 30, 1, 10, 2, 20};
    assert_true(fabs(error_of(a, b) - 0.1) < 1e-12);
    double small[] = {1.3, 10, 2, 20, 3, 30};
    assert_true(fabs(error_of(small, b) - 0.1) < 1e-12);
}

/* One row of b cannot stand for two of a. */
TEST(rows_are_paired_once)
{
    double a[] = {1, 10, 1, 10, 3, 30}, b[] = {1, 10, 2, 20, 3, 30};
    assert_true(error_of(a, b) > 0.3);
}

TEST(what_is_not_a_number_is_wrong)
{
    double a[] = {(double)NAN, 10, 2, 20, 3, 30}, b[] = {1, 10, 2, 20, 3, 30};
    assert_true(error_of(a, b) > 1);
}

TEST(other_shapes_are_wrong)
{
    double a[] = {1, 10, 2, 20, 3, 30};
    struct ref_tensor x = {.dtype = DTYPE_F32, .shape = shape_of(3, 2), .count = 6, .f = a};
    struct ref_tensor y = {.dtype = DTYPE_F32, .shape = shape_of(2, 3), .count = 6, .f = a};
    assert_true(isinf(ref_set_error(&x, &y)));
}

TEST(integers_are_compared_too)
{
    int64_t a[] = {7, 1, 7, 2}, b[] = {7, 2, 7, 1}, c[] = {7, 2, 7, 3};
    struct ref_tensor x = {.dtype = DTYPE_I64, .shape = shape_of(2, 2), .count = 4, .i = a};
    struct ref_tensor y = {.dtype = DTYPE_I64, .shape = shape_of(2, 2), .count = 4, .i = b};
    assert_true(ref_set_error(&x, &y) == 0);
    y.i = c;
    assert_true(ref_set_error(&x, &y) > 0.3);
}

/* The last tile is not whole, and the worst element is in it. */
TEST(native_memory_is_compared_as_tensors_are)
{
    enum { COUNT = 50001 };
    static float native[COUNT];
    static double got[COUNT], want[COUNT];
    struct ref_tensor x = {.dtype = DTYPE_F32, .shape = shape_of(COUNT), .count = COUNT, .f = got};
    struct ref_tensor y = {.dtype = DTYPE_F32, .shape = shape_of(COUNT), .count = COUNT, .f = want};
    for (int k = 0; k < COUNT; k++) {
        want[k] = k % 1000 - 400;
        got[k] = native[k] = (float)(k == COUNT - 2 ? want[k] + 3 : want[k] + k % 7 * 0.125);
    }
    assert_true(ref_rel_error(&x, &y) > 0);
    assert_true(ref_native_error(NULL, DTYPE_F32, native, &y, NULL) == ref_rel_error(&x, &y));
    got[17] = native[17] = NAN;
    assert_true(isinf(ref_native_error(NULL, DTYPE_F32, native, &y, NULL)));
    want[17] = NAN;
    assert_true(ref_native_error(NULL, DTYPE_F32, native, &y, NULL) == ref_rel_error(&x, &y));
}

/* Differences count where one looks, the largest number everywhere. */
TEST(only_tiles_that_are_looked_at_are_compared)
{
    enum { COUNT = 3 * REF_TILE };
    static float native[COUNT];
    static double want[COUNT];
    bool looked_at[3] = {true, false, false};
    struct ref_tensor y = {.dtype = DTYPE_F32, .shape = shape_of(COUNT), .count = COUNT, .f = want};
    native[REF_TILE] = 8;
    want[COUNT - 1] = native[COUNT - 1] = 16;
    assert_true(ref_native_error(NULL, DTYPE_F32, native, &y, looked_at) == 0);
    looked_at[1] = true;
    assert_true(ref_native_error(NULL, DTYPE_F32, native, &y, looked_at) == 0.5);
}
