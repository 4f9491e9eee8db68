/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge infer: one run of a model on given inputs. What is not given is generated, the same on
 * every machine. Outputs are summarised and, on request, written as .npy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/text/json.h"
#include "engine/compile/compile.h"
#include "engine/run/provider.h"
#include "harness/cli/command.h"
#include "harness/cli/tensor_file.h"
#include "harness/model/admission.h"
#include "harness/model/decisions.h"
#include "harness/model/model_options.h"
#include "workloads/model_file.h"

struct infer_options {
    struct model_options model;
    struct option_list inputs, dims;
    const char *output_dir, *part;
    bool json;
};

static const struct option options[] = {
    {"input", 'i', OPTION_LIST, offsetof(struct infer_options, inputs), "NAME=FILE",
     "contents of an input, .npy or .pb"},
    {"dim", 0, OPTION_LIST, offsetof(struct infer_options, dims), "NAME=N",
     "size of a dimension that a file leaves open; or FILE.onnx:NAME=N"},
    {"output-dir", 'o', OPTION_TEXT, offsetof(struct infer_options, output_dir), "FOLDER",
     "writes each output there as NAME.npy, with _ for what no file name should have"},
    {"part", 0, OPTION_TEXT, offsetof(struct infer_options, part), "NAME", DECISIONS_PART_HELP},
    {"json", 0, OPTION_FLAG, offsetof(struct infer_options, json), NULL, "machine-readable"},
    MODEL_OPTIONS(struct infer_options),
    {.name = NULL},
};

/* ---- inputs ---- */

struct bindings {
    struct onnx_binding list[OPTION_LIST_MAX];
    char *names[OPTION_LIST_MAX];
    void *data[OPTION_LIST_MAX];
    int count;
};

static enum status load_bindings(const struct option_list *inputs, struct bindings *bindings,
                                 struct error *err)
{
    for (int k = 0; k < inputs->count; k++) {
        struct onnx_binding *binding = &bindings->list[k];
        const char *equals = strchr(inputs->items[k], '=');
        if (!equals)
            return FAIL(err, STATUS_FAILED, "--input \"%s\" should be NAME=FILE", inputs->items[k]);
        bindings->names[k] = strdup(inputs->items[k]);
        if (!bindings->names[k])
            return FAIL_NO_MEMORY(err);
        bindings->names[k][equals - inputs->items[k]] = 0;
        TRY(tensor_load(equals + 1, &binding->desc, &bindings->data[k], err));
        binding->name = bindings->names[k];
        binding->data = bindings->data[k];
        bindings->count++;
    }
    return STATUS_OK;
}

static void free_bindings(struct bindings *bindings)
{
    for (int k = 0; k < OPTION_LIST_MAX; k++) {
        free(bindings->names[k]);
        free(bindings->data[k]);
    }
}

static enum status open_graph(const char *spec, const struct infer_options *o,
                              const struct bindings *bindings, struct graph **g, struct error *err)
{
    enum precision precision;
    TRY(model_precision(spec, &o->model, &precision, err));
    if (o->dims.count && !workload_is_file(spec))
        return FAIL(err, STATUS_FAILED,
                    "--dim is for files; a workload's sizes are its parameters: %s:NAME=VALUE",
                    spec);
    if (!workload_is_file(spec))
        return workload_open(spec, o->model.batch, precision, g, err);
    struct onnx_import_options import = {.batch = o->model.batch,
                                         .dims = o->dims.items,
                                         .dim_count = o->dims.count,
                                         .bindings = bindings->list,
                                         .binding_count = bindings->count};
    return model_file_open(spec, &import, g, err);
}

static enum status check_input(const struct graph *g, const struct onnx_binding *binding,
                               struct error *err)
{
    char given[96], wanted[96];
    int v = graph_find_value(g, binding->name);
    if (v == NONE || g->values[v].kind == VALUE_RESULT)
        return FAIL(err, STATUS_FAILED, "the model has no input \"%s\"", binding->name);
    const struct value *value = &g->values[v];
    if (value->dtype == binding->desc.dtype && shape_equal(&value->shape, &binding->desc.shape))
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "input \"%s\" is %s%s, the file has %s%s", binding->name,
                dtype_name(value->dtype), shape_text(&value->shape, wanted),
                dtype_name(binding->desc.dtype), shape_text(&binding->desc.shape, given));
}

