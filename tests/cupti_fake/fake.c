/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cupti_fake/state.h"

#include <stdio.h>
#include <string.h>

/* Programs that do not script it get one GPU that works. */
struct fake_state fake = {.script = {.chip = "GH100",
                                     .passes = 2,
                                     .version = CUPTI_API_VERSION,
                                     .devices = 1,
                                     .zero_metric = -1}};

void broke(const char *what)
{
    if (!fake.rule[0])
        snprintf(fake.rule, sizeof(fake.rule), "%s", what);
}

static uint64_t hash_of(const uint8_t *bytes, size_t size)
{
    uint64_t hash = 14695981039346656037U;
    for (size_t k = 0; k < size; k++)
        hash = (hash ^ bytes[k]) * 1099511628211U;
    return hash;
}

struct kept keep(const uint8_t *bytes, size_t size)
{
    return (struct kept){bytes, size, hash_of(bytes, size)};
}

void keep_look(const struct kept *kept, const char *what)
{
    if (kept->bytes && hash_of(kept->bytes, kept->size) != kept->hash)
        broke(what);
}

int enter(const char *call)
{
    for (int k = 0; k < FAKE_NAMES_MAX; k++) {
        if (!fake.uses[k].name)
            fake.uses[k].name = call;
        if (strcmp(fake.uses[k].name, call) != 0)
            continue;
        fake.uses[k].uses++;
        bool fails = fake.script.call && strcmp(fake.script.call, call) == 0 &&
                     fake.uses[k].uses == fake.script.nth;
        fake.failed |= fails;
        return fails ? fake.script.code : 0;
    }
    return 0;
}

/* ---- the driver ---- */

PUBLIC CUresult cuInit(unsigned flags)
{
    (void)flags;
    ENTER(cuInit);
    fake.cuda_initialized = true;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuGetErrorName(CUresult code, const char **text)
{
    ENTER(cuGetErrorName);
    *text = code == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount);
    if (!fake.cuda_initialized)
        broke("cuDeviceGetCount before cuInit");
    *count = fake.script.devices;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGet(CUdevice *device, int index)
{
    ENTER(cuDeviceGet);
    if (index >= fake.script.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = index;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    ENTER(cuDevicePrimaryCtxRetain);
    *context = (CUcontext)(void *)&fake.script;
    fake.objects++;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    fake.objects--;
    fake.context_current = false;
    ENTER(cuDevicePrimaryCtxRelease_v2);
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER(cuCtxSetCurrent);
    fake.context_current = context != NULL;
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxSynchronize(void)
{
    ENTER(cuCtxSynchronize);
    if (!fake.context_current)
        broke("cuCtxSynchronize without a context");
    return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGetPCIBusId(char *bus, int size, CUdevice device)
{
    ENTER(cuDeviceGetPCIBusId);
    snprintf(bus, (size_t)size, "0000:0%d:00.0", device);
    return CUDA_SUCCESS;
}

/* ---- control ---- */

static void set(const struct fake_script *wanted)
{
    fake = (struct fake_state){.script = *wanted};
}

static int uses_of(const char *call)
{
    for (int k = 0; k < FAKE_NAMES_MAX && fake.uses[k].name; k++)
        if (strcmp(fake.uses[k].name, call) == 0)
            return fake.uses[k].uses;
    return 0;
}

static int open_objects(void)
{
    return fake.objects;
}

static const char *broken_rule(void)
{
    return fake.rule;
}

#define NAME(name) #name,

static const char *const *all_names(void)
{
    static const char *const all[] = {CUPTI_CALLS(NAME) DRIVER_CALLS(NAME) NULL};
    return all;
}

const struct fake_control *fake_control(void)
{
    static const struct fake_control control = {set, uses_of, open_objects, broken_rule, all_names};
    return &control;
}
