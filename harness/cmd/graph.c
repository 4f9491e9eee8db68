/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge graph: the network as it is built, before any pass, with what it costs by counting. The
 * text is stable: the same model gives the same lines on every machine, so two dumps can be
 * compared with diff. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clean.h"
#include "base/text/json.h"
#include "engine/graph/cost.h"
#include "harness/cli/command.h"
#include "harness/cli/graph_text.h"
#include "harness/model/admission.h"
#include "harness/model/model_options.h"
#include "workloads/workload.h"

struct graph_options {
    struct model_options model;
    bool json, dot;
};

static const struct option options[] = {
    {"batch", 'b', OPTION_COUNT, offsetof(struct graph_options, model.batch), "N",
     "images, sequences or rows"},
    {"precision", 0, OPTION_TEXT, offsetof(struct graph_options, model.precision), "NAME",
     "of workloads that build their graph in it: f32, bf16, f16, i8, f8"},
    MODE_OPTION(struct graph_options, model.mode),
    RECOMPUTE_OPTIONS(struct graph_options),
    {"json", 0, OPTION_FLAG, offsetof(struct graph_options, json), NULL, "machine-readable"},
    {"dot", 0, OPTION_FLAG, offsetof(struct graph_options, dot), NULL,
     "for Graphviz: ridge graph MODEL --dot | dot -Tsvg"},
    {.name = NULL},
};

static const char *value_name(const struct graph *g, int value)
{
    return value == NONE ? "-" : g->values[value].name;
}

/* ---- text ---- */

static void print_named(const struct graph *g, int v, const char *name)
{
    char shape[96];
    const struct value *value = &g->values[v];
    clean_put(stdout, name);
    printf(" %s%s", dtype_name(value->dtype), shape_text(&value->shape, shape));
}

static void print_value(const struct graph *g, int v)
{
    print_named(g, v, g->values[v].name);
}

/* "output y f32[2]"; of one that the model calls as it calls an input: "output x f32[2] (x_3)" */
static void print_output(const struct graph *g, int v)
{
    const char *name = graph_called(g, v), *own = g->values[v].name;
    printf("output ");
    print_named(g, v, name);
    if (strcmp(name, own) != 0) {
        printf(" (");
        clean_put(stdout, own);
        printf(")");
    }
    printf("\n");
}

static void print_values(const struct graph *g, const int *values, int count)
{
    for (int k = 0; k < count; k++) {
        printf("%s", k ? ", " : "");
        if (values[k] == NONE)
            printf("-");
        else
            print_value(g, values[k]);
    }
}

static void print_node(const struct graph *g, int n)
{
    const struct node *node = &g->nodes[n];
    struct node_cost cost;
    node_cost(g, n, &cost);
    clean_put(stdout, node->name);
    printf(": %s(", node->op->name);
    print_values(g, node->inputs, node->input_count);
    printf(") -> ");
    print_values(g, node->outputs, node->output_count);
    for (int k = 0; k < node->attr_count; k++)
        graph_print_attr(stdout, &node->attrs[k]);
    bool forward = node->phase == PHASE_FORWARD;
    printf("  # %s%sflops %.0f bytes %.0f\n", forward ? "" : phase_name(node->phase),
           forward ? "" : ", ", cost.flops, cost.bytes_read + cost.bytes_written);
}

/* Bytes of the host's memory; NAN when they could not be determined. */
struct needs {
    double run, compile, verify;
};

static struct needs needs_of(const struct graph *g)
{
    struct memory_need need;
    struct exe_options usual = {.no_tune = false};
    if (admission_need(g, &usual, &need, NULL) != STATUS_OK)
        return (struct needs){NAN, NAN, NAN};
    return (struct needs){need.run, need.compile, admission_bytes(&need, true)};
}

/* "12.5"; "-" where no byte is moved. */
static const char *ratio_text(double flops, double bytes, char *text, size_t size)
{
    if (bytes > 0)
        snprintf(text, size, "%.4g", flops / bytes);
    else
        snprintf(text, size, "-");
    return text;
}

