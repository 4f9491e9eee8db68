/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the tensors of an executable on a device lie, and which of them steps on the host need
 * copied: the same plan of memory serves the device's arena and, if there are such steps, a pinned
 * one of the host, so that a tensor has one offset on both sides. The contents of a state are those
 * that the device has: a step on the host fetches it each time, and gives back what it changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/run/exe_internal.h"

/* ---- who needs what where ---- */

static struct place *root_of(const struct exe *exe, int v)
{
    return v == NONE ? NULL : &exe->places[exe->places[v].root];
}

/* A fixed input whose packed form is all that launch needs is not read. */
static bool step_reads(const struct step *step, int k)
{
    return step->query.node->inputs[k] != NONE && kernel_reads(step->kernel, &step->query, k);
}

static void mark_step(struct exe *exe, struct step *step)
{
    const struct node *node = step->query.node;
    step->on_host = !exe_runs_on_device(exe, step->kernel);
    exe->on_device->host_steps += step->on_host;
    for (int k = 0; k < node->input_count; k++) {
        if (!step_reads(step, k))
            continue;
        struct device_place *place = &root_of(exe, node->inputs[k])->on_device;
        *(step->on_host ? &place->read_by_host : &place->read_by_device) = true;
    }
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NONE)
            root_of(exe, node->outputs[k])->on_device.written_by_host = step->on_host;
}

/* What follows a state is on the device where it is moved there, whoever computed it. */
static void mark_moved(struct exe *exe)
{
    for (int k = 0; k < exe->moved_count; k++)
        root_of(exe, exe->g->states[exe->moved[k]].after)->on_device.read_by_device = true;
}

/* Before a step on the host. */
static bool needs_fetch(const struct exe *exe, int root)
{
    const struct device_place *place = &exe->places[root].on_device;
    bool result = exe->g->values[root].kind == VALUE_RESULT;
    return value_is_state(exe, root) || (result && !place->written_by_host && !place->fetched);
}

/* After it. */
static bool needs_give(const struct exe *exe, int root)
{
    return value_is_state(exe, root) || exe->places[root].on_device.read_by_device;
}

static enum status plan_copies(struct exe *exe, struct step *step, struct error *err)
{
    const struct node *node = step->query.node;
    step->fetch = arena_array(&exe->arena, (size_t)node->input_count + 1, sizeof(int));
    step->give = arena_array(&exe->arena, (size_t)node->output_count + 1, sizeof(int));
    if (!step->fetch || !step->give)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < node->input_count; k++) {
        if (!step_reads(step, k))
            continue;
        int root = exe->places[node->inputs[k]].root;
        if (!needs_fetch(exe, root))
            continue;
        exe->places[root].on_device.fetched = true;
        step->fetch[step->fetch_count++] = root;
    }
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NONE && needs_give(exe, exe->places[node->outputs[k]].root))
            step->give[step->give_count++] = exe->places[node->outputs[k]].root;
    return STATUS_OK;
}

/* ---- memory ---- */

static bool is_output(const struct exe *exe, int root)
{
    for (int k = 0; k < exe->g->output_count; k++)
        if (exe->places[exe->g->outputs[k]].root == root)
            return true;
    return false;
}

/* The plan's size is what a user can do something about: a smaller batch. */
static enum status no_room(const struct exe *exe, struct error *err)
{
    size_t weights = exe->sizes.weight_bytes, states = 0;
    for (int v = 0; v < exe->g->value_count; v++) {
        bool weight = value_is_fixed(&exe->g->values[v]) && exe->places[v].on_device.read_by_device;
        weights += weight ? exe->places[v].bytes : 0;
        states += value_is_state(exe, v) ? exe->places[v].bytes : 0;
    }
    char more[48] = "";
    if (states)
        snprintf(more, sizeof(more), ", %.1f MB for states", (double)states * 1e-6);
    return error_context(err,
                         "the plan needs %.1f MB for activations%s and %.1f MB for weights; try a "
                         "smaller --batch",
                         (double)exe->sizes.arena_bytes * 1e-6, more, (double)weights * 1e-6);
}

static enum status alloc_on_device(struct exe *exe, size_t bytes, void **memory, struct error *err)
{
    const struct device *device = &exe->on_device->device;
    enum status status = device->kind->alloc(device, bytes, memory, err);
    return status == STATUS_NO_MEMORY ? no_room(exe, err) : status;
}

static enum status alloc_pinned(struct exe *exe, struct place *place, struct error *err)
{
    const struct device *device = &exe->on_device->device;
    TRY(device->kind->alloc_host(device, place->bytes, &place->memory, err));
    place->on_device.pinned = true;
    return STATUS_OK;
}

static enum status place_input(struct exe *exe, int v, struct error *err)
{
    struct place *place = &exe->places[v];
    TRY(alloc_pinned(exe, place, err));
    value_materialise_by(exe->pool, &exe->g->values[v], place->memory);
    TRY(alloc_on_device(exe, place->bytes, &place->on_device.memory, err));
    place->on_device.owned = true;
    values_changed(exe, v);
    return STATUS_OK;
}

