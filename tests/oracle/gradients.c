/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests/oracle/gradients.py compares with PyTorch's autograd: of a workload that learns the
 * graph of its loss as model.onnx, its inputs, its loss and the gradient by each weight in double.
 *
 *   gradients SPEC BATCH FOLDER [loss]
 *
 * With "loss" the graph and its inputs alone, as tests/oracle/training_turns.py wants them.
 *
 * FOLDER/index.txt has a line per array, "input 3 NAME", "loss 0 NAME" or "gradient 7 NAME"; the
 * array is FOLDER/input.3.npy and so on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/npy.h"
#include "engine/reference/reference.h"
#include "workloads/onnx/onnx.h"
#include "workloads/training.h"

static const char gradient_of[] = "gradient.";

struct writer {
    const char *folder;
    FILE *index;
};

static enum status write_array(const struct writer *w, const char *kind, int number,
                               const char *name, const struct ref_tensor *t, struct error *err)
{
    char path[512];
    struct npy array = {.kind = t->f ? 'f' : 'i', .item_bytes = 8, .rank = t->shape.rank};
    array.data = t->f ? (void *)t->f : (void *)t->i;
    for (int k = 0; k < t->shape.rank; k++)
        array.dim[k] = t->shape.dim[k];
    snprintf(path, sizeof(path), "%s/%s.%d.npy", w->folder, kind, number);
    fprintf(w->index, "%s %d %s\n", kind, number, name);
    return npy_save(path, &array, err);
}

static enum status write_all(const struct writer *w, const struct graph *g,
                             const struct ref_tensor *inputs, const struct ref_tensor *outputs,
                             struct error *err)
{
    for (int k = 0; k < g->input_count; k++)
        TRY(write_array(w, "input", k, g->values[g->inputs[k]].name, &inputs[k], err));
    TRY(write_array(w, "loss", 0, g->values[g->outputs[0]].name, &outputs[0], err));
    for (int k = 1; k < g->output_count; k++) {
        const char *name = g->values[g->outputs[k]].name;
        if (strncmp(name, gradient_of, strlen(gradient_of)) == 0)
            TRY(write_array(w, "gradient", k, name + strlen(gradient_of), &outputs[k], err));
    }
    return STATUS_OK;
}

/* A file keeps attributes in f32, so an epsilon of 1e-4 is another number there. */
static void round_attributes(struct graph *g)
{
    for (int n = 0; n < g->node_count; n++) {
        struct attr *attrs = arena_copy(&g->arena, g->nodes[n].attrs,
                                        (size_t)g->nodes[n].attr_count * sizeof(*attrs));
        for (int k = 0; attrs && k < g->nodes[n].attr_count; k++)
            attrs[k].f = (double)(float)attrs[k].f;
        g->nodes[n].attrs = attrs ? attrs : g->nodes[n].attrs;
    }
}

static enum status write_inputs(const struct graph *loss, const struct writer *w, struct pool *pool,
                                struct error *err)
{
    struct ref_tensor *inputs = calloc((size_t)loss->input_count + 1, sizeof(*inputs));
    if (!inputs)
        return FAIL(err, STATUS_FAILED, "no memory for %d inputs", loss->input_count);
    TRY(reference_inputs(loss, inputs, pool, err));
    for (int k = 0; k < loss->input_count; k++)
        TRY(write_array(w, "input", k, loss->values[loss->inputs[k]].name, &inputs[k], err));
    return STATUS_OK;
}

static enum status write_gradients(const char *spec, int64_t batch, const struct writer *w,
                                   struct pool *pool, struct error *err)
{
    struct graph *step;
    const struct training *training;
    struct train_options options = {.gradients_as_outputs = true};
    TRY(workload_open_training(spec, batch, &options, &step, &training, err));
    round_attributes(step);
    struct ref_tensor *inputs = calloc((size_t)step->input_count + 1, sizeof(*inputs));
    struct ref_tensor *outputs = calloc((size_t)step->output_count + 1, sizeof(*outputs));
    if (!inputs || !outputs)
        return FAIL(err, STATUS_FAILED, "no memory for the inputs and outputs of %s", spec);
    TRY(reference_inputs(step, inputs, pool, err));
    TRY(reference_run(step, inputs, outputs, pool, err));
    return write_all(w, step, inputs, outputs, err);
}

static enum status run(const char *spec, int64_t batch, const char *folder, bool loss_alone,
                       struct error *err)
{
    char path[512];
    struct graph *loss;
    const struct training *training;
    TRY(workload_open_loss(spec, batch, &loss, &training, err));
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    TRY(onnx_export(loss, path, &(struct onnx_export_options){.own = true}, err));
    snprintf(path, sizeof(path), "%s/index.txt", folder);
    struct writer w = {.folder = folder, .index = fopen(path, "w")};
    if (!w.index)
        return FAIL(err, STATUS_FAILED, "%s: cannot be written", path);
    struct pool *pool;
    TRY(pool_new(0, &pool, err));
    TRY(loss_alone ? write_inputs(loss, &w, pool, err)
                   : write_gradients(spec, batch, &w, pool, err));
    return fclose(w.index) == 0 ? STATUS_OK
                                : FAIL(err, STATUS_FAILED, "%s: cannot be written", path);
}

int main(int argc, char **argv)
{
    struct error err = {0};
    bool loss_alone = argc == 5 && strcmp(argv[4], "loss") == 0;
    if (argc != 4 && !loss_alone) {
        fprintf(stderr, "usage: gradients SPEC BATCH FOLDER [loss]\n");
        return 2;
    }
    if (run(argv[1], strtoll(argv[2], NULL, 10), argv[3], loss_alone, &err) == STATUS_OK)
        return 0;
    fprintf(stderr, "%s\n", err.message);
    return 1;
}
