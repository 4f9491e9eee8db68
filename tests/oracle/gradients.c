/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests/oracle/gradients.py compares with PyTorch's autograd: of a workload that learns the
 * graph of its loss as model.onnx, its inputs, its loss and the gradient by each weight in double.
 *
 *   gradients SPEC BATCH FOLDER [loss | f32 | SEED]
 *   gradients list
 *
 * With "loss" the graph and its inputs alone, as tests/oracle/training_turns.py wants them; with
 * "f32" also the gradients that the compiled step computes, by the first kernels that accept, so
 * that each run judges the same ones. With a SEED from 1 on weights and samples are others, and the
 * gradients are those in f32 alone. "list" prints SPEC and BATCH of the tiny form of every workload
 * that learns.
 *
 * FOLDER/index.txt has a line per array, "input 3 NAME", "loss 0 NAME", "gradient 7 NAME" or "f32 7
 * NAME"; the array is FOLDER/input.3.npy and so on. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/hash.h"
#include "base/text/npy.h"
#include "engine/compile/compile.h"
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

/* Other first weights than those of the names, as `ridge train --seed` has them. */
static void seed_weights(struct graph *g, uint64_t seed)
{
    for (int v = 0; seed && v < g->value_count; v++) {
        struct value *value = &g->values[v];
        bool weight = value->kind == VALUE_PARAM || value->kind == VALUE_STATE;
        if (weight && value->fill.seed == 0)
            value->fill.seed = hash_fnv1a(value->name) + seed * 0x9e3779b97f4a7c15u;
    }
}

/* Other samples in the place of those that the graph was opened with. */
static enum status seed_samples(struct graph *g, const struct training *training, int64_t size,
                                uint64_t seed, struct error *err)
{
    void **data = calloc((size_t)g->input_count + 1, sizeof(*data));
    if (!data)
        return FAIL(err, STATUS_FAILED, "no memory for %d inputs", g->input_count);
    for (int k = 0; k < g->input_count; k++)
        if (batch_gives(g, k))
            data[k] = (void *)(uintptr_t)g->values[g->inputs[k]].data;
    const struct batch batch = {.graph = g, .data = data, .seed = seed, .size = size};
    training->fill(&batch);
    free(data);
    return STATUS_OK;
}

/* What the compiled step makes of the same inputs. */
static enum status write_f32(const struct graph *step, const struct writer *w, struct pool *pool,
                             struct error *err)
{
    struct exe_options options = {.no_tune = true, .pool = pool, .isa = isa_detect()};
    struct exe *exe;
    TRY(exe_new(step, &options, &exe, err));
    exe_run(exe);
    TRY(exe_status(exe, err));
    for (int k = 1; k < step->output_count; k++) {
        const struct value *value = &step->values[step->outputs[k]];
        struct ref_tensor got;
        if (strncmp(value->name, gradient_of, strlen(gradient_of)) != 0)
            continue;
        TRY(ref_from_data(&got, value->dtype, &value->shape, exe_output(exe, k), err));
        TRY(write_array(w, "f32", k, value->name + strlen(gradient_of), &got, err));
        ref_release(&got);
    }
    exe_free(exe);
    return STATUS_OK;
}

/* Of other weights and samples, in f32 alone. */
static enum status write_seeded(const char *spec, int64_t batch, uint64_t seed,
                                const struct writer *w, struct pool *pool, struct error *err)
{
    struct graph *step;
    const struct training *training;
    struct train_options options = {.gradients_as_outputs = true};
    TRY(workload_open_training(spec, batch, &options, &step, &training, err));
    round_attributes(step);
    seed_weights(step, seed);
    TRY(seed_samples(step, training, batch ? batch : workload_of(spec)->batch, seed, err));
    TRY(write_inputs(step, w, pool, err));
    return write_f32(step, w, pool, err);
}

static enum status write_gradients(const char *spec, int64_t batch, bool f32,
                                   const struct writer *w, struct pool *pool, struct error *err)
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
    TRY(write_all(w, step, inputs, outputs, err));
    return f32 ? write_f32(step, w, pool, err) : STATUS_OK;
}

enum wanted { WANTED_GRADIENTS, WANTED_LOSS, WANTED_F32, WANTED_SEED, WANTED_NOTHING };

static enum status run(const char *spec, int64_t batch, const char *folder, enum wanted wanted,
                       uint64_t seed, struct error *err)
{
    char path[512];
    struct graph *loss;
    const struct training *training;
    TRY(workload_open_loss(spec, batch, &loss, &training, err));
    seed_weights(loss, seed);
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    TRY(onnx_export(loss, path, &(struct onnx_export_options){.own = true}, err));
    snprintf(path, sizeof(path), "%s/index.txt", folder);
    struct writer w = {.folder = folder, .index = fopen(path, "w")};
    if (!w.index)
        return FAIL(err, STATUS_FAILED, "%s: cannot be written", path);
    struct pool *pool;
    TRY(pool_new(0, &pool, err));
    TRY(wanted == WANTED_LOSS ? write_inputs(loss, &w, pool, err)
        : wanted == WANTED_SEED
            ? write_seeded(spec, batch, seed, &w, pool, err)
            : write_gradients(spec, batch, wanted == WANTED_F32, &w, pool, err));
    return fclose(w.index) == 0 ? STATUS_OK
                                : FAIL(err, STATUS_FAILED, "%s: cannot be written", path);
}

static int list(void)
{
    for (int k = 0; k < workload_count(); k++) {
        const struct workload *w = workload_at(k);
        const struct training *t = w->training;
        if (t)
            printf("%s%s%s %lld\n", w->name, t->tiny ? ":" : "", t->tiny ? t->tiny : "",
                   (long long)t->tiny_batch);
    }
    return 0;
}

static enum wanted wanted_of(int argc, char **argv, uint64_t *seed)
{
    const char *word = argc == 5 ? argv[4] : "";
    *seed = strtoull(word, NULL, 10);
    return argc == 4                   ? WANTED_GRADIENTS
           : strcmp(word, "loss") == 0 ? WANTED_LOSS
           : strcmp(word, "f32") == 0  ? WANTED_F32
           : *seed > 0                 ? WANTED_SEED
                                       : WANTED_NOTHING;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    uint64_t seed;
    enum wanted wanted = wanted_of(argc, argv, &seed);
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list();
    if (wanted == WANTED_NOTHING) {
        fprintf(stderr,
                "usage: gradients SPEC BATCH FOLDER [loss | f32 | SEED] | gradients list\n");
        return 2;
    }
    if (run(argv[1], strtoll(argv[2], NULL, 10), argv[3], wanted, seed, &err) == STATUS_OK)
        return 0;
    fprintf(stderr, "%s\n", err.message);
    return 1;
}