static enum status set_inputs(const struct graph *g, const struct bindings *bindings,
                              struct exe *exe, struct error *err)
{
    for (int k = 0; k < bindings->count; k++) {
        const struct onnx_binding *binding = &bindings->list[k];
        TRY(check_input(g, binding, err));
        for (int i = 0; i < g->input_count; i++)
            if (strcmp(g->values[g->inputs[i]].name, binding->name) == 0)
                memcpy(exe_input(exe, i), binding->data, desc_bytes(&binding->desc));
    }
    return STATUS_OK;
}

/* ---- outputs ---- */

struct result {
    const char *name, *file; /* file: without ".npy"; NULL: none is written */
    enum dtype dtype;
    struct shape shape;
    double min, max, mean;
    int64_t not_finite;
};

/* Counts of outputs of unknown size become outputs after the model's own. */
static int add_counts(struct graph *g)
{
    int of_model = g->output_count;
    for (int k = 0; k < of_model; k++)
        if (g->values[g->outputs[k]].count != NONE)
            graph_output(g, g->values[g->outputs[k]].count);
    return of_model;
}

/* Entries along the counted axis that are real; -1: all. */
static int64_t real_rows(const struct graph *g, const struct exe *exe, const struct value *value)
{
    if (value->count != NONE)
        for (int k = 0; k < g->output_count; k++)
            if (g->outputs[k] == value->count)
                return *(const int64_t *)exe_output(exe, k);
    return -1;
}

/* A copy of output k without padding; NULL: out of memory. */
static void *copy_output(const struct graph *g, const struct exe *exe, int k, struct shape *shape)
{
    const struct value *value = &g->values[g->outputs[k]];
    size_t item = dtype_size(value->dtype);
    int axis = value->count_axis;
    int64_t rows = real_rows(g, exe, value);
    *shape = value->shape;
    char *copy = malloc((size_t)shape_count(shape) * item + 1);
    if (!copy)
        return NULL;
    if (rows >= 0 && rows < shape->dim[axis])
        shape->dim[axis] = rows;
    int64_t outer = rows < 0 ? 1 : shape_span(shape, 0, axis);
    size_t part = (size_t)(shape_count(shape) / (outer ? outer : 1)) * item;
    size_t whole = (size_t)(shape_count(&value->shape) / (outer ? outer : 1)) * item;
    for (int64_t n = 0; n < outer; n++)
        memcpy(copy + (size_t)n * part, (const char *)exe_output(exe, k) + (size_t)n * whole, part);
    return copy;
}

static enum status summarise(struct result *r, const void *data, struct error *err)
{
    struct ref_tensor tensor;
    TRY(ref_from_data(&tensor, r->dtype, &r->shape, data, err));
    double sum = 0;
    int64_t count = 0;
    r->min = (double)INFINITY;
    r->max = (double)-INFINITY;
    for (int64_t k = 0; k < tensor.count; k++) {
        double x = ref_get(&tensor, k);
        if (!isfinite(x)) {
            r->not_finite++;
            continue;
        }
        r->min = fmin(r->min, x);
        r->max = fmax(r->max, x);
        sum += x;
        count++;
    }
    r->mean = count ? sum / (double)count : (double)NAN;
    if (!count)
        r->min = r->max = (double)NAN;
    ref_release(&tensor);
    return STATUS_OK;
}

static void print_text(const struct result *r)
{
    char shape[96];
    clean_put(stdout, r->name);
    printf("  %s%s  min %.6g  max %.6g  mean %.6g", dtype_name(r->dtype),
           shape_text(&r->shape, shape), r->min, r->max, r->mean);
    if (r->not_finite)
        printf("  (%lld not finite)", (long long)r->not_finite);
    if (r->file && strcmp(r->file, r->name) != 0)
        printf("  in %s.npy", r->file);
    printf("\n");
}

static void print_json(struct json *json, const struct result *r)
{
    json_open(json, NULL, '{');
    json_text(json, "name", r->name);
    json_text(json, "dtype", dtype_name(r->dtype));
    json_ints(json, "shape", r->shape.dim, r->shape.rank);
    json_number(json, "min", r->min);
    json_number(json, "max", r->max);
    json_number(json, "mean", r->mean);
    json_int(json, "not_finite", r->not_finite);
    if (r->file) {
        char file[1024];
        snprintf(file, sizeof(file), "%s.npy", r->file);
        json_text(json, "file", file);
    }
    json_close(json);
}

