/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/machine/accelerators.h"

#include <stdio.h>
#include <string.h>

#include "engine/run/device.h"

const char *accelerator_kind(int index)
{
    for (int k = 0; k < device_kind_count(); k++)
        if (!device_kind_at(k)->is_host && index-- == 0)
            return device_kind_at(k)->name;
    return NULL;
}

int accelerator_count(const char *kind, struct error *why)
{
    *why = (struct error){.message = "it gave no reason"};
    for (int k = 0; k < device_kind_count(); k++) {
        const struct device_kind *found = device_kind_at(k);
        if (found->is_host || strcmp(found->name, kind) != 0)
            continue;
        int count = found->count(why);
        return count > 0 ? count : 0;
    }
    return -1;
}

/* Without those that the device does not say. */
static void print_properties(const char *name, const struct device_properties *p)
{
    const double gib = 1 << 30;
    printf("  %-14s %s", name, p->name[0] ? p->name : "no name");
    if (p->units)
        printf(", %d unit%s", p->units, p->units == 1 ? "" : "s");
    if (p->units && p->clock_hz > 0)
        printf(" at %.2f GHz", p->clock_hz * 1e-9);
    if (p->memory_bytes)
        printf(", %.1f of %.1f GiB free", (double)p->free_bytes / gib,
               (double)p->memory_bytes / gib);
    if (p->driver[0])
        printf(", driver for %s", p->driver);
    printf("\n");
}

static void print_one(const char *kind, int index)
{
    char name[48];
    struct device device;
    struct error err;
    snprintf(name, sizeof(name), "%s:%d", kind, index);
    if (device_open(name, &device, &err) != STATUS_OK) {
        printf("  %-14s %s\n", name, err.message);
        return;
    }
    print_properties(name, &device.properties);
    device_close(&device);
}

void accelerators_print(void)
{
    struct error why;
    for (int k = 0; accelerator_kind(k); k++) {
        const char *kind = accelerator_kind(k);
        int count = accelerator_count(kind, &why);
        if (k == 0)
            printf("devices\n");
        if (count == 0)
            printf("  %-14s absent, see below\n", kind);
        for (int index = 0; index < count; index++)
            print_one(kind, index);
    }
}

void accelerators_json(struct json *json)
{
    struct error why;
    json_open(json, "devices", '[');
    for (int k = 0; accelerator_kind(k); k++) {
        int count = accelerator_count(accelerator_kind(k), &why);
        json_open(json, NULL, '{');
        json_text(json, "name", accelerator_kind(k));
        json_int(json, "count", count);
        json_text(json, "reason", count > 0 ? NULL : why.message);
        json_close(json);
    }
    json_close(json);
}
