/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML for whole runs: a GPU at 1.98 GHz that heat holds down only if RIDGE_FAKE_HEAT is set, and
 * that tells the bits of RIDGE_FAKE_SLOW as the reasons of its clock; it has the newer name of that
 * call only. It tells no energy once CUPTI was attached. Calls that fail are scripted in
 * tests/unit/test_nvml.c, behind the same table. */
#define _POSIX_C_SOURCE 200809L
#include "profilers/lib/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/cupti_fake/state.h"

#define CALL(type, name, arguments)                                                                \
    PUBLIC type name arguments;                                                                    \
    type name arguments

enum { MEGAHERTZ = 1980, CELSIUS = 50, MILLIWATTS = 300000 };

static unsigned long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}

CALL(int, nvmlInit_v2, (void))
{
    return NVML_SUCCESS;
}

CALL(int, nvmlShutdown, (void))
{
    return NVML_SUCCESS;
}

CALL(const char *, nvmlErrorString, (int code))
{
    (void)code;
    return "made up";
}

CALL(int, nvmlSystemGetDriverVersion, (char *text, unsigned size))
{
    snprintf(text, size, "999.1");
    return NVML_SUCCESS;
}

CALL(int, nvmlDeviceGetName, (nvml_device device, char *text, unsigned size))
{
    (void)device;
    snprintf(text, size, "a made GPU");
    return NVML_SUCCESS;
}

CALL(int, nvmlDeviceGetCount_v2, (unsigned *count))
{
    *count = 1;
    return NVML_SUCCESS;
}

CALL(int, nvmlDeviceGetHandleByIndex_v2, (unsigned index, nvml_device *device))
{
    (void)index;
    *device = &fake;
    return NVML_SUCCESS;
}

CALL(int, nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, nvml_device *device))
{
    (void)bus;
    *device = &fake;
    return NVML_SUCCESS;
}

CALL(int, nvmlDeviceGetTotalEnergyConsumption,
     (nvml_device device, unsigned long long *millijoules))
{
    (void)device;
    if (fake.was_attached) /* what is measured from now on is not the work alone */
        return NVML_ERROR_NO_PERMISSION;
    *millijoules = now_ns() / 1000000 * MILLIWATTS / 1000;
    return NVML_SUCCESS;
}

CALL(int, nvmlDeviceGetClockInfo, (nvml_device device, int kind, unsigned *megahertz))
{
    (void)device;
    (void)kind;
    *megahertz = MEGAHERTZ;
    return NVML_SUCCESS;
}

CALL(int, nvmlDeviceGetTemperature, (nvml_device device, int sensor, unsigned *celsius))
{
    (void)device;
    (void)sensor;
    *celsius = CELSIUS;
    return NVML_SUCCESS;
}

CALL(int, nvmlDeviceGetCurrentClocksEventReasons, (nvml_device device, unsigned long long *bits))
{
    const char *slow = getenv("RIDGE_FAKE_SLOW");
    (void)device;
    *bits = slow ? strtoull(slow, NULL, 0) : 0;
    return NVML_SUCCESS;
}

CALL(int, nvmlDeviceGetFieldValues, (nvml_device device, int count, struct nvml_field *fields))
{
    (void)device;
    for (int k = 0; k < count; k++) {
        bool power = fields[k].id == NVML_FIELD_POWER_INSTANT;
        bool hot = fields[k].id == NVML_FIELD_HELD_BY_HEAT && getenv("RIDGE_FAKE_HEAT");
        fields[k].code = NVML_SUCCESS;
        fields[k].value_type = power ? NVML_UNSIGNED : NVML_UNSIGNED_LONG_LONG;
        fields[k].value.ull = hot ? now_ns() : 0;
        if (power)
            fields[k].value.u32 = MILLIWATTS;
    }
    return NVML_SUCCESS;
}
