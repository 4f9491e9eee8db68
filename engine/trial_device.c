/* SPDX-License-Identifier: Apache-2.0
 *
 * The device's part of a trial. A launch of a few microseconds is over before the host has queued
 * the next one, so launches are timed as they will run: captured many at a time and replayed. Their
 * data stays in the device's cache, as that of neighbours in a network mostly does. */
#include <stdlib.h>

#include "base/stats.h"
#include "engine/trial.h"

enum { SAMPLES = 7, LAUNCHES_MAX = 32 };
static const double sample_ns = 1e6; /* a sample is many launches, or one that takes so long */

/* The step's inputs that come with the launch are uploaded; fixed ones are too, for kernels that do
 * not pack them. */
static enum status upload(struct trial *t, struct error *err)
{
    const struct device *device = &t->exe->there->device;
    const struct node *node = t->step->query.node;
    for (int k = 0; k < node->input_count; k++)
        if (t->in[k])
            TRY(device_upload(device, t->in[k], t->exe->places[node->inputs[k]].bytes,
                              &t->there->in[k], err));
    for (int k = 0; k < node->output_count; k++)
        if (t->out[k])
            TRY(device->kind->alloc(device, t->exe->places[node->outputs[k]].bytes,
                                    &t->there->out[k], err));
    TRY(device->kind->event_new(device, &t->there->begin, err));
    return device->kind->event_new(device, &t->there->end, err);
}

enum status trial_there_open(struct trial *t, struct error *err)
{
    const struct node *node = t->step->query.node;
    if (t->there)
        return STATUS_OK;
    t->there = calloc(1, sizeof(*t->there));
    if (!t->there)
        return FAIL_NO_MEMORY(err);
    t->there->in = calloc((size_t)node->input_count + 1, sizeof(void *));
    t->there->out = calloc((size_t)node->output_count + 1, sizeof(void *));
    enum status status =
        t->there->in && t->there->out ? upload(t, err) : (enum status)FAIL_NO_MEMORY(err);
    if (status != STATUS_OK)
        trial_there_close(t);
    return status;
}

void trial_there_close(struct trial *t)
{
    const struct node *node = t->step->query.node;
    struct trial_there *there = t->there;
    if (!there)
        return;
    const struct device *device = &t->exe->there->device;
    for (int k = 0; there->in && k < node->input_count; k++)
        if (there->in[k])
            device->kind->free(device, there->in[k]);
    for (int k = 0; there->out && k < node->output_count; k++)
        if (there->out[k])
            device->kind->free(device, there->out[k]);
    if (there->workspace)
        device->kind->free(device, there->workspace);
    if (there->begin)
        device->kind->event_free(device, there->begin);
    if (there->end)
        device->kind->event_free(device, there->end);
    free(there->in);
    free(there->out);
    free(there);
    t->there = NULL;
}

enum status trial_there_workspace(struct trial *t, const struct candidate *c, struct error *err)
{
    const struct device *device = &t->exe->there->device;
    const struct kernel *kernel = c->kernel;
    if (t->there->workspace)
        device->kind->free(device, t->there->workspace);
    t->there->workspace = NULL;
    size_t bytes = kernel->workspace ? kernel->workspace(&t->step->query, c->variant) : 0;
    return bytes ? device->kind->alloc(device, bytes, &t->there->workspace, err) : STATUS_OK;
}

static enum status launch(struct trial *t, const struct kernel *kernel, struct kernel_state *state,
                          int times, struct error *err)
{
    struct error refused = {0};
    struct kernel_args args = {.in = (const void *const *)t->there->in,
                               .out = t->there->out,
                               .workspace = t->there->workspace,
                               .pool = t->exe->pool,
                               .stream = t->exe->there->stream,
                               .err = &refused};
    for (int k = 0; k < times && refused.code == STATUS_OK; k++)
        kernel->launch(state, &t->step->query, &args);
    if (refused.code != STATUS_OK && err)
        *err = refused;
    return refused.code;
}

