/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a rank has waited: only the time in which it could look. */
#include "collective/backend.h"
#include "tests/lib/unit.h"

enum { DEADLINE = 1000 };

TEST(a_rank_that_stood_still_begins_to_wait_anew)
{
    struct waiting waiting = {0};
    assert_int_equal(waiting_ns(&waiting, 0, 5000, DEADLINE), 0);
    for (uint64_t at = 125; at <= 750; at += 125)
        assert_int_equal(waiting_ns(&waiting, 1, 5000 + at, DEADLINE), at);
    assert_int_equal(waiting_ns(&waiting, 2, 9000, DEADLINE), 0);
    assert_int_equal(waiting_ns(&waiting, 3, 9250, DEADLINE), 250);
}

TEST(each_wait_begins_with_its_first_look)
{
    struct waiting waiting = {0};
    waiting_ns(&waiting, 0, 5000, DEADLINE);
    waiting_ns(&waiting, 1, 5100, DEADLINE);
    assert_int_equal(waiting_ns(&waiting, 0, 5200, DEADLINE), 0);
    assert_int_equal(waiting_ns(&waiting, 1, 5300, DEADLINE), 100);
}
