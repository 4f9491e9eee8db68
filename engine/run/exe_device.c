/* SPDX-License-Identifier: Apache-2.0
 *
 * Executables on a device. Tensors lie at the offsets that the plan gave them, in an arena of the
 * device; weights are uploaded once, inputs and states when they were changed. If every step has a
 * kernel there, one run is captured and then replayed as a whole.
 *
 * A step that no kernel of the device takes runs on the host, in a second, pinned arena of the same
 * plan: what it reads is fetched before it, what steps on the device read of it is given after it.
 * Correct first: the device is idle meanwhile, and such a run is not captured. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "engine/run/exe_internal.h"

bool exe_runs_on_device(const struct exe *exe, const struct kernel *kernel)
{
    const char *device = kernel->device ? kernel->device : "cpu";
    return strcmp(device, exe_device(exe)->kind->name) == 0;
}

enum status exe_device_open(struct exe *exe, struct error *err)
{
    struct device device;
    TRY(device_open(exe->options.device, &device, err));
    if (device.kind->is_host) {
        device_close(&device);
        return STATUS_OK;
    }
    exe->on_device = arena_alloc(&exe->arena, sizeof(*exe->on_device));
    if (!exe->on_device) {
        device_close(&device);
        return FAIL_NO_MEMORY(err);
    }
    exe->on_device->device = device;
    TRY(device.kind->bind(&device, err));
    return device.kind->stream_new(&device, &exe->on_device->stream, err);
}

/* ---- running ---- */

/* Waits first in any case: copies of earlier steps may still read the host's arena. */
static void run_here(struct exe *exe, const struct step *step)
{
    struct exe_device *t = exe->on_device;
    for (int k = 0; k < step->fetch_count; k++)
        values_copy(exe, step->fetch[k], COPY_TO_HOST);
    t->device.kind->wait(&t->device, t->stream, exe_device_sink(t));
    if (step->kernel->own_threads)
        pool_park(exe->pool);
    step_launch(step);
    for (int k = 0; k < step->give_count; k++)
        values_copy(exe, step->give[k], COPY_TO_DEVICE);
}

static void run_step(struct exe *exe, const struct step *step)
{
    struct exe_device *t = exe->on_device;
    if (t->failed.code != STATUS_OK)
        return;
    if (step->on_host)
        run_here(exe, step);
    else
        step_launch(step);
    if (exe->exchange_count && t->failed.code == STATUS_OK)
        exchange_enqueue(exe, step);
    if (t->failed.code == STATUS_OK)
        return;
    error_context(&t->failed, "node \"%s\", kernel %s", step->query.node->name, step->kernel->name);
    if (!t->capturing)
        device_blame(&t->device, t->stream, &t->failed);
}

/* What happens between ranks is timed from here on. */
static void note_begin(struct exe *exe)
{
    struct exe_device *t = exe->on_device;
    if (!t->began)
        return;
    t->began_ns = clock_now_ns();
    t->device.kind->event_record(&t->device, t->began, t->stream, exe_device_sink(t));
}

static void run_steps(struct exe *exe)
{
    struct exe_device *t = exe->on_device;
    t->device.kind->bind(&t->device, exe_device_sink(t));
    values_upload(exe);
    note_begin(exe);
    for (int s = 0; s < exe->step_count; s++)
        run_step(exe, &exe->steps[s]);
    values_move_states(exe);
}

static void run_replay(struct exe *exe)
{
    struct exe_device *t = exe->on_device;
    t->device.kind->bind(&t->device, exe_device_sink(t));
    values_upload(exe);
    note_begin(exe);
    t->device.kind->replay(&t->device, t->graph, t->stream, exe_device_sink(t));
}

/* Waits after each step, so that its work is done before the watch hears of its end. */
void exe_device_run_watched(struct exe *exe, const struct exe_watch *watch)
{
    struct exe_device *t = exe->on_device;
    t->device.kind->bind(&t->device, exe_device_sink(t));
    values_upload(exe);
    note_begin(exe);
    for (int s = 0; s < exe->step_count; s++) {
        watch->begin(watch->context, s);
        run_step(exe, &exe->steps[s]);
        exe_wait(exe);
        watch->end(watch->context, s);
    }
    values_move_states(exe);
}

/* ---- capturing ---- */

