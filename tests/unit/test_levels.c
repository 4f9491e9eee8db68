/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/system/clock.h"
#include "engine/graph/kernel.h"
#include "harness/roofs/levels.h"
#include "tests/lib/unit.h"

static struct levels *open_levels(int64_t memory_bytes)
{
    struct levels *levels;
    MUST(levels_open, memory_bytes, &levels);
    return levels;
}

/* Between what no machine is so bad as to miss and what none can do. */
TEST(readings_are_plausible)
{
    static const double low[LEVEL_COUNT] = {2e-8, 1e8, 1e8, 1e7},
                        high[LEVEL_COUNT] = {1e-1, 1e14, 1e13, 1e15};
    struct levels *levels = open_levels(INT64_C(4) << 30);
    for (int threads = 1; threads <= 3; threads++) {
        struct pool *pool;
        struct levels_now now;
        MUST(pool_new, threads, &pool);
        levels_read(levels, pool, PRECISION_F32, &now);
        for (int k = 0; k < LEVEL_COUNT; k++) {
            if (isnan(now.value[k]) && strlen(now.reason[k]) > 10)
                continue;
            if (!(now.value[k] > low[k] && now.value[k] < high[k]))
                fail_msg("level %d with %d threads: %g", k, threads, now.value[k]);
        }
        assert_true((threads == 1) == (bool)isnan(now.value[LEVEL_HAND_OVER]));
        assert_false(isnan(now.value[LEVEL_CACHE]));
        assert_false(isnan(now.value[LEVEL_ARITHMETIC]));
        pool_free(pool);
    }
    levels_close(levels);
}

/* The buffer is walked over for hours: every reading must stay inside of it. */
TEST(many_readings_stay_within_the_buffer)
{
    struct levels *levels = open_levels(INT64_C(4) << 30);
    struct levels_now now;
    uint64_t least = UINT64_MAX;
    for (int k = 0; k < 60; k++) {
        uint64_t begin = clock_now_ns();
        levels_read(levels, NULL, PRECISION_F32, &now);
        uint64_t took = clock_now_ns() - begin;
        least = took < least ? took : least;
        assert_true(isnan(now.value[LEVEL_DRAM]) || now.value[LEVEL_DRAM] > 0);
    }
    levels_close(levels);
    if (least > 60000000 && !UNIT_SANITIZED) /* the least disturbed of them; about 10 ms */
        fail_msg("a reading takes %g ms", (double)least * 1e-6);
}

TEST(what_cannot_be_had_has_a_reason)
{
    struct levels *levels = open_levels(1 << 20);
    struct levels_now small, none;
    struct visit_record visit = {.round = 0};
    levels_read(levels, NULL, PRECISION_F32, &small);
    assert_true(isnan(small.value[LEVEL_DRAM]));
    assert_non_null(strstr(small.reason[LEVEL_DRAM], "caches"));
    assert_true(small.value[LEVEL_CACHE] > 0);
    levels_none("a device of another kind", &none);
    levels_join(&none, &none, &visit);
    assert_int_equal(visit.level_count, LEVEL_COUNT);
    for (int k = 0; k < LEVEL_COUNT; k++) {
        assert_true(isnan(visit.levels[k].value));
        assert_string_equal(visit.levels[k].reason, "a device of another kind");
        assert_true(visit.levels[k].name[0] && visit.levels[k].unit[0]);
    }
    levels_close(levels);
}

TEST(two_readings_become_their_mean_in_logarithms)
{
    struct levels_now before, after;
    struct visit_record visit = {.round = 0};
    levels_none("", &before);
    after = before;
    before.value[LEVEL_DRAM] = 1e10;
    after.value[LEVEL_DRAM] = 4e10;
    levels_join(&before, &after, &visit);
    const struct level_record *dram = &visit.levels[LEVEL_DRAM];
    assert_true(fabs(dram->value / 2e10 - 1) < 1e-12);
    assert_string_equal(dram->name, "dram_read");
    assert_string_equal(dram->unit, "B/s");
    assert_int_equal(dram->better, BETTER_HIGHER);
    assert_string_equal(dram->reason, "");
    assert_int_equal(visit.levels[LEVEL_HAND_OVER].better, BETTER_LOWER);
}
