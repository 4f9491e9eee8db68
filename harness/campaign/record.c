/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/registry.h"
#include "harness/campaign/reproduce.h"
#include "harness/measure/visits.h"

static const double reference_share_small = 0.01;

struct rows {
    struct arena *arena;
    struct metric_record *metrics;
    size_t count, capacity;
    bool failed;
    struct metric_record lost; /* written to when memory is out */
};

/* All but what is given is unknown. */
static struct metric_record *add(struct rows *rows, int op, const char *name, const char *unit,
                                 double value)
{
    struct metric_record *grown = arena_grow(rows->arena, rows->metrics, &rows->capacity,
                                             rows->count + 1, sizeof(*rows->metrics));
    if (!grown) {
        rows->failed = true;
        return &rows->lost;
    }
    rows->metrics = grown;
    struct metric_record *row = &grown[rows->count++];
    *row = metric_alone(op, name, unit, value);
    return row;
}

static void add_time(struct rows *rows, const struct measurement *m)
{
    struct metric_record *row = add(rows, -1, "time_s", "s", m->median_s);
    row->source = "clock";
    row->better = BETTER_LOWER;
    row->n = m->timed;
    row->min = m->min_s;
    row->q1 = m->q1_s;
    row->q3 = m->q3_s;
    row->max = m->max_s;
    row->mad = m->mad_s;
    row->ci_low = m->ci_low_s;
    row->ci_high = m->ci_high_s;
}

static void add_quantile(struct rows *rows, const char *name, double value, const char *reason)
{
    struct metric_record *row = add(rows, -1, name, "s", value);
    row->source = "clock";
    row->better = BETTER_LOWER;
    row->reason = isnan(value) ? reason : "";
}

static void add_rate(struct rows *rows, const char *name, double value, const char *formula)
{
    struct metric_record *row = add(rows, -1, name, "1/s", value);
    row->better = BETTER_HIGHER;
    row->formula = formula;
    row->reason = isnan(value) ? "no rate kept the latency within its bound" : "";
}

static struct metric_record *add_known(struct rows *rows, const char *name, const char *unit,
                                       double value, const char *reason)
{
    struct metric_record *row = add(rows, -1, name, unit, value);
    row->source = "clock";
    row->reason = isnan(value) ? reason : "";
    return row;
}

static const char *text_or_fail(struct rows *rows, const char *text)
{
    rows->failed = rows->failed || !text;
    return text ? text : "";
}

/* Of the CPU time of the time phase. */
static void add_waiting(struct rows *rows, const struct measurement *m)
{
    const char *note = text_or_fail(rows, arena_strdup(rows->arena, m->wait_note));
    struct metric_record *row = add_known(rows, "wait_share", "1", m->wait_share, note);
    row->source = "/proc/self/task/*/schedstat";
    row->better = BETTER_LOWER;
    row->formula = "threads ready to run without a CPU / CPU time";
    if (!isnan(m->wait_share) && *note && strcmp(note, m->reason) == 0)
        row->formula = note; /* the reason of the result, and said there */
    else if (!isnan(m->wait_share) && *note)
        row->formula = text_or_fail(rows, arena_printf(rows->arena, RECORD_NOTE "%s", note));
}

static void add_set_apart(struct rows *rows, const struct measurement *m)
{
    char text[160];
    if (!m->set_apart.count)
        return;
    pauses_text(&m->set_apart, text, sizeof(text));
    struct metric_record *row = add(rows, -1, "set_apart_samples", "1", (double)m->set_apart.count);
    row->source = "clock";
    row->better = BETTER_LOWER;
    row->formula = text_or_fail(rows, arena_printf(rows->arena, RECORD_NOTE "%s", text));
}

/* The noise that the visits of a run show between them, as a share of the time. */
static void add_spread(struct rows *rows, const struct point_facts *f)
{
    struct metric_record *row =
        add_known(rows, "round_spread", "1", f->round_spread,
                  "one visit shows nothing about differences between visits");
    row->better = BETTER_LOWER;
    row->formula = "standard deviation of the logarithms of the visits' medians";
    row->n = isnan(f->round_spread) ? 0 : f->visit_count - visits_apart(f->visits, f->visit_count);
}

