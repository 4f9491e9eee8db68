/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/comm_thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct comm_plan {
    struct comm_plan *inner; /* of the inner communicator, which has a type of its own for it */
    const void *from;
    void *to;
    bool started;
    struct error failed;
    struct comm_plan *next; /* started after this one */
};

struct comm_thread {
    struct comm *inner;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    struct comm_plan *first, *last; /* started and not done */
    bool stop;
};

static void carry_out(struct comm *inner, struct comm_plan *plan)
{
    if (inner->start(inner, plan->inner, plan->from, plan->to, &plan->failed) == STATUS_OK)
        inner->wait(inner, plan->inner, &plan->failed);
}

static void *work(void *context)
{
    struct comm_thread *self = context;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        while (!self->first && !self->stop)
            pthread_cond_wait(&self->work, &self->lock);
        struct comm_plan *plan = self->first;
        if (!plan)
            break;
        pthread_mutex_unlock(&self->lock);
        carry_out(self->inner, plan);
        pthread_mutex_lock(&self->lock);
        self->first = plan->next;
        if (!self->first)
            self->last = NULL;
        plan->started = false;
        pthread_cond_broadcast(&self->done);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static void release(struct comm *comm, struct comm_plan *plan)
{
    struct comm_thread *self = comm->state;
    if (plan)
        self->inner->release(self->inner, plan->inner);
    free(plan);
}

static enum status prepare(struct comm *comm, const struct comm_call *call, struct comm_plan **out,
                           struct error *err)
{
    struct comm_thread *self = comm->state;
    struct comm_plan *plan = calloc(1, sizeof(*plan));
    *out = NULL;
    if (!plan)
        return FAIL_NO_MEMORY(err);
    enum status status = self->inner->prepare(self->inner, call, &plan->inner, err);
    if (status == STATUS_OK)
        *out = plan;
    else
        free(plan);
    return status;
}

static enum status start(struct comm *comm, struct comm_plan *plan, const void *from, void *to,
                         struct error *err)
{
    struct comm_thread *self = comm->state;
    pthread_mutex_lock(&self->lock);
    bool again = plan->started;
    if (!again) {
        plan->from = from;
        plan->to = to;
        plan->started = true;
        plan->failed.code = STATUS_OK;
        plan->next = NULL;
        if (self->last)
            self->last->next = plan;
        else
            self->first = plan;
        self->last = plan;
        pthread_cond_signal(&self->work);
    }
    pthread_mutex_unlock(&self->lock);
    return again ? FAIL(err, STATUS_INVALID, "an operation was started again before its wait")
                 : STATUS_OK;
}

static enum status progress(struct comm *comm, struct error *err)
{
    (void)comm;
    (void)err;
    return STATUS_OK;
}

static enum status wait_for(struct comm *comm, struct comm_plan *plan, struct error *err)
{
    struct comm_thread *self = comm->state;
    pthread_mutex_lock(&self->lock);
    while (plan->started)
        pthread_cond_wait(&self->done, &self->lock);
    pthread_mutex_unlock(&self->lock);
    return plan->failed.code == STATUS_OK
               ? STATUS_OK
               : FAIL(err, plan->failed.code, "%s", plan->failed.message);
}

static void record(const struct comm *comm, const struct comm_plan *plan, struct comm_record *out)
{
    const struct comm_thread *self = comm->state;
    *out = (struct comm_record){0};
    if (self->inner->record)
        self->inner->record(self->inner, plan->inner, out);
}

static void *memory(struct comm *comm, size_t bytes)
{
    struct comm_thread *self = comm->state;
    return self->inner->memory(self->inner, bytes);
}

enum status comm_thread_open(struct comm *inner, struct comm *out, struct error *err)
{
    struct comm_thread *self = calloc(1, sizeof(*self));
    *out = (struct comm){0};
    if (!self)
        return FAIL_NO_MEMORY(err);
    self->inner = inner;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->work, NULL);
    pthread_cond_init(&self->done, NULL);
    *out = (struct comm){
        .rank = inner->rank,
        .ranks = inner->ranks,
        .state = self,
        .prepare = prepare,
        .release = release,
        .start = start,
        .progress = progress,
        .wait = wait_for,
        .memory = inner->memory ? memory : NULL,
        .record = record,
    };
    int code = pthread_create(&self->thread, NULL, work, self);
    if (code == 0)
        return STATUS_OK;
    pthread_cond_destroy(&self->done);
    pthread_cond_destroy(&self->work);
    pthread_mutex_destroy(&self->lock);
    free(self);
    *out = (struct comm){0};
    return FAIL(err, STATUS_FAILED, "the communication thread cannot be started: %s",
                strerror(code));
}

void comm_thread_close(struct comm *comm)
{
    struct comm_thread *self = comm->state;
    if (!self)
        return;
    pthread_mutex_lock(&self->lock);
    self->stop = true;
    pthread_cond_signal(&self->work);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->thread, NULL);
    pthread_cond_destroy(&self->done);
    pthread_cond_destroy(&self->work);
    pthread_mutex_destroy(&self->lock);
    free(self);
    comm->state = NULL;
}
