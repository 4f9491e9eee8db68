/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge export: a workload as an ONNX file, with its weights, and its inputs as .npy, so that any
 * other program can run the very same thing. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/onnx/onnx.h"
#include "harness/command.h"
#include "harness/tensor_file.h"
#include "workloads/workload.h"

struct export_options {
    int64_t batch;
    const char *output, *inputs_dir;
    bool external;
};

static const struct option options[] = {
    {"output", 'o', OPTION_TEXT, offsetof(struct export_options, output), "FILE",
     "the .onnx file to write"},
    {"batch", 'b', OPTION_INT, offsetof(struct export_options, batch), "N",
     "images, sequences or rows"},
    {"inputs-dir", 'i', OPTION_TEXT, offsetof(struct export_options, inputs_dir), "FOLDER",
     "writes the generated inputs there as NAME.npy"},
    {"external", 0, OPTION_FLAG, offsetof(struct export_options, external), NULL,
     "weights in FILE.data even when they are small"},
    {.name = NULL},
};

static enum status save_input(const struct value *value, const char *folder, struct error *err)
{
    size_t bytes = (size_t)shape_count(&value->shape) * dtype_size(value->dtype);
    void *data = malloc(bytes + 1);
    if (!data)
        return FAIL_NO_MEMORY(err);
    value_materialise(value, data);
    enum status status =
        tensor_save_in(folder, value->name, value->dtype, &value->shape, data, err);
    free(data);
    return status;
}

static enum status export_model(const char *spec, const struct export_options *o, struct error *err)
{
    struct graph *g;
    struct onnx_export_options how = {.external = o->external};
    if (!o->output)
        return FAIL(err, STATUS_FAILED, "--output FILE is missing");
    TRY(workload_open(spec, o->batch, &g, err));
    enum status status = onnx_export(g, o->output, &how, err);
    for (int k = 0; status == STATUS_OK && o->inputs_dir && k < g->input_count; k++)
        status = save_input(&g->values[g->inputs[k]], o->inputs_dir, err);
    if (status == STATUS_OK)
        fprintf(stderr, "ridge: wrote %s (%d nodes, %d inputs, %d outputs)\n", o->output,
                g->node_count, g->input_count, g->output_count);
    graph_free(g);
    return status;
}

static int export_main(int word_count, char **words, const void *values)
{
    const struct export_options *o = values;
    struct error err = {0};
    if (word_count > 1)
        FAIL(&err, STATUS_FAILED, "one model at a time; \"%s\" is too much", words[1]);
    else if (o->batch < 0)
        FAIL(&err, STATUS_FAILED, "--batch must be positive");
    else if (export_model(words[0], o, &err) == STATUS_OK)
        return EXIT_FINE;
    return command_fail(&err);
}

REGISTER(command, export) = {
    .name = "export",
    .summary = "write a workload as an ONNX file",
    .usage = "MODEL --output FILE.onnx [options]",
    .help = "Opset 17, standard operators only. Weights of more than 1 GiB go to FILE.onnx.data.\n"
            "A .onnx file may stand as MODEL: it is written as ridge understood it, with constant\n"
            "parts computed and control flow resolved.\n",
    .options = options,
    .values_size = sizeof(struct export_options),
    .words_min = 1,
    .main = export_main,
};
