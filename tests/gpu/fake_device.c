/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/fake_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/reference/reference.h"

enum { ALIGN_MEMORY = 256, CALLS_MOST = 64 };

struct fake_script fake;

void fake_reset(int fail_at)
{
    fake = (struct fake_script){.fail_at = fail_at};
}

static const char *ever[CALLS_MOST]; /* those that failed */

bool fake_has_failed(const char *name)
{
    for (int k = 0; k < CALLS_MOST && ever[k]; k++)
        if (strcmp(ever[k], name) == 0)
            return true;
    return false;
}

bool fake_fails(const char *name)
{
    if (++fake.calls != fake.fail_at)
        return false;
    fake.failed = name;
    for (int k = 0; k < CALLS_MOST && !fake_has_failed(name); k++)
        if (!ever[k])
            ever[k] = name;
    return true;
}

static enum status alloc(const struct device *device, size_t bytes, void **memory,
                         struct error *err)
{
    (void)device;
    *memory = NULL;
    if (fake_fails("alloc"))
        return FAIL(err, STATUS_NO_MEMORY, "alloc of %zu bytes: scripted", bytes);
    if (posix_memalign(memory, ALIGN_MEMORY, bytes + 1) != 0)
        return FAIL_NO_MEMORY(err);
    fake.live++;
    return STATUS_OK;
}

static void free_memory(const struct device *device, void *memory)
{
    (void)device;
    if (memory)
        fake.live--;
    free(memory);
}

static enum status copy(const struct device *device, void *to, const void *from, size_t bytes,
                        enum device_copy direction, void *stream, struct error *err)
{
    (void)device;
    (void)direction;
    (void)stream;
    if (fake_fails("copy"))
        return FAIL(err, STATUS_FAILED, "copy of %zu bytes: scripted", bytes);
    memcpy(to, from, bytes);
    return STATUS_OK;
}

static enum status wait_for(const struct device *device, void *stream, struct error *err)
{
    (void)device;
    (void)stream;
    return fake_fails("wait") ? FAIL(err, STATUS_FAILED, "wait: scripted") : STATUS_OK;
}

/* ---- what executables need beside that ---- */

static int count(struct error *why)
{
    (void)why;
    return 1;
}

static enum status open_fake(struct device *device, struct error *err)
{
    (void)err;
    device->properties.major = 9;
    return STATUS_OK;
}

static void close_fake(struct device *device)
{
    (void)device;
}

static enum status bind(const struct device *device, struct error *err)
{
    (void)device;
    (void)err;
    return STATUS_OK;
}

/* Streams and events are the same thing: something with an address, and room for a time. */
static enum status token_new(const struct device *device, void **token, struct error *err)
{
    return alloc(device, sizeof(fake.clock_ns), token, err);
}

static enum status fill(const struct device *device, void *memory, int byte, size_t bytes,
                        void *stream, struct error *err)
{
    (void)device;
    (void)stream;
    (void)err;
    memset(memory, byte, bytes);
    return STATUS_OK;
}

static enum status event_record(const struct device *device, void *event, void *stream,
                                struct error *err)
{
    memcpy(event, &fake.clock_ns, sizeof(fake.clock_ns));
    return wait_for(device, stream, err);
}

/* What moves no clock took 1 us. */
static enum status event_elapsed(const struct device *device, void *from, void *to, double *ns,
                                 struct error *err)
{
    double began, ended;
    (void)device;
    (void)err;
    memcpy(&began, from, sizeof(began));
    memcpy(&ended, to, sizeof(ended));
    *ns = ended > began ? ended - began : 1000;
    return STATUS_OK;
}

static enum status activate(const struct device *device, const struct post *post, enum dtype type,
                            void *y, int64_t count, void *stream, struct error *err)
{
    (void)device;
    (void)stream;
    if (fake_fails("activate"))
        return FAIL(err, STATUS_FAILED, "activate: scripted");
    for (int64_t k = 0; k < count; k++) {
        char *at = (char *)y + (size_t)k * dtype_size(type);
        float x;
        floats_load(type, at, &x, 1);
        x = (float)function_value(post->act, (double)post->a, (double)post->b, (double)x, 0);
        floats_store(type, &x, at, 1);
    }
    fake.activations++;
    return STATUS_OK;
}

static void softmax_row(float *x, const float *mask, int64_t step, int64_t keys, bool zero_empty)
{
    double largest = (double)-INFINITY, sum = 0;
    for (int64_t k = 0; k < keys; k++) {
        x[k] += mask ? mask[k * step] : 0;
        largest = fmax(largest, (double)x[k]);
    }
    double shift = zero_empty && largest == (double)-INFINITY ? 0 : largest;
    for (int64_t k = 0; k < keys; k++)
        sum += exp((double)x[k] - shift);
    for (int64_t k = 0; k < keys; k++)
        x[k] = zero_empty && sum == 0 ? 0 : (float)(exp((double)x[k] - shift) / sum);
}

static enum status softmax(const struct device *device, const struct device_softmax *s,
                           void *stream, struct error *err)
{
    (void)device;
    (void)stream;
    if (fake_fails("softmax"))
        return FAIL(err, STATUS_FAILED, "softmax: scripted");
    for (int64_t row = 0; row < s->batch * s->heads * s->queries; row++) {
        int64_t plane = row / s->queries, at = plane / s->heads * s->mask_at[0];
        at += plane % s->heads * s->mask_at[1] + row % s->queries * s->mask_at[2];
        softmax_row(s->x + row * s->keys, s->mask ? s->mask + at : NULL, s->mask_at[3], s->keys,
                    s->zero_empty);
    }
    return STATUS_OK;
}

static enum status pad_channels(const struct device *device, const struct device_channels *c,
                                void *stream, struct error *err)
{
    (void)device;
    (void)stream;
    if (fake_fails("pad_channels"))
        return FAIL(err, STATUS_FAILED, "pad_channels: scripted");
    for (int64_t row = 0; row < c->images * c->positions; row++) {
        char *to = (char *)c->to + row * 16;
        memset(to, 0, 16);
        for (int64_t k = 0; k < c->channels; k++) {
            int64_t at = row / c->positions * c->image_at + row % c->positions * c->position_at +
                         k * c->channel_at;
            memcpy(to + k * c->element, (const char *)c->from + at * c->element,
                   (size_t)c->element);
        }
    }
    return STATUS_OK;
}

const struct device_kind fake_device_kind = {
    .size = sizeof(fake_device_kind),
    .name = "cuda",
    .count = count,
    .open = open_fake,
    .close = close_fake,
    .bind = bind,
    .alloc = alloc,
    .free = free_memory,
    .alloc_host = alloc,
    .free_host = free_memory,
    .stream_new = token_new,
    .stream_free = free_memory,
    .wait = wait_for,
    .copy = copy,
    .fill = fill,
    .event_new = token_new,
    .event_free = free_memory,
    .event_record = event_record,
    .event_elapsed = event_elapsed,
    .activate = activate,
    .softmax = softmax,
    .pad_channels = pad_channels,
};

void fake_device(struct device *device)
{
    struct error ignored;
    *device = (struct device){.kind = &fake_device_kind};
    open_fake(device, &ignored);
}