enum status trial_there_run(struct trial *t, const struct kernel *kernel,
                            struct kernel_state *state, struct error *err)
{
    const struct device *device = &t->exe->there->device;
    void *stream = t->exe->there->stream;
    const struct node *node = t->step->query.node;
    for (int k = 0; k < node->output_count;
         k++) /* what an earlier candidate wrote must not count */
        if (t->out[k])
            TRY(device->kind->fill(device, t->there->out[k], 0xff,
                                   t->exe->places[node->outputs[k]].bytes, stream, err));
    TRY(launch(t, kernel, state, 1, err));
    for (int k = 0; k < node->output_count; k++)
        if (t->out[k])
            TRY(device->kind->copy(device, t->out[k], t->there->out[k],
                                   t->exe->places[node->outputs[k]].bytes, COPY_TO_HOST, stream,
                                   err));
    return device->kind->wait(device, stream, err);
}

/* The stream must be told that the capture is over, also when a launch in it was refused. */
static enum status record(struct trial *t, const struct kernel *kernel, struct kernel_state *state,
                          int launches, struct error *err)
{
    const struct device *device = &t->exe->there->device;
    struct error refused = {0};
    TRY(device->kind->capture_begin(device, t->exe->there->stream, err));
    enum status launched = launch(t, kernel, state, launches, &refused);
    enum status ended =
        device->kind->capture_end(device, t->exe->there->stream, &t->there->graph, err);
    if (launched == STATUS_OK)
        return ended;
    if (ended == STATUS_OK)
        device->kind->graph_free(device, t->there->graph);
    t->there->graph = NULL;
    if (err)
        *err = refused;
    return launched;
}

static enum status run_launches(struct trial *t, const struct kernel *kernel,
                                struct kernel_state *state, int launches, struct error *err)
{
    const struct device *device = &t->exe->there->device;
    if (!t->there->graph)
        return launch(t, kernel, state, launches, err);
    return device->kind->replay(device, t->there->graph, t->exe->there->stream, err);
}

static enum status time_launches(struct trial *t, const struct kernel *kernel,
                                 struct kernel_state *state, int launches, double *ns,
                                 struct error *err)
{
    const struct device *device = &t->exe->there->device;
    void *stream = t->exe->there->stream;
    TRY(device->kind->event_record(device, t->there->begin, stream, err));
    TRY(run_launches(t, kernel, state, launches, err));
    TRY(device->kind->event_record(device, t->there->end, stream, err));
    TRY(device->kind->wait(device, stream, err));
    TRY(device->kind->event_elapsed(device, t->there->begin, t->there->end, ns, err));
    *ns /= launches;
    return STATUS_OK;
}

static enum status take_samples(struct trial *t, const struct kernel *kernel,
                                struct kernel_state *state, int launches, double *ns,
                                struct error *err)
{
    double samples[SAMPLES];
    for (int k = 0; k < SAMPLES; k++)
        TRY(time_launches(t, kernel, state, launches, &samples[k], err));
    stats_sort(samples, SAMPLES);
    *ns = stats_median(samples, SAMPLES);
    return STATUS_OK;
}

/* A kernel that cannot be captured is timed launch by launch, which is how it would run. */
enum status trial_there_time(struct trial *t, const struct kernel *kernel,
                             struct kernel_state *state, double *ns, struct error *err)
{
    const struct device *device = &t->exe->there->device;
    double once = 0;
    TRY(time_launches(t, kernel, state, 1, &once, err));
    double fit = sample_ns / (once + 1);
    int launches = fit >= LAUNCHES_MAX ? LAUNCHES_MAX : fit < 1 ? 1 : (int)fit;
    bool captured = device->kind->capture_begin && !t->exe->options.no_capture &&
                    record(t, kernel, state, launches, NULL) == STATUS_OK;
    enum status status = take_samples(t, kernel, state, launches, ns, err);
    if (captured)
        device->kind->graph_free(device, t->there->graph);
    t->there->graph = NULL;
    return status;
}
