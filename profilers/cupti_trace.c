/* SPDX-License-Identifier: Apache-2.0
 *
 * What ran on an NVIDIA GPU and when, by CUPTI's records of activity: kernels, copies, and the gaps
 * in which nothing ran, which is the time that launching limits. Two passes: one record per kernel,
 * which slows graphs down a little, then one per launch of a graph. The records of the first pass
 * become a file that trace viewers read. Needs no permission. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/output.h"
#include "profilers/lib/cupti_session.h"

enum { NODES, GRAPHS, PASSES, PATH_SIZE = 1024 };

struct session {
    struct cupti_session cupti;
    struct cupti_tracer *tracer;
    struct trace traces[PASSES];
    int64_t executions[PASSES], dropped[PASSES];
    char path[PATH_SIZE]; /* of the file; "": none */
    bool written;
};

static bool trace_available(char *reason, size_t size)
{
    return cupti_session_available(CUPTI_TRACE, reason, size);
}

/* ---- the file ---- */

static enum status write_file(struct session *s, struct error *err)
{
    if (!s->path[0] || trace_summarise(&s->traces[NODES]).doubt[0]) /* the metrics say why */
        return STATUS_OK;
    TRY(folders_make(s->path, err));
    struct output out;
    TRY(output_open(&out, s->path, OUTPUT_DERIVED, err));
    trace_write(&s->traces[NODES], out.stream);
    TRY(output_close(&out, STATUS_OK, err));
    s->written = true;
    return STATUS_OK;
}

/* ---- the profiler ---- */

static void drop(struct session *s)
{
    if (s->tracer)
        s->cupti.backend->tracer_close(s->tracer);
    cupti_session_detach(&s->cupti);
    for (int k = 0; k < PASSES; k++)
        trace_release(&s->traces[k]);
    free(s);
}

static enum status start(const struct profiler_model *model, struct session *s, struct error *err)
{
    char reason[CUPTI_REASON] = "";
    TRY(cupti_session_attach(model, CUPTI_TRACE, &s->cupti, err));
    s->tracer = s->cupti.backend->tracer_open(s->cupti.cupti, reason);
    if (!s->tracer)
        return UNSUPPORTED(err, "%s", reason);
    if (model->folder && model->label)
        snprintf(s->path, sizeof(s->path), "%s/%s.json", model->folder, model->label);
    return STATUS_OK;
}

static enum status trace_open(const struct profiler_model *model, int threads, void **session,
                              struct error *err)
{
    (void)threads;
    struct session *s = calloc(1, sizeof(*s));
    if (!s)
        return FAIL_NO_MEMORY(err);
    enum status status = start(model, s, err);
    if (status != STATUS_OK)
        drop(s);
    else
        *session = s;
    return status;
}

static int trace_passes(const void *session)
{
    (void)session;
    return PASSES;
}

static enum status trace_begin(void *session, int pass, struct error *err)
{
    char reason[CUPTI_REASON] = "";
    struct session *s = session;
    if (!s->cupti.backend->synchronise(s->cupti.cupti, reason) ||
        !s->cupti.backend->tracer_start(s->tracer, pass == GRAPHS, reason))
        return FAIL(err, STATUS_FAILED, "%s", reason);
    return STATUS_OK;
}

/* The first replays under a trace pay for CUPTI's buffers, and for the graph, which it uploads
 * anew. */
static enum status trace_settle(void *session, int pass, struct error *err)
{
    char reason[CUPTI_REASON] = "";
    struct session *s = session;
    (void)pass;
    if (!s->cupti.backend->synchronise(s->cupti.cupti, reason) ||
        !s->cupti.backend->tracer_drop(s->tracer, reason))
        return FAIL(err, STATUS_FAILED, "%s", reason);
    return STATUS_OK;
}

static void add_record(void *context, const struct trace_record *record)
{
    trace_add(context, record);
}

