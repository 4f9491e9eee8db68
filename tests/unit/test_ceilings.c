/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kernels/lib/roof.h"
#include "harness/roofs/ceilings.h"
#include "harness/roofs/peak.h"
#include "harness/roofs/timed_pass.h"
#include "tests/lib/unit.h"

static const struct ceiling_record *find(const struct ceiling_record *records, int count,
                                         const char *name, int threads)
{
    const struct ceiling_record *found = NULL;
    for (int k = 0; k < count; k++)
        if (records[k].threads == threads && strcmp(records[k].name, name) == 0) {
            assert_null(found); /* the store wants them unique */
            found = &records[k];
        }
    return found;
}

/* Everything is in the list, once per thread count, with a value or a reason. */
TEST(all_are_there)
{
    static const char *const names[] = {"fma f32 scalar", "fma f64 scalar", "read L1", "copy L1",
                                        "triad L1",       "read L2",        "copy L3", "triad DRAM",
                                        "copy_nt DRAM",   "triad_nt DRAM"};
    struct pool *pool;
    struct arena arena = {0};
    const struct ceiling_record *records;
    int count;
    MUST(pool_new, 2, &pool);
    struct ceiling_options options = {.isa = isa_detect(), .quick = true};
    MUST(ceilings_measure, pool, &options, &arena, &records, &count);
    for (int k = 0; k < ARRAY_COUNT(names); k++)
        for (int threads = 1; threads <= 2; threads++)
            if (!find(records, count, names[k], threads))
                fail_msg("%s with %d threads is missing", names[k], threads);
    for (int k = 0; k < count; k++) {
        const struct ceiling_record *r = &records[k];
        if (isnan(r->value)) {
            assert_true(strlen(r->reason) > 10 && r->n == 0);
            continue;
        }
        if (!(r->value > 1e6 && r->value < 1e16 && r->n >= 15))
            fail_msg("%s: %g %s, %d samples", r->name, r->value, r->unit, (int)r->n);
        assert_true(r->min <= r->value && r->value <= r->max);
        assert_true((r->kind == CEILING_COMPUTE) == (r->working_set_bytes == RECORD_NONE));
    }
    arena_release(&arena);
    pool_free(pool);
}

/* What is forbidden or impossible is said, not measured and not left out. */
TEST(limits_give_reasons)
{
    struct arena arena = {0};
    const struct ceiling_record *records;
    int count;
    struct ceiling_options options = {.isa = ISA_SCALAR, .quick = true, .memory_bytes = 1 << 20};
    MUST(ceilings_measure, NULL, &options, &arena, &records, &count);
    const struct ceiling_record *dram = find(records, count, "copy DRAM", 1);
    assert_true(dram && isnan(dram->value) && strstr(dram->reason, "last-level"));
    assert_true(dram->working_set_bytes == RECORD_NONE);
    for (int k = 0; k < count; k++)
        assert_true(records[k].threads == 1 &&
                    (isnan(records[k].value) || strcmp(records[k].isa, "scalar") == 0));
    arena_release(&arena);
}

/* The loops do what their names say; a loop that skipped a part would be a wrong roof. */
TEST(loops_do_their_work)
{
    enum { COUNT = 5 * ROOF_COUNT_STEP };
    float *block = aligned_alloc(64, 3 * COUNT * sizeof(float));
    assert_non_null(block);
    struct roof_arrays x = {block, block + COUNT, block + 2 * COUNT, COUNT};
    static roof_stream *const copies[] = {roof_copy_scalar, roof_copy_nt_scalar};
    static roof_stream *const triads[] = {roof_triad_scalar, roof_triad_nt_scalar};
    for (int v = 0; v < 2; v++) {
        for (int k = 0; k < COUNT; k++) {
            x.a[k] = -1;
            x.b[k] = (float)k;
            x.c[k] = (float)(2 * k);
        }
        copies[v](&x, 1);
        for (int k = 0; k < COUNT; k++)
            assert_true(x.a[k] == x.b[k]);
        triads[v](&x, 2);
        for (int k = 0; k < COUNT; k++)
            assert_true(x.a[k] == (float)(7 * k));
    }
    for (int k = 0; k < COUNT; k++)
        x.a[k] = 1;
    assert_true(roof_read_scalar(&x, 3) == 3 * COUNT);
    free(block);
}

#if defined(__aarch64__)
/* Neoverse V1 and V2 have 4 units that take 4 cycles each; there are 32 registers. A step adds the
 * product to the sum, which is what the instruction overwrites. */
TEST(arm_has_chains_for_all_its_units)
{
    enum { ROUNDS = 100, STEPS = 8 * ROUNDS, LANES = 4 };
    float sink, total = 0;
    int chains = (int)(roof_fma_f32_scalar(ROUNDS, &sink) / (STEPS * LANES * 2));
    assert_in_range(chains, 16, 28);
    for (int c = 0; c < chains; c++) {
        float sum = (float)c;
        for (int k = 0; k < STEPS; k++)
            sum = fmaf(0.999f, 1e-3f, sum);
        for (int lane = 0; lane < LANES; lane++)
            total += sum;
    }
    assert_true(sink == total);
}
#endif

struct visits {
    int64_t rounds[4];
};

