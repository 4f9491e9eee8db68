/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/scale/scale_print.h"

#include <math.h>

#include "base/text/json.h"
#include "base/text/table.h"

/* The rate per rank against that of the fewest ranks: 1 is ideal. */
static double efficiency(const struct scaling *s, int index)
{
    const struct scale_result *base = &s->points[0], *r = &s->points[index];
    for (int k = 1; k < s->count; k++)
        base = s->points[k].ranks < base->ranks ? &s->points[k] : base;
    return r->samples_per_s / r->ranks / (base->samples_per_s / base->ranks);
}

struct scale_sums scale_sums_of(const struct scale_result *r)
{
    struct scale_sums sums = {0};
    for (int rank = 0; rank < r->ranks; rank++) {
        const struct scale_rank *one = &r->by_rank[rank];
        double bytes = 0, messages = 0;
        sums.communication_s += one->communication_s / r->ranks;
        sums.exposed_s += one->exposed_s / r->ranks;
        sums.input_s += one->input_s / r->ranks;
        sums.computing_s += one->computing_s / r->ranks;
        sums.hidden_s += fmax(0, one->communication_s - one->exposed_s) / r->ranks;
        for (int k = 0; k < r->unit_count && rank < r->detailed; k++) {
            bytes += (double)one->units[k].bytes_sent;
            messages += (double)one->units[k].messages;
        }
        sums.state_bytes = fmax(sums.state_bytes, (double)one->state_bytes);
        sums.bytes_sent = fmax(sums.bytes_sent, bytes);
        sums.messages = fmax(sums.messages, messages);
    }
    if (r->simulated)
        sums.state_bytes = sums.input_s = (double)NAN; /* of nobody */
    return sums;
}

static void number_cell(struct table *table, double value)
{
    if (isnan(value))
        table_cell(table, "-");
    else
        table_cell(table, "%.3f", value);
}

static void print_row(struct table *table, const struct scaling *s, int index)
{
    const struct scale_result *r = &s->points[index];
    struct scale_sums sums = scale_sums_of(r);
    table_cell(table, "%d", r->ranks);
    table_cell(table, "%lld", (long long)r->batch);
    table_cell(table, "%.3f", r->step_s * 1e3);
    table_cell(table, "%.4g", r->samples_per_s);
    table_cell(table, "%.1f %%", 100 * efficiency(s, index));
    if (r->ranks == 1) {
        for (int k = 0; k < 5; k++)
            table_cell(table, "-");
    } else {
        table_cell(table, "%.3f", sums.communication_s * 1e3);
        table_cell(table, "%.3f", sums.exposed_s * 1e3);
        table_cell(table, "%d", r->unit_count);
        table_cell(table, "%.3f", sums.bytes_sent * 1e-6);
        table_cell(table, "%.0f", sums.messages);
    }
    number_cell(table, sums.state_bytes * 1e-6);
    number_cell(table, sums.input_s * 1e3);
    if (r->simulated)
        table_cell(table, "simulated");
    else
        table_cell(table, "%.4g", r->losses[r->steps - 1]);
}

void scaling_print_table(const struct scaling *s)
{
    static const char *const titles[] = {
        "ranks", "batch",   "step ms",  "samples/s", "of ideal", "moving ms", "exposed ms",
        "units", "MB sent", "messages", "MB kept",   "input ms", "last loss"};
    struct table table = {.incomplete = false};
    for (int k = 0; k < ARRAY_COUNT(titles); k++)
        table_column(&table, titles[k], TABLE_RIGHT);
    for (int k = 0; k < s->count; k++)
        print_row(&table, s, k);
    table_print(&table, stdout);
    table_release(&table);
}