/* In the scenario offline on a device. */
static void add_joined(struct rows *rows, const struct point_facts *f)
{
    double runs = f->exe ? (double)exe_joined_runs(f->exe) : 1;
    if (runs > 1)
        add(rows, -1, "graph_executions", "1", runs)->formula =
            "executions that one launched graph holds; a time is that of a block over its number";
}

static void add_measurement(struct rows *rows, const struct point_facts *f)
{
    const struct measurement *m = f->measurement;
    double batch = (double)f->cost->batch;
    if (m->timed == 0)
        return;
    add_time(rows, m);
    if (f->point->protocol.scenario == SCENARIO_SERVER)
        add_quantile(rows, "latency_p50_s", m->p50_s, "");
    add_quantile(rows, "latency_p90_s", m->p90_s, "");
    add_quantile(rows, "latency_p99_s", m->p99_s, "fewer than 100 samples");
    add_quantile(rows, "latency_p999_s", m->p999_s, "fewer than 1000 samples");
    add_rate(rows, "throughput", batch * m->rate_hz, "batch x executions per second");
    if (f->point->protocol.scenario == SCENARIO_SERVER)
        add_rate(rows, "server_rate", m->rate_hz, "highest Poisson rate within the latency bound");
    add_known(rows, "overhead_s", "s", m->overhead_s, "not known in this scenario");
    add_spread(rows, f);
    add_known(rows, "steal_share", "1", m->steal_share, "/proc/stat does not report it");
    add_waiting(rows, m);
    add_set_apart(rows, m);
    add_joined(rows, f);
    add_known(rows, "clock_hz", "Hz", m->clock_hz,
              f->exe && !exe_device(f->exe)->kind->is_host
                  ? "nothing reports the clock of this device; for a GPU, profiler nvml says why"
                  : "this CPU's clock cannot be timed");
}

/* Where the peak is from; "": it is not known. */
static const char *peak_text(struct rows *rows, const struct point_facts *f)
{
    if (isnan(f->peak_flop_rate))
        return "";
    return f->peak_name ? text_or_fail(rows, arena_printf(rows->arena, "rate of %s in registers",
                                                          f->peak_name))
                        : "highest ceiling of this device and precision";
}

/* A share of a roof that was measured at another clock says as much about the clocks. */
static void add_roof_clock(struct rows *rows, const struct point_facts *f)
{
    enum { PERCENT_APART = 5 };
    double roof = f->peak_clock_hz, own = f->measurement->clock_hz;
    if (!(roof > 0) || isnan(own))
        return;
    struct metric_record *row = add(rows, -1, "roof_clock_hz", "Hz", roof);
    row->source = "nvml";
    row->formula = "median while the roof was measured";
    if (fabs(own / roof - 1) * 100 > PERCENT_APART)
        row->formula = text_or_fail(
            rows, arena_printf(rows->arena,
                               RECORD_NOTE "its roof was measured at %.4g GHz, and its samples at "
                                           "%.4g GHz",
                               roof * 1e-9, own * 1e-9));
}

/* Products of bytes among others, which have a higher peak. */
static void add_bytes(struct rows *rows, const struct point_facts *f)
{
    struct metric_record *row = add(rows, -1, "byte_flops", "1", f->byte_flops);
    row->source = "model";
    row->formula = "those of flops that multiply bytes";
    add(rows, -1, "byte_peak_flop_rate", "FLOP/s", f->byte_peak)->formula =
        "rate of products of bytes in registers";
}

static void add_derived(struct rows *rows, const struct point_facts *f)
{
    double median = f->measurement->median_s;
    if (f->measurement->timed == 0 || !(median > 0) || isnan(f->cost->flops))
        return;
    struct metric_record *rate = add(rows, -1, "flop_rate", "FLOP/s", f->cost->flops / median);
    rate->better = BETTER_HIGHER;
    rate->formula = "flops (model) / time_s";
    struct metric_record *peak =
        add_known(rows, "peak_flop_rate", "FLOP/s", f->peak_flop_rate, f->peak_reason);
    const char *of = peak_text(rows, f);
    peak->formula = of;
    double least = (f->cost->flops - f->byte_flops) / f->peak_flop_rate;
    if (f->byte_flops > 0)
        least += f->byte_flops / f->byte_peak;
    struct metric_record *share = add(rows, -1, "fraction_of_peak", "1", least / median);
    share->better = BETTER_HIGHER;
    share->reason = isnan(share->value) ? f->peak_reason : "";
    share->formula = "flop_rate / peak_flop_rate";
    if (f->byte_flops > 0)
        share->formula = "time of all flops at their peaks / time_s";
    else if (*of)
        share->formula = text_or_fail(rows, arena_printf(rows->arena, "flop_rate / %s", of));
    if (f->byte_flops > 0)
        add_bytes(rows, f);
    add_roof_clock(rows, f);
}

