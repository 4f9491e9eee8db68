/* SPDX-License-Identifier: Apache-2.0
 *
 * The activity interface: CUPTI asks for buffers, fills them with records of what ran, and hands
 * them back on a thread of its own. They are kept in a list and read when the trace is stopped.
 * Its callbacks have no argument of ours, hence the one tracer per process below. Kernels are
 * traced as concurrent ones: the other kind would run them one after the other. Times are of
 * CUPTI's own clock, since only differences are used: each time that a clock of ours is registered,
 * one more kernel at the head of the trace keeps the time of the other clock (pytorch issue
 * 192021). */
#include "profilers/plugins/cupti/api.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 4 << 20, THREADS_MAX = 1024, DEVICES_MAX = 1024 };

/* In front of what CUPTI gets; 8-byte alignment is what it needs. */
struct buffer {
    struct buffer *next;
    size_t valid;
    uint8_t records[];
};

struct cupti_tracer {
    pthread_mutex_t lock;
    struct cupti *cupti;  /* NULL: no trace is open */
    struct buffer *first; /* that CUPTI gave back */
    int64_t refused;      /* buffers since the last take for which there was no memory */
    bool started, graphs;
};

static struct cupti_tracer tracer = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,           CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_OVERHEAD,          CUPTI_ACTIVITY_KIND_GRAPH_TRACE};
enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- what CUPTI calls ---- */

static void CUPTIAPI on_request(uint8_t **records, size_t *size, size_t *limit)
{
    struct buffer *buffer = calloc(1, sizeof(*buffer) + BUFFER_BYTES);
    *records = buffer ? buffer->records : NULL;
    *size = buffer ? BUFFER_BYTES : 0;
    *limit = 0; /* as many as fit */
    pthread_mutex_lock(&tracer.lock);
    tracer.refused += !buffer;
    pthread_mutex_unlock(&tracer.lock);
} /* cppcheck-suppress memleak ; on_complete gets it back */

static void CUPTIAPI on_complete(CUcontext context, uint32_t stream, uint8_t *records, size_t size,
                                 size_t valid)
{
    (void)context;
    (void)stream;
    (void)size;
    if (!records)
        return;
    struct buffer *buffer = (struct buffer *)(void *)(records - offsetof(struct buffer, records));
    buffer->valid = valid;
    pthread_mutex_lock(&tracer.lock);
    buffer->next = tracer.first;
    tracer.first = buffer;
    pthread_mutex_unlock(&tracer.lock);
}

/* ---- from CUPTI's records to ours ---- */

static void set_name(struct trace_record *r, const char *name)
{
    size_t length = name ? strnlen(name, TRACE_NAME - 1) : 0;
    memcpy(r->name, length ? name : "?", length ? length : 1);
    r->name[length ? length : 1] = '\0';
}

static void from_kernel(struct trace_record *r, const CUpti_ActivityKernel10 *k)
{
    *r = (struct trace_record){.kind = TRACE_KERNEL,
                               .start_ns = k->start,
                               .end_ns = k->end,
                               .device = k->deviceId,
                               .stream = k->streamId,
                               .correlation = k->correlationId,
                               .grid = {k->gridX, k->gridY, k->gridZ},
                               .block = {k->blockX, k->blockY, k->blockZ},
                               .registers = k->registersPerThread,
                               .graph_node = k->graphNodeId};
    r->shared_bytes = (uint32_t)(k->staticSharedMemory + k->dynamicSharedMemory);
    set_name(r, k->name);
}

static const char *copy_name(unsigned kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
        return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
        return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
        return "copy device to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
        return "copy host to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return "copy between devices";
    default:
        return "copy";
    }
}

static void from_copy(struct trace_record *r, const CUpti_ActivityMemcpy6 *c)
{
    *r = (struct trace_record){.kind = TRACE_COPY,
                               .start_ns = c->start,
                               .end_ns = c->end,
                               .device = c->deviceId,
                               .stream = c->streamId,
                               .correlation = c->correlationId,
                               .bytes = c->bytes,
                               .graph_node = c->graphNodeId};
    set_name(r, copy_name(c->copyKind));
}

