/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/train/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/compile/compile.h"
#include "harness/train/trainer.h"

/* Held-out samples that are made up: this many, in whole batches. */
enum { SAMPLES = 2048, BATCHES_MAX = 32 };

struct judge {
    const struct training *training;
    const struct quality *quality;
    const struct data_set *data; /* NULL: samples are made up */
    struct graph *graph;
    struct exe *exe, *trained;
    uint64_t seed;
    int64_t batch, batches;
    int64_t rows;          /* that are judged: the last batch is filled up with the first samples */
    int answers, targets;  /* graph output, graph input; NONE: judged by the loss alone */
    float *answer, *bayes; /* bayes NULL: the best possible answers are not known */
    char *target;
    void **inputs; /* per graph input */
};

static int output_named(const struct graph *g, const char *name)
{
    for (int k = 0; k < g->output_count; k++)
        if (strcmp(g->values[g->outputs[k]].name, name) == 0)
            return k;
    return NONE;
}

static size_t bytes_of(const struct graph *g, int v)
{
    return value_size(&g->values[v]);
}

/* Memory for all answers and targets. */
static enum status open_quality(struct judge *j, struct error *err)
{
    const struct graph *g = j->graph;
    j->answers = j->targets = NONE;
    j->quality = j->data && j->data->quality ? j->data->quality : j->training->quality;
    if (!j->quality)
        return STATUS_OK;
    j->answers = output_named(g, j->training->answers);
    j->targets = graph_input_named(g, j->training->targets);
    if (j->answers == NONE || j->targets == NONE)
        return FAIL(err, STATUS_FAILED, "%s: its training graph has no \"%s\" or no \"%s\"",
                    g->name, j->training->answers, j->training->targets);
    j->answer = malloc((size_t)j->batches * bytes_of(g, g->outputs[j->answers]) + 1);
    j->target = malloc((size_t)j->batches * bytes_of(g, g->inputs[j->targets]) + 1);
    bool knows = j->training->bayes && !j->data;
    if (knows)
        j->bayes = calloc((size_t)j->rows + 1, sizeof(*j->bayes));
    return j->answer && j->target && (j->bayes || !knows) ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static void count_batches(struct judge *j)
{
    int64_t samples = j->data ? j->data->count[DATA_HELD_OUT] : SAMPLES;
    j->batches = divide_up(samples, j->batch);
    if (!j->data && j->batches > BATCHES_MAX)
        j->batches = BATCHES_MAX;
    j->rows = j->data ? samples : j->batches * j->batch;
}

static enum status open_all(struct judge *j, const char *spec, const struct model_options *model,
                            struct error *err)
{
    TRY(workload_open_judged(spec, model->batch, &j->graph, &j->training, err));
    char path[512];
    struct exe_options options;
    TRY(model_exe_options(model, &options, path, sizeof(path), err));
    options.pool = exe_pool(j->trained);
    TRY(exe_new(j->graph, &options, &j->exe, err));
    j->inputs = calloc((size_t)j->graph->input_count + 1, sizeof(*j->inputs));
    if (!j->inputs)
        return FAIL_NO_MEMORY(err);
    count_batches(j);
    return open_quality(j, err);
}

enum status judge_open(const char *spec, const struct model_options *model, uint64_t seed,
                       const struct data_set *data, struct exe *trained, struct judge **out,
                       struct error *err)
{
    struct judge *j = calloc(1, sizeof(*j));
    *out = NULL;
    if (!j)
        return FAIL_NO_MEMORY(err);
    *j = (struct judge){.trained = trained, .seed = seed, .batch = model->batch, .data = data};
    enum status status = open_all(j, spec, model, err);
    if (status == STATUS_OK)
        *out = j;
    else
        judge_close(j);
    return status;
}

void judge_close(struct judge *j)
{
    if (!j)
        return;
    exe_free(j->exe);
    graph_free(j->graph);
    free(j->answer);
    free(j->bayes);
    free(j->target);
    free(j->inputs);
    free(j);
}

/* What the training's states hold now. */
static enum status copy_states(struct judge *j, struct error *err)
{
    const struct graph *to = j->graph, *from = exe_graph(j->trained);
    for (int s = 0; s < to->state_count; s++) {
        const struct value *value = &to->values[to->states[s].before];
        int in = graph_input_named(to, value->name), out = graph_input_named(from, value->name);
        if (out == NONE) /* a weight that the loss does not depend on */
            continue;
        if (bytes_of(from, from->inputs[out]) != bytes_of(to, to->inputs[in]))
            return FAIL(err, STATUS_FAILED, "\"%s\" has another size while it is trained",
                        value->name);
        memcpy(exe_input(j->exe, in), exe_input(j->trained, out), bytes_of(to, to->inputs[in]));
    }
    return STATUS_OK;
}

static enum status run_batch(struct judge *j, int64_t index, struct error *err)
{
    const struct graph *g = j->graph;
    for (int k = 0; k < g->input_count; k++)
        j->inputs[k] = batch_gives(g, k) ? exe_input(j->exe, k) : NULL;
    struct batch batch = {.graph = g,
                          .data = j->inputs,
                          .seed = j->seed,
                          .first = index * j->batch,
                          .size = j->batch,
                          .held_out = true,
                          .bayes = j->bayes ? j->bayes + index * j->batch : NULL};
    int64_t bytes = 0;
    if (j->data)
        TRY(data_fill(j->data, &batch, 0, j->batch, &bytes, err));
    else
        j->training->fill(&batch);
    exe_run(j->exe);
    if (j->answers == NONE)
        return STATUS_OK;
    size_t answer = bytes_of(g, g->outputs[j->answers]);
    size_t target = bytes_of(g, g->inputs[j->targets]);
    memcpy((char *)j->answer + (size_t)index * answer, exe_output(j->exe, j->answers), answer);
    memcpy(j->target + (size_t)index * target, j->inputs[j->targets], target);
    return STATUS_OK;
}

/* How many numbers of such a shape per batch belong to samples that are judged. */
static int64_t judged_of(const struct judge *j, const struct shape *shape)
{
    int64_t each = shape_count(shape);
    return each % j->batch ? each * j->batches : each / j->batch * j->rows;
}

enum status judge_run(struct judge *j, struct train_judgement *judgement, struct error *err)
{
    const struct graph *g = j->graph;
    double sum = 0;
    TRY(copy_states(j, err));
    for (int64_t k = 0; k < j->batches; k++) {
        TRY(run_batch(j, k, err));
        sum += (double)*(const float *)exe_output(j->exe, 0);
    }
    TRY(exe_status(j->exe, err));
    judgement->loss = sum / (double)j->batches;
    judgement->quality = judgement->also = judgement->bayes = (double)NAN;
    if (j->answers == NONE)
        return STATUS_OK;
    const struct value *answers = &g->values[g->outputs[j->answers]];
    const struct value *targets = &g->values[g->inputs[j->targets]];
    struct judged judged = {.answers = j->answer,
                            .targets = j->target,
                            .target_type = targets->dtype,
                            .answer_count = judged_of(j, &answers->shape),
                            .target_count = judged_of(j, &targets->shape)};
    judgement->quality = j->quality->of(&judged);
    if (j->quality->also)
        judgement->also = j->quality->also->of(&judged);
    judged.answers = j->bayes;
    judged.answer_count = j->rows;
    if (j->bayes)
        judgement->bayes = j->quality->of(&judged);
    return STATUS_OK;
}

const struct quality *judge_quality(const struct judge *j)
{
    return j->quality;
}
