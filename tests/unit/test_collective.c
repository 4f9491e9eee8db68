/* SPDX-License-Identifier: Apache-2.0
 *
 * Every algorithm on the backend that has all ranks in one thread: exact results for every number
 * of ranks, type, reduction, ragged count and place, in seeded orders of events; and that schedules
 * need no room. RIDGE_ORDERS: how many orders (200). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/random.h"
#include "collective/combine.h"
#include "collective/example.h"
#include "collective/half.h"
#include "tests/lib/collective_ranks.h"
#include "tests/lib/unit.h"

static const enum dtype dtypes[] = {DTYPE_F32,  DTYPE_F64, DTYPE_F16,
                                    DTYPE_BF16, DTYPE_I32, DTYPE_I64};

static struct ranks_case case_of(const struct algorithm *algorithm, enum comm_operation operation,
                                 int ranks, int64_t count, uint64_t seed)
{
    struct ranks_case c = {.algorithm = algorithm, .ranks = ranks, .seed = seed};
    ranks_case_call(&c, operation, count);
    c.call.dtype = dtypes[seed % ARRAY_COUNT(dtypes)];
    c.call.reduction = (enum comm_reduction)(seed / 7 % COMM_REDUCTION_COUNT);
    c.call.root = (int)(seed / 3 % (uint64_t)ranks);
    c.in_place = seed % 2 && operation != COMM_ALL_TO_ALL;
    c.options = (struct schedule_options){1 + (int)(seed % LANES_MAX), 8 << seed % 7,
                                          1 + (int)(seed / 5 % 5)};
    return c;
}

static void run_case(const struct ranks_case *c)
{
    struct error err = {0};
    int64_t wrong = ranks_run_loop(c, NULL, &err);
    if (wrong == 0)
        return;
    char text[200];
    fail_msg("%s: %s", ranks_case_text(c, text, sizeof(text)),
             wrong > 0 ? "wrong elements" : err.message);
}

/* Calls run for each algorithm and each operation that it has. */
static void each_pair(void (*run)(const struct algorithm *, enum comm_operation))
{
    for (int k = 0; k < algorithm_count(); k++)
        for (int operation = 0; operation < COMM_OPERATION_COUNT; operation++)
            if (!algorithm_at(k)->own && algorithm_at(k)->operations & OPERATION_BIT(operation))
                run(algorithm_at(k), (enum comm_operation)operation);
}

static void ranks_and_counts(const struct algorithm *algorithm, enum comm_operation operation)
{
    static const int64_t counts[] = {0, 1, 2, 5, 13, 64, 67, 203};
    uint64_t seed = 0;
    for (int ranks = 1; ranks <= 9; ranks++)
        for (int k = 0; k < ARRAY_COUNT(counts); k++)
            for (int turn = 0; turn < 6; turn++) {
                struct ranks_case c = case_of(algorithm, operation, ranks, counts[k], seed++);
                run_case(&c);
            }
}

TEST(exact_for_ranks_and_counts)
{
    each_pair(ranks_and_counts);
}

static void types_and_places(const struct algorithm *algorithm, enum comm_operation operation)
{
    for (int k = 0; k < ARRAY_COUNT(dtypes); k++)
        for (int reduction = 0; reduction < COMM_REDUCTION_COUNT; reduction++)
            for (int place = 0; place < 2; place++) {
                struct ranks_case c = case_of(algorithm, operation, 5, 131, 40 + (uint64_t)k);
                c.call.dtype = dtypes[k];
                c.call.reduction = (enum comm_reduction)reduction;
                c.in_place = place && operation != COMM_ALL_TO_ALL;
                run_case(&c);
            }
}

/* The numbers are small integers, which f16 and bf16 hold exactly. */
static void narrow_on_the_way(const struct algorithm *algorithm, enum comm_operation operation)
{
    for (uint64_t seed = 0; seed < 36; seed++) {
        struct ranks_case c = case_of(algorithm, operation, 1 + (int)seed % 9, 131, seed);
        c.call.dtype = DTYPE_F32;
        c.call.wire = seed % 2 ? DTYPE_F16 : DTYPE_BF16;
        c.call.reduction = (enum comm_reduction)(seed / 2 % COMM_REDUCTION_COUNT);
        c.in_place = seed / 4 % 2 && operation != COMM_ALL_TO_ALL;
        run_case(&c);
    }
}

TEST(exact_where_elements_cross_as_halves)
{
    each_pair(narrow_on_the_way);
}

/* Half the bytes, message by message. */
TEST(elements_cross_in_half_the_bytes)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        struct ranks_case c = case_of(algorithm_find("ring"), COMM_ALL_REDUCE, 4, 400, 8);
        struct error err = {0};
        struct ranks_count count = {0};
        c.call.dtype = DTYPE_F32;
        c.call.wire = narrow ? DTYPE_F16 : DTYPE_NONE;
        c.sent = &count;
        assert_int_equal(ranks_run_loop(&c, NULL, &err), 0);
        assert_true(count.messages > 0);
        assert_int_equal(count.bytes, 4 * 2 * 300 * (narrow ? 2 : 4));
    }
}

