/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge export: a workload as an ONNX file, with its weights, and its inputs as .npy, so that any
 * other program can run the very same thing; or, with --format, results as text. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/output.h"
#include "harness/cli/command.h"
#include "harness/cli/tensor_file.h"
#include "harness/model/decisions.h"
#include "harness/model/model_options.h"
#include "results/format.h"
#include "workloads/onnx/onnx.h"
#include "workloads/workload.h"

struct export_options {
    struct model_options model;
    const char *output, *inputs_dir, *part;
    bool external;
    const char *format, *run, *db;
    bool steps;
};

static const struct option options[] = {
    {"output", 'o', OPTION_TEXT, offsetof(struct export_options, output), "FILE",
     "the file to write; results go to standard output without it"},
    {"batch", 'b', OPTION_COUNT, offsetof(struct export_options, model.batch), "N",
     "images, sequences or rows"},
    {"precision", 0, OPTION_TEXT, offsetof(struct export_options, model.precision), "NAME",
     "of workloads that build their graph in it: f32, bf16, f16, i8, f8"},
    MODE_OPTION(struct export_options, model.mode),
    {"inputs-dir", 'i', OPTION_TEXT, offsetof(struct export_options, inputs_dir), "FOLDER",
     "writes the generated inputs there as NAME.npy"},
    {"part", 0, OPTION_TEXT, offsetof(struct export_options, part), "NAME", DECISIONS_PART_HELP},
    {"external", 0, OPTION_FLAG, offsetof(struct export_options, external), NULL,
     "weights in FILE.data even when they are small"},
    {"format", 'f', OPTION_TEXT, offsetof(struct export_options, format), "NAME",
     "results instead of a model, in one of the formats below"},
    {"run", 'r', OPTION_TEXT, offsetof(struct export_options, run), "RUN",
     "which: latest (default), latest~N, uuid, tag, baseline, commit; all"},
    {"db", 'd', OPTION_TEXT, offsetof(struct export_options, db), "FILE",
     "database of results, default " STORE_DEFAULT},
    {"steps", 0, OPTION_FLAG, offsetof(struct export_options, steps), NULL,
     "metrics of single steps too"},
    {.name = NULL},
};

static enum status save_input(const struct value *value, const char *folder, const char *file,
                              struct error *err)
{
    void *data = malloc(value_size(value) + 1);
    if (!data)
        return FAIL_NO_MEMORY(err);
    value_materialise(value, data);
    enum status status = tensor_save_in(folder, file, value->dtype, &value->shape, data, err);
    free(data);
    if (status == STATUS_OK && strcmp(file, value->name) != 0)
        fprintf(stderr, "ridge: input \"%s\" is in %s.npy\n", value->name, file);
    return status;
}

static enum status save_inputs(const struct graph *g, const char *folder, struct error *err)
{
    struct arena arena = {.head = NULL};
    const char *const *files = NULL;
    const char **names = arena_array(&arena, (size_t)g->input_count + 1, sizeof(*names));
    for (int k = 0; names && k < g->input_count; k++)
        names[k] = g->values[g->inputs[k]].name;
    enum status status =
        names ? tensor_file_names(names, g->input_count, &arena, &files, err) : FAIL_NO_MEMORY(err);
    for (int k = 0; status == STATUS_OK && k < g->input_count; k++)
        status = save_input(&g->values[g->inputs[k]], folder, files[k], err);
    arena_release(&arena);
    return status;
}

static enum status export_model(const char *spec, const struct export_options *o, struct error *err)
{
    struct graph *g;
    struct onnx_export_options how = {.external = o->external};
    if (!o->output)
        return FAIL(err, STATUS_FAILED, "--output FILE is missing");
    enum precision precision;
    TRY(model_graph_precision(spec, o->model.precision, &precision, err));
    TRY(model_graph(spec, &o->model, precision, &g, err));
    enum status status = graph_take_part(g, o->part, err);
    if (status == STATUS_OK)
        status = onnx_export(g, o->output, &how, err);
    if (status == STATUS_OK && o->inputs_dir)
        status = save_inputs(g, o->inputs_dir, err);
    if (status == STATUS_OK)
        fprintf(stderr, "ridge: wrote %s (%d nodes, %d inputs, %d outputs)\n", o->output,
                g->node_count, g->input_count, g->output_count);
    graph_free(g);
    return status;
}

/* ---- results ---- */

