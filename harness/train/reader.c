/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/train/reader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"

struct reader {
    struct reader_options options;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t made, taken;
    void ***buffers;       /* [options.buffers][inputs] */
    int64_t filled, given; /* batches so far; the last one given is still in use */
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
}

/* Each input first holds what the graph says of it: what no batch changes stays that way. */
static enum status make_buffers(struct reader *r, struct error *err)
{
    const struct graph *g = r->options.graph;
    r->buffers = calloc((size_t)r->options.buffers, sizeof(*r->buffers));
    for (int b = 0; r->buffers && b < r->options.buffers; b++) {
        r->buffers[b] = calloc((size_t)g->input_count + 1, sizeof(void *));
        for (int k = 0; r->buffers[b] && k < g->input_count; k++) {
            const struct value *value = &g->values[g->inputs[k]];
            if (!batch_gives(g, k))
                continue;
            size_t bytes = (size_t)shape_count(&value->shape) * dtype_size(value->dtype);
            r->buffers[b][k] = malloc(bytes + 1);
            if (!r->buffers[b][k])
                return FAIL_NO_MEMORY(err);
            value_materialise(value, r->buffers[b][k]);
        }
        if (!r->buffers[b])
            return FAIL_NO_MEMORY(err);
    }
    return r->buffers ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static void fill_one(const struct reader *r, int64_t index)
{
    int64_t stride = r->options.stride ? r->options.stride : r->options.batch;
    struct batch batch = {.graph = r->options.graph,
                          .data = r->buffers[index % r->options.buffers],
                          .seed = r->options.seed,
                          .first = r->options.first + index * stride,
                          .size = r->options.batch};
    r->options.training->fill(&batch);
}

static void *read_ahead(void *context)
{
    struct reader *r = context;
    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        /* The buffer of the batch that was given last is the caller's. */
        int64_t free_from = r->given > 0 ? r->given - 1 : 0;
        if (r->filled - free_from >= r->options.buffers) {
            pthread_cond_wait(&r->taken, &r->lock);
            continue;
        }
        int64_t index = r->filled;
        pthread_mutex_unlock(&r->lock);
        fill_one(r, index);
        pthread_mutex_lock(&r->lock);
        r->filled++;
        pthread_cond_signal(&r->made);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

enum status reader_open(const struct reader_options *options, struct reader **out,
                        struct error *err)
{
    struct reader *r = calloc(1, sizeof(*r));
    *out = NULL;
    if (!r)
        return FAIL_NO_MEMORY(err);
    r->options = *options;
    if (r->options.buffers < READER_BUFFERS_MIN)
        r->options.buffers = READER_BUFFERS_MIN;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->made, NULL);
    pthread_cond_init(&r->taken, NULL);
    enum status status = make_buffers(r, err);
    if (status == STATUS_OK && pthread_create(&r->thread, NULL, read_ahead, r))
        status = FAIL(err, STATUS_FAILED, "the thread that reads samples cannot be started");
    if (status == STATUS_OK) {
        *out = r;
        return STATUS_OK;
    }
    free_buffers(r);
    free(r);
    return status;
}

void *const *reader_next(struct reader *r)
{
    pthread_mutex_lock(&r->lock);
    int64_t index = r->given++;
    pthread_cond_signal(&r->taken);
    if (r->filled <= index) {
        uint64_t begin = clock_now_ns();
        while (r->filled <= index)
            pthread_cond_wait(&r->made, &r->lock);
        r->waited_ns += clock_now_ns() - begin;
    }
    pthread_mutex_unlock(&r->lock);
    return r->buffers[index % r->options.buffers];
}

uint64_t reader_waited_ns(const struct reader *r)
{
    return r->waited_ns;
}

void reader_close(struct reader *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->taken);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->taken);
    pthread_cond_destroy(&r->made);
    pthread_mutex_destroy(&r->lock);
    free_buffers(r);
    free(r);
}