static bool may_capture(struct exe *exe)
{
    struct exe_device *t = exe->on_device;
    if (exe->options.no_capture)
        snprintf(t->why_not, sizeof(t->why_not), "it was switched off");
    else if (!t->device.kind->capture_begin)
        snprintf(t->why_not, sizeof(t->why_not), "the device cannot record launches");
    else if (t->host_steps)
        snprintf(t->why_not, sizeof(t->why_not), "%d of %d steps run on the host", t->host_steps,
                 exe->step_count);
    else
        return true;
    return false;
}

/* Which step it is that cannot be captured, found by capturing each alone, where the launches
 * themselves refused nothing. */
static void blame_step(struct exe *exe, struct error *why)
{
    struct exe_device *t = exe->on_device;
    const struct device_kind *kind = t->device.kind;
    for (int s = 0; s < exe->step_count; s++) {
        struct device_graph *graph = NULL;
        struct error own = {0};
        if (kind->capture_begin(&t->device, t->stream, &own) != STATUS_OK)
            return;
        t->capturing = true;
        run_step(exe, &exe->steps[s]);
        t->capturing = false;
        enum status status = kind->capture_end(&t->device, t->stream, &graph, &own);
        if (graph)
            kind->graph_free(&t->device, graph);
        t->failed = (struct error){0};
        if (status != STATUS_OK) {
            *why = own;
            error_context(why, "node \"%s\", kernel %s", exe->steps[s].query.node->name,
                          exe->steps[s].kernel->name);
            return;
        }
    }
}

/* Events are recorded before each step and after the last; NULL: none are. */
static void record_steps(struct exe *exe, void **events)
{
    struct exe_device *t = exe->on_device;
    for (int s = 0; s < exe->step_count; s++) {
        if (events)
            t->device.kind->event_record(&t->device, events[s], t->stream, exe_device_sink(t));
        run_step(exe, &exe->steps[s]);
    }
    if (events)
        t->device.kind->event_record(&t->device, events[exe->step_count], t->stream,
                                     exe_device_sink(t));
    values_move_states(exe);
}

/* branches: side by side; there are no events then. */
static void record_run(struct exe *exe, void **events, bool branches)
{
    if (!branches) {
        record_steps(exe, events);
        return;
    }
    lanes_record(exe, run_step);
    values_move_states(exe); /* behind the last step of each lane */
}

/* runs: that follow each other. */
static enum status capture_runs(struct exe *exe, void **events, bool branches, int64_t runs,
                                struct device_graph **graph, struct error *err)
{
    struct exe_device *t = exe->on_device;
    const struct device_kind *kind = t->device.kind;
    TRY(kind->capture_begin(&t->device, t->stream, err));
    t->capturing = true;
    for (int64_t k = 0; k < runs; k++)
        record_run(exe, events, branches);
    t->capturing = false;
    enum status status = kind->capture_end(&t->device, t->stream, graph, err);
    if (t->failed.code == STATUS_OK && status != STATUS_OK && status != STATUS_LOST)
        blame_step(exe, err);
    if (t->failed.code == STATUS_OK)
        return status;
    if (*graph)
        kind->graph_free(&t->device, *graph);
    *graph = NULL;
    *err = t->failed;
    t->failed = (struct error){0}; /* steps launched one by one do run, as was just seen */
    return err->code;
}

static enum status capture(struct exe *exe, void **events, bool branches,
                           struct device_graph **graph, struct error *err)
{
    return capture_runs(exe, events, branches, 1, graph, err);
}

static enum status capture_run(struct exe *exe, struct error *err)
{
    struct exe_device *t = exe->on_device;
    struct error why = {0};
    exe->run = run_steps;
    if (!may_capture(exe))
        return STATUS_OK;
    if (capture(exe, NULL, t->branches, &t->graph, &why) == STATUS_OK)
        exe->run = run_replay;
    else if (device_blame(&t->device, t->stream, &why) == STATUS_LOST)
        t->failed = why;
    else
        snprintf(t->why_not, sizeof(t->why_not), "%.255s", why.message);
    return exe_status(exe, err);
}

/* The first run loads code and shows whether all launches are taken; then it may be recorded. */
static enum status first_run(struct exe *exe, struct error *err)
{
    run_steps(exe);
    exe_wait(exe);
    TRY(exe_status(exe, err));
    return capture_run(exe, err);
}

