/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <time.h>

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
    struct error err;
    assert_int_equal(reader_next(reader, &data, &err), STATUS_OK);
    return data;
}

static struct reader *open_reader(const struct graph *g, int64_t pause)
{
    struct error err;
    struct reader *reader;
    struct reader_options options = {.graph = g,
                                     .training = &numbers,
                                     .seed = 2,
                                     .first = 8,
                                     .batch = BATCH,
                                     .buffers = BUFFERS};
    atomic_store(&fills, 0);
    atomic_store(&pause_ns, pause);
    assert_int_equal(reader_open(&options, &reader, &err), STATUS_OK);
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
