/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/bench/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text/json.h"
#include "base/text/table.h"
#include "harness/bench/bench_fit.h"

/* Calls print for each algorithm and operation that a model could be fitted for. */
static void each_fit(const struct bench_part *part,
                     void (*print)(void *, const struct bench_part *, const struct algorithm *,
                                   enum comm_operation, const struct alpha_beta *),
                     void *context)
{
    for (int k = 0; k < algorithm_count(); k++)
        for (int operation = 0; operation < COMM_OPERATION_COUNT; operation++) {
            struct alpha_beta fit;
            if (bench_fit(part, algorithm_at(k), (enum comm_operation)operation, false, &fit))
                print(context, part, algorithm_at(k), (enum comm_operation)operation, &fit);
        }
}

static void print_bytes(struct table *table, int64_t bytes)
{
    if (bytes >= 1 << 20 && bytes % (1 << 20) == 0)
        table_cell(table, "%" PRId64 " MiB", bytes >> 20);
    else if (bytes >= 1 << 10 && bytes % (1 << 10) == 0)
        table_cell(table, "%" PRId64 " KiB", bytes >> 10);
    else
        table_cell(table, "%" PRId64 " B", bytes);
}

/* Operations and copies; trips are shown by their model. */
static bool is_shown(const struct bench_part *part, int index)
{
    return part->results[index].status == STATUS_OK && !part->cases[index].trip.messages;
}

static void print_row(struct table *table, const struct bench_part *part, int index, int ranks)
{
    const struct timing_case *c = &part->cases[index];
    const struct timing *t = &part->results[index];
    print_bytes(table, t->bytes);
    table_cell(table, "%s", part->backend->name);
    table_cell(table, "%s", c->copies ? "copy alone" : operation_name(c->operation));
    table_cell(table, "%s%s", c->algorithm || c->copies ? "" : "chosen: ", t->algorithm);
    table_cell(table, "%s", c->copies ? "" : c->in_place ? "in" : "out");
    table_cell(table, "%.2f", t->seconds * 1e6);
    table_cell(table, "%.2f", timing_algorithm_rate(t) * 1e-9);
    if (c->copies) {
        for (int k = 0; k < 3; k++)
            table_cell(table, " ");
        return;
    }
    table_cell(table, "%.2f", timing_bus_rate(t, c->operation, ranks) * 1e-9);
    double copy_s = bench_copy_seconds(part, c->bytes);
    if (isnan(copy_s))
        table_cell(table, "-");
    else
        table_cell(table, "%.0f %%", 100 * copy_s / t->seconds);
    if (t->wrong < 0)
        table_cell(table, "-");
    else
        table_cell(table, "%" PRId64, t->wrong);
}

static void print_results(const struct bench_part *part, int ranks)
{
    struct table table = {0};
    table_column(&table, "size", TABLE_RIGHT);
    table_column(&table, "backend", TABLE_LEFT);
    table_column(&table, "operation", TABLE_LEFT);
    table_column(&table, "algorithm", TABLE_LEFT);
    table_column(&table, "place", TABLE_LEFT);
    table_column(&table, "us", TABLE_RIGHT);
    table_column(&table, "algbw GB/s", TABLE_RIGHT);
    table_column(&table, "busbw GB/s", TABLE_RIGHT);
    table_column(&table, "of copy", TABLE_RIGHT);
    table_column(&table, "wrong", TABLE_RIGHT);
    for (int k = 0; k < part->count; k++)
        if (is_shown(part, k))
            print_row(&table, part, k, ranks);
    table_print(&table, stdout);
    table_release(&table);
}

static void print_fit(void *context, const struct bench_part *part,
                      const struct algorithm *algorithm, enum comm_operation operation,
                      const struct alpha_beta *fit)
{
    struct table *table = context;
    table_cell(table, "%s", part->backend->name);
    table_cell(table, "%s", operation_name(operation));
    table_cell(table, "%s", algorithm->name);
    table_cell(table, "%.2f", fit->message_s * 1e6);
    if (fit->byte_s > 0)
        table_cell(table, "%.2f", 1e-9 / fit->byte_s);
    else
        table_cell(table, "-");
    table_cell(table, "%.0f %%", fit->residual * 100);
}

static void print_fits(const struct bench_part *part)
{
    struct table table = {0};
    table_column(&table, "backend", TABLE_LEFT);
    table_column(&table, "operation", TABLE_LEFT);
    table_column(&table, "algorithm", TABLE_LEFT);
    table_column(&table, "us per message", TABLE_RIGHT);
    table_column(&table, "GB/s", TABLE_RIGHT);
    table_column(&table, "residual", TABLE_RIGHT);
    each_fit(part, print_fit, &table);
    printf("\nFitted: time = messages x us + bytes sent / rate (out of place)\n");
    table_print(&table, stdout);
    table_release(&table);
}