static enum status trace_end(void *session, int pass, int64_t executions, struct error *err)
{
    char reason[CUPTI_REASON] = "";
    struct session *s = session;
    struct trace *trace = &s->traces[pass];
    s->executions[pass] = executions;
    if (!s->cupti.backend->synchronise(s->cupti.cupti, reason) ||
        !s->cupti.backend->tracer_stop(s->tracer, add_record, trace, &s->dropped[pass], reason))
        return FAIL(err, STATUS_FAILED, "%s", reason);
    if (trace->out_of_memory)
        return FAIL_NO_MEMORY(err);
    trace_sort(trace);
    return pass == NODES ? write_file(s, err) : STATUS_OK;
}

/* Lost records make every sum too small and every gap too long. */
static const char *doubt(const struct session *s, int pass, const struct trace_summary *summary)
{
    if (!s->executions[pass])
        return "nothing was executed";
    if (s->dropped[pass])
        return "CUPTI dropped records: fewer executions, or one stream";
    if (summary->doubt[0])
        return summary->doubt;
    return s->traces[pass].count ? "" : "nothing ran on the GPU";
}

static int trace_read(void *session, struct profiler_metric *metrics)
{
    const struct session *s = session;
    const struct trace_summary n = trace_summarise(&s->traces[NODES]);
    const struct trace_summary g = trace_summarise(&s->traces[GRAPHS]);
    const char *why = doubt(s, NODES, &n), *why_graphs = doubt(s, GRAPHS, &g);
    const double one = why[0] ? NAN : 1 / (double)s->executions[NODES];
    const double one_graph = why_graphs[0] ? NAN : 1 / (double)s->executions[GRAPHS];
    const char *file = s->written ? s->path : "kernels, copies and sets, by start";
    const double ns = 1e-9 * one, all_ns = (double)(n.busy_ns + n.gap_ns);
    const struct profiler_metric all[] = {
        {"kernels", "1", file, why, (double)n.kernels * one},
        {"copies", "1", "copies of memory", why, (double)n.copies * one},
        {"copy_bytes", "B", "bytes of copies", why, (double)n.copy_bytes * one},
        {"gpu_busy_s", "s", "time in which anything ran, overlaps once", why,
         (double)n.busy_ns * ns},
        {"kernel_s", "s", "sum of the kernels' times", why, (double)n.kernel_ns * ns},
        {"copy_s", "s", "sum of the copies' times", why, (double)n.copy_ns * ns},
        {"gap_s", "s", "between the first start and the last end, nothing ran", why,
         (double)n.gap_ns * ns},
        {"gap_longest_s", "s", "the longest of all executions", why,
         (double)n.longest_gap_ns * 1e-9 * (why[0] ? NAN : 1)},
        {"gap_share", "1", "gap_s / (gap_s + gpu_busy_s)", why,
         all_ns > 0 ? (double)n.gap_ns / all_ns * (why[0] ? NAN : 1) : NAN},
        {"trace_overhead_s", "s", "what tracing and the driver cost by their own account", why,
         (double)n.overhead_ns * ns},
        {"graph_launches", "1", "launches of graphs", why_graphs, (double)g.graphs * one_graph},
        {"graph_s", "s", "sum of the graphs' times, traced as wholes", why_graphs,
         (double)g.graph_ns * 1e-9 * one_graph},
        {"gap_whole_s", "s", "gap_s with graphs traced as wholes", why_graphs,
         (double)g.gap_ns * 1e-9 * one_graph},
    };
    for (int k = 0; k < ARRAY_COUNT(all); k++) {
        metrics[k] = all[k];
        if (isnan(metrics[k].value) && !metrics[k].reason[0])
            metrics[k].reason = "everything took no time";
    }
    return ARRAY_COUNT(all);
}

static void trace_close(void *session)
{
    drop(session);
}

REGISTER(profiler, cupti_trace) = {
    .name = "cupti_trace",
    .summary = "kernels, copies and gaps on NVIDIA GPUs by CUPTI, and a file for trace viewers",
    .pass_s = 0.5,
    .executions_max = 50, /* a file of some megabytes at most */
    .attaches = true,
    .available = trace_available,
    .open = trace_open,
    .passes = trace_passes,
    .begin = trace_begin,
    .settle = trace_settle,
    .end = trace_end,
    .read = trace_read,
    .close = trace_close,
};
