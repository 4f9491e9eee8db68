/* SPDX-License-Identifier: Apache-2.0
 *
 * The table's real functions. The wrappers only translate types. */
#include <cuda_runtime_api.h>

#include "engine/kernels/cuda/lib/api.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), "as the runtime counts")
SAME(CUDA_DONE, cudaSuccess);
SAME(CUDA_OUT_OF_MEMORY, cudaErrorMemoryAllocation);
SAME(CUDA_OLD_DRIVER, cudaErrorInsufficientDriver);
SAME(CUDA_NO_DEVICE, cudaErrorNoDevice);
SAME(CUDA_TO_DEVICE, cudaMemcpyHostToDevice);
SAME(CUDA_TO_HOST, cudaMemcpyDeviceToHost);
SAME(CUDA_WITHIN, cudaMemcpyDeviceToDevice);
SAME(CUDA_NOT_READY, cudaErrorNotReady);
SAME(CUDA_SYSTEM_NOT_READY, cudaErrorSystemNotReady);
SAME(CUDA_DRIVER_MISMATCH, cudaErrorSystemDriverMismatch);
SAME(CUDA_COMPAT_NOT_SUPPORTED, cudaErrorCompatNotSupportedOnDevice);
SAME(CUDA_ECC, cudaErrorECCUncorrectable);
SAME(CUDA_NVLINK, cudaErrorNvlinkUncorrectable);
SAME(CUDA_ILLEGAL_ADDRESS, cudaErrorIllegalAddress);
SAME(CUDA_LAUNCH_TIMEOUT, cudaErrorLaunchTimeout);
SAME(CUDA_CONTEXT_DESTROYED, cudaErrorContextIsDestroyed);
SAME(CUDA_ASSERT, cudaErrorAssert);
SAME(CUDA_STACK_ERROR, cudaErrorHardwareStackError);
SAME(CUDA_ILLEGAL_INSTRUCTION, cudaErrorIllegalInstruction);
SAME(CUDA_MISALIGNED_ADDRESS, cudaErrorMisalignedAddress);
SAME(CUDA_ADDRESS_SPACE, cudaErrorInvalidAddressSpace);
SAME(CUDA_INVALID_PC, cudaErrorInvalidPc);
SAME(CUDA_LAUNCH_FAILURE, cudaErrorLaunchFailure);
SAME(CUDA_EXTERNAL_DEVICE, cudaErrorExternalDevice);
SAME(CUDA_UNKNOWN, cudaErrorUnknown);
/* CUDA_CONTAINED and CUDA_TENSOR_MEMORY_LEAK are younger than the oldest toolkit. */

/* An error that is returned is also kept for cudaGetLastError, where a library would find it and
 * take it for its own: it is fetched, so that each is reported once. Errors that spoil the context
 * stay all the same. */
static int reported(cudaError_t error)
{
    if (error != cudaSuccess)
        cudaGetLastError();
    return (int)error;
}

static int driver_version(int *version)
{
    return reported(cudaDriverGetVersion(version));
}

static int runtime_version(int *version)
{
    return reported(cudaRuntimeGetVersion(version));
}

static int device_count(int *count)
{
    return reported(cudaGetDeviceCount(count));
}

static int set_device(int index)
{
    return reported(cudaSetDevice(index));
}

static int read_attributes(struct cuda_facts *f, int index)
{
    const struct {
        enum cudaDeviceAttr attribute;
        int *value;
    } wanted[] = {
        {cudaDevAttrComputeCapabilityMajor, &f->major},
        {cudaDevAttrComputeCapabilityMinor, &f->minor},
        {cudaDevAttrMultiProcessorCount, &f->units},
        {cudaDevAttrL2CacheSize, &f->cache_bytes},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, &f->shared_bytes},
        {cudaDevAttrClockRate, &f->clock_khz},
        {cudaDevAttrMemoryClockRate, &f->memory_khz},
        {cudaDevAttrGlobalMemoryBusWidth, &f->bus_bits},
    };
    for (size_t k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++) {
        int error = reported(cudaDeviceGetAttribute(wanted[k].value, wanted[k].attribute, index));
        if (error != CUDA_DONE)
            return error;
    }
    return CUDA_DONE;
}

static int facts(struct cuda_facts *f, int index)
{
    struct cudaDeviceProp properties;
    int error = reported(cudaGetDeviceProperties(&properties, index));
    if (error != CUDA_DONE)
        return error;
    for (size_t k = 0; k + 1 < sizeof(f->name) && properties.name[k]; k++)
        f->name[k] = properties.name[k];
    error = reported(cudaDeviceGetPCIBusId(f->bus, (int)sizeof(f->bus), index));
    return error != CUDA_DONE ? error : read_attributes(f, index);
}

static int memory_info(size_t *free_bytes, size_t *total)
{
    return reported(cudaMemGetInfo(free_bytes, total));
}

static int malloc_device(void **memory, size_t bytes)
{
    return reported(cudaMalloc(memory, bytes));
}

static int free_device(void *memory)
{
    return reported(cudaFree(memory));
}

static int malloc_host(void **memory, size_t bytes)
{
    return reported(cudaMallocHost(memory, bytes));
}

static int free_host(void *memory)
{
    return reported(cudaFreeHost(memory));
}

/* Beside the legacy stream, which other libraries use unasked and which would wait for ours. */
static int stream_create(void **stream)
{
    return reported(cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking));
}

static int stream_destroy(void *stream)
{
    return reported(cudaStreamDestroy(stream));
}

