/* SPDX-License-Identifier: Apache-2.0
 *
 * A device and its context. Counters are asked for in an order that matters: after a failed
 * cuptiProfilerInitialize the calls of the target side crash instead of failing. */
#include "profilers/plugins/cupti/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CAP_SYS_ADMIN; CAP_PERFMON, which drivers from 565 on take, too: older than any of CUDA 13. */
static const unsigned long long may_profile = 1ULL << 21 | 1ULL << 38;

/* Number after "key:" in a file of such lines; -1 when there is none. */
static long long number_in(const char *path, const char *key, int base)
{
    char line[256];
    long long value = -1;
    size_t length = strlen(key);
    FILE *file = fopen(path, "re");
    while (file && value < 0 && fgets(line, sizeof(line), file))
        if (strncmp(line, key, length) == 0 && line[length] == ':')
            value = (long long)strtoull(line + length + 1, NULL, base);
    if (file)
        fclose(file);
    return value;
}

/* Before anything is tried, so that a failure cannot be taken for another one. */
static bool may_count(const struct cupti *cupti, char *reason)
{
    static const char key[] = "RmProfilingAdminOnly";
    long long capable = number_in(cupti->status_file, "CapEff", 16);
    if (number_in(cupti->params_file, key, 10) != 1 || capable < 0 ||
        ((unsigned long long)capable & may_profile))
        return true;
    return cupti_say(
        reason,
        "counters are for the administrator (%s: 1 in %s): run as root (a container needs "
        "--cap-add=PERFMON or --cap-add=SYS_ADMIN), or let everybody count: put \"options nvidia "
        "NVreg_RestrictProfilingToAdminUsers=0\" into /etc/modprobe.d/nvidia.conf and reboot",
        key, cupti->params_file);
}

/* Before the driver is woken: what a trace of this version may do is worse than no trace. */
static bool may_trace(const struct cupti *cupti, char *reason)
{
    enum { FIRST_OF_13 = 130000 };
    return cupti->version != FIRST_OF_13 ||
           cupti_say(reason,
                     "CUPTI %u may hang when a trace ends and crash when it is flushed; 13.0 "
                     "Update 1 does not: install it (pip install -U nvidia-cuda-cupti) and "
                     "name it in RIDGE_CUPTI",
                     cupti->version);
}

bool cupti_ready(struct cupti *cupti, enum cupti_use use, char *reason)
{
    int count = 0;
    if (use == CUPTI_TRACE && !may_trace(cupti, reason))
        return false;
    if (!cupti_load_driver(cupti, reason) || !DRIVER_OK(cupti, reason, cuInit, 0) ||
        !DRIVER_OK(cupti, reason, cuDeviceGetCount, &count))
        return false;
    if (count == 0)
        return cupti_say(reason, "the driver knows no GPU, or CUDA_VISIBLE_DEVICES hides it");
    return use == CUPTI_TRACE || may_count(cupti, reason);
}

/* A newer CUPTI has levels between: limited support is support. */
static bool is_refused(CUpti_Profiler_Support_Level level)
{
    return level == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED ||
           level == CUPTI_PROFILER_CONFIGURATION_DISABLED;
}

/* Which of the library's conditions is not met. */
static bool is_supported(struct cupti *cupti, enum cupti_use use, char *reason)
{
    PARAMS(CUpti_Profiler_DeviceSupported, p);
    p.cuDevice = cupti->device;
    p.api = use == CUPTI_SAMPLES ? CUPTI_PROFILER_PM_SAMPLING : CUPTI_PROFILER_RANGE_PROFILING;
    if (!CUPTI_OK(cupti, reason, cuptiProfilerDeviceSupported, &p))
        return false;
    if (!is_refused(p.isSupported))
        return true;
    const struct condition {
        CUpti_Profiler_Support_Level level;
        const char *text;
    } conditions[] = {
        {p.architecture, "this CUPTI begins with Turing: use the toolkit of CUDA 12 for Volta"},
        {p.sli, "SLI is on: switch it off"},
        {p.vGpu, "the host of this virtual GPU does not allow profiling"},
        {p.confidentialCompute, "confidential computing is on: switch it off"},
        {p.cmp, "mining cards have no counters"},
        {p.wsl, "Windows Subsystem for Linux: run under Linux itself"},
    };
    for (size_t k = 0; k < sizeof(conditions) / sizeof(conditions[0]); k++)
        if (is_refused(conditions[k].level))
            return cupti_say(reason, "counters of this device cannot be used: %s",
                             conditions[k].text);
    return cupti_say(reason, "counters of this device cannot be used, and CUPTI does not say why");
}

static bool enable_counters(struct cupti *cupti, enum cupti_use use, char *chip, char *reason)
{
    PARAMS(CUpti_Profiler_Initialize, init);
    PARAMS(CUpti_Device_GetChipName, name);
    if (!CUPTI_OK(cupti, reason, cuptiProfilerInitialize, &init))
        return false;
    cupti->counting = true;
    name.deviceIndex = (size_t)cupti->index;
    if (!is_supported(cupti, use, reason) ||
        !CUPTI_OK(cupti, reason, cuptiDeviceGetChipName, &name))
        return false;
    snprintf(chip, CUPTI_CHIP, "%s", name.pChipName ? name.pChipName : "");
    return true;
}

bool cupti_attach(struct cupti *cupti, int device, enum cupti_use use, char *chip, char *reason)
{
    chip[0] = '\0';
    if (!cupti_ready(cupti, use, reason) ||
        !DRIVER_OK(cupti, reason, cuDeviceGet, &cupti->device, device) ||
        !DRIVER_OK(cupti, reason, cuDevicePrimaryCtxRetain, &cupti->context, cupti->device))
        return false;
    cupti->index = device;
    if (DRIVER_OK(cupti, reason, cuCtxSetCurrent, cupti->context) &&
        (use == CUPTI_TRACE || enable_counters(cupti, use, chip, reason)))
        return true;
    cupti_detach(cupti);
    return false;
}

void cupti_detach(struct cupti *cupti)
{
    PARAMS(CUpti_Profiler_DeInitialize, p);
    cupti_let_go(cupti);
    if (cupti->counting)
        cupti->api.cuptiProfilerDeInitialize(&p);
    if (cupti->context)
        cupti->driver.cuDevicePrimaryCtxRelease_v2(cupti->device);
    cupti->counting = false;
    cupti->context = NULL;
}

bool cupti_synchronise(struct cupti *cupti, char *reason)
{
    return driver_ok(cupti, reason, "cuCtxSynchronize", cupti->driver.cuCtxSynchronize());
}
