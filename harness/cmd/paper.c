/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge paper: Table I of the AI Matrix paper beside the same workloads as built here. Ours are
 * counts over the graph, the paper's are what a profiler counted on a V100: the ratio shows what
 * the libraries of the time did, and the explanation names it. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text/json.h"
#include "base/text/table.h"
#include "engine/graph/cost.h"
#include "harness/cli/command.h"
#include "harness/suite/table1.h"
#include "workloads/workload.h"

struct paper_options {
    bool json;
};

static const struct option options[] = {
    {"json", 0, OPTION_FLAG, offsetof(struct paper_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

static enum status cost_of(const struct table1_row *row, struct graph_cost *cost, bool *built,
                           struct error *err)
{
    char name[64];
    struct graph *g;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(row->spec, ":"), row->spec);
    *built = workload_find(name) != NULL;
    if (!*built)
        return STATUS_OK;
    TRY(workload_open(row->spec, row->batch, PRECISION_F32, &g, err));
    graph_cost(g, cost);
    graph_free(g);
    return STATUS_OK;
}

static void print_count(struct table *t, double value)
{
    if (isnan(value))
        table_cell(t, "-");
    else
        table_cell(t, "%.4g", value);
}

static void print_row(struct table *t, const struct table1_row *row, const struct graph_cost *cost)
{
    double flops = cost ? cost->flops : NAN, bytes = cost ? cost->bytes_compulsory : NAN;
    double achieved = row->flops / row->time_s;
    table_cell(t, "%s", row->title);
    table_cell(t, "%lld", (long long)row->batch);
    print_count(t, row->flops);
    if (cost)
        print_count(t, flops);
    else
        table_cell(t, "not built");
    print_count(t, row->flops / flops);
    print_count(t, row->dram_read_bytes);
    print_count(t, bytes);
    print_count(t, row->dram_read_bytes / bytes);
    print_count(t, row->flops / row->dram_read_bytes);
    print_count(t, flops / bytes);
    print_count(t, cost ? cost->params : NAN);
    print_count(t, 1e3 * row->time_s);
    if (isnan(achieved))
        table_cell(t, "-");
    else
        table_cell(t, "%.2g %%", 100 * achieved / TABLE1_PEAK_FLOPS);
}

static void begin_table(struct table *t)
{
    static const char *const titles[] = {"B",     "FLOPs",  "ours", "ratio",  "read B",  "ours B",
                                         "ratio", "FLOP/B", "ours", "params", "V100 ms", "of peak"};
    table_column(t, "Table I", TABLE_LEFT);
    for (int k = 0; k < ARRAY_COUNT(titles); k++)
        table_column(t, titles[k], TABLE_RIGHT);
}

static void print_explanations(void)
{
    printf(
        "\nTable I counts executed FLOPs and DRAM-to-L2 reads on a V100 (14 TFLOP/s, 900 GB/s).\n"
        "Ours are FLOPs of the model and compulsory bytes (each tensor once, reads and writes);\n"
        "a ratio is Table I over ours. What explains it:\n\n");
    for (int k = 0; k < table1_count(); k++) {
        const struct table1_row *row = table1_at(k);
        printf("%-13s %s. By its operators %.4g FLOPs.\n%-13s %s.\n", row->title,
               row->configuration, row->analytic_flops, "", row->explanation);
    }
}

static void print_json(struct json *json, const struct table1_row *row,
                       const struct graph_cost *cost)
{
    json_open(json, NULL, '{');
    json_text(json, "title", row->title);
    json_text(json, "workload", row->spec);
    json_bool(json, "built", cost != NULL);
    json_int(json, "batch", row->batch);
    json_open(json, "paper", '{');
    json_number(json, "flops", row->flops);
    json_number(json, "dram_read_bytes", row->dram_read_bytes);
    json_number(json, "time_s", row->time_s);
    json_number(json, "intensity", row->flops / row->dram_read_bytes);
    json_number(json, "flop_rate", row->flops / row->time_s);
    json_number(json, "fraction_of_peak", row->flops / row->time_s / TABLE1_PEAK_FLOPS);
    json_close(json);
    json_open(json, "ours", '{');
    json_number(json, "flops", cost ? cost->flops : NAN);
    json_number(json, "macs", cost ? cost->work.macs : NAN);
    json_number(json, "bytes_compulsory", cost ? cost->bytes_compulsory : NAN);
    json_number(json, "bytes_streamed", cost ? cost->bytes_streamed : NAN);
    json_number(json, "intensity", cost ? cost->flops / cost->bytes_compulsory : NAN);
    json_number(json, "params", cost ? cost->params : NAN);
    json_close(json);
    json_number(json, "flops_ratio", cost ? row->flops / cost->flops : NAN);
    json_number(json, "bytes_ratio", cost ? row->dram_read_bytes / cost->bytes_compulsory : NAN);
    json_number(json, "analytic_flops", row->analytic_flops);
    json_text(json, "configuration", row->configuration);
    json_text(json, "explanation", row->explanation);
    json_close(json);
}

static enum status print_rows(bool as_json, struct error *err)
{
    struct json json;
    struct table t = {.column_count = 0};
    enum status status = STATUS_OK;
    if (as_json) {
        json_begin(&json, stdout);
        json_open(&json, NULL, '[');
    } else {
        begin_table(&t);
    }
    for (int k = 0; status == STATUS_OK && k < table1_count(); k++) {
        struct graph_cost cost;
        bool built;
        status = cost_of(table1_at(k), &cost, &built, err);
        if (status != STATUS_OK)
            break;
        if (as_json)
            print_json(&json, table1_at(k), built ? &cost : NULL);
        else
            print_row(&t, table1_at(k), built ? &cost : NULL);
    }
    if (as_json)
        json_close(&json);
    else
        table_print(&t, stdout);
    table_release(&t);
    return status;
}

static int paper_main(int word_count, char **words, const void *values)
{
    const struct paper_options *o = values;
    struct error err = {0};
    if (word_count)
        FAIL(&err, STATUS_FAILED, "no words are expected, but \"%s\" was given", words[0]);
    else if (print_rows(o->json, &err) == STATUS_OK) {
        if (!o->json)
            print_explanations();
        return EXIT_FINE;
    }
    return command_fail(&err);
}

REGISTER(command, paper) = {
    .name = "paper",
    .summary = "Table I of the AI Matrix paper beside the same workloads here",
    .usage = "[--json]",
    .help = "Nothing is measured: ours are counts over the graphs at the batch of the table.\n",
    .options = options,
    .values_size = sizeof(struct paper_options),
    .main = paper_main,
};
