/* SPDX-License-Identifier: Apache-2.0
 *
 * The device's part of a trial: its tensors, and one launch that is looked at. Of large outputs
 * only a sample is fetched, but for the candidates that must be looked at as a whole: copies to
 * memory that is not pinned would take most of a trial. */
#include <stdlib.h>

#include "engine/compile/trial.h"
#include "engine/reference/reference.h"

static const size_t sampled_bytes = 4 << 20;

/* The step's inputs that come with the launch are uploaded; fixed ones are too, for kernels that do
 * not pack them. */
static enum status upload(struct trial *t, struct error *err)
{
    const struct device *device = &t->exe->on_device->device;
    const struct node *node = t->step->query.node;
    for (int k = 0; k < node->input_count; k++)
        if (t->in[k])
            TRY(device_upload(device, t->in[k], t->exe->places[node->inputs[k]].bytes,
                              &t->on_device->in[k], err));
    for (int k = 0; k < node->output_count; k++)
        if (t->out[k])
            TRY(device->kind->alloc(device, t->exe->places[node->outputs[k]].bytes,
                                    &t->on_device->out[k], err));
    TRY(device->kind->event_new(device, &t->on_device->begin, err));
    return device->kind->event_new(device, &t->on_device->end, err);
}

enum status trial_device_open(struct trial *t, struct error *err)
{
    const struct node *node = t->step->query.node;
    if (t->on_device)
        return STATUS_OK;
    t->on_device = calloc(1, sizeof(*t->on_device));
    if (!t->on_device)
        return FAIL_NO_MEMORY(err);
    t->on_device->in = calloc((size_t)node->input_count + 1, sizeof(void *));
    t->on_device->out = calloc((size_t)node->output_count + 1, sizeof(void *));
    t->on_device->looked_at = calloc((size_t)node->output_count + 1, sizeof(bool *));
    bool made = t->on_device->in && t->on_device->out && t->on_device->looked_at;
    enum status status = made ? upload(t, err) : (enum status)FAIL_NO_MEMORY(err);
    if (status != STATUS_OK)
        trial_device_close(t);
    return status;
}

void trial_device_close(struct trial *t)
{
    const struct node *node = t->step->query.node;
    struct trial_device *on_device = t->on_device;
    if (!on_device)
        return;
    const struct device *device = &t->exe->on_device->device;
    for (int k = 0; on_device->in && k < node->input_count; k++)
        if (on_device->in[k])
            device->kind->free(device, on_device->in[k]);
    for (int k = 0; on_device->out && k < node->output_count; k++)
        if (on_device->out[k])
            device->kind->free(device, on_device->out[k]);
    for (int k = 0; on_device->looked_at && k < node->output_count; k++)
        free(on_device->looked_at[k]);
    if (on_device->begin)
        device->kind->event_free(device, on_device->begin);
    if (on_device->end)
        device->kind->event_free(device, on_device->end);
    free(on_device->in);
    free(on_device->out);
    free(on_device->looked_at);
    free(on_device);
    t->on_device = NULL;
}

/* ---- one candidate ---- */

enum status trial_device_prepare(struct trial *t, struct contestant *c, struct error *err)
{
    const struct device *device = &t->exe->on_device->device;
    const struct kernel *kernel = c->candidate->kernel;
    const struct kernel_query *q = &t->step->query;
    size_t ignored;
    TRY(kernel_plan(kernel, q, c->candidate->variant, &c->state, err));
    TRY(kernel_prepare(kernel, q, c->state, &ignored, err));
    size_t bytes = kernel_workspace(kernel, c->state);
    return bytes ? device->kind->alloc(device, bytes, &c->workspace, err) : STATUS_OK;
}

void trial_device_release(struct trial *t, struct contestant *c)
{
    const struct device *device = &t->exe->on_device->device;
    if (c->graph)
        device->kind->graph_free(device, c->graph);
    if (c->workspace)
        device->kind->free(device, c->workspace);
    kernel_release(c->candidate->kernel, c->state);
    *c = (struct contestant){.candidate = c->candidate};
}

