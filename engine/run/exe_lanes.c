/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches of a network side by side: while an executable's run is captured, steps that do not need
 * each other go into several streams, which fork from the executable's own and join it at the end.
 *
 * What needs what is read from memory, not from the graph: a step comes after an earlier one that
 * wrote what it reads, or that reads or wrote what it writes, scratch included. So any plan of
 * memory is right; engine/compile/memplan.c makes one in which branches share little. Steps are
 * given to lanes in their order: to that of the latest step which it needs and which nobody has
 * followed yet, else to a new one, else to the lane whose last step is the earliest. */
#include <stdlib.h>

#include "engine/run/exe_internal.h"

struct lane_step {
    int lane;
    int after[LANES_MOST]; /* the step of each other lane that is to be waited for; NONE */
    bool first;            /* of its lane: begins where the run does */
    void *event;           /* for those that wait for it; NULL: nobody does */
};

struct lanes {
    int count;
    int last[LANES_MOST]; /* step of each lane */
    void *stream[LANES_MOST];
    void *begin; /* event: where the others fork */
    struct lane_step *steps;
};

/* ---- what needs what ---- */

struct span {
    const char *from, *to;
};

static struct span span_of(const struct exe *exe, int value)
{
    if (value == NONE)
        return (struct span){NULL, NULL};
    const struct place *root = &exe->places[exe->places[value].root];
    const char *memory = root->on_device.memory;
    return (struct span){memory, memory ? memory + root->bytes : NULL};
}

static struct span scratch_of(const struct step *step)
{
    const char *memory = step->args.workspace;
    return (struct span){memory, memory ? memory + step->workspace_bytes : NULL};
}

static bool meet(struct span a, struct span b)
{
    return a.from < b.to && b.from < a.to;
}

static bool meets_any(const struct exe *exe, struct span span, const int *values, int count)
{
    for (int k = 0; k < count; k++)
        if (meet(span, span_of(exe, values[k])))
            return true;
    return false;
}

/* Whether the span is touched by a step; writes: in a way that changes it. */
static bool touches(const struct exe *exe, const struct step *step, struct span span, bool writes)
{
    const struct node *node = step->query.node;
    return meet(span, scratch_of(step)) ||
           meets_any(exe, span, node->outputs, node->output_count) ||
           (!writes && meets_any(exe, span, node->inputs, node->input_count));
}

static bool comes_after(const struct exe *exe, const struct step *later, const struct step *step)
{
    const struct node *node = later->query.node;
    if (touches(exe, step, scratch_of(later), false))
        return true;
    for (int k = 0; k < node->output_count; k++)
        if (touches(exe, step, span_of(exe, node->outputs[k]), false))
            return true;
    for (int k = 0; k < node->input_count; k++)
        if (touches(exe, step, span_of(exe, node->inputs[k]), true))
            return true;
    return false;
}

/* ---- lanes ---- */

/* latest[l]: the last step before s in lane l that s comes after; NONE. */
static void find_latest(const struct exe *exe, const struct lanes *lanes, int s, int *latest)
{
    for (int l = 0; l < LANES_MOST; l++)
        latest[l] = NONE;
    for (int e = s - 1; e >= 0; e--) {
        int lane = lanes->steps[e].lane;
        if (latest[lane] == NONE && comes_after(exe, &exe->steps[s], &exe->steps[e]))
            latest[lane] = e;
    }
}

static int choose_lane(const struct lanes *lanes, const int *latest)
{
    int best = NONE, idle = 0;
    for (int l = 0; l < lanes->count; l++) {
        if (latest[l] != NONE && latest[l] == lanes->last[l] &&
            (best == NONE || latest[l] > latest[best]))
            best = l;
        idle = lanes->last[l] < lanes->last[idle] ? l : idle;
    }
    if (best != NONE)
        return best;
    return lanes->count < LANES_MOST ? lanes->count : idle;
}

/* seen[l][m]: up to which step of lane m lane l has waited. */
static void give_lane(struct lanes *lanes, int s, const int *latest,
                      int seen[LANES_MOST][LANES_MOST])
{
    struct lane_step *step = &lanes->steps[s];
    step->lane = choose_lane(lanes, latest);
    step->first = step->lane == lanes->count;
    lanes->count += step->first;
    lanes->last[step->lane] = s;
    for (int l = 0; l < LANES_MOST; l++) {
        bool waits = l != step->lane && latest[l] != NONE && latest[l] > seen[step->lane][l];
        step->after[l] = waits ? latest[l] : NONE;
        if (waits)
            seen[step->lane][l] = latest[l];
        step->first = step->first && !waits; /* it forks there */
    }
}