static enum status fail_unknown_format(const char *name, struct error *err)
{
    const char *names[32];
    char list[256] = "";
    size_t used = 0;
    int count = format_count() < ARRAY_COUNT(names) ? format_count() : ARRAY_COUNT(names);
    for (int k = 0; k < count; k++) {
        names[k] = format_at(k)->name;
        if (used < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, " %s", names[k]);
    }
    const char *near = nearest_word(name, names, count);
    return FAIL(err, STATUS_FAILED, "there is no format \"%s\"%s%s%s; there are:%s", name,
                near ? ", did you mean \"" : "", near ? near : "", near ? "\"" : "", list);
}

static enum status read_results(const struct format *format, const struct export_options *o,
                                struct grid *grid, struct error *err)
{
    struct store *store;
    int64_t run = 0;
    bool all = o->run && strcmp(o->run, "all") == 0;
    enum status status = STATUS_OK;
    TRY(store_open(o->db ? o->db : STORE_DEFAULT, STORE_READ, &store, err));
    if (!all)
        status = query_find_run(store, o->run ? o->run : "latest", &run, err);
    const struct query_value values[] = {{"run", NULL, all ? NAN : (double)run},
                                         {"ops", NULL, o->steps},
                                         {"samples", NULL, format->samples}};
    if (status == STATUS_OK)
        status = query_view(store, "export", values, ARRAY_COUNT(values), grid, err);
    store_close(store);
    return status;
}

static enum status write_results(const struct format *format, const struct grid *grid,
                                 const char *path, struct error *err)
{
    struct output out;
    TRY(output_open(&out, path, OUTPUT_PRECIOUS, err));
    enum status status = format->write(grid, out.stream, err);
    if (status != STATUS_OK && path)
        error_context(err, "%s", path);
    return output_close(&out, status, err);
}

static enum status export_results(const struct export_options *o, struct error *err)
{
    struct grid grid = {0};
    const struct format *format = format_find(o->format);
    if (!format)
        return fail_unknown_format(o->format, err);
    enum status status = read_results(format, o, &grid, err);
    if (status == STATUS_OK)
        status = write_results(format, &grid, o->output, err);
    if (status == STATUS_OK && o->output)
        fprintf(stderr, "ridge: wrote %s (%lld rows)\n", o->output, (long long)grid.row_count);
    grid_release(&grid);
    return status;
}

/* An option of models that was given, or NULL: with results it has no effect. */
static const char *option_of_models(const struct export_options *o)
{
    return o->model.batch       ? "--batch"
           : o->model.precision ? "--precision"
           : o->model.mode      ? "--mode"
           : o->inputs_dir      ? "--inputs-dir"
           : o->part            ? "--part"
           : o->external        ? "--external"
                                : NULL;
}

static int export_main(int word_count, char **words, const void *values)
{
    const struct export_options *o = values;
    struct error err = {0};
    if (o->format && word_count > 0)
        FAIL(&err, STATUS_FAILED, "--format is for results, which need no model \"%s\"", words[0]);
    else if (o->format && option_of_models(o))
        FAIL(&err, STATUS_FAILED, "%s is for models, and --format writes results",
             option_of_models(o));
    else if (!o->format && (o->run || o->db || o->steps))
        FAIL(&err, STATUS_FAILED, "--run, --db and --steps are for results: --format is missing");
    else if (!o->format && word_count == 0)
        FAIL(&err, STATUS_FAILED, "a model is missing, or --format NAME for results");
    else if (word_count > 1)
        FAIL(&err, STATUS_FAILED, "one model at a time; \"%s\" is too much", words[1]);
    else if (o->model.batch < 0)
        FAIL(&err, STATUS_FAILED, "--batch must be positive");
    else if ((o->format ? export_results(o, &err) : export_model(words[0], o, &err)) == STATUS_OK)
        return EXIT_FINE;
    return command_fail(&err);
}

REGISTER(command, export) = {
    .name = "export",
    .summary = "write a workload as an ONNX file, or results as text",
    .usage = "MODEL --output FILE.onnx [options]\n"
             "       ridge export --format NAME [--run RUN] [--output FILE] [options]",
    .help = "Opset 17, standard operators only. Weights of more than 1 GiB go to FILE.onnx.data.\n"
            "MODEL may be a .onnx file: it is written as ridge understood it, with constant\n"
            "parts computed and control flow resolved.\n\n"
            "Formats of results: csv, json, jsonl, markdown, google_benchmark (for compare.py),\n"
            "openmetrics. json and google_benchmark hold the raw samples.\n",
    .options = options,
    .values_size = sizeof(struct export_options),
    .main = export_main,
};
