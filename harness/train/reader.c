/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/train/reader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/clock.h"

/* Work is cut into pieces: piece k is rows of batch k / pieces. Threads take pieces in order. */
struct reader {
    struct reader_options options;
    pthread_t threads[READER_THREADS_MAX];
    int thread_count;
    pthread_mutex_t lock;
    pthread_cond_t made, taken;
    void ***buffers;  /* [options.buffers][inputs] */
    int *done;        /* per buffer: pieces of its batch that are filled */
    int64_t pieces;   /* of a batch */
    int64_t next;     /* piece that nobody has taken */
    int64_t given;    /* batches so far; the last one given is still in use */
    int64_t bytes;    /* read */
    uint64_t free_ns; /* when the limit allows more to be read */
    int64_t failed;   /* the first piece that could not be filled */
    struct error why;
    bool stop;
    uint64_t waited_ns;
};

static void free_buffers(struct reader *r)
{
    for (int b = 0; r->buffers && b < r->options.buffers; b++) {
        for (int k = 0; r->buffers[b] && k < r->options.graph->input_count; k++)
            free(r->buffers[b][k]);
        free(r->buffers[b]);
    }
    free(r->buffers);
    free(r->done);
}

static size_t bytes_of(const struct graph *g, int input)
{
    return value_size(&g->values[g->inputs[input]]);
}