static void print_text(const struct graph *g)
{
    char compulsory[24], streamed[24];
    struct graph_cost cost;
    struct needs needs = needs_of(g);
    graph_cost(g, &cost);
    for (int k = 0; k < g->input_count; k++) {
        printf("input ");
        print_value(g, g->inputs[k]);
        printf("\n");
    }
    for (int n = 0; n < g->node_count; n++)
        if (!g->nodes[n].dead)
            print_node(g, n);
    for (int k = 0; k < g->output_count; k++)
        print_output(g, g->outputs[k]);
    printf("# ");
    clean_put(stdout, g->name);
    printf(": batch %" PRId64 ", %d nodes, %.0f parameters, %.0f buffers\n", cost.batch,
           g->node_count, cost.params, cost.buffers);
    if (g->note)
        printf("# %s\n", g->note);
    printf("# %.6g MACs, %.6g FLOPs, %.6g transcendental calls\n", cost.work.macs, cost.flops,
           cost.work.transcendentals);
    printf("# %.6g bytes compulsory, %.6g bytes streamed; FLOP/byte %s and %s\n",
           cost.bytes_compulsory, cost.bytes_streamed,
           ratio_text(cost.flops, cost.bytes_compulsory, compulsory, sizeof(compulsory)),
           ratio_text(cost.flops, cost.bytes_streamed, streamed, sizeof(streamed)));
    printf("# memory: at most %.3g GB to run, %.3g GB to compile, %.3g GB in all to verify\n",
           needs.run * 1e-9, needs.compile * 1e-9, needs.verify * 1e-9);
}

/* ---- JSON ---- */

static void json_names(struct json *json, const struct graph *g, const char *key, const int *values,
                       int count)
{
    json_open(json, key, '[');
    for (int k = 0; k < count; k++)
        json_text(json, NULL, values[k] == NONE ? NULL : value_name(g, values[k]));
    json_close(json);
}

static void json_node(struct json *json, const struct graph *g, int n)
{
    const struct node *node = &g->nodes[n];
    const struct value *out = &g->values[node->outputs[0]];
    struct node_cost cost;
    node_cost(g, n, &cost);
    json_open(json, NULL, '{');
    json_text(json, "name", node->name);
    json_text(json, "op", node->op->name);
    json_text(json, "domain", node->op->domain ? node->op->domain : "ai.onnx");
    json_names(json, g, "inputs", node->inputs, node->input_count);
    json_names(json, g, "outputs", node->outputs, node->output_count);
    json_ints(json, "shape", out->shape.dim, out->shape.rank);
    json_text(json, "dtype", dtype_name(out->dtype));
    json_text(json, "phase", phase_name(node->phase));
    json_number(json, "macs", cost.work.macs);
    json_number(json, "flops", cost.flops);
    json_number(json, "transcendentals", cost.work.transcendentals);
    json_number(json, "bytes", cost.bytes_read + cost.bytes_written);
    json_number(json, "params", cost.params);
    json_close(json);
}

/* value: what nodes call it, where the model's name is another. */
static void json_value(struct json *json, const struct graph *g, int v)
{
    const struct value *value = &g->values[v];
    const char *name = graph_called(g, v);
    json_open(json, NULL, '{');
    json_text(json, "name", name);
    if (strcmp(name, value->name) != 0)
        json_text(json, "value", value->name);
    json_text(json, "dtype", dtype_name(value->dtype));
    json_ints(json, "shape", value->shape.dim, value->shape.rank);
    json_close(json);
}

