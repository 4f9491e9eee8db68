/* SPDX-License-Identifier: Apache-2.0 */
#include "profilers/lib/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/json.h"

/* A pass takes seconds: what lies further apart was not timed by one clock. */
static const uint64_t apart_max_ns = 60000000000U;

void trace_add(struct trace *trace, const struct trace_record *record)
{
    if (record->end_ns < record->start_ns || !record->start_ns) {
        trace->untimed++;
        return;
    }
    if (trace->count == trace->capacity) {
        size_t capacity = trace->capacity ? 2 * trace->capacity : 1024;
        struct trace_record *grown = realloc(trace->records, capacity * sizeof(*grown));
        trace->out_of_memory |= !grown;
        trace->lost += !grown;
        if (!grown)
            return;
        trace->records = grown;
        trace->capacity = capacity;
    }
    trace->records[trace->count++] = *record;
}

static int by_start(const void *a, const void *b)
{
    const struct trace_record *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

void trace_sort(struct trace *trace)
{
    if (trace->count)
        qsort(trace->records, trace->count, sizeof(*trace->records), by_start);
}

static void add_kind(struct trace_summary *s, const struct trace_record *r)
{
    uint64_t time = r->end_ns - r->start_ns;
    switch (r->kind) {
    case TRACE_KERNEL:
        s->kernels++;
        s->kernel_ns += time;
        break;
    case TRACE_COPY:
        s->copies++;
        s->copy_ns += time;
        s->copy_bytes += r->bytes;
        break;
    case TRACE_SET:
        s->sets++;
        s->set_ns += time;
        break;
    case TRACE_GRAPH:
        s->graphs++;
        s->graph_ns += time;
        break;
    case TRACE_OVERHEAD:
    case TRACE_KIND_COUNT:
        s->overhead_ns += time;
        break;
    }
}

static const char *doubt_of(const struct trace *trace, const struct trace_summary *s,
                            uint64_t longest_ns)
{
    if (trace->lost)
        return "records were lost: fewer executions, or one stream";
    if (trace->untimed)
        return "records have no time or end before they begin: a newer CUPTI, or fewer executions";
    if (s->longest_gap_ns > apart_max_ns || longest_ns > apart_max_ns)
        return "records are more than 60 s apart, so two clocks timed them: a newer CUPTI";
    return "";
}

struct trace_summary trace_summarise(const struct trace *trace)
{
    struct trace_summary s = {.doubt = ""};
    uint64_t longest_ns = 0;
    uint64_t end = 0;
    bool any = false;
    for (size_t k = 0; k < trace->count; k++) {
        const struct trace_record *r = &trace->records[k];
        add_kind(&s, r);
        if (r->kind == TRACE_OVERHEAD)
            continue;
        if (any && r->start_ns > end) {
            uint64_t gap = r->start_ns - end;
            s.gaps++;
            s.gap_ns += gap;
            s.longest_gap_ns = gap > s.longest_gap_ns ? gap : s.longest_gap_ns;
        }
        uint64_t from = any && r->start_ns < end ? end : r->start_ns;
        if (r->end_ns > from)
            s.busy_ns += r->end_ns - from;
        if (!any || r->end_ns > end)
            end = r->end_ns;
        longest_ns = r->end_ns - r->start_ns > longest_ns ? r->end_ns - r->start_ns : longest_ns;
        any = true;
    }
    s.doubt = doubt_of(trace, &s, longest_ns);
    return s;
}

/* ---- the file ---- */

static const char *const kind_names[TRACE_KIND_COUNT] = {"kernel", "copy", "set", "graph",
                                                         "overhead"};

static void write_details(struct json *json, const struct trace_record *r)
{
    json_open(json, "args", '{');
    json_int(json, "correlation", r->correlation);
    if (r->kind == TRACE_COPY || r->kind == TRACE_SET)
        json_int(json, "bytes", (int64_t)r->bytes);
    if (r->kind == TRACE_KERNEL) {
        const int64_t grid[] = {r->grid[0], r->grid[1], r->grid[2]};
        const int64_t block[] = {r->block[0], r->block[1], r->block[2]};
        json_ints(json, "grid", grid, 3);
        json_ints(json, "block", block, 3);
        json_int(json, "registers", r->registers);
        json_int(json, "shared_bytes", r->shared_bytes);
        json_int(json, "graph_node", (int64_t)r->graph_node);
    }
    json_close(json);
}

/* Overhead is a process of its own: it happens on the host. */
static int64_t process_of(const struct trace_record *r)
{
    return r->kind == TRACE_OVERHEAD ? -1 : (int64_t)r->device;
}

static void write_record(struct json *json, const struct trace_record *r, uint64_t zero_ns)
{
    json_open(json, NULL, '{');
    json->compact = true;
    json_text(json, "name", r->name);
    json_text(json, "cat", kind_names[r->kind]);
    json_text(json, "ph", "X");
    json_number(json, "ts", (double)(r->start_ns - zero_ns) * 1e-3);
    json_number(json, "dur", (double)(r->end_ns - r->start_ns) * 1e-3);
    json_int(json, "pid", process_of(r));
    json_int(json, "tid", r->stream);
    write_details(json, r);
    json_close(json);
    json->compact = false;
}

static void name_process(struct json *json, int64_t process)
{
    char name[32] = "host";
    if (process >= 0)
        snprintf(name, sizeof(name), "GPU %" PRId64, process);
    json_open(json, NULL, '{');
    json_text(json, "name", "process_name");
    json_text(json, "ph", "M");
    json_int(json, "pid", process);
    json_open(json, "args", '{');
    json_text(json, "name", name);
    json_close(json);
    json_close(json);
}

/* Each process once; a trace has few, mostly one. */
static void name_processes(struct json *json, const struct trace *trace)
{
    int64_t last = -2;
    for (int64_t least; last < INT32_MAX; last = least) {
        least = INT32_MAX;
        for (size_t k = 0; k < trace->count; k++) {
            int64_t process = process_of(&trace->records[k]);
            if (process > last && process < least)
                least = process;
        }
        if (least < INT32_MAX)
            name_process(json, least);
    }
}

bool trace_write(const struct trace *trace, FILE *file)
{
    struct json json;
    uint64_t zero_ns = trace->count ? trace->records[0].start_ns : 0;
    json_begin(&json, file);
    json_open(&json, NULL, '{');
    json_text(&json, "displayTimeUnit", "ns");
    json_open(&json, "traceEvents", '[');
    name_processes(&json, trace);
    for (size_t k = 0; k < trace->count; k++)
        write_record(&json, &trace->records[k], zero_ns);
    json_close(&json);
    json_close(&json);
    return !ferror(file);
}

void trace_release(struct trace *trace)
{
    free(trace->records);
    *trace = (struct trace){.records = NULL};
}
