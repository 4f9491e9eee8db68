/* SPDX-License-Identifier: Apache-2.0
 *
 * What the made runtime calls its errors: those that tests make. */
#include "engine/kernels/cuda/lib/api.h"
#include "tests/gpu/host/script.h"

enum { INVALID = 1, TOO_LARGE = 701, STREAM_CAPTURING = 900, CAPTURE_INVALIDATED = 901 };

static const struct {
    int error;
    const char *name, *text;
} errors[] = {
    {CUDA_OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "out of memory"},
    {TOO_LARGE, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {CUDA_ILLEGAL_ADDRESS, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {CUDA_LAUNCH_FAILURE, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {CUDA_SYSTEM_NOT_READY, "cudaErrorSystemNotReady", "system not yet initialized"},
    {CUDA_DRIVER_MISMATCH, "cudaErrorSystemDriverMismatch",
     "system has unsupported display driver / cuda driver combination"},
    {CUDA_COMPAT_NOT_SUPPORTED, "cudaErrorCompatNotSupportedOnDevice",
     "forward compatibility was attempted on non supported HW"},
    {STREAM_CAPTURING, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {INVALID, "cudaErrorInvalidValue", "invalid argument"},
};

/* Of one that is not listed: the last row's. */
static int error_row(int error)
{
    int last = (int)(sizeof(errors) / sizeof(errors[0])) - 1, k = 0;
    while (k < last && errors[k].error != error)
        k++;
    return k;
}

const char *host_error_name(int error)
{
    return errors[error_row(error)].name;
}

const char *host_error_text(int error)
{
    return errors[error_row(error)].text;
}