static void visit(void *context, int thread, int64_t rounds)
{
    struct visits *v = context;
    v->rounds[thread] += rounds;
}

/* Each of the first threads works once per pass, whichever tile it got. */
TEST(passes_use_each_thread_once)
{
    struct pool *pool;
    MUST(pool_new, 4, &pool);
    struct visits v = {{0}};
    for (int k = 0; k < 200; k++)
        assert_true(timed_pass_run(&(struct timed_pass){pool, 3, visit, &v}, 2) > 0);
    timed_pass_run(&(struct timed_pass){pool, 1, visit, &v}, 5);
    assert_true(v.rounds[0] == 405 && v.rounds[1] == 400 && v.rounds[2] == 400);
    assert_true(v.rounds[3] == 0);
    pool_free(pool);
}

/* Of its own device, its own precision, its own threads; never of what is merely near. */
TEST(a_peak_is_of_the_same_device_and_precision)
{
    static const struct ceiling_record records[] = {
        {.device = "cpu", .kind = CEILING_COMPUTE, .precision = "f32", .threads = 1, .value = 1},
        {.device = "cpu", .kind = CEILING_COMPUTE, .precision = "f32", .threads = 2, .value = 2},
        {.device = "cuda", .kind = CEILING_COMPUTE, .precision = "f32", .value = 30},
        {.device = "cuda", .kind = CEILING_COMPUTE, .precision = "tf32", .value = 400},
        {.device = "cuda",
         .kind = CEILING_COMPUTE,
         .precision = "tf32",
         .value = 500,
         .clock_hz = 1.8e9},
        {.device = "cuda", .kind = CEILING_COMPUTE, .precision = "i8", .value = NAN},
        {.device = "cuda", .kind = CEILING_BANDWIDTH, .precision = "f16", .value = 6000},
        {.device = "cuda",
         .kind = CEILING_COMPUTE,
         .precision = "bf16",
         .value = 7000,
         .datasheet = true},
    };
    static const struct {
        const char *device, *precision;
        int threads;
        double peak; /* 0: none */
    } cases[] = {
        {"cpu", "f32", 1, 1},    {"cpu", "f32", 2, 2},     {"cpu", "f32", 4, 0},
        {"cuda", "f32", 2, 30},  {"cuda", "tf32", 1, 500}, {"cuda", "i8", 1, 0},
        {"cuda", "f16", 1, 0},   {"cuda", "bf16", 1, 0},   {"cpu", "tf32", 2, 0},
        {"cuda:1", "f32", 1, 0},
    };
    const struct ceiling_list list = {records, ARRAY_COUNT(records)}, none = {NULL, 0};
    const char *reason;
    double clock_hz;
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        const struct point_record point = {.device = cases[k].device,
                                           .precision = cases[k].precision,
                                           .threads = cases[k].threads};
        double peak = peak_of(&point, &list, &clock_hz, &reason);
        bool right = cases[k].peak > 0 ? peak == cases[k].peak && !*reason
                                       : isnan(peak) && strstr(reason, "this precision");
        if (!right)
            fail_msg("%s %s: %g, \"%s\"", point.device, point.precision, peak, reason);
        assert_true(clock_hz == (peak == 500 ? 1.8e9 : 0));
    }
    const struct point_record point = {.device = "cuda", .precision = "f32"};
    assert_true(isnan(peak_of(&point, &none, &clock_hz, &reason)) && strstr(reason, "no ceilings"));
}

/* A virtual machine's two CPUs shared a core while the ceilings were measured: 118 GFLOP/s for two
 * threads as for one, and 1061 steps of a run with 236 "lay above their roof". */
TEST(ceilings_of_a_slow_moment_are_low)
{
    struct ceiling_record first[] = {
        {"cpu", CEILING_COMPUTE, "fma f32 scalar", "", "f32", .threads = 2, .value = 60e9},
        {"cpu", CEILING_COMPUTE, "fma f32 avx512", "", "f32", .threads = 2, .value = 118e9},
        {"cpu", CEILING_COMPUTE, "dot i8 avx512", "", "i8", .threads = 2, .value = 472e9},
        {"cpu", CEILING_COMPUTE, "dot i8 avx_vnni", "", "i8", .threads = 2, .value = NAN},
        {"cpu", CEILING_BANDWIDTH, "read DRAM", "DRAM", "", .threads = 2, .value = 40e9}};
    struct ceiling_record again[ARRAY_COUNT(first)];
    int count = ARRAY_COUNT(first);
    assert_true(ceilings_are_low(first, count, 2, 236e9));
    assert_false(ceilings_are_low(first, count, 2, 128e9));
    assert_false(ceilings_are_low(first, count, 1, 236e9)); /* none for one thread */
    assert_false(ceilings_are_low(first, count, 2, (double)NAN));
    assert_false(ceilings_are_low(NULL, 0, 2, 236e9));
    memcpy(again, first, sizeof(again));
    again[1].value = 236e9;
    again[4].value = 30e9;
    ceilings_take_higher(first, again, count);
    assert_true(first[1].value == 236e9 && first[4].value == 40e9 && isnan(first[3].value));
    assert_false(ceilings_are_low(first, count, 2, 236e9));
}