/* Each input first holds what the graph says of it: what no batch changes stays that way. */
static enum status make_buffers(struct reader *r, struct error *err)
{
    const struct graph *g = r->options.graph;
    r->done = calloc((size_t)r->options.buffers, sizeof(*r->done));
    r->buffers = calloc((size_t)r->options.buffers, sizeof(*r->buffers));
    for (int b = 0; r->buffers && b < r->options.buffers; b++) {
        r->buffers[b] = calloc((size_t)g->input_count + 1, sizeof(void *));
        for (int k = 0; r->buffers[b] && k < g->input_count; k++) {
            if (!batch_gives(g, k))
                continue;
            r->buffers[b][k] = malloc(bytes_of(g, k) + 1);
            if (!r->buffers[b][k])
                return FAIL_NO_MEMORY(err);
            value_materialise(&g->values[g->inputs[k]], r->buffers[b][k]);
        }
        if (!r->buffers[b])
            return FAIL_NO_MEMORY(err);
    }
    return r->buffers && r->done ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status fill_piece(const struct reader *r, int64_t piece, int64_t *bytes,
                              struct error *err)
{
    const struct reader_options *o = &r->options;
    int64_t index = piece / r->pieces, part = piece % r->pieces;
    int64_t stride = o->stride ? o->stride : o->batch;
    struct batch batch = {.graph = o->graph,
                          .data = r->buffers[index % o->buffers],
                          .seed = o->seed,
                          .first = o->first + index * stride,
                          .size = o->batch};
    int64_t first = part * o->batch / r->pieces, end = (part + 1) * o->batch / r->pieces;
    *bytes = 0;
    if (o->data)
        return data_fill(o->data, &batch, first, end - first, bytes, err);
    o->training->fill(&batch);
    for (int k = 0; k < o->graph->input_count; k++)
        *bytes += batch.data[k] ? (int64_t)bytes_of(o->graph, k) : 0;
    return STATUS_OK;
}

/* Waits, without the lock, until so many more bytes may have been read. */
static void keep_to_limit(struct reader *r, int64_t bytes)
{
    if (!(r->options.bytes_per_s > 0))
        return;
    uint64_t now = clock_now_ns();
    r->free_ns = (r->free_ns > now ? r->free_ns : now) +
                 (uint64_t)((double)bytes / r->options.bytes_per_s * 1e9);
    uint64_t until = r->free_ns;
    while (!r->stop && (now = clock_now_ns()) < until) {
        uint64_t left = until - now < 20000000 ? until - now : 20000000;
        pthread_mutex_unlock(&r->lock);
        nanosleep(&(struct timespec){.tv_nsec = (long)left}, NULL);
        pthread_mutex_lock(&r->lock);
    }
}

static void piece_is_done(struct reader *r, int64_t piece, enum status status,
                          const struct error *why)
{
    if (status != STATUS_OK && (r->failed < 0 || piece < r->failed)) {
        r->failed = piece;
        r->why = *why;
    }
    r->done[piece / r->pieces % r->options.buffers]++;
    pthread_cond_signal(&r->made);
}

static void *read_ahead(void *context)
{
    struct reader *r = context;
    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        /* The buffer of the batch that was given last is the caller's. */
        int64_t free_from = r->given > 0 ? r->given - 1 : 0, batch = r->next / r->pieces;
        if (batch - free_from >= r->options.buffers) {
            pthread_cond_wait(&r->taken, &r->lock);
            continue;
        }
        int64_t piece = r->next++, bytes;
        struct error why = {STATUS_OK, NULL, 0, ""};
        if (piece % r->pieces == 0)
            r->done[batch % r->options.buffers] = 0;
        pthread_mutex_unlock(&r->lock);
        enum status status = fill_piece(r, piece, &bytes, &why);
        pthread_mutex_lock(&r->lock);
        r->bytes += bytes;
        keep_to_limit(r, bytes);
        piece_is_done(r, piece, status, &why);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static enum status start_threads(struct reader *r, struct error *err)
{
    while (r->thread_count < r->options.threads) {
        int code = pthread_create(&r->threads[r->thread_count], NULL, read_ahead, r);
        if (code != 0)
            return FAIL(err, STATUS_FAILED, "thread %d that reads samples cannot be started: %s",
                        r->thread_count + 1, strerror(code));
        r->thread_count++;
    }
    return STATUS_OK;
}

static void complete(struct reader *r, const struct reader_options *options)
{
    struct reader_options *o = &r->options;
    *o = *options;
    o->buffers = o->buffers < READER_BUFFERS_MIN ? READER_BUFFERS_MIN : o->buffers;
    o->threads = o->threads < 1 ? 1 : o->threads;
    o->threads = o->threads > READER_THREADS_MAX ? READER_THREADS_MAX : o->threads;
    /* Two pieces each, so that no thread is late alone; made-up batches are made whole. */
    int64_t pieces = o->data && o->threads > 1 ? 2 * (int64_t)o->threads : 1;
    r->pieces = pieces < o->batch ? pieces : o->batch;
    r->failed = -1;
}

enum status reader_open(const struct reader_options *options, struct reader **out,
                        struct error *err)
{
    struct reader *r = calloc(1, sizeof(*r));
    *out = NULL;
    if (!r)
        return FAIL_NO_MEMORY(err);
    complete(r, options);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->made, NULL);
    pthread_cond_init(&r->taken, NULL);
    enum status status = make_buffers(r, err);
    if (status == STATUS_OK)
        status = start_threads(r, err);
    if (status == STATUS_OK)
        *out = r;
    else
        reader_close(r);
    return status;
}

static bool is_ready(const struct reader *r, int64_t batch)
{
    return r->next >= (batch + 1) * r->pieces &&
           r->done[batch % r->options.buffers] == (int)r->pieces;
}

enum status reader_next(struct reader *r, void *const **data, struct error *err)
{
    pthread_mutex_lock(&r->lock);
    int64_t index = r->given++;
    pthread_cond_broadcast(&r->taken);
    if (!is_ready(r, index)) {
        uint64_t begin = clock_now_ns();
        while (!is_ready(r, index))
            pthread_cond_wait(&r->made, &r->lock);
        r->waited_ns += clock_now_ns() - begin;
    }
    bool failed = r->failed >= 0 && r->failed / r->pieces <= index;
    if (failed && err)
        *err = r->why;
    pthread_mutex_unlock(&r->lock);
    *data = r->buffers[index % r->options.buffers];
    return failed ? r->why.code : STATUS_OK;
}

uint64_t reader_waited_ns(const struct reader *r)
{
    return r->waited_ns;
}

int64_t reader_bytes(struct reader *r)
{
    pthread_mutex_lock(&r->lock);
    int64_t bytes = r->bytes;
    pthread_mutex_unlock(&r->lock);
    return bytes;
}

void reader_close(struct reader *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_broadcast(&r->taken);
    pthread_mutex_unlock(&r->lock);
    for (int k = 0; k < r->thread_count; k++)
        pthread_join(r->threads[k], NULL);
    pthread_cond_destroy(&r->taken);
    pthread_cond_destroy(&r->made);
    pthread_mutex_destroy(&r->lock);
    free_buffers(r);
    free(r);
}