TEST(only_floats_cross_as_halves)
{
    struct ranks_case c = case_of(algorithm_find("ring"), COMM_ALL_REDUCE, 2, 100, 4);
    struct error err = {0};
    c.call.dtype = DTYPE_F64;
    c.call.wire = DTYPE_F16;
    assert_true(ranks_run_loop(&c, NULL, &err) < 0);
    assert_int_equal(err.code, STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "only f32"));
}

TEST(exact_for_types_reductions_and_places)
{
    each_pair(types_and_places);
}

static void many_ranks(const struct algorithm *algorithm, enum comm_operation operation)
{
    for (int ranks = 10; ranks <= 32; ranks += 11) {
        struct ranks_case c = case_of(algorithm, operation, ranks, 37, 5);
        run_case(&c);
    }
}

TEST(exact_for_many_ranks)
{
    each_pair(many_ranks);
}

static void seeded_orders(const struct algorithm *algorithm, enum comm_operation operation)
{
    const char *wanted = getenv("RIDGE_ORDERS");
    long orders = wanted ? strtol(wanted, NULL, 10) : 200;
    for (long order = 0; order < orders; order++) {
        uint64_t seed = 1000 + (uint64_t)order;
        int ranks = 2 + (int)(seed % 8);
        struct ranks_case c = case_of(algorithm, operation, ranks, (int64_t)(seed % 61), seed);
        run_case(&c);
    }
}

TEST(no_order_of_events_stops_it)
{
    each_pair(seeded_orders);
}

/* Whatever the schedule, each element is sent on once at most: a ring's bytes are known. */
TEST(a_ring_sends_the_least)
{
    enum { COUNT = 720 };
    for (int ranks = 2; ranks <= 9; ranks++) {
        struct comm_call call = {.operation = COMM_ALL_REDUCE, .dtype = DTYPE_F32, .count = COUNT};
        struct arena arena = {0};
        struct comm_schedule schedule;
        struct schedule_options options = {1, 1 << 20, 0};
        MUST(schedule_make, algorithm_find("ring"), &call, 0, ranks, &options, &arena, &schedule);
        struct schedule_work work = schedule_work(&schedule);
        assert_int_equal(work.messages, 2 * (ranks - 1));
        if (COUNT % ranks == 0) {
            assert_int_equal(work.elements_sent, 2 * (ranks - 1) * COUNT / ranks);
            assert_int_equal(work.elements_added, (ranks - 1) * COUNT / ranks);
        }
        arena_release(&arena);
    }
}

TEST(what_makes_no_sense_is_refused)
{
    struct arena arena = {0};
    struct comm_schedule schedule;
    struct error err = {0};
    struct schedule_options options = {1, 1 << 20, 0};
    struct comm_call call = {.operation = COMM_BROADCAST, .dtype = DTYPE_F32, .root = 3};
    FAILS(STATUS_INVALID, "rank 3", schedule_make, algorithm_find("ring"), &call, 0, 3, &options,
          &arena, &schedule);
    call.operation = COMM_ALL_REDUCE;
    call.count = -1;
    assert_int_equal(
        schedule_make(algorithm_find("ring"), &call, 0, 3, &options, &arena, &schedule, &err),
        STATUS_INVALID);
    call.operation = COMM_ALL_TO_ALL;
    call.counts = (const int64_t[]){1};
    assert_int_equal(
        schedule_make(algorithm_find("ring"), &call, 0, 1, &options, &arena, &schedule, &err),
        STATUS_UNSUPPORTED);
    assert_null(algorithm_find("rings"));
    arena_release(&arena);
}

/* One rank reduces more than the other: both hear of it, and nobody waits. */
TEST(operations_that_differ_are_found)
{
    struct ranks_case c = case_of(algorithm_find("ring"), COMM_ALL_REDUCE, 2, 100, 4);
    struct error err = {0};
    c.other_count = 102;
    assert_true(ranks_run_loop(&c, NULL, &err) < 0);
    assert_non_null(strstr(err.message, "must start the same operations"));
}

/* Random floats added by each algorithm: at most `bound` times the sum of their sizes off the sum
 * in double, and the same bits on every rank. */
