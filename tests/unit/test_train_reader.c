/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <time.h>

#include "base/system/clock.h"
#include "harness/train/reader.h"
#include "tests/lib/unit.h"

enum { BATCH = 4, BUFFERS = 3 };

static _Atomic int64_t fills;
static _Atomic int64_t pause_ns;

/* Sample k is k, and 1000 more for each step of the seed. */
static void fill_numbers(const struct batch *batch)
{
    int64_t *x = batch_input(batch, "x");
    const struct timespec pause = {.tv_nsec = atomic_load(&pause_ns)};
    if (pause.tv_nsec)
        nanosleep(&pause, NULL);
    for (int64_t n = 0; n < batch->size; n++)
        x[n] = batch->first + n + 1000 * (int64_t)batch->seed;
    atomic_fetch_add(&fills, 1);
}

static const struct training numbers = {.fill = fill_numbers};

/* An input of samples, one that stays as it is, a state, and the learning rate. */
static struct graph *make_graph(void)
{
    struct graph *g = graph_new("numbers");
    graph_input(g, "x", DTYPE_I64, shape_of(BATCH), (struct fill){.kind = FILL_CONST});
    graph_input(g, "same", DTYPE_F32, shape_of(2), (struct fill){.kind = FILL_CONST, .a = 7});
    graph_state(g, "w", DTYPE_F32, shape_of(3), (struct fill){.kind = FILL_CONST});
    graph_input(g, TRAIN_RATE, DTYPE_F32, shape_scalar(), (struct fill){.kind = FILL_CONST});
    return g;
}

static void *const *next(struct reader *reader)
{
    void *const *data;
    MUST(reader_next, reader, &data);
    return data;
}

static struct reader *open_reader(const struct graph *g, int64_t pause)
{
    struct reader *reader;
    struct reader_options options = {.graph = g,
                                     .training = &numbers,
                                     .seed = 2,
                                     .first = 8,
                                     .batch = BATCH,
                                     .buffers = BUFFERS};
    atomic_store(&fills, 0);
    atomic_store(&pause_ns, pause);
    MUST(reader_open, &options, &reader);
    return reader;
}

TEST(batches_come_in_order_and_only_for_what_samples_give)
{
    struct graph *g = make_graph();
    struct reader *reader = open_reader(g, 0);
    for (int64_t k = 0; k < 50; k++) {
        void *const *data = next(reader);
        const int64_t *x = data[0];
        const float *same = data[1];
        for (int64_t n = 0; n < BATCH; n++)
            assert_int_equal(x[n], 2008 + k * BATCH + n);
        assert_true(same[0] == 7 && same[1] == 7);
        assert_null(data[2]);
        assert_null(data[3]);
    }
    reader_close(reader);
    graph_free(g);
}

/* The queue is full, and nobody takes anything. */
TEST(a_reader_is_no_further_ahead_than_its_buffers)
{
    struct graph *g = make_graph();
    struct reader *reader = open_reader(g, 0);
    const struct timespec pause = {.tv_nsec = 50000000};
    nanosleep(&pause, NULL);
    assert_true(atomic_load(&fills) <= BUFFERS);
    const int64_t *x = next(reader)[0];
    nanosleep(&pause, NULL);
    assert_true(atomic_load(&fills) <= BUFFERS);
    assert_int_equal(x[0], 2008); /* the caller's until it asks again */
    reader_close(reader);
    graph_free(g);
}

TEST(waiting_for_a_slow_source_is_measured)
{
    struct graph *g = make_graph();
    struct reader *reader = open_reader(g, 20000000);
    for (int k = 0; k < 5; k++)
        next(reader);
    assert_true(reader_waited_ns(reader) > 80000000);
    reader_close(reader);
    graph_free(g);
}

/* Batches of a data set whose samples from `broken` on cannot be read. */
enum { BROKEN = 8 + 20 * BATCH + 1 };

static enum status read_until_broken(const struct data_set *set, struct data_rows *rows,
                                     struct error *err)
{
    int64_t *x = batch_input(rows->batch, "x");
    (void)set;
    for (int64_t k = 0; k < rows->count; k++) {
        int64_t number = rows->batch->first + rows->first + k;
        if (number >= BROKEN)
            return FAIL(err, STATUS_FAILED, "sample %lld is broken", (long long)number);
        x[rows->first + k] = number;
        rows->bytes += 10;
    }
    return STATUS_OK;
}

static const struct data_format breaking = {.name = "breaking", .read = read_until_broken};

static struct reader *open_breaking(const struct graph *g, const struct data_set *set, int threads,
                                    double bytes_per_s)
{
    struct reader *reader;
    struct reader_options options = {.graph = g,
                                     .data = set,
                                     .first = 8,
                                     .batch = BATCH,
                                     .buffers = BUFFERS,
                                     .threads = threads,
                                     .bytes_per_s = bytes_per_s};
    MUST(reader_open, &options, &reader);
    return reader;
}

TEST(many_threads_keep_the_order_and_name_the_first_broken_sample)
{
    const struct data_set set = {.format = &breaking, .count = {1000, 1000}};
    for (int threads = 1; threads <= 5; threads++) {
        struct graph *g = make_graph();
        struct reader *reader = open_breaking(g, &set, threads, 0);
        void *const *data;
        struct error err;
        for (int64_t k = 0; k < 20; k++) {
            const int64_t *x = next(reader)[0];
            for (int64_t n = 0; n < BATCH; n++)
                assert_int_equal(x[n], 8 + k * BATCH + n);
        }
        for (int again = 0; again < 2; again++) { /* and it stays broken */
            assert_int_equal(reader_next(reader, &data, &err), STATUS_FAILED);
            assert_string_equal(err.message, "sample 89 is broken");
        }
        reader_close(reader);
        graph_free(g);
    }
}

TEST(no_more_is_read_than_the_limit_allows)
{
    const struct data_set set = {.format = &breaking, .count = {1000, 1000}};
    struct graph *g = make_graph();
    uint64_t begin = clock_now_ns();
    struct reader *reader = open_breaking(g, &set, 2, 2000); /* a batch is 40 bytes: 20 ms */
    for (int k = 0; k < 10; k++)
        next(reader);
    assert_true(clock_now_ns() - begin >= 195000000);
    assert_true(reader_bytes(reader) >= 10 * 40);
    reader_close(reader); /* without waiting for what is under way */
    graph_free(g);
}
