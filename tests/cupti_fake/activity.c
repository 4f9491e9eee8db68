/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cupti_fake/state.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_MIN = 4096, START_NS = 1000000 };

/* CLOCK_REALTIME, as CUPTI has it; and what another clock is off by. */
static const uint64_t base_ns = 1790000000000000000, off_ns = 100000000000000;

static CUpti_BuffersCallbackRequestFunc on_request;
static CUpti_BuffersCallbackCompleteFunc on_complete;

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
    (void)function;
    broke("a timestamp callback: the head of each trace keeps the time of another clock");
    return CUPTI_SUCCESS;
}

PUBLIC CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    ENTER(cuptiActivityEnable);
    if (!on_request)
        broke("cuptiActivityEnable before the callbacks");
    if (kind == CUPTI_ACTIVITY_KIND_KERNEL)
        broke("a kind that makes kernels run one after the other");
    fake.objects += !fake.enabled[kind];
    fake.enabled[kind] = fake.fresh = fake.was_attached = true;
    fake.traced_replays = device_replays();
    fake.traced_captures = device_captures();
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
static size_t put_nodes(uint8_t *to, size_t used, uint64_t base, uint64_t late)
{
    static const uint64_t starts[] = {0, 5000, 35000};
    for (uint32_t k = 0; k < 3; k++) {
        CUpti_ActivityKernel10 kernel;
        memset(&kernel, 0, sizeof(kernel));
        kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        kernel.start = base + starts[k] + (k ? late : 0);
        kernel.end = kernel.start + 10000;
        if (k == 0 && fake.script.foreign_time) /* the head of the trace */
            kernel.start -= off_ns, kernel.end -= off_ns;
        if (k == 1 && fake.script.zero_time)
            kernel.start = kernel.end = 0;
        kernel.streamId = 7 + k;
        kernel.correlationId = k + 1;
        kernel.gridX = 132;
        kernel.gridY = kernel.gridZ = kernel.blockY = kernel.blockZ = 1;
        kernel.blockX = fake.script.alien_records ? 70000 : 256;
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

static size_t put_graph(uint8_t *to, size_t used, uint64_t begin_ns, uint64_t end_ns)
{
    CUpti_ActivityGraphTrace2 graph;
    memset(&graph, 0, sizeof(graph));
    graph.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
    graph.start = begin_ns;
    graph.end = end_ns;
    return put(to, used, &graph, sizeof(graph));
}

static size_t put_kernel(uint8_t *to, size_t used, uint64_t begin_ns, uint64_t end_ns)
{
    CUpti_ActivityKernel10 kernel;
    memset(&kernel, 0, sizeof(kernel));
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel.start = begin_ns;
    kernel.end = end_ns;
    kernel.gridX = kernel.gridY = kernel.gridZ = 1;
    kernel.blockX = kernel.blockY = kernel.blockZ = 1;
    kernel.name = "replayed";
    return put(to, used, &kernel, sizeof(kernel));
}

/* What the made device replayed since the trace began, of graphs that it captured since: nodes of
 * older ones are not known to CUPTI. */
static size_t put_replays(uint8_t *to, size_t size)
{
    size_t used = 0;
    uint64_t begin_ns, end_ns;
    for (long k = fake.traced_replays; device_replay(k, &begin_ns, &end_ns); k++) {
        if (device_replay_capture(k) <= fake.traced_captures)
            continue;
        if (used + sizeof(CUpti_ActivityKernel10) > size)
            broke("more replays than a buffer has room for");
        else if (fake.enabled[CUPTI_ACTIVITY_KIND_GRAPH_TRACE])
            used = put_graph(to, used, begin_ns, end_ns);
        else
            used = put_kernel(to, used, begin_ns, end_ns);
    }
    fake.traced_replays = device_replays();
    return used;
}

PUBLIC CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    uint8_t *buffer = NULL;
    size_t size = 0, limit = 0, used = 0;
    ENTER(cuptiActivityFlushAll);
    if (flag || !fake.enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL])
        return CUPTI_SUCCESS;
    /* What was launched first waited for CUPTI. */
    uint64_t base = base_ns, late = fake.fresh ? START_NS : 0;
    fake.dropped += fake.fresh ? fake.script.dropped_at_start : fake.script.dropped_records;
    fake.fresh = false;
    on_request(&buffer, &size, &limit);
    if (!buffer || size < BUFFER_MIN || (uintptr_t)buffer % 8)
        broke("a buffer that is too small or not aligned");
    if (getenv("RIDGE_FAKE_REPLAYS")) {
        used = put_replays(buffer, size);
    } else {
        used = fake.enabled[CUPTI_ACTIVITY_KIND_GRAPH_TRACE]
                   ? put_graph(buffer, used, base, base + 45000 + late)
                   : put_nodes(buffer, used, base, late);
        used = put_others(buffer, used, base);
    }
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
    *dropped = (size_t)fake.dropped; /* since the last call, says its manual */
    fake.dropped = 0;
    return CUPTI_SUCCESS;
}
