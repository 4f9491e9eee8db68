/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes to and fro between the host's memory and a device's: inputs and states that the host
 * has changed, what steps there need, results that are asked for. The contents of a state are those
 * that the device has, but from exe_input or exe_reset until the next run uploads the host's. */
#include "engine/run/exe_internal.h"

void values_copy(const struct exe *exe, int root, enum device_copy direction)
{
    struct exe_device *t = exe->on_device;
    const struct place *place = &exe->places[root];
    bool up = direction == COPY_TO_DEVICE;
    t->device.kind->copy(&t->device, up ? place->on_device.memory : place->memory,
                         up ? place->memory : place->on_device.memory, place->bytes, direction,
                         t->stream, exe_device_sink(t));
}

void values_changed(struct exe *exe, int v)
{
    if (exe_is_on_device(exe))
        exe->on_device->stale = exe->places[exe->places[v].root].on_device.stale = true;
}

void values_upload(struct exe *exe)
{
    for (int k = 0; exe->on_device->stale && k < exe->g->input_count; k++) {
        int root = exe->places[exe->g->inputs[k]].root;
        if (exe->places[root].on_device.stale)
            values_copy(exe, root, COPY_TO_DEVICE);
        exe->places[root].on_device.stale = false;
    }
    exe->on_device->stale = false;
}

void values_move_states(struct exe *exe)
{
    struct exe_device *t = exe->on_device;
    for (int k = 0; k < exe->moved_count && t->failed.code == STATUS_OK; k++) {
        const struct state *state = &exe->g->states[exe->moved[k]];
        const struct place *to = &exe->places[state->before];
        const void *from = value_on_device(exe->places, state->after);
        if (from == to->on_device.memory)
            continue;
        t->device.kind->copy(&t->device, to->on_device.memory, from, to->bytes, COPY_WITHIN,
                             t->stream, &t->failed);
        if (t->failed.code != STATUS_OK)
            error_context(&t->failed, "state \"%s\"", exe->g->values[state->before].name);
    }
}

static void download(const struct exe *exe, int root)
{
    struct exe_device *t = exe->on_device;
    values_copy(exe, root, COPY_TO_HOST);
    t->device.kind->wait(&t->device, t->stream, exe_device_sink(t));
}

/* A state is not among them: the host may have an old copy. */
static void inputs_changed(struct exe *exe)
{
    for (int k = 0; k < exe->g->input_count; k++)
        if (!value_is_state(exe, exe->g->inputs[k]))
            values_changed(exe, exe->g->inputs[k]);
}

void *exe_input(struct exe *exe, int i)
{
    int v = exe->g->inputs[i];
    struct exe_device *t = exe->on_device;
    if (!t)
        return value_memory(exe->places, v);
    t->device.kind->bind(&t->device, exe_device_sink(t));
    exe_wait(exe); /* an upload may still be reading */
    if (value_is_state(exe, v) && !exe->places[v].on_device.stale)
        download(exe, v);
    if (value_is_state(exe, v))
        values_changed(exe, v);
    else
        inputs_changed(exe);
    return value_memory(exe->places, v);
}

/* Whether the device alone has what the root's memory shall have. */
static bool is_there_only(const struct exe *exe, int root)
{
    const struct device_place *place = &exe->places[root].on_device;
    bool result = exe->g->values[root].kind == VALUE_RESULT;
    return value_is_state(exe, root) ? !place->stale : result && !place->written_by_host;
}

const void *exe_output(const struct exe *exe, int i)
{
    int v = exe->g->outputs[i], root = exe->places[v].root;
    struct exe_device *t = exe->on_device;
    if (t && is_there_only(exe, root)) {
        t->device.kind->bind(&t->device, exe_device_sink(t));
        download(exe, root);
    }
    return value_memory(exe->places, v);
}
