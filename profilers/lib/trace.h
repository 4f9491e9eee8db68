/* SPDX-License-Identifier: Apache-2.0
 *
 * What ran on a GPU and when: records of a trace, what follows of them, and a file that trace
 * viewers read (chrome://tracing, https://ui.perfetto.dev). Knows no library.
 */
#ifndef PROFILERS_LIB_TRACE_H
#define PROFILERS_LIB_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TRACE_NAME = 240 };

enum trace_kind {
    TRACE_KERNEL,
    TRACE_COPY,
    TRACE_SET,
    TRACE_GRAPH,    /* a whole graph, from its first node to its last */
    TRACE_OVERHEAD, /* of the driver and of tracing, on the host */
    TRACE_KIND_COUNT
};

struct trace_record {
    enum trace_kind kind;
    uint64_t start_ns, end_ns; /* of one clock, whichever: differences count; 0: not known */
    char name[TRACE_NAME];     /* of a kernel as the compiler wrote it; "copy host to device" */
    uint32_t device, stream, correlation;
    uint64_t bytes;            /* of copies and sets */
    int32_t grid[3], block[3]; /* of kernels */
    uint32_t registers;        /* per thread */
    uint32_t shared_bytes;     /* per block, static and dynamic */
    uint64_t graph_node;       /* 0: not of a graph */
};

struct trace {
    struct trace_record *records; /* owned */
    size_t count, capacity;
    int64_t lost;    /* records that had no place */
    int64_t untimed; /* records that were left out for their times: 0, reversed */
    bool out_of_memory;
};

/* Sums over everything that ran on devices; overhead records are apart. Times are exact: two
 * records that overlap count once in busy, and a gap is a time between the first start and the
 * last end in which none ran. */
struct trace_summary {
    const char *doubt; /* why the sums mean nothing; "": they do */
    int64_t kernels, copies, sets, graphs, gaps;
    uint64_t kernel_ns, copy_ns, set_ns, graph_ns; /* sums of durations */
    uint64_t busy_ns, gap_ns, longest_gap_ns;
    uint64_t copy_bytes;
    uint64_t overhead_ns;
};

/* A record whose times are unknown or reversed is left out, and counted as such. */
void trace_add(struct trace *trace, const struct trace_record *record);
/* By start, then by end. Must have been called before the next two. */
void trace_sort(struct trace *trace);
struct trace_summary trace_summarise(const struct trace *trace);
/* JSON of the Trace Event Format, times in microseconds since the first record. False: the file
 * could not be written. */
bool trace_write(const struct trace *trace, FILE *file);
void trace_release(struct trace *trace);

#endif
