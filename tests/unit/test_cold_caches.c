/* SPDX-License-Identifier: Apache-2.0
 * Cold caches on a machine with many last-level caches: the buffer that empties them was four times
 * as large as one of them, so twelve of 32 MB kept two thirds of what was in them. */
#include <stdlib.h>

#include "harness/campaign/target.h"
#include "tests/lib/unit.h"

static void pretend(const char *machine)
{
    assert_int_equal(setenv("HWLOC_SYNTHETIC", machine, 1), 0);
}

TEST(all_caches_that_threads_can_have_are_emptied)
{
    const size_t mb = 1 << 20;
    pretend("pack:2 l3:6(size=33554432) l2:8(size=1048576) core:1 pu:1");
    assert_int_equal(target_evict_bytes(1), 4 * 32 * mb);
    assert_int_equal(target_evict_bytes(2), 4 * 64 * mb);
    assert_int_equal(target_evict_bytes(96), 1024 * mb); /* four times 384 MB, but no more */
    pretend("pack:2 l3:6(size=100663296) l2:8(size=1048576) core:1 pu:1");
    assert_int_equal(target_evict_bytes(96), 2 * 12 * 96 * mb);
    pretend("pack:1 l3:1(size=8388608) l2:4(size=1048576) core:1 pu:1");
    assert_int_equal(target_evict_bytes(4), 64 * mb);
    unsetenv("HWLOC_SYNTHETIC");
}