static void forget_joined(struct exe_device *t)
{
    if (t->joined)
        t->device.kind->graph_free(&t->device, t->joined);
    t->joined = NULL;
    t->joined_runs = 0;
}

enum status exe_use_branches(struct exe *exe, bool branches, struct error *err)
{
    struct exe_device *t = exe->on_device;
    TRY(exe_status(exe, err));
    exe_wait(exe);
    forget_joined(t);
    if (t->graph)
        t->device.kind->graph_free(&t->device, t->graph);
    t->graph = NULL;
    t->branches = branches && lanes_count(exe) > 1;
    return capture_run(exe, err);
}

enum status exe_capture_again(struct exe *exe, struct error *err)
{
    TRY(exe_status(exe, err));
    return exe->on_device && exe->on_device->graph
               ? exe_use_branches(exe, exe->on_device->branches, err)
               : STATUS_OK;
}

/* ---- several runs as one graph ---- */

/* A graph of a few thousand nodes takes the driver some megabytes and a moment. */
enum { JOINED_MAX = 128, JOINED_STEPS_MAX = 2048 };
static const double joined_s = 1e-3;

static int64_t worth_joining(const struct exe *exe, double run_s)
{
    const struct exe_device *t = exe->on_device;
    if (!t || !t->graph || exe->exchange_count || !(run_s > 0) || run_s >= joined_s)
        return 1;
    double runs = fmin(ceil(joined_s / run_s), JOINED_MAX);
    int steps = exe->step_count + exe->moved_count + 1;
    return (int64_t)fmax(1, fmin(runs, (double)(JOINED_STEPS_MAX / steps)));
}

/* What goes wrong is no harm but where the device is lost by it: there is the graph of one. */
int64_t exe_join_runs(struct exe *exe, double run_s)
{
    struct exe_device *t = exe->on_device;
    struct error why = {0};
    int64_t runs = worth_joining(exe, run_s);
    if (runs < 2 || t->failed.code != STATUS_OK)
        return exe_joined_runs(exe);
    exe_wait(exe);
    forget_joined(t);
    if (capture_runs(exe, NULL, t->branches, runs, &t->joined, &why) == STATUS_OK)
        t->joined_runs = runs;
    else if (device_blame(&t->device, t->stream, &why) == STATUS_LOST)
        t->failed = why;
    return exe_joined_runs(exe);
}

int64_t exe_joined_runs(const struct exe *exe)
{
    return exe->on_device && exe->on_device->joined ? exe->on_device->joined_runs : 1;
}

static void run_joined(struct exe *exe)
{
    struct exe_device *t = exe->on_device;
    t->device.kind->bind(&t->device, exe_device_sink(t));
    values_upload(exe);
    t->device.kind->replay(&t->device, t->joined, t->stream, exe_device_sink(t));
}

void exe_start_runs(struct exe *exe, int64_t runs)
{
    int64_t joined = exe_joined_runs(exe);
    for (; joined > 1 && runs >= joined; runs -= joined)
        run_joined(exe);
    for (; runs > 0; runs--)
        exe->run(exe);
}

enum status exe_device_link(struct exe *exe, struct error *err)
{
    TRY(device_plan(exe, err));
    TRY(exchanges_open(exe, err));
    return first_run(exe, err);
}

void exe_device_idle(struct exe *exe)
{
    struct exe_device *t = exe->on_device;
    if (t && t->device.kind->bind(&t->device, NULL) == STATUS_OK && t->stream)
        exe_wait(exe);
}

void exe_device_close(struct exe *exe)
{
    struct exe_device *t = exe->on_device;
    if (!t)
        return;
    const struct device_kind *kind = t->device.kind;
    for (int v = 0; exe->places && v < exe->g->value_count; v++) {
        if (exe->places[v].on_device.owned)
            kind->free(&t->device, exe->places[v].on_device.memory);
        if (exe->places[v].on_device.pinned)
            kind->free_host(&t->device, exe->places[v].memory);
    }
    lanes_close(exe);
    forget_joined(t);
    if (t->graph)
        kind->graph_free(&t->device, t->graph);
    if (t->memory)
        kind->free(&t->device, t->memory);
    if (exe->memory)
        kind->free_host(&t->device, exe->memory);
    exe->memory = NULL;
    if (t->stream)
        kind->stream_free(&t->device, t->stream);
    device_close(&t->device);
}

/* ---- for users of executables ---- */

