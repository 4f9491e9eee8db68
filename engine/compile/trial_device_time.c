/* SPDX-License-Identifier: Apache-2.0
 *
 * Times on a device. A launch of a few microseconds is over before the host has queued the next
 * one, so launches are timed as they will run: captured many at a time and replayed. Their data
 * stays in the device's cache, as that of neighbours in a network mostly does. Before the first
 * sample the device works for a while, because the clock of an idle one is low. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>

#include "base/numbers/stats.h"
#include "base/system/clock.h"
#include "engine/compile/trial.h"

enum { SAMPLES = 7, LAUNCHES_MAX = 32, REPLAYS_MAX = 1000, FAR_BEHIND = 3, HANGS = 6 };
static const double sample_ns = 1e6; /* a sample is many launches, or one that takes so long */
static const double warm_ns = 10e6;
static const double long_ns = 2e6, very_long_ns = 200e6;
static const double longest_s = 20; /* as long as a candidate of the host has in its child */

/* ---- waiting ---- */

/* The first moments are spent asking: most launches end in them. */
static void pause_after(double s)
{
    if (s > 1e-3)
        nanosleep(&(struct timespec){0, s > 0.1 ? 5000000 : 100000}, NULL);
}

static enum status hangs(struct trial *t, double s, struct error *err)
{
    const struct device *device = &t->exe->on_device->device;
    char why[160];
    snprintf(why, sizeof(why), "the device hangs: its work was not done after %.3g s", s);
    if (device->kind->give_up)
        device->kind->give_up(device, why);
    return FAIL(err, STATUS_LOST, "%s", why);
}

enum status trial_device_wait(struct trial *t, struct error *err)
{
    const struct device *device = &t->exe->on_device->device;
    void *stream = t->exe->on_device->stream;
    double limit_s = t->exe->options.trial_s > 0 ? t->exe->options.trial_s : longest_s, s = 0;
    uint64_t begin = clock_now_ns();
    bool done = !device->kind->poll;
    while (!done) {
        TRY(device->kind->poll(device, stream, &done, err));
        s = (double)(clock_now_ns() - begin) * 1e-9;
        if (!done && s > HANGS * limit_s)
            return hangs(t, s, err);
        if (!done)
            pause_after(s);
    }
    TRY(device->kind->wait(device, stream, err));
    if (s > limit_s)
        return FAIL(err, STATUS_FAILED, "given up: its launches lasted %.3g s, the limit is %.3g s",
                    s, limit_s);
    return STATUS_OK;
}

/* ---- capturing ---- */

/* The stream must learn that the capture is over, also when a launch in it was refused. */
static enum status record(struct trial *t, struct contestant *c, struct error *err)
{
    const struct device *device = &t->exe->on_device->device;
    struct error refused = {0};
    TRY(device->kind->capture_begin(device, t->exe->on_device->stream, err));
    enum status launched = trial_device_launch(t, c, c->launches, &refused);
    enum status ended =
        device->kind->capture_end(device, t->exe->on_device->stream, &c->graph, err);
    if (launched == STATUS_OK)
        return ended;
    if (ended == STATUS_OK)
        device->kind->graph_free(device, c->graph);
    c->graph = NULL;
    *err = refused;
    return launched;
}

/* What cannot be captured is timed launch by launch, which is how it would run; whether it may run
 * so is the trial's to say. */
static enum status capture(struct trial *t, struct contestant *c, struct error *err)
{
    struct exe_device *on_device = t->exe->on_device;
    struct error why = {0};
    if (!on_device->device.kind->capture_begin || t->exe->options.no_capture ||
        record(t, c, &why) == STATUS_OK)
        return STATUS_OK;
    if (device_blame(&on_device->device, on_device->stream, &why) == STATUS_LOST) {
        *err = why;
        return STATUS_LOST;
    }
    c->candidate->uncaptured = why.code != STATUS_NO_MEMORY;
    if (c->candidate->uncaptured)
        snprintf(c->candidate->note, sizeof(c->candidate->note), "cannot be captured: %.130s",
                 why.message);
    return STATUS_OK;
}

/* ---- timing ---- */