/* NaN on both sides is no error, but hardly what anybody expects. */
static void add_both_nan(struct rows *rows, const struct verification *v)
{
    if (!v || !v->note[0])
        return;
    struct metric_record *row = add(rows, -1, "verify_nan", "1", (double)v->both_nan);
    row->source = "reference";
    row->better = BETTER_LOWER;
    row->formula = text_or_fail(rows, arena_printf(rows->arena, RECORD_NOTE "%s", v->note));
}

static void add_memory(struct rows *rows, const struct point_facts *f)
{
    struct exe_memory memory = exe_memory(f->exe);
    struct metric_record *row;
    row = add(rows, -1, "arena_bytes", "B", (double)memory.arena_bytes);
    row->source = "model";
    row = add(rows, -1, "weight_bytes", "B", (double)memory.weight_bytes);
    row->source = "model";
    row = add(rows, -1, "peak_rss_bytes", "B", f->peak_rss_bytes);
    row->source = "/proc/self/status";
    row->better = BETTER_LOWER;
    row->reason = isnan(f->peak_rss_bytes) ? "the kernel does not reset VmHWM" : "";
}

static void add_count(struct rows *rows, int op, const char *source,
                      const struct profiler_metric *from)
{
    struct metric_record *row = add(rows, op, from->name, from->unit, from->value);
    row->source = source;
    row->formula = from->formula;
    row->reason = !isnan(from->value) ? ""
                  : from->reason[0]   ? arena_strdup(rows->arena, from->reason)
                                      : "not counted";
    rows->failed = rows->failed || !row->reason;
}

static void add_counts(struct rows *rows, const struct counts *counts)
{
    for (int k = 0; k < counts->count; k++)
        add_count(rows, -1, counts->source, &counts->metrics[k]);
    for (int k = 0; k < counts->step_count; k++)
        add_count(rows, counts->steps[k].step, counts->source, &counts->steps[k].metric);
}

/* The FLOPs of the steps are those of the graph plus these. */
static void add_passes(struct rows *rows, const struct point_facts *f)
{
    const struct pass_log *log = exe_passes(f->exe);
    const char *by = "";
    double flops = 0;
    for (int k = 0; k < log->count; k++) {
        flops += log->changes[k].flops;
        by = text_or_fail(rows, arena_printf(rows->arena, "%s%s%s %+.0f", by, k ? ", " : "",
                                             log->changes[k].pass, log->changes[k].flops));
    }
    struct metric_record *row = add(rows, -1, "flops_by_passes", "1", flops);
    row->source = "model";
    row->formula = *by ? by : "no pass changed the work";
}

static void add_steps(struct rows *rows, const struct point_facts *f)
{
    for (int s = 0; s < exe_step_count(f->exe); s++) {
        struct exe_step step = exe_step_at(f->exe, s);
        if (f->step_ns) {
            struct metric_record *row = add(rows, s, "time_s", "s", f->step_ns[s] * 1e-9);
            row->source = "clock";
            row->better = BETTER_LOWER;
            row->n = f->step_repeats;
        }
        double bytes = f->byte_flops > 0 ? exe_step_byte_flops(&step) : 0;
        add(rows, s, "flops", "1", 2 * step.cost.macs + step.cost.elementwise)->source = "model";
        if (bytes > 0)
            add(rows, s, "byte_flops", "1", bytes)->source = "model";
        add(rows, s, "bytes_streamed", "B", step.bytes_in + step.bytes_out)->source = "model";
    }
}

/* What the reference kernel computed, which is made to be right and not to be fast. */
static void add_reference(struct rows *rows, const struct point_facts *f)
{
    double all = 0, by_reference = 0;
    int steps = 0;
    for (int s = 0; s < exe_step_count(f->exe); s++) {
        double ns = f->step_ns ? f->step_ns[s] : NAN;
        bool is_reference = strcmp(exe_step_at(f->exe, s).kernel->provider, "reference") == 0;
        steps += is_reference;
        all += ns;
        by_reference += is_reference ? ns : 0;
    }
    struct metric_record *row = add(rows, -1, "reference_steps", "1", steps);
    row->source = "compiler";
    row->better = BETTER_LOWER;
    row = add(rows, -1, "reference_time_share", "1", steps ? by_reference / all : 0);
    row->source = "clock";
    row->better = BETTER_LOWER;
    row->formula = "time of steps on the reference kernel / time of all steps";
    row->reason = isnan(row->value) ? "steps were not timed" : "";
}