enum status trial_device_launch(struct trial *t, const struct contestant *c, int times,
                                struct error *err)
{
    struct error refused = {0};
    struct kernel_args args = {.in = (const void *const *)t->on_device->in,
                               .out = t->on_device->out,
                               .workspace = c->workspace,
                               .pool = t->exe->pool,
                               .stream = t->exe->on_device->stream,
                               .err = &refused};
    for (int k = 0; k < times && refused.code == STATUS_OK; k++)
        kernel_launch(c->candidate->kernel, &t->step->query, c->state, &args);
    if (refused.code != STATUS_OK && err)
        *err = refused;
    return refused.code;
}

/* ---- fetching ---- */

/* Which tiles of an output are fetched: of as many stretches of equal length one each, at a place
 * that differs from candidate to candidate, and the first and the last one. All, if it is small. */
static enum status choose_tiles(struct trial *t, int k, bool whole, uint32_t seed,
                                struct error *err)
{
    const struct desc *desc = &t->step->query.out[k];
    size_t tile_bytes = REF_TILE * dtype_size(desc->dtype);
    int64_t tiles = (shape_count(&desc->shape) + REF_TILE - 1) / REF_TILE;
    int64_t wanted = (int64_t)(sampled_bytes / tile_bytes) - 2;
    free(t->on_device->looked_at[k]);
    t->on_device->looked_at[k] = NULL;
    if (whole || !dtype_is_float(desc->dtype) || !desc_is_dense(desc) || tiles <= wanted + 2)
        return STATUS_OK;
    bool *chosen = calloc((size_t)tiles, sizeof(*chosen));
    if (!chosen)
        return FAIL_NO_MEMORY(err);
    chosen[0] = chosen[tiles - 1] = true;
    for (int64_t part = 0; part < wanted; part++) {
        int64_t from = part * tiles / wanted, to = (part + 1) * tiles / wanted;
        seed = seed * 1664525u + 1013904223u;
        chosen[from + (int64_t)(seed >> 8) % (to - from)] = true;
    }
    t->on_device->looked_at[k] = chosen;
    return STATUS_OK;
}

static enum status fetch(struct trial *t, int k, struct error *err)
{
    const struct device *device = &t->exe->on_device->device;
    void *stream = t->exe->on_device->stream;
    const struct desc *desc = &t->step->query.out[k];
    size_t bytes = t->exe->places[t->step->query.node->outputs[k]].bytes;
    const bool *chosen = t->on_device->looked_at[k];
    if (!chosen)
        return device->kind->copy(device, t->out[k], t->on_device->out[k], bytes, COPY_TO_HOST,
                                  stream, err);
    size_t tile = REF_TILE * dtype_size(desc->dtype);
    for (size_t at = 0; at < bytes; at += tile)
        if (at / tile * REF_TILE < (size_t)shape_count(&desc->shape) && chosen[at / tile])
            TRY(device->kind->copy(
                device, (char *)t->out[k] + at, (char *)t->on_device->out[k] + at,
                bytes - at < tile ? bytes - at : tile, COPY_TO_HOST, stream, err));
    return STATUS_OK;
}

/* Waits before it fetches: a copy to memory that is not pinned would wait for ever where the launch
 * never ends. */
enum status trial_device_run(struct trial *t, const struct contestant *c, bool whole,
                             struct error *err)
{
    const struct device *device = &t->exe->on_device->device;
    void *stream = t->exe->on_device->stream;
    const struct node *node = t->step->query.node;
    uint32_t seed = (uint32_t)(c->candidate - t->step->candidates) * 2654435761u;
    for (int k = 0; k < node->output_count;
         k++) /* what an earlier candidate wrote must not count */
        if (t->out[k])
            TRY(device->kind->fill(device, t->on_device->out[k], 0xff,
                                   t->exe->places[node->outputs[k]].bytes, stream, err));
    TRY(trial_device_launch(t, c, 1, err));
    TRY(trial_device_wait(t, err));
    for (int k = 0; k < node->output_count; k++)
        if (t->out[k]) {
            TRY(choose_tiles(t, k, whole, seed, err));
            TRY(fetch(t, k, err));
        }
    return device->kind->wait(device, stream, err);
}