static enum status put_launches(struct trial *t, const struct contestant *c, struct error *err)
{
    const struct device *device = &t->exe->on_device->device;
    if (!c->graph)
        return trial_device_launch(t, c, c->launches, err);
    return device->kind->replay(device, c->graph, t->exe->on_device->stream, err);
}

/* A short replay goes ahead of the first event: the queue is not empty when the device's clock
 * starts, so that what is timed does not begin with the way of a launch to the device. */
static enum status time_launches(struct trial *t, const struct contestant *c, double *ns,
                                 struct error *err)
{
    const struct device *device = &t->exe->on_device->device;
    void *stream = t->exe->on_device->stream;
    if (c->graph && c->candidate->time_ns <= long_ns)
        TRY(put_launches(t, c, err));
    TRY(device->kind->event_record(device, t->on_device->begin, stream, err));
    TRY(put_launches(t, c, err));
    TRY(device->kind->event_record(device, t->on_device->end, stream, err));
    TRY(trial_device_wait(t, err));
    TRY(device->kind->event_elapsed(device, t->on_device->begin, t->on_device->end, ns, err));
    *ns /= c->launches;
    return STATUS_OK;
}

/* once: how long a launch took by itself. Where putting a replay takes the host longer than the
 * device, the host's time counts. */
static enum status warm_up(struct trial *t, const struct contestant *c, double once,
                           struct error *err)
{
    double replays = warm_ns / (once * c->launches + 1);
    uint64_t begin = clock_now_ns();
    for (int k = 0; k < REPLAYS_MAX && k < replays; k++) {
        TRY(put_launches(t, c, err));
        if ((double)(clock_now_ns() - begin) > warm_ns)
            break;
    }
    return trial_device_wait(t, err);
}

enum status trial_device_time(struct trial *t, struct contestant *c, struct error *err)
{
    double samples[SAMPLES], once = 0, best = t->on_device->best_ns;
    int count = SAMPLES;
    c->launches = 1;
    TRY(time_launches(t, c, &once, err));
    c->candidate->time_ns = once;
    if (best > 0 && once > long_ns && once > FAR_BEHIND * best)
        return STATUS_OK;
    double fit = sample_ns / (once + 1);
    c->launches = fit >= LAUNCHES_MAX ? LAUNCHES_MAX : fit < 1 ? 1 : (int)fit;
    TRY(capture(t, c, err));
    TRY(warm_up(t, c, once, err));
    if (once > very_long_ns)
        count = 3;
    for (int k = 0; k < count; k++)
        TRY(time_launches(t, c, &samples[k], err));
    stats_sort(samples, count);
    c->candidate->time_ns = stats_median(samples, count);
    return STATUS_OK;
}

/* ---- two that are nearly alike ---- */

static enum status prepare_again(struct trial *t, struct contestant *c, struct error *err)
{
    double fit = sample_ns / (c->candidate->time_ns + 1);
    TRY(trial_device_prepare(t, c, err));
    c->launches = fit >= LAUNCHES_MAX ? LAUNCHES_MAX : fit < 1 ? 1 : (int)fit;
    TRY(trial_device_launch(t, c, 1, err)); /* the first launch may still make something */
    TRY(trial_device_wait(t, err));
    return capture(t, c, err);
}

static enum status play(struct trial *t, struct contestant *both, struct error *err)
{
    double samples[2][SAMPLES];
    for (int k = 0; k < 2; k++)
        TRY(prepare_again(t, &both[k], err));
    for (int k = 0; k < 2; k++)
        TRY(warm_up(t, &both[k], both[k].candidate->time_ns, err));
    for (int turn = 0; turn < SAMPLES; turn++)
        for (int k = 0; k < 2; k++)
            TRY(time_launches(t, &both[k], &samples[k][turn], err));
    for (int k = 0; k < 2; k++) {
        stats_sort(samples[k], SAMPLES);
        both[k].candidate->time_ns = stats_median(samples[k], SAMPLES);
    }
    return STATUS_OK;
}

enum status trial_device_compare(struct trial *t, struct candidate *first, struct candidate *second,
                                 struct error *err)
{
    struct contestant both[2] = {{.candidate = first}, {.candidate = second}};
    enum status status = play(t, both, err);
    for (int k = 0; k < 2; k++)
        trial_device_release(t, &both[k]);
    return status;
}
