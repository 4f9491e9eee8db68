/* SPDX-License-Identifier: Apache-2.0
 *
 * What a failure of the library or the driver says, and what to do about it. */
#include "profilers/plugins/cupti/api.h"

#include <stdarg.h>
#include <stdio.h>

static const struct advice {
    int code;
    const char *text;
} advices[] = {
    {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
     ": run as root (a container needs --cap-add=PERFMON or --cap-add=SYS_ADMIN), or let everybody "
     "count: put \"options nvidia NVreg_RestrictProfilingToAdminUsers=0\" into "
     "/etc/modprobe.d/nvidia.conf and reboot"},
    {CUPTI_ERROR_HARDWARE_BUSY,
     ": another profiler holds the counters: end ncu, nsys or DCGM (dcgmi profile --pause)"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
     ": run without ncu, nsys, cuda-gdb or compute-sanitizer around it"},
    {CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED,
     ": counters need a compute instance that is as large as its GPU instance"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED,
     ": the host of this virtual GPU must allow profiling, or use a whole GPU"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
     ": the host of this virtual GPU must allow profiling, or use a whole GPU"},
    {CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, ": switch confidential computing off"},
    {CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, ": mining cards have no counters"},
    {CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, ": switch SLI off"},
    {CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, ": run under Linux itself, not under Windows"},
    {CUPTI_ERROR_INVALID_CHIP_NAME, ": this CUPTI is older than the chip: install a newer one"},
    {CUPTI_ERROR_OUT_OF_MEMORY, ": too little memory is free"},
    {CUPTI_ERROR_UNKNOWN, ": is the driver as new as the toolkit (nvidia-smi)?"},
};

bool cupti_say(char *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reason, CUPTI_REASON, format, args);
    va_end(args);
    return false;
}

bool cupti_ok(const struct cupti *cupti, char *reason, const char *call, CUptiResult code)
{
    const char *name = NULL, *advice = "";
    if (code == CUPTI_SUCCESS)
        return true;
    if (cupti->api.cuptiGetResultString(code, &name) != CUPTI_SUCCESS || !name)
        name = "a code without a name";
    for (size_t k = 0; k < sizeof(advices) / sizeof(advices[0]); k++)
        if (advices[k].code == (int)code)
            advice = advices[k].text;
    return cupti_say(reason, "%s says %d (%s)%s", call, (int)code, name, advice);
}

bool driver_ok(const struct cupti *cupti, char *reason, const char *call, CUresult code)
{
    const char *name = NULL, *advice = "";
    if (code == CUDA_SUCCESS)
        return true;
    if (cupti->driver.cuGetErrorName(code, &name) != CUDA_SUCCESS || !name)
        name = "a code without a name";
    if (code == CUDA_ERROR_STUB_LIBRARY)
        advice = ": libcuda.so.1 is the toolkit's stub: install NVIDIA's driver";
    else if (code == CUDA_ERROR_NO_DEVICE)
        advice = ": no GPU is there, or CUDA_VISIBLE_DEVICES hides it";
    else if (code == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
        advice = ": the kernel's module and libcuda are of different versions: reboot";
    else if (code == CUDA_ERROR_OUT_OF_MEMORY)
        advice = ": the GPU's memory is full";
    return cupti_say(reason, "%s says %d (%s)%s", call, (int)code, name, advice);
}