static void json_row(struct json *json, const struct bench_part *part, int index, int ranks)
{
    const struct timing_case *c = &part->cases[index];
    const struct timing *t = &part->results[index];
    json_open(json, NULL, '{');
    json_text(json, "backend", part->backend->name);
    json_text(json, "operation", c->copies ? "copy" : operation_name(c->operation));
    json_text(json, "algorithm", c->copies ? NULL : t->algorithm);
    json_bool(json, "chosen", !c->copies && !c->algorithm);
    json_bool(json, "in_place", c->in_place);
    json_int(json, "bytes", t->bytes);
    json_number(json, "time_s", t->seconds);
    json_number(json, "fastest_s", t->fastest);
    json_number(json, "slowest_s", t->slowest);
    json_int(json, "operations_per_block", t->per_block);
    json_number(json, "algbw_bytes_s", timing_algorithm_rate(t));
    if (!c->copies) {
        json_number(json, "busbw_bytes_s", timing_bus_rate(t, c->operation, ranks));
        json_number(json, "share_of_copy", bench_copy_seconds(part, c->bytes) / t->seconds);
        json_int(json, "messages", t->work.messages);
        json_int(json, "bytes_sent", bench_bytes_sent(c, t));
        if (t->wrong >= 0)
            json_int(json, "wrong", t->wrong);
    }
    json_open(json, "samples_s", '[');
    for (int k = 0; k < t->sample_count; k++)
        json_number(json, NULL, t->samples[k]);
    json_close(json);
    json_close(json);
}

static void json_fit(void *context, const struct bench_part *part,
                     const struct algorithm *algorithm, enum comm_operation operation,
                     const struct alpha_beta *fit)
{
    struct json *json = context;
    json_open(json, NULL, '{');
    json_text(json, "backend", part->backend->name);
    json_text(json, "operation", operation_name(operation));
    json_text(json, "algorithm", algorithm->name);
    json_number(json, "message_s", fit->message_s);
    json_number(json, "byte_s", fit->byte_s);
    json_number(json, "residual", fit->residual);
    json_int(json, "points", fit->points);
    json_close(json);
}

static void json_log_gp(struct json *json, const struct bench_part *part)
{
    struct log_gp model;
    if (!bench_log_gp(part, &model))
        return;
    json_open(json, NULL, '{');
    json_text(json, "backend", part->backend->name);
    json_number(json, "latency_s", model.latency_s);
    json_number(json, "overhead_s", model.overhead_s);
    json_number(json, "gap_s", model.gap_s);
    json_number(json, "byte_s", model.byte_s);
    json_number(json, "residual", model.residual);
    json_int(json, "points", model.points);
    json_open(json, "trips", '[');
    for (int k = 0; k < part->count; k++) {
        const struct trip *trip = &part->cases[k].trip;
        if (!trip->messages || part->results[k].status != STATUS_OK)
            continue;
        json_open(json, NULL, '{');
        json_int(json, "messages", trip->messages);
        json_int(json, "bytes", (int64_t)trip->bytes);
        json_number(json, "apart_s", (double)trip->apart_ns * 1e-9);
        json_number(json, "time_s", part->results[k].seconds);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

void bench_print_json(const struct bench *bench, const struct bench_part *parts, int count)
{
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '{');
    json_int(&json, "ranks", bench->timing.ranks);
    json_bool(&json, "simulated", bench->platform != NULL);
    json_text(&json, "dtype", dtype_name(bench->dtype));
    json_text(&json, "wire", dtype_name(bench->wire == DTYPE_NONE ? bench->dtype : bench->wire));
    json_text(&json, "reduction", reduction_name(bench->reduction));
    json_open(&json, "backends", '[');
    for (int p = 0; p < count; p++) {
        char version[64];
        backend_version(parts[p].backend, version, sizeof(version));
        json_open(&json, NULL, '{');
        json_text(&json, "name", parts[p].backend->name);
        json_text(&json, "library", version[0] ? version : NULL);
        json_close(&json);
    }
    json_close(&json);
    json_open(&json, "results", '[');
    for (int p = 0; p < count; p++)
        for (int k = 0; k < parts[p].count; k++)
            if (is_shown(&parts[p], k))
                json_row(&json, &parts[p], k, bench->timing.ranks);
    json_close(&json);
    json_open(&json, "fits", '[');
    for (int p = 0; p < count; p++)
        each_fit(&parts[p], json_fit, &json);
    json_close(&json);
    json_open(&json, "loggp", '[');
    for (int p = 0; p < count; p++)
        json_log_gp(&json, &parts[p]);
    json_close(&json);
    json_close(&json);
}

static void print_log_gp(const struct bench_part *part)
{
    struct log_gp m;
    char rate[48] = "no cost per byte was seen";
    if (!bench_log_gp(part, &m))
        return;
    if (m.byte_s > 0)
        snprintf(rate, sizeof(rate), "1/G %.2f GB/s", 1e-9 / m.byte_s);
    printf("\nLogGP of %s: L %.2f us, o %.2f us, g %.2f us, %s, residual %.0f %% of %d trips\n",
           part->backend->name, m.latency_s * 1e6, m.overhead_s * 1e6, m.gap_s * 1e6, rate,
           m.residual * 100, m.points);
}

void bench_print_table(const struct bench_part *part, int ranks)
{
    print_results(part, ranks);
    print_fits(part);
    print_log_gp(part);
}