static void release_host_copy(struct exe *exe, int v)
{
    struct place *place = &exe->places[v];
    struct value *value = &exe->g->values[v];
    if (place->owned)
        memory_free(place->memory);
    if (value->data_owned) {
        free((void *)(uintptr_t)value->data);
        value->data = NULL;
    }
    value->data_owned = place->owned = false;
    place->memory = NULL;
}

static enum status place_fixed(struct exe *exe, int v, struct error *err)
{
    struct place *place = &exe->places[v];
    const struct device *device = &exe->on_device->device;
    bool here = place->on_device.read_by_host || is_output(exe, v);
    if (!here && !place->on_device.read_by_device)
        return STATUS_OK;
    if (!place->memory) {
        place->memory = memory_alloc(place->bytes);
        if (!place->memory)
            return FAIL_NO_MEMORY(err);
        place->owned = true;
        value_materialise_by(exe->pool, &exe->g->values[v], place->memory);
    }
    exe->sizes.weight_bytes += place->bytes;
    if (!place->on_device.read_by_device)
        return STATUS_OK;
    TRY(alloc_on_device(exe, place->bytes, &place->on_device.memory, err));
    place->on_device.owned = true;
    TRY(device->kind->copy(device, place->on_device.memory, place->memory, place->bytes,
                           COPY_TO_DEVICE, exe->on_device->stream, err));
    TRY(device->kind->wait(device, exe->on_device->stream,
                           err)); /* pageable memory, perhaps freed */
    if (!here)
        release_host_copy(exe, v);
    return STATUS_OK;
}

static enum status place_result(struct exe *exe, int v, struct error *err)
{
    struct place *place = &exe->places[v];
    if (place->offset < 0)
        return STATUS_OK;
    place->on_device.memory = exe->on_device->memory + place->offset;
    if (exe->memory)
        place->memory = exe->memory + place->offset;
    else if (is_output(exe, v))
        TRY(alloc_pinned(exe, place, err));
    return STATUS_OK;
}

static enum status place_all(struct exe *exe, struct error *err)
{
    for (int v = 0; v < exe->g->value_count; v++) {
        if (exe->places[v].root != v)
            continue;
        if (value_is_fixed(&exe->g->values[v]))
            TRY(place_fixed(exe, v, err));
        else if (exe->g->values[v].kind != VALUE_RESULT)
            TRY(place_input(exe, v, err));
        else
            TRY(place_result(exe, v, err));
    }
    return STATUS_OK;
}

static enum status make_arenas(struct exe *exe, struct error *err)
{
    struct exe_device *t = exe->on_device;
    const struct device_kind *kind = t->device.kind;
    void *memory = NULL;
    TRY(alloc_on_device(exe, exe->sizes.arena_bytes, &memory, err));
    t->memory = memory;
    TRY(kind->fill(&t->device, memory, 0, exe->sizes.arena_bytes, t->stream, err));
    if (!t->host_steps)
        return STATUS_OK;
    TRY(kind->alloc_host(&t->device, exe->sizes.arena_bytes, &memory, err));
    exe->memory = memory;
    memset(memory, 0, exe->sizes.arena_bytes);
    return STATUS_OK;
}

static void *address_of(const struct exe *exe, const struct step *step, int v)
{
    if (v == NONE)
        return NULL;
    return step->on_host ? value_memory(exe->places, v) : value_on_device(exe->places, v);
}

static void link_step(struct exe *exe, struct step *step)
{
    const struct node *node = step->query.node;
    struct exe_device *t = exe->on_device;
    for (int k = 0; k < node->input_count; k++) {
        step->in[k] = address_of(exe, step, node->inputs[k]);
    }
    for (int k = 0; k < node->output_count; k++) {
        step->out[k] = address_of(exe, step, node->outputs[k]);
    }
    step->args = (struct kernel_args){.in = step->in, .out = step->out, .pool = exe->pool};
    if (step->workspace_offset >= 0)
        step->args.workspace = (step->on_host ? exe->memory : t->memory) + step->workspace_offset;
    if (!step->on_host) {
        step->args.stream = t->stream;
        step->args.err = &t->failed;
    }
}

enum status device_plan(struct exe *exe, struct error *err)
{
    for (int s = 0; s < exe->step_count; s++)
        mark_step(exe, &exe->steps[s]);
    mark_moved(exe);
    for (int s = 0; s < exe->step_count; s++)
        if (exe->steps[s].on_host)
            TRY(plan_copies(exe, &exe->steps[s], err));
    TRY(make_arenas(exe, err));
    TRY(place_all(exe, err));
    for (int s = 0; s < exe->step_count; s++)
        link_step(exe, &exe->steps[s]);
    return STATUS_OK;
}