static void from_peer_copy(struct trace_record *r, const CUpti_ActivityMemcpyPtoP4 *c)
{
    *r = (struct trace_record){.kind = TRACE_COPY,
                               .start_ns = c->start,
                               .end_ns = c->end,
                               .device = c->deviceId,
                               .stream = c->streamId,
                               .correlation = c->correlationId,
                               .bytes = c->bytes,
                               .graph_node = c->graphNodeId};
    set_name(r, copy_name(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP));
}

static void from_set(struct trace_record *r, const CUpti_ActivityMemset4 *s)
{
    *r = (struct trace_record){.kind = TRACE_SET,
                               .start_ns = s->start,
                               .end_ns = s->end,
                               .device = s->deviceId,
                               .stream = s->streamId,
                               .correlation = s->correlationId,
                               .bytes = s->bytes,
                               .graph_node = s->graphNodeId};
    set_name(r, "set memory");
}

static void from_graph(struct trace_record *r, const CUpti_ActivityGraphTrace2 *g)
{
    *r = (struct trace_record){.kind = TRACE_GRAPH,
                               .start_ns = g->start,
                               .end_ns = g->end,
                               .device = g->deviceId,
                               .stream = g->streamId,
                               .correlation = g->correlationId};
    set_name(r, "graph");
}

static void from_overhead(struct trace_record *r, const CUpti_ActivityOverhead3 *o)
{
    static const struct {
        CUpti_ActivityOverheadKind kind;
        const char *name;
    } names[] = {{CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER, "compiling in the driver"},
                 {CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, "flushing of CUPTI's buffers"},
                 {CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION, "instrumentation by CUPTI"},
                 {CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE, "CUPTI's resources"},
                 {CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING, "loading of a module"},
                 {CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, "loading of a function"},
                 {CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL, "command buffer full"},
                 {CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST, "request of a buffer"}};
    *r = (struct trace_record){.kind = TRACE_OVERHEAD,
                               .start_ns = o->start,
                               .end_ns = o->end,
                               .correlation = o->correlationId};
    set_name(r, "overhead");
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
        if (names[k].kind == o->overheadKind)
            set_name(r, names[k].name);
}

/* A newer CUPTI may have longer records, and fields at other places. */
static bool is_sound(const struct trace_record *r, char *reason)
{
    int64_t threads = (int64_t)r->block[0] * r->block[1] * r->block[2];
    bool sound = r->device < DEVICES_MAX && threads <= THREADS_MAX;
    for (int k = 0; k < 3; k++)
        sound = sound && r->block[k] >= 1 && r->block[k] <= THREADS_MAX && r->grid[k] >= 1;
    return sound || cupti_say(reason,
                              "a kernel's record has blocks of %d x %d x %d threads on device %u: "
                              "records of CUPTI %u are not those of %d, which this ridge was built "
                              "for: make it again with CUPTI_HOME=/folder/of/the/other",
                              r->block[0], r->block[1], r->block[2], r->device,
                              tracer.cupti->version, CUPTI_API_VERSION);
}

static bool convert(const CUpti_Activity *from, struct trace_record *to)
{
    const void *record = from;
    switch ((int)from->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        from_kernel(to, record);
        return true;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        from_copy(to, record);
        return true;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        from_peer_copy(to, record);
        return true;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        from_set(to, record);
        return true;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        from_graph(to, record);
        return true;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        from_overhead(to, record);
        return true;
    default:
        return false;
    }
}