static void print_unit(struct json *json, const struct scale_unit *unit)
{
    json_open(json, NULL, '{');
    json_int(json, "bytes", unit->bytes);
    json_text(json, "operation", unit->operation);
    json_text(json, "algorithm", unit->algorithm);
    json_int(json, "bytes_sent", unit->bytes_sent);
    json_int(json, "messages", unit->messages);
    json_number(json, "ready_s", (double)unit->ready_ns * 1e-9);
    json_number(json, "started_s", (double)unit->started_ns * 1e-9);
    json_number(json, "ended_s", (double)unit->ended_ns * 1e-9);
    json_number(json, "waited_s", (double)unit->waited_ns * 1e-9);
    json_close(json);
}

/* null where the ranks were simulated: nobody measured it. */
static double measured(const struct scale_result *r, double value)
{
    return r->simulated ? (double)NAN : value;
}

static void print_rank(struct json *json, const struct scale_result *r, int rank)
{
    const struct scale_rank *one = &r->by_rank[rank];
    json_open(json, NULL, '{');
    json_number(json, "step_s", measured(r, one->step_s));
    json_number(json, "communication_s", one->communication_s);
    json_number(json, "exposed_s", one->exposed_s);
    json_number(json, "input_wait_s", measured(r, one->input_s));
    json_number(json, "state_bytes", measured(r, (double)one->state_bytes));
    json_number(json, "work_bytes", measured(r, (double)one->work_bytes));
    json_open(json, "units", '[');
    for (int k = 0; k < r->unit_count && rank < r->detailed; k++)
        print_unit(json, &one->units[k]);
    json_close(json);
    json_close(json);
}

static void print_point(struct json *json, const struct scaling *s, int index)
{
    const struct scale_result *r = &s->points[index];
    struct scale_sums sums = scale_sums_of(r);
    json_open(json, NULL, '{');
    json_int(json, "ranks", r->ranks);
    json_bool(json, "simulated", r->simulated);
    json_int(json, "threads", r->threads);
    json_int(json, "batch", r->batch);
    json_int(json, "steps", r->steps);
    json_int(json, "warm_up", r->warm_up);
    json_number(json, "step_s", r->step_s);
    json_number(json, "samples_per_s", r->samples_per_s);
    json_number(json, "efficiency", efficiency(s, index));
    json_number(json, "communication_s", sums.communication_s);
    json_number(json, "exposed_s", sums.exposed_s);
    json_number(json, "computing_s", sums.computing_s);
    json_number(json, "hidden_s", sums.hidden_s);
    json_number(json, "bytes_sent", sums.bytes_sent);
    json_number(json, "messages", sums.messages);
    json_number(json, "state_bytes", sums.state_bytes);
    json_number(json, "input_wait_s", sums.input_s);
    json_open(json, "losses", '[');
    for (int64_t k = 0; k < r->steps; k++)
        json_number(json, NULL, r->losses[k]);
    json_close(json);
    json_open(json, "by_rank", '[');
    for (int rank = 0; rank < r->ranks; rank++)
        print_rank(json, r, rank);
    json_close(json);
    json_close(json);
}

void scaling_print_json(const struct scaling *s)
{
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '{');
    json_text(&json, "workload", s->workload);
    json_text(&json, "scaling", s->strong ? "strong" : "weak");
    json_int(&json, "seed", (int64_t)s->seed);
    json_text(&json, "data", s->data);
    json_text(&json, "backend", s->backend);
    json_text(&json, "library", s->library && s->library[0] ? s->library : NULL);
    json_text(&json, "algorithm", s->algorithm);
    json_text(&json, "tables", s->tables);
    json_text(&json, "moments", s->moments);
    json_bool(&json, "recompute", s->recompute);
    json_text(&json, "wire", s->wire);
    json_int(&json, "lanes", s->lanes);
    json_int(&json, "unit_bytes", s->unit_bytes);
    json_int(&json, "cpus", s->cpus);
    json_open(&json, "points", '[');
    for (int k = 0; k < s->count; k++)
        print_point(&json, s, k);
    json_close(&json);
    json_close(&json);
}
