/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge import: how ridge reads an ONNX file; with --output it writes the same model to a new
 * file, with static shapes, control flow resolved, in one opset. */
#include <stdio.h>
#include <string.h>

#include "base/clean.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "engine/graph/cost.h"
#include "engine/graph/kernel.h"
#include "engine/run/kernels.h"
#include "engine/run/plugin.h"
#include "harness/cli/command.h"
#include "workloads/model_file.h"

struct import_options {
    int64_t batch;
    struct option_list dims;
    const char *output;
    bool json;
};

static const struct option options[] = {
    {"batch", 'b', OPTION_COUNT, offsetof(struct import_options, batch), "N",
     "symbolic first dimensions (default 1)"},
    {"dim", 'd', OPTION_LIST, offsetof(struct import_options, dims), "NAME=N",
     "another symbolic dimension"},
    {"output", 'o', OPTION_TEXT, offsetof(struct import_options, output), "FILE",
     "write the model as it was understood"},
    {"json", 0, OPTION_FLAG, offsetof(struct import_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

/* Native and plug-in kernels that compute an operator at all; the reference computes every one. */
static int fast_kernels(const struct op *op)
{
    int count = 0;
    for (int k = 0; k < kernel_count(); k++)
        count += !kernel_is_reference(kernel_at(k)) && kernel_computes(kernel_at(k), op);
    return count;
}

/* True for the first node of its operator; *count is how many there are. */
static bool first_of_op(const struct graph *g, int node, int *count)
{
    *count = 0;
    for (int n = 0; n < g->node_count; n++) {
        if (g->nodes[n].op != g->nodes[node].op || g->nodes[n].dead)
            continue;
        if (n < node)
            return false;
        ++*count;
    }
    return *count > 0;
}

static void json_ports(struct json *json, const char *key, const struct graph *g, const int *values,
                       int count)
{
    json_open(json, key, '[');
    for (int k = 0; k < count; k++) {
        const struct value *value = &g->values[values[k]];
        json_open(json, NULL, '{');
        json_text(json, "name", graph_called(g, values[k]));
        json_text(json, "dtype", dtype_name(value->dtype));
        json_ints(json, "shape", value->shape.dim, value->shape.rank);
        json_close(json);
    }
    json_close(json);
}

static void print_json(const char *path, const struct graph *g, const struct graph_cost *cost)
{
    struct json json;
    int count;
    json_begin(&json, stdout);
    json_open(&json, NULL, '{');
    json_text(&json, "file", path);
    json_text(&json, "note", g->note);
    json_int(&json, "batch", cost->batch);
    json_number(&json, "params", cost->params);
    json_number(&json, "macs", cost->work.macs);
    json_number(&json, "flops_model", cost->flops);
    json_ports(&json, "inputs", g, g->inputs, g->input_count);
    json_ports(&json, "outputs", g, g->outputs, g->output_count);
    json_open(&json, "operators", '[');
    for (int n = 0; n < g->node_count; n++) {
        if (!first_of_op(g, n, &count))
            continue;
        json_open(&json, NULL, '{');
        json_text(&json, "name", g->nodes[n].op->name);
        json_int(&json, "nodes", count);
        json_int(&json, "kernels", fast_kernels(g->nodes[n].op));
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
}

static void print_ports(const char *what, const struct graph *g, const int *values, int count)
{
    char shape[96], name[256];
    for (int k = 0; k < count; k++) {
        const struct value *value = &g->values[values[k]];
        printf("%-8s %-32s %-5s %s\n", what,
               clean_copy(name, sizeof(name), graph_called(g, values[k])), dtype_name(value->dtype),
               shape_text(&value->shape, shape));
    }
}

static void print_text(const char *path, const struct graph *g, const struct graph_cost *cost)
{
    struct table table = {0};
    char note[512];
    int count;
    printf("%s: %.0f parameters, %.4g GMAC, %.4g GFLOP at batch %lld\n\n", path, cost->params,
           cost->work.macs * 1e-9, cost->flops * 1e-9, (long long)cost->batch);
    print_ports("input", g, g->inputs, g->input_count);
    print_ports("output", g, g->outputs, g->output_count);
    if (g->note)
        printf("note     %s\n", clean_copy(note, sizeof(note), g->note));
    printf("\n");
    table_column(&table, "operator", TABLE_LEFT);
    table_column(&table, "nodes", TABLE_RIGHT);
    table_column(&table, "kernels", TABLE_RIGHT);
    for (int n = 0; n < g->node_count; n++) {
        if (!first_of_op(g, n, &count))
            continue;
        table_cell(&table, "%s", g->nodes[n].op->name);
        table_cell(&table, "%d", count);
        table_cell(&table, "%d", fast_kernels(g->nodes[n].op));
    }
    table_print(&table, stdout);
    table_release(&table);
}

static enum status import_file(const char *path, const struct import_options *o, struct error *err)
{
    struct graph *g;
    struct graph_cost cost;
    struct onnx_import_options how = {
        .batch = o->batch, .dims = o->dims.items, .dim_count = o->dims.count};
    TRY(model_file_open(path, &how, &g, err));
    graph_cost(g, &cost);
    enum status status = o->output ? onnx_export(g, o->output, NULL, err) : STATUS_OK;
    if (status == STATUS_OK)
        plugins_load(NULL); /* their kernels are counted */
    if (status == STATUS_OK && o->json)
        print_json(path, g, &cost);
    else if (status == STATUS_OK)
        print_text(path, g, &cost);
    graph_free(g);
    return status;
}

static int import_main(int word_count, char **words, const void *values)
{
    struct error err = {0};
    if (word_count > 1) {
        fprintf(stderr, "ridge import: \"%s\" is one word too many\n", words[1]);
        return EXIT_USAGE;
    }
    return import_file(words[0], values, &err) == STATUS_OK ? EXIT_FINE : command_fail(&err);
}

REGISTER(command, import) = {
    .name = "import",
    .summary = "show what an ONNX file contains, and fix its shapes",
    .usage = "FILE.onnx [options]",
    .help = "Every command takes an .onnx file in place of a workload's name; this one shows what\n"
            "it becomes. A file with free dimensions becomes one with fixed shapes:\n"
            "  ridge import bert.onnx:sequence=128 --output bert128.onnx\n",
    .options = options,
    .values_size = sizeof(struct import_options),
    .words_min = 1,
    .main = import_main,
};