static bool read_buffer(struct buffer *buffer, cupti_sink *sink, void *context, char *reason)
{
    CUpti_Activity *activity = NULL;
    struct trace_record record;
    for (;;) {
        CUptiResult code =
            tracer.cupti->api.cuptiActivityGetNextRecord(buffer->records, buffer->valid, &activity);
        /* The second: the rest of the buffer is no whole record. */
        if (code == CUPTI_ERROR_MAX_LIMIT_REACHED || code == CUPTI_ERROR_INVALID_KIND)
            return true;
        if (!cupti_ok(tracer.cupti, reason, "cuptiActivityGetNextRecord", code))
            return false;
        if (!convert(activity, &record))
            continue;
        if (record.kind == TRACE_KERNEL && !is_sound(&record, reason))
            return false;
        sink(context, &record);
    }
}

/* ---- the tracer ---- */

static struct buffer *take_buffers(int64_t *refused)
{
    pthread_mutex_lock(&tracer.lock);
    struct buffer *first = tracer.first;
    *refused = tracer.refused;
    tracer.first = NULL;
    tracer.refused = 0;
    pthread_mutex_unlock(&tracer.lock);
    return first;
}

static void drop_buffers(struct buffer *first)
{
    while (first) {
        struct buffer *next = first->next;
        free(first);
        first = next;
    }
}

static void disable(int count)
{
    for (int k = 0; k < count; k++)
        tracer.cupti->api.cuptiActivityDisable(kinds[k]);
}

struct cupti_tracer *cupti_tracer_open(struct cupti *cupti, char *reason)
{
    if (tracer.cupti) {
        cupti_say(reason, "a trace is open already");
        return NULL;
    }
    if (!CUPTI_OK(cupti, reason, cuptiActivityRegisterCallbacks, on_request, on_complete))
        return NULL;
    tracer.cupti = cupti;
    return &tracer;
}

bool cupti_tracer_start(struct cupti_tracer *t, bool graphs, char *reason)
{
    int count = KIND_COUNT - !graphs; /* whole graphs are the last kind */
    for (int k = 0; k < count; k++)
        if (!CUPTI_OK(t->cupti, reason, cuptiActivityEnable, kinds[k])) {
            disable(k);
            return false;
        }
    t->started = true;
    t->graphs = graphs;
    return true;
}

static bool flush(struct cupti_tracer *t, char *reason)
{
    t->started = false;
    bool flushed = CUPTI_OK(t->cupti, reason, cuptiActivityFlushAll, 0);
    disable(KIND_COUNT - !t->graphs);
    return flushed &&
           CUPTI_OK(t->cupti, reason, cuptiActivityFlushAll, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

/* Without FORCED, which would hand over records that CUPTI has not filled yet. */
bool cupti_tracer_drop(struct cupti_tracer *t, char *reason)
{
    size_t lost; /* is counted anew from here, and so is what was refused */
    int64_t refused;
    bool good = CUPTI_OK(t->cupti, reason, cuptiActivityFlushAll, 0) &&
                CUPTI_OK(t->cupti, reason, cuptiActivityGetNumDroppedRecords, NULL, 0, &lost);
    drop_buffers(take_buffers(&refused));
    return good;
}

bool cupti_tracer_stop(struct cupti_tracer *t, cupti_sink *sink, void *context, int64_t *dropped,
                       char *reason)
{
    size_t lost = 0;
    int64_t refused;
    bool good = flush(t, reason);
    struct buffer *first = take_buffers(&refused);
    for (struct buffer *b = first; b && good; b = b->next)
        good = read_buffer(b, sink, context, reason);
    drop_buffers(first);
    good = good && CUPTI_OK(t->cupti, reason, cuptiActivityGetNumDroppedRecords, NULL, 0, &lost);
    *dropped = (int64_t)lost;
    if (good && refused)
        return cupti_say(reason, "out of memory for %lld buffers of records", (long long)refused);
    return good;
}

void cupti_tracer_close(struct cupti_tracer *t)
{
    char unused[CUPTI_REASON];
    int64_t refused;
    if (t->started)
        flush(t, unused);
    drop_buffers(take_buffers(&refused));
    t->cupti = NULL;
}
