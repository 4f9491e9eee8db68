/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/run/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "engine/run/plugin.h"

#define X(name) extern const struct device_kind device_kind_##name;
#include "device_list.inc"
#undef X

static const struct device_kind *const built_in[] = {
#define X(name) &device_kind_##name,
#include "device_list.inc"
#undef X
};

int device_kind_count(void)
{
    return ARRAY_COUNT(built_in) + plugin_device_count();
}

const struct device_kind *device_kind_at(int index)
{
    int own = ARRAY_COUNT(built_in);
    return index < own ? built_in[index] : plugin_device_at(index - own);
}

static const struct device_kind *kind_of(const char *name)
{
    for (int k = 0; k < device_kind_count(); k++)
        if (strcmp(device_kind_at(k)->name, name) == 0)
            return device_kind_at(k);
    return NULL;
}

enum status device_parse(const char *name, char kind[32], int *index, struct error *err)
{
    const char *colon = strchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : strlen(name);
    char *end = NULL;
    long number = colon ? strtol(colon + 1, &end, 10) : 0;
    bool right = length > 0 && length < 32 &&
                 (!colon || (colon[1] >= '0' && colon[1] <= '9' && !*end && number < 1024));
    if (!right)
        return FAIL(err, STATUS_FAILED,
                    "\"%.40s\" is no device: give cpu, cuda, or one of several as cuda:1", name);
    snprintf(kind, 32, "%.*s", (int)length, name);
    *index = (int)number;
    return STATUS_OK;
}

void device_canonical(const char *name, char text[DEVICE_NAME_SIZE])
{
    char kind[32];
    int index;
    struct error ignored;
    name = name ? name : "cpu";
    if (device_parse(name, kind, &index, &ignored) != STATUS_OK)
        snprintf(text, DEVICE_NAME_SIZE, "%s", name);
    else if (index == 0)
        snprintf(text, DEVICE_NAME_SIZE, "%s", kind);
    else
        snprintf(text, DEVICE_NAME_SIZE, "%s:%d", kind, index);
}

/* --providers may have left its plug-in out, which usually has its name. */
static const struct device_kind *find_kind(const char *name)
{
    if (!kind_of(name))
        plugins_load(name);
    if (!kind_of(name))
        plugins_load(NULL);
    return kind_of(name);
}

bool device_has_kind(const char *kind)
{
    return find_kind(kind) != NULL;
}

/* A kind may be missing because its plug-in was not built or refused to load: that is the cause. */
static enum status fail_no_kind(const char *kind, struct error *err)
{
    const struct plugin_info *info = plugin_info_find(kind);
    if (info && info->reason)
        return UNSUPPORTED(err, "device \"%s\" is not there: %s; or use --device cpu", kind,
                           info->reason);
    return UNSUPPORTED(
        err, "there is no device \"%s\": no plug-in brings it (ridge doctor lists them)", kind);
}

static enum status find(const char *name, struct device *device, struct error *err)
{
    char kind[32];
    struct error why = {.message = "it gave no reason"};
    TRY(device_parse(name, kind, &device->index, err));
    device->kind = find_kind(kind);
    if (!device->kind)
        return fail_no_kind(kind, err);
    int count = device->kind->count(&why);
    if (count <= 0)
        return UNSUPPORTED(err, "%s: %s", name, why.message);
    if (device->index >= count)
        return UNSUPPORTED(err, "%s: there %s %d %s device%s, numbered from 0", name,
                           count == 1 ? "is" : "are", count, kind, count == 1 ? "" : "s");
    return STATUS_OK;
}

enum status device_check(const char *name, struct error *err)
{
    struct device device = {0};
    return find(name, &device, err);
}

bool device_is_host(const char *name)
{
    char kind[32];
    int index;
    if (!name || device_parse(name, kind, &index, NULL) != STATUS_OK)
        return true;
    const struct device_kind *found = kind_of(kind);
    return found && found->is_host;
}

enum status device_open(const char *name, struct device *device, struct error *err)
{
    struct device found = {0};
    *device = found;
    TRY(find(name ? name : "cpu", &found, err));
    if (found.kind->open(&found, err) != STATUS_OK)
        return error_context(err, "%s", name);
    *device = found;
    return STATUS_OK;
}

enum status device_blame(const struct device *device, void *stream, struct error *err)
{
    struct error says = {0}, first = *err;
    bool done;
    if (first.code == STATUS_OK || first.code == STATUS_LOST || !device->kind->poll)
        return first.code;
    if (device->kind->poll(device, stream, &done, &says) != STATUS_LOST)
        return first.code;
    return FAIL(err, STATUS_LOST, "%.300s; %.200s", first.message, says.message);
}

void device_close(struct device *device)
{
    if (device->kind)
        device->kind->close(device);
    *device = (struct device){0};
}