struct outputs {
    int count;                /* of the model */
    const char *const *files; /* NULL: none are written */
    struct arena arena;
};

/* Before anything runs: two outputs must not become one file. */
static enum status name_files(const struct graph *g, struct outputs *outputs, struct error *err)
{
    size_t count = (size_t)outputs->count + 1;
    const char **names = arena_array(&outputs->arena, count, sizeof(*names));
    if (!names)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < outputs->count; k++)
        names[k] = graph_called(g, g->outputs[k]);
    return tensor_file_names(names, outputs->count, &outputs->arena, &outputs->files, err);
}

static enum status show_output(const struct graph *g, const struct exe *exe, int k,
                               const struct infer_options *o, const char *file, struct json *json,
                               struct error *err)
{
    const struct value *value = &g->values[g->outputs[k]];
    struct result r = {.name = graph_called(g, g->outputs[k]), .file = file, .dtype = value->dtype};
    void *data = copy_output(g, exe, k, &r.shape);
    enum status status = data ? summarise(&r, data, err) : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK && file)
        status = tensor_save_in(o->output_dir, file, r.dtype, &r.shape, data, err);
    free(data);
    if (status == STATUS_OK && o->json)
        print_json(json, &r);
    else if (status == STATUS_OK)
        print_text(&r);
    return status;
}

static enum status run_and_show(const struct graph *g, const struct outputs *outputs,
                                struct exe *exe, const struct infer_options *o, struct error *err)
{
    struct json json;
    TRY(exe_run_checked(exe, err));
    if (o->json) {
        json_begin(&json, stdout);
        json_open(&json, NULL, '[');
    }
    for (int k = 0; k < outputs->count; k++)
        TRY(show_output(g, exe, k, o, outputs->files ? outputs->files[k] : NULL, &json, err));
    if (o->json)
        json_close(&json);
    return STATUS_OK;
}

static enum status infer(const char *spec, const struct infer_options *o,
                         const struct bindings *bindings, struct error *err)
{
    char path[512];
    struct exe_options options_of_exe;
    struct graph *g;
    struct exe *exe = NULL;
    TRY(model_exe_options(&o->model, &options_of_exe, path, sizeof(path), err));
    TRY(providers_check(o->model.providers, err));
    TRY(open_graph(spec, o, bindings, &g, err));
    enum status status = providers_load(o->model.providers, err);
    if (status == STATUS_OK)
        status = graph_take_part(g, o->part, err);
    if (workload_is_file(spec) && g->note)
        fprintf(stderr, "ridge: %s\n", g->note);
    struct outputs outputs = {.count = add_counts(g)};
    if (status == STATUS_OK && o->output_dir)
        status = name_files(g, &outputs, err);
    if (status == STATUS_OK && !o->model.no_memory_check)
        status = admission_check(g, &options_of_exe, false, err);
    if (status == STATUS_OK)
        status = exe_new(g, &options_of_exe, &exe, err);
    if (status == STATUS_OK)
        status = set_inputs(g, bindings, exe, err);
    if (status == STATUS_OK)
        status = run_and_show(g, &outputs, exe, o, err);
    arena_release(&outputs.arena);
    exe_free(exe);
    graph_free(g);
    return status;
}

static int infer_main(int word_count, char **words, const void *values)
{
    const struct infer_options *o = values;
    struct bindings bindings = {0};
    struct error err = {0};
    if (word_count > 1) {
        FAIL(&err, STATUS_FAILED, "one model at a time; \"%s\" is too much", words[1]);
        return command_fail(&err);
    }
    enum status status = load_bindings(&o->inputs, &bindings, &err);
    if (status == STATUS_OK)
        status = infer(words[0], o, &bindings, &err);
    free_bindings(&bindings);
    return status == STATUS_OK ? EXIT_FINE : command_fail(&err);
}

REGISTER(command, infer) = {
    .name = "infer",
    .summary = "run a model once on given inputs",
    .usage = "MODEL [--input NAME=FILE]... [options]",
    .help =
        "Prints shape, type, smallest, largest and mean element of every output. Inputs that are\n"
        "not given are generated from their names, the same on every machine. An index of Gather,\n"
        "Scatter and the like that is outside its axis is an error on the CPU; timed runs do\n"
        "not check.\n",
    .options = options,
    .values_size = sizeof(struct infer_options),
    .words_min = 1,
    .main = infer_main,
};