static void check_float_sums(const struct algorithm *algorithm, enum dtype wire, double bound)
{
    enum { RANKS = 6, COUNT = 500 };
    static float inputs[RANKS][COUNT], outputs[RANKS][COUNT];
    struct ranks_case c = case_of(algorithm, COMM_ALL_REDUCE, RANKS, COUNT, 6);
    c.call.dtype = DTYPE_F32;
    c.call.reduction = COMM_SUM;
    c.call.wire = wire;
    c.in_place = false;
    for (int i = 0; i < RANKS * COUNT; i++)
        inputs[i / COUNT][i % COUNT] = (float)random_normal(1, (uint64_t)i);
    struct ranks_buffers given = {inputs, outputs};
    struct error err = {0};
    assert_int_equal(ranks_run_loop(&c, &given, &err), 0);
    for (int i = 0; i < COUNT; i++) {
        double sum = 0, size = 0;
        for (int rank = 0; rank < RANKS; rank++) {
            sum += (double)inputs[rank][i];
            size += inputs[rank][i] < 0 ? -(double)inputs[rank][i] : (double)inputs[rank][i];
        }
        double difference = (double)outputs[0][i] - sum;
        assert_true((difference < 0 ? -difference : difference) <= bound * RANKS * size);
        for (int rank = 1; rank < RANKS; rank++)
            assert_memory_equal(&outputs[rank][i], &outputs[0][i], sizeof(float));
    }
}

/* In a fixed order, the sum of N numbers differs from that in double by N roundings. */
static void float_sums(const struct algorithm *algorithm, enum comm_operation operation)
{
    if (operation != COMM_ALL_REDUCE)
        return;
    check_float_sums(algorithm, DTYPE_NONE, 0x1p-24);
    check_float_sums(algorithm, DTYPE_F16, 0x1p-11);
    check_float_sums(algorithm, DTYPE_BF16, 0x1p-8);
}

TEST(sums_of_floats_are_as_exact_as_what_crosses)
{
    each_pair(float_sums);
}

static void check_half_sum(enum dtype dtype, uint16_t a, uint16_t b, uint16_t sum)
{
    float x, y, z;
    uint16_t expected;
    floats_load(dtype, &a, &x, 1);
    floats_load(dtype, &b, &y, 1);
    floats_load(dtype, &sum, &z, 1);
    x += y;
    floats_store(dtype, &x, &expected, 1);
    if (x != x)
        assert_true(z != z);
    else
        assert_int_equal(sum, expected);
}

/* f16 and bf16, all values against conversions of the engine: subnormals, infinities and NaNs. */
TEST(halves_round_as_the_engine_does)
{
    static const enum dtype halves[] = {DTYPE_F16, DTYPE_BF16};
    enum { COUNT = 1 << 16, TURNS = 8 };
    uint16_t *a = malloc(3 * COUNT * sizeof(*a));
    assert_non_null(a);
    uint16_t *b = a + COUNT, *sum = b + COUNT;
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        enum dtype dtype = halves[turn % 2];
        for (int i = 0; i < COUNT; i++) {
            uint32_t word[4];
            random_words(9, (uint64_t)(turn * COUNT + i), word);
            a[i] = (uint16_t)i;
            b[i] = turn < 2 ? 0 : (uint16_t)word[0];
        }
        combine_of(dtype, COMM_SUM)(sum, a, b, COUNT);
        for (int i = 0; i < COUNT; i++)
            check_half_sum(dtype, a[i], b[i], sum[i]);
    }
    free(a);
}

/* The form without special instructions, which this CPU may not need. */
TEST(plain_halves_are_those_of_the_engine)
{
    for (uint32_t i = 0; i < 1 << 16; i++) {
        uint16_t half = (uint16_t)i;
        float engine, plain = f16_widen(half), wide = bf16_widen(half);
        floats_load(DTYPE_F16, &half, &engine, 1);
        assert_true(engine != engine ? plain != plain : plain == engine);
        uint32_t word[4];
        random_words(3, i, word);
        float value;
        memcpy(&value, &word[0], sizeof(value));
        uint16_t expected[2];
        floats_store(DTYPE_F16, &value, &expected[0], 1);
        floats_store(DTYPE_BF16, &value, &expected[1], 1);
        if (value == value) {
            assert_int_equal(f16_narrow(value), expected[0]);
            assert_int_equal(bf16_narrow(value), expected[1]);
        }
        if (wide == wide)
            assert_int_equal(bf16_narrow(wide), half);
    }
}

TEST(larger_and_smaller_do_not_depend_on_the_order)
{
    const float odd[] = {0.0f, -0.0f, 1, -1, 0.0f / 0.0f, 1e30f};
    enum { N = sizeof(odd) / sizeof(odd[0]) };
    for (int reduction = COMM_MAX; reduction <= COMM_MIN; reduction++) {
        combine_elements *combine = combine_of(DTYPE_F32, (enum comm_reduction)reduction);
        for (int i = 0; i < N * N; i++) {
            float x = odd[i / N], y = odd[i % N], one, other;
            combine(&one, &x, &y, 1);
            combine(&other, &y, &x, 1);
            if (x != x || y != y)
                assert_true(one != one && other != other);
            else
                assert_memory_equal(&one, &other, sizeof(one));
        }
    }
}