static void print_json(const struct graph *g, const char *spec)
{
    struct json json;
    struct graph_cost cost;
    struct needs needs = needs_of(g);
    graph_cost(g, &cost);
    json_begin(&json, stdout);
    json_open(&json, NULL, '{');
    json_text(&json, "workload", spec);
    if (g->note)
        json_text(&json, "note", g->note);
    json_int(&json, "batch", cost.batch);
    json_number(&json, "params", cost.params);
    json_number(&json, "buffers", cost.buffers);
    json_number(&json, "macs", cost.work.macs);
    json_number(&json, "flops_model", cost.flops);
    json_number(&json, "transcendentals", cost.work.transcendentals);
    json_number(&json, "bytes_compulsory", cost.bytes_compulsory);
    json_number(&json, "bytes_streamed", cost.bytes_streamed);
    json_number(&json, "memory_run_bytes", needs.run);
    json_number(&json, "memory_compile_bytes", needs.compile);
    json_number(&json, "memory_verify_bytes", needs.verify);
    json_open(&json, "inputs", '[');
    for (int k = 0; k < g->input_count; k++)
        json_value(&json, g, g->inputs[k]);
    json_close(&json);
    json_open(&json, "outputs", '[');
    for (int k = 0; k < g->output_count; k++)
        json_value(&json, g, g->outputs[k]);
    json_close(&json);
    json_open(&json, "nodes", '[');
    for (int n = 0; n < g->node_count; n++)
        if (!g->nodes[n].dead)
            json_node(&json, g, n);
    json_close(&json);
    json_close(&json);
}

/* ---- Graphviz ---- */

static void print_edge(const struct graph *g, int from, const char *to)
{
    char shape[96];
    const struct value *value = &g->values[from];
    printf("  ");
    graph_print_quoted(stdout,
                       value->producer == NONE ? value->name : g->nodes[value->producer].name);
    printf(" -> ");
    graph_print_quoted(stdout, to);
    printf(" [label=\"%s\"];\n", shape_text(&value->shape, shape));
}

static void print_dot(const struct graph *g)
{
    printf("digraph ");
    graph_print_quoted(stdout, g->name);
    printf(" {\n  node [shape=box];\n");
    for (int n = 0; n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        if (node->dead)
            continue;
        printf("  ");
        graph_print_quoted(stdout, node->name);
        printf(" [label=\"%s\"];\n", node->op->name);
        for (int k = 0; k < node->input_count; k++)
            if (node->inputs[k] != NONE && !value_is_fixed(&g->values[node->inputs[k]]))
                print_edge(g, node->inputs[k], node->name);
    }
    for (int k = 0; k < g->output_count; k++)
        print_edge(g, g->outputs[k], g->values[g->outputs[k]].name);
    printf("}\n");
}

static int graph_main(int word_count, char **words, const void *values)
{
    const struct graph_options *o = values;
    struct error err = {.code = STATUS_OK};
    struct graph *g;
    if (word_count > 1) {
        fprintf(stderr, "ridge graph: one model at a time, got \"%s\" as well\n", words[1]);
        return EXIT_USAGE;
    }
    if (o->json && o->dot) {
        fprintf(stderr, "ridge graph: only one of --json and --dot\n");
        return EXIT_USAGE;
    }
    if (o->model.batch < 0) {
        fprintf(stderr, "ridge graph: --batch %lld is no batch size\n", (long long)o->model.batch);
        return EXIT_USAGE;
    }
    enum precision precision;
    if (model_graph_precision(words[0], o->model.precision, &precision, &err) != STATUS_OK ||
        model_graph_bare(words[0], &o->model, precision, &g, &err) != STATUS_OK)
        return command_fail(&err);
    if (o->json)
        print_json(g, words[0]);
    else if (o->dot)
        print_dot(g);
    else
        print_text(g);
    graph_free(g);
    return EXIT_FINE;
}

REGISTER(command, graph) = {
    .name = "graph",
    .summary = "print a model's nodes, shapes, FLOPs and bytes",
    .usage = "MODEL [options]",
    .help = "MODEL is a workload (`ridge list`), with parameters as NAME:param=value, or an ONNX\n"
            "file. One line per node: name: operator(inputs) -> outputs attributes # cost.\n"
            "FLOPs count a multiply-add as 2. Streamed bytes: every node reads its inputs and\n"
            "writes its outputs once. Compulsory bytes: every tensor crosses the bus once and\n"
            "elementwise work happens inside the kernel before it. Memory: of the host, estimated\n"
            "before anything is compiled (docs/method.md); a run skips what does not fit.",
    .options = options,
    .values_size = sizeof(struct graph_options),
    .words_min = 1,
    .main = graph_main,
};