static enum status make_ops(const struct exe *exe, struct arena *arena, struct record *record,
                            struct error *err)
{
    int count = exe_step_count(exe);
    struct op_record *ops = arena_array(arena, (size_t)count + 1, sizeof(*ops));
    if (!ops)
        return FAIL_NO_MEMORY(err);
    for (int s = 0; s < count; s++) {
        char shape[96];
        struct exe_step step = exe_step_at(exe, s);
        ops[s] = (struct op_record){.name = arena_strdup(arena, step.node->name),
                                    .kind = step.node->op->name,
                                    .kernel = step.kernel->name,
                                    .provider = step.kernel->provider};
        ops[s].shape = arena_strdup(arena, shape_text(&step.query->out[0].shape, shape));
        if (!ops[s].name || !ops[s].shape)
            return FAIL_NO_MEMORY(err);
    }
    record->ops = ops;
    record->op_count = count;
    return STATUS_OK;
}

struct point_record record_point(const struct point *p)
{
    return (struct point_record){.key = p->id,
                                 .canonical = p->canonical,
                                 .workload = p->workload,
                                 .params = p->params,
                                 .domain = p->domain,
                                 .mode = p->mode,
                                 .device = p->device,
                                 .precision = p->precision,
                                 .batch = p->batch,
                                 .threads = p->threads,
                                 .scenario = scenario_name(p->protocol.scenario),
                                 .cache = p->protocol.cold ? "cold" : "warm",
                                 .providers = p->providers};
}