static int stream_synchronize(void *stream)
{
    return reported(cudaStreamSynchronize(stream));
}

/* That work goes on is no error, and none is kept. */
static int stream_query(void *stream)
{
    return reported(cudaStreamQuery(stream));
}

static int copy(void *to, const void *from, size_t bytes, enum cuda_copy direction, void *stream)
{
    return reported(cudaMemcpyAsync(to, from, bytes, (enum cudaMemcpyKind)direction, stream));
}

static int set(void *memory, int byte, size_t bytes, void *stream)
{
    return reported(cudaMemsetAsync(memory, byte, bytes, stream));
}

static int event_create(void **event)
{
    return reported(cudaEventCreate((cudaEvent_t *)event));
}

static int event_destroy(void *event)
{
    return reported(cudaEventDestroy(event));
}

static int event_record(void *event, void *stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    int error = reported(cudaStreamIsCapturing(stream, &status));
    if (error != CUDA_DONE)
        return error;
    int captured = status != cudaStreamCaptureStatusNone; /* the flag is refused elsewhere */
    return reported(cudaEventRecordWithFlags(
        event, stream, captured ? cudaEventRecordExternal : cudaEventRecordDefault));
}

static int event_mark(void *event, void *stream)
{
    return reported(cudaEventRecord(event, stream));
}

static int stream_follow(void *stream, void *event)
{
    return reported(cudaStreamWaitEvent(stream, event, 0));
}

static int event_elapsed(float *ms, void *from, void *to)
{
    return reported(cudaEventElapsedTime(ms, from, to));
}

/* Of this thread only: what other threads do to the device meanwhile is none of the capture. */
static int capture_begin(void *stream)
{
    return reported(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

static int capture_end(void *stream, void **graph)
{
    return reported(cudaStreamEndCapture(stream, (cudaGraph_t *)graph));
}

static int graph_instantiate(void **exec, void *graph)
{
    return reported(cudaGraphInstantiate((cudaGraphExec_t *)exec, graph, 0));
}

static int graph_launch(void *exec, void *stream)
{
    return reported(cudaGraphLaunch(exec, stream));
}

static int graph_exec_destroy(void *exec)
{
    return reported(cudaGraphExecDestroy(exec));
}

static int graph_destroy(void *graph)
{
    return reported(cudaGraphDestroy(graph));
}

static int code_version(const void *kernel, int *version)
{
    struct cudaFuncAttributes attributes = {0};
    int error = reported(cudaFuncGetAttributes(&attributes, kernel));
    *version = attributes.ptxVersion;
    return error;
}

/* Older code does not wait for the kernels before it. */
static bool can_wait(const void *kernel)
{
    int version;
    return code_version(kernel, &version) == CUDA_DONE && version >= 90;
}

enum { ATTRIBUTES_MAX = 2 };

static cudaLaunchConfig_t config_of(const struct cuda_launch *l, bool early,
                                    cudaLaunchAttribute attributes[ATTRIBUTES_MAX])
{
    unsigned count = 0;
    if (l->cluster)
        attributes[count++] = (cudaLaunchAttribute){.id = cudaLaunchAttributeClusterDimension,
                                                    .val.clusterDim = {l->cluster, 1, 1}};
    if (early)
        attributes[count++] =
            (cudaLaunchAttribute){.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                  .val.programmaticStreamSerializationAllowed = 1};
    return (cudaLaunchConfig_t){.gridDim = {l->grid.x, l->grid.y, l->grid.z},
                                .blockDim = {l->block.x, l->block.y, l->block.z},
                                .dynamicSmemBytes = l->shared_bytes,
                                .attrs = attributes,
                                .numAttrs = count};
}

static int launch(const struct cuda_launch *l, void *stream)
{
    cudaLaunchAttribute attributes[ATTRIBUTES_MAX];
    cudaLaunchConfig_t config = config_of(l, l->early && can_wait(l->kernel), attributes);
    void *arguments[] = {l->argument};
    config.stream = stream;
    return reported(cudaLaunchKernelExC(&config, l->kernel, arguments));
}

static int clusters_at_once(const struct cuda_launch *l, int *count)
{
    cudaLaunchAttribute attributes[ATTRIBUTES_MAX];
    cudaLaunchConfig_t config = config_of(l, false, attributes);
    return reported(cudaOccupancyMaxActiveClusters(count, l->kernel, &config));
}

static int allow_shared(const void *kernel, size_t bytes)
{
    return reported(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
}

static const char *error_name(int error)
{
    return cudaGetErrorName((cudaError_t)error);
}

static const char *error_text(int error)
{
    return cudaGetErrorString((cudaError_t)error);
}

const struct cuda_api cuda_api = {
    .driver_version = driver_version,
    .runtime_version = runtime_version,
    .device_count = device_count,
    .set_device = set_device,
    .facts = facts,
    .memory_info = memory_info,
    .malloc = malloc_device,
    .free = free_device,
    .malloc_host = malloc_host,
    .free_host = free_host,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_query = stream_query,
    .copy = copy,
    .set = set,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_elapsed = event_elapsed,
    .event_mark = event_mark,
    .stream_follow = stream_follow,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_instantiate = graph_instantiate,
    .graph_launch = graph_launch,
    .graph_exec_destroy = graph_exec_destroy,
    .graph_destroy = graph_destroy,
    .launch = launch,
    .clusters_at_once = clusters_at_once,
    .code_version = code_version,
    .allow_shared = allow_shared,
    .error_name = error_name,
    .error_text = error_text,
};