void exe_wait(struct exe *exe)
{
    struct exe_device *t = exe->on_device;
    if (!t)
        return;
    exchanges_attend(exe);
    t->device.kind->wait(&t->device, t->stream, exe_device_sink(t));
}

enum status exe_status(const struct exe *exe, struct error *err)
{
    const struct error *failed = exe->on_device ? &exe->on_device->failed : &exe->failed;
    if (failed->code != STATUS_OK && err)
        *err = *failed;
    return failed->code;
}

const struct device *exe_device(const struct exe *exe)
{
    static const struct device host = {.kind = &device_kind_cpu};
    return exe->on_device ? &exe->on_device->device : &host;
}

const char *exe_not_captured(const struct exe *exe)
{
    return exe->on_device && !exe->on_device->graph ? exe->on_device->why_not : NULL;
}

/* ---- times ---- */

static enum status make_events(struct exe *exe, void **events)
{
    struct exe_device *t = exe->on_device;
    for (int s = 0; s <= exe->step_count; s++)
        TRY(t->device.kind->event_new(&t->device, &events[s], exe_device_sink(t)));
    return STATUS_OK;
}

/* An event between any two steps: replayed with them where steps are replayed, so that the device
 * waits for nobody; else launched between them. A step on the host ends with its copies, and the
 * device's clock goes on meanwhile. */
static void time_once(struct exe *exe, struct device_graph *graph, void **events, int repeats,
                      double *samples)
{
    struct exe_device *t = exe->on_device;
    const struct device_kind *kind = t->device.kind;
    if (graph)
        kind->replay(&t->device, graph, t->stream, exe_device_sink(t));
    else
        record_steps(exe, events);
    exe_wait(exe);
    for (int s = 0; s < exe->step_count; s++)
        kind->event_elapsed(&t->device, events[s], events[s + 1], &samples[s * repeats],
                            exe_device_sink(t));
}

/* NULL where it cannot be had: then steps are launched one by one. */
static struct device_graph *timed_graph(struct exe *exe, void **events)
{
    struct exe_device *t = exe->on_device;
    struct device_graph *graph = NULL;
    struct error why = {0};
    if (t->graph && capture(exe, events, false, &graph, &why) != STATUS_OK &&
        device_blame(&t->device, t->stream, &why) == STATUS_LOST)
        t->failed = why;
    return graph;
}

void exe_device_time_steps(struct exe *exe, int repeats, double *samples)
{
    struct exe_device *t = exe->on_device;
    struct device_graph *graph = NULL;
    void **events = calloc((size_t)exe->step_count + 1, sizeof(*events));
    t->device.kind->bind(&t->device, exe_device_sink(t));
    values_upload(exe);
    if (events && make_events(exe, events) == STATUS_OK) {
        graph = timed_graph(exe, events);
        for (int r = 0; r < repeats && t->failed.code == STATUS_OK; r++)
            time_once(exe, graph, events, repeats, samples + r);
    }
    if (graph)
        t->device.kind->graph_free(&t->device, graph);
    for (int s = 0; events && s <= exe->step_count; s++)
        if (events[s])
            t->device.kind->event_free(&t->device, events[s]);
    free(events);
}

/* One run goes ahead of the first event: the queue is not empty when the device's clock starts, so
 * what is timed is what the device does and not how soon it is asked. */
double exe_device_time_runs(struct exe *exe, int64_t runs)
{
    struct exe_device *t = exe->on_device;
    const struct device_kind *kind = t->device.kind;
    void *from = NULL, *to = NULL;
    double ns = 0;
    kind->bind(&t->device, exe_device_sink(t));
    if (kind->event_new(&t->device, &from, exe_device_sink(t)) == STATUS_OK &&
        kind->event_new(&t->device, &to, exe_device_sink(t)) == STATUS_OK) {
        exe->run(exe);
        kind->event_record(&t->device, from, t->stream, exe_device_sink(t));
        for (int64_t k = 0; k < runs; k++)
            exe->run(exe);
        kind->event_record(&t->device, to, t->stream, exe_device_sink(t));
        exe_wait(exe);
        kind->event_elapsed(&t->device, from, to, &ns, exe_device_sink(t));
    }
    if (from)
        kind->event_free(&t->device, from);
    if (to)
        kind->event_free(&t->device, to);
    return ns / (double)runs;
}
