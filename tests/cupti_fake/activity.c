/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cupti_fake/state.h"

#include <string.h>

enum { BUFFER_MIN = 4096 };

static CUpti_BuffersCallbackRequestFunc on_request;
static CUpti_BuffersCallbackCompleteFunc on_complete;
static CUpti_TimestampCallbackFunc timestamp;

/* ---- activity ---- */

PUBLIC CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                  CUpti_BuffersCallbackCompleteFunc complete)
{
    ENTER(cuptiActivityRegisterCallbacks);
    on_request = request;
    on_complete = complete;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function)
{
    ENTER(cuptiActivityRegisterTimestampCallback);
    timestamp = function;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    ENTER(cuptiActivityEnable);
    if (!on_request || !timestamp)
        broke("cuptiActivityEnable before the callbacks");
    if (kind == CUPTI_ACTIVITY_KIND_KERNEL)
        broke("a kind that makes kernels run one after the other");
    fake.objects += !fake.enabled[kind];
    fake.enabled[kind] = true;
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    fake.objects -= fake.enabled[kind];
    fake.enabled[kind] = false;
    ENTER(cuptiActivityDisable);
    return CUPTI_SUCCESS;
}

static size_t put(uint8_t *to, size_t used, const void *record, size_t size)
{
    memcpy(to + used, record, size);
    return used + size;
}

/* The nodes of one graph: 3 kernels of 10 us, the second overlapping the first by 5 us, then a gap
 * of 20 us; a copy of 4 us in the gap that leaves 8 us on either side. */
static size_t put_nodes(uint8_t *to, size_t used, uint64_t base)
{
    static const uint64_t starts[] = {0, 5000, 35000};
    for (uint32_t k = 0; k < 3; k++) {
        CUpti_ActivityKernel10 kernel;
        memset(&kernel, 0, sizeof(kernel));
        kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        kernel.start = base + starts[k];
        kernel.end = kernel.start + 10000;
        kernel.streamId = 7 + k;
        kernel.correlationId = k + 1;
        kernel.gridX = 132;
        kernel.gridY = kernel.gridZ = kernel.blockY = kernel.blockZ = 1;
        kernel.blockX = 256;
        kernel.registersPerThread = 64;
        kernel.staticSharedMemory = 1024;
        kernel.dynamicSharedMemory = 2048;
        kernel.graphNodeId = k;
        kernel.name = k == 2 ? NULL : "gemm_\"quoted\"_kernel";
        used = put(to, used, &kernel, sizeof(kernel));
    }
    CUpti_ActivityMemcpy6 copy;
    memset(&copy, 0, sizeof(copy));
    copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    copy.start = base + 23000;
    copy.end = base + 27000;
    copy.bytes = 4096;
    return put(to, used, &copy, sizeof(copy));
}

static size_t put_others(uint8_t *to, size_t used, uint64_t base)
{
    CUpti_ActivityMemset4 set;
    CUpti_ActivityOverhead3 overhead;
    memset(&set, 0, sizeof(set));
    set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    set.start = base + 45000;
    set.end = base + 46000;
    set.bytes = 64;
    memset(&overhead, 0, sizeof(overhead));
    overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    overhead.start = base;
    overhead.end = base + 2000;
    return put(to, put(to, used, &set, sizeof(set)), &overhead, sizeof(overhead));
}

static size_t put_graph(uint8_t *to, size_t used, uint64_t base)
{
    CUpti_ActivityGraphTrace2 graph;
    memset(&graph, 0, sizeof(graph));
    graph.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
    graph.start = base;
    graph.end = base + 45000;
    return put(to, used, &graph, sizeof(graph));
}

PUBLIC CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0, used = 0;
    ENTER(cuptiActivityFlushAll);
    if (flag || !fake.enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL])
        return CUPTI_SUCCESS;
    on_request(&buffer, &size, &most);
    if (!buffer || size < BUFFER_MIN || (uintptr_t)buffer % 8)
        broke("a buffer that is too small or not aligned");
    uint64_t base = timestamp();
    used = fake.enabled[CUPTI_ACTIVITY_KIND_GRAPH_TRACE] ? put_graph(buffer, used, base)
                                                         : put_nodes(buffer, used, base);
    used = put_others(buffer, used, base);
    on_complete(NULL, 0, buffer, size, used);
    return CUPTI_SUCCESS;
}

static size_t size_of(const void *record)
{
    CUpti_ActivityKind kind;
    memcpy(&kind, record, sizeof(kind));
    switch ((int)kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return sizeof(CUpti_ActivityGraphTrace2);
    default:
        return 0;
    }
}

PUBLIC CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t size, CUpti_Activity **record)
{
    ENTER(cuptiActivityGetNextRecord);
    uint8_t *next = *record ? (uint8_t *)*record + size_of(*record) : buffer;
    if (next >= buffer + size)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)next;
    return size_of(next) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

PUBLIC CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                     size_t *dropped)
{
    (void)context;
    (void)stream;
    ENTER(cuptiActivityGetNumDroppedRecords);
    *dropped = (size_t)fake.script.dropped_records;
    return CUPTI_SUCCESS;
}