static struct lanes *make_lanes(struct exe *exe, struct error *err)
{
    struct lanes *lanes = arena_alloc(&exe->arena, sizeof(*lanes));
    struct lane_step *steps = arena_array(&exe->arena, (size_t)exe->step_count + 1, sizeof(*steps));
    int seen[LANES_MOST][LANES_MOST], latest[LANES_MOST];
    if (!lanes || !steps) {
        FAIL_NO_MEMORY(err);
        return NULL;
    }
    lanes->steps = steps;
    for (int l = 0; l < LANES_MOST; l++)
        for (int m = 0; m < LANES_MOST; m++)
            seen[l][m] = NONE;
    for (int s = 0; s < exe->step_count; s++) {
        find_latest(exe, lanes, s, latest);
        give_lane(lanes, s, latest, seen);
    }
    return lanes;
}

/* ---- events and streams ---- */

static enum status make_event(struct exe *exe, void **event, struct error *err)
{
    const struct device *device = &exe->on_device->device;
    return *event ? STATUS_OK : device->kind->event_new(device, event, err);
}

/* Whatever was made stays for lanes_close. */
static enum status make_events(struct exe *exe, struct lanes *lanes, struct error *err)
{
    const struct device *device = &exe->on_device->device;
    TRY(make_event(exe, &lanes->begin, err));
    for (int s = 0; s < exe->step_count; s++)
        for (int l = 0; l < LANES_MOST; l++)
            if (lanes->steps[s].after[l] != NONE)
                TRY(make_event(exe, &lanes->steps[lanes->steps[s].after[l]].event, err));
    lanes->stream[0] = exe->on_device->stream;
    for (int l = 1; l < lanes->count; l++) {
        TRY(make_event(exe, &lanes->steps[lanes->last[l]].event, err));
        TRY(device->kind->stream_new(device, &lanes->stream[l], err));
    }
    return STATUS_OK;
}

enum status lanes_open(struct exe *exe, struct error *err)
{
    struct exe_device *t = exe->on_device;
    if (t->lanes || !t->graph || !t->device.kind->mark || !t->device.kind->follow)
        return STATUS_OK;
    t->lanes = make_lanes(exe, err);
    if (!t->lanes)
        return STATUS_NO_MEMORY;
    return t->lanes->count > 1 ? make_events(exe, t->lanes, err) : STATUS_OK;
}

int lanes_count(const struct exe *exe)
{
    return exe->on_device && exe->on_device->lanes ? exe->on_device->lanes->count : 1;
}

int exe_streams(const struct exe *exe)
{
    return exe->on_device && exe->on_device->branches ? lanes_count(exe) : 1;
}

void lanes_close(struct exe *exe)
{
    struct exe_device *t = exe->on_device;
    struct lanes *lanes = t->lanes;
    for (int s = 0; lanes && s < exe->step_count; s++)
        if (lanes->steps[s].event)
            t->device.kind->event_free(&t->device, lanes->steps[s].event);
    if (lanes && lanes->begin)
        t->device.kind->event_free(&t->device, lanes->begin);
    for (int l = 1; lanes && l < lanes->count; l++)
        if (lanes->stream[l])
            t->device.kind->stream_free(&t->device, lanes->stream[l]);
    t->lanes = NULL;
}

/* ---- recording ---- */

static void follow(struct exe *exe, int lane, void *event)
{
    struct exe_device *t = exe->on_device;
    struct error *sink = t->failed.code == STATUS_OK ? &t->failed : NULL;
    t->device.kind->follow(&t->device, t->lanes->stream[lane], event, sink);
}

static void mark(struct exe *exe, int lane, void *event)
{
    struct exe_device *t = exe->on_device;
    struct error *sink = t->failed.code == STATUS_OK ? &t->failed : NULL;
    t->device.kind->mark(&t->device, event, t->lanes->stream[lane], sink);
}

void lanes_record(struct exe *exe, void (*run)(struct exe *exe, const struct step *step))
{
    struct lanes *lanes = exe->on_device->lanes;
    mark(exe, 0, lanes->begin);
    for (int s = 0; s < exe->step_count; s++) {
        struct lane_step *to = &lanes->steps[s];
        struct step step = exe->steps[s];
        if (to->first && to->lane > 0)
            follow(exe, to->lane, lanes->begin);
        for (int l = 0; l < LANES_MOST; l++)
            if (to->after[l] != NONE)
                follow(exe, to->lane, lanes->steps[to->after[l]].event);
        step.args.stream = lanes->stream[to->lane];
        run(exe, &step);
        if (to->event)
            mark(exe, to->lane, to->event);
    }
    for (int l = 1; l < lanes->count; l++)
        follow(exe, 0, lanes->steps[lanes->last[l]].event);
}