static enum status start(const struct point *p, int sequence, const char *started_utc,
                         struct arena *arena, struct record *record, struct error *err)
{
    *record = (struct record){.sequence = sequence,
                              .point = record_point(p),
                              .valid = true,
                              .reason = "",
                              .verify_error = NAN,
                              .verify_bound = NAN,
                              .verify_how = "",
                              .stop_reason = "",
                              .started_utc = started_utc};
    record->reproduce = reproduce_command(p, arena);
    return record->reproduce ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* Status, verdict and reason, the worst first. */
static enum status judge(const struct point_facts *f, struct arena *arena, struct record *record,
                         struct error *err)
{
    const struct verification *v = f->verification;
    if (v) {
        record->verify_error = v->error;
        record->verify_bound = v->bound;
        record->verify_how = v->how;
    }
    if (f->failure) {
        record->status = f->failure->code == STATUS_UNSUPPORTED ? RESULT_SKIPPED : RESULT_FAILED;
        record->reason = arena_strdup(arena, f->failure->message);
    } else if (v && !(v->error <= v->bound)) {
        record->status = RESULT_WRONG;
        record->reason = arena_printf(arena, "wrong: %s%srelative error %.3g, bound %.3g", v->odd,
                                      v->odd[0] ? "; " : "", v->error, v->bound);
    } else if (f->measurement && !f->measurement->valid) {
        record->reason = arena_strdup(arena, f->measurement->reason);
    }
    record->valid = record->status == RESULT_OK && f->measurement && f->measurement->valid;
    return record->reason ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* How many steps, of which operators, with which share of the time ran on the reference kernel. */
static void reference_text(const struct record *record, char *text, size_t size)
{
    double steps = record_value(record, "reference_steps");
    double share = record_value(record, "reference_time_share");
    size_t used = (size_t)snprintf(text, size, "%.0f of %d steps", steps, record->op_count);
    if (!isnan(share) && used < size)
        used +=
            (size_t)snprintf(text + used, size - used, " with %.1f %% of their time", 100 * share);
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, " ran on the reference kernel (");
    const char *separator = "";
    for (int k = 0; k < record->op_count && used < size; k++) {
        bool seen = strcmp(record->ops[k].provider, "reference") != 0;
        for (int i = 0; i < k && !seen; i++)
            seen = strcmp(record->ops[i].provider, "reference") == 0 &&
                   strcmp(record->ops[i].kind, record->ops[k].kind) == 0;
        if (seen)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s", separator, record->ops[k].kind);
        separator = ", ";
    }
    if (used < size)
        snprintf(text + used, size - used, "), which is made to be right and not to be fast");
}

static void note_reference(struct rows *rows, const struct record *record)
{
    char text[300];
    for (size_t k = 0; k < rows->count; k++) {
        struct metric_record *row = &rows->metrics[k];
        if (row->op >= 0 || strcmp(row->name, "reference_steps") != 0 || !(row->value > 0))
            continue;
        reference_text(record, text, sizeof(text));
        row->formula = text_or_fail(rows, arena_printf(rows->arena, RECORD_NOTE "%s", text));
    }
}

static enum status put_times(const struct point_facts *f, struct rows *rows, struct record *record,
                             struct error *err)
{
    record->visits = f->visits;
    record->visit_count = f->visit_count;
    if (!f->measurement)
        return STATUS_OK;
    record->stop_reason = arena_strdup(rows->arena, f->measurement->stop_reason);
    record->samples = f->measurement->samples;
    record->sample_count = f->measurement->count;
    add_measurement(rows, f);
    add_derived(rows, f);
    return record->stop_reason && !rows->failed ? STATUS_OK : FAIL_NO_MEMORY(err);
}

enum status record_make(const struct point_facts *f, struct arena *arena, struct record *record,
                        struct error *err)
{
    struct rows rows = {.arena = arena};
    TRY(start(f->point, f->sequence, f->started_utc, arena, record, err));
    TRY(judge(f, arena, record, err));
    record->wall_s = f->wall_s;
    TRY(put_times(f, &rows, record, err));
    add_both_nan(&rows, f->verification);
    for (int k = 0; k < f->count_count; k++)
        add_counts(&rows, &f->counts[k]);
    if (f->exe) {
        TRY(make_ops(f->exe, arena, record, err));
        add_memory(&rows, f);
        add_passes(&rows, f);
        add_reference(&rows, f);
        add_steps(&rows, f);
    }
    record->metrics = rows.metrics;
    record->metric_count = (int)rows.count;
    note_reference(&rows, record);
    return rows.failed ? FAIL_NO_MEMORY(err) : STATUS_OK;
}

static bool has_row(const struct metric_record *rows, size_t count, const struct metric_record *row)
{
    for (size_t k = 0; k < count; k++)
        if (row->op < 0 && strcmp(rows[k].name, row->name) == 0 &&
            strcmp(rows[k].source, row->source) == 0)
            return true;
    return false;
}

enum status record_again(const struct point_facts *f, const struct record *earlier,
                         struct arena *arena, struct record *record, struct error *err)
{
    struct rows rows = {.arena = arena};
    struct record now = *earlier;
    now.reason = "";
    if (earlier->status == RESULT_OK)
        TRY(judge(f, arena, &now, err));
    else
        now.reason = earlier->reason;
    now.wall_s = f->wall_s;
    TRY(put_times(f, &rows, &now, err));
    size_t times = rows.count;
    for (int k = 0; k < earlier->metric_count; k++) {
        const struct metric_record *row = &earlier->metrics[k];
        if (!has_row(rows.metrics, times, row))
            *add(&rows, row->op, row->name, row->unit, row->value) = *row;
    }
    now.metrics = rows.metrics;
    now.metric_count = (int)rows.count;
    *record = now;
    return rows.failed ? FAIL_NO_MEMORY(err) : STATUS_OK;
}

enum status record_skipped(const struct point *point, int sequence, const char *reason,
                           const char *started_utc, struct arena *arena, struct record *record,
                           struct error *err)
{
    TRY(start(point, sequence, started_utc, arena, record, err));
    record->status = RESULT_SKIPPED;
    record->valid = false;
    record->reason = reason;
    return STATUS_OK;
}

const struct metric_record *record_metric(const struct record *record, const char *name)
{
    for (int k = 0; k < record->metric_count; k++)
        if (record->metrics[k].op < 0 && strcmp(record->metrics[k].name, name) == 0)
            return &record->metrics[k];
    return NULL;
}

double record_value(const struct record *record, const char *name)
{
    const struct metric_record *metric = record_metric(record, name);
    return metric ? metric->value : NAN;
}

bool record_reference_counts(const struct record *record)
{
    return record_value(record, "reference_steps") > 0 &&
           !(record_value(record, "reference_time_share") < reference_share_small);
}
