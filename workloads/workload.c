/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/options.h"
#include "workloads/model_file.h"
#include "workloads/training.h"

#define X(name) extern const struct workload workload_##name;
#include "workload_list.inc"
#undef X

static const struct workload *const workloads[] = {
#define X(name) &workload_##name,
#include "workload_list.inc"
#undef X
};

const char *const param_text[] = {NULL};

bool workload_has_precision(const struct workload *w, enum precision precision, bool host)
{
    bool compiled = precision == PRECISION_BF16 ||
                    (!host && (precision == PRECISION_TF32 || precision == PRECISION_F16));
    bool file = !w && precision == PRECISION_F8; /* which may hold such factors */
    return precision == PRECISION_F32 || compiled || (!host && file) ||
           (w && w->precisions & 1u << precision);
}

bool workload_builds_in(const struct workload *w, enum precision precision)
{
    return precision == PRECISION_F32 || (w && w->precisions & 1u << precision);
}

int workload_count(void)
{
    return ARRAY_COUNT(workloads);
}

const struct workload *workload_at(int index)
{
    return workloads[index];
}

const struct workload *workload_find(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(workloads); k++)
        if (strcmp(workloads[k]->name, name) == 0)
            return workloads[k];
    return NULL;
}

const char *config_text(const struct workload_config *config, const char *name)
{
    for (int k = 0; config->params && config->params[k].name; k++)
        if (strcmp(config->params[k].name, name) == 0)
            return config->values[k];
    return "";
}

bool config_given(const struct workload_config *config, const char *name)
{
    for (int k = 0; config->params && config->params[k].name; k++)
        if (strcmp(config->params[k].name, name) == 0)
            return config->values[k] != config->params[k].value;
    return false;
}

int64_t config_int(const struct workload_config *config, const char *name)
{
    return strtoll(config_text(config, name), NULL, 10);
}

static enum status unknown_workload(const char *name, struct error *err)
{
    const char *names[ARRAY_COUNT(workloads)];
    for (int k = 0; k < ARRAY_COUNT(workloads); k++)
        names[k] = workloads[k]->name;
    const char *near = nearest_word(name, names, ARRAY_COUNT(workloads));
    return FAIL(err, STATUS_FAILED, "workload \"%s\" is not known%s%s%s; see `ridge list`", name,
                near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static enum status not_a_choice(const struct workload *w, const struct param *p, const char *value,
                                struct error *err)
{
    char all[160] = "";
    size_t used = 0;
    for (const char *const *choice = p->choices; *choice && used < sizeof(all); choice++)
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", *choice);
    return FAIL(err, STATUS_FAILED, "%s: %s=\"%s\" is none of %s", w->name, p->name, value, all);
}

static enum status check_value(const struct workload *w, const struct param *p, const char *value,
                               struct error *err)
{
    if (p->choices == param_text)
        return *value ? STATUS_OK
                      : FAIL(err, STATUS_FAILED, "%s: %s has no value", w->name, p->name);
    if (!p->choices) {
        char *end;
        errno = 0;
        long long number = strtoll(value, &end, 10);
        if (strcmp(value, p->value) == 0) /* be it 0, which says that it is not used */
            return STATUS_OK;
        if (!*value || *end || errno || number < 1 || number > PARAM_VALUE_MAX)
            return FAIL(err, STATUS_FAILED, "%s: %s=\"%s\" must be an integer from 1 to %d",
                        w->name, p->name, value, PARAM_VALUE_MAX);
        return STATUS_OK;
    }
    for (const char *const *choice = p->choices; *choice; choice++)
        if (strcmp(*choice, value) == 0)
            return STATUS_OK;
    return not_a_choice(w, p, value, err);
}

static enum status set_param(const struct workload *w, struct workload_config *config, char *word,
                             struct error *err)
{
    char *equals = strchr(word, '=');
    if (!equals)
        return FAIL(err, STATUS_FAILED, "%s: \"%s\" should be PARAMETER=VALUE", w->name, word);
    *equals = 0;
    for (int k = 0; w->params && w->params[k].name; k++) {
        if (strcmp(w->params[k].name, word) != 0)
            continue;
        config->values[k] = equals + 1;
        return check_value(w, &w->params[k], equals + 1, err);
    }
    return FAIL(err, STATUS_FAILED, "%s has no parameter \"%s\"; see `ridge list workloads`",
                w->name, word);
}

enum status workload_batch_check(const struct workload *w, int64_t batch, struct error *why)
{
    if (w && w->batch_is_one && batch != 1)
        return FAIL(why, STATUS_FAILED,
                    "batch %lld: the shapes of %s say the batch already, so it must be 1",
                    (long long)batch, w->name);
    return STATUS_OK;
}

enum form { FORM_INFERENCE, FORM_LOSS, FORM_LEARNS };

/* spec is cut up in place: NAME:param=value,param=value */
static enum status build(char *spec, int64_t batch, enum precision precision, enum form form,
                         struct graph **out, struct error *err)
{
    char *colon = strchr(spec, ':');
    if (colon)
        *colon = 0;
    const struct workload *w = workload_find(spec);
    if (!w)
        return unknown_workload(spec, err);
    if (form != FORM_INFERENCE && !w->training)
        return UNSUPPORTED(err, "%s is not trained: it has no loss", w->name);
    struct workload_config config = {
        .batch = batch ? batch : w->batch, .loss = form != FORM_INFERENCE, .params = w->params};
    TRY(workload_batch_check(w, config.batch, err));
    if (workload_builds_in(w, precision))
        config.precision = precision;
    for (int k = 0; w->params && w->params[k].name; k++)
        config.values[k] = w->params[k].value;
    char *save = NULL;
    for (char *word = colon ? strtok_r(colon + 1, ",", &save) : NULL; word;
         word = strtok_r(NULL, ",", &save))
        TRY(set_param(w, &config, word, err));
    struct graph *g = graph_new(w->name);
    if (!g)
        return FAIL_NO_MEMORY(err);
    g->training = form == FORM_LEARNS;
    if (config.loss && w->training->build)
        w->training->build(g, &config);
    else
        w->build(g, &config);
    enum status status = graph_check(g, err);
    if (status != STATUS_OK) {
        graph_free(g);
        error_context(err, "workload %s", w->name);
        return status;
    }
    *out = g;
    return STATUS_OK;
}

const struct workload *workload_of(const char *spec)
{
    size_t length = strcspn(spec, ":");
    for (int k = 0; k < ARRAY_COUNT(workloads); k++)
        if (strlen(workloads[k]->name) == length && strncmp(workloads[k]->name, spec, length) == 0)
            return workloads[k];
    return NULL;
}

bool workload_is_file(const char *spec)
{
    return model_file_path(spec) > 0;
}

enum status workload_open(const char *spec, int64_t batch, enum precision precision,
                          struct graph **out, struct error *err)
{
    *out = NULL;
    if (workload_is_file(spec)) {
        struct onnx_import_options options = {.batch = batch};
        return model_file_open(spec, &options, out, err);
    }
    char *copy = strdup(spec);
    if (!copy)
        return FAIL_NO_MEMORY(err);
    enum status status = build(copy, batch, precision, FORM_INFERENCE, out, err);
    free(copy);
    return status;
}

static enum status open_loss(const char *spec, int64_t batch, enum form form, struct graph **out,
                             const struct training **training, struct error *err)
{
    *out = NULL;
    if (workload_is_file(spec))
        return UNSUPPORTED(err, "%s: a model file holds no loss, so it cannot be trained", spec);
    char *copy = strdup(spec);
    if (!copy)
        return FAIL_NO_MEMORY(err);
    enum status status = build(copy, batch, PRECISION_F32, form, out, err);
    free(copy);
    if (status == STATUS_OK)
        *training = workload_of(spec)->training;
    return status;
}

enum status workload_open_loss(const char *spec, int64_t batch, struct graph **out,
                               const struct training **training, struct error *err)
{
    return open_loss(spec, batch, FORM_LEARNS, out, training, err);
}

enum status workload_open_judged(const char *spec, int64_t batch, struct graph **out,
                                 const struct training **training, struct error *err)
{
    TRY(open_loss(spec, batch, FORM_LOSS, out, training, err));
    struct graph *g = *out;
    for (int v = 0; v < g->value_count; v++)
        if (g->values[v].kind == VALUE_PARAM && dtype_is_float(g->values[v].dtype))
            graph_make_state(g, v);
    enum status status = graph_failed(g, err);
    if (status != STATUS_OK) {
        graph_free(g);
        *out = NULL;
    }
    return status;
}

/* So that what is run without a reader runs on samples, too. */
static enum status give_first_batch(struct graph *g, const struct training *training, int64_t size,
                                    struct error *err)
{
    void **data = arena_array(&g->arena, (size_t)g->input_count + 1, sizeof(*data));
    for (int k = 0; data && k < g->input_count; k++) {
        struct value *value = &g->values[g->inputs[k]];
        if (!batch_gives(g, k))
            continue;
        data[k] = arena_array(&g->arena, (size_t)shape_count(&value->shape) + 1,
                              dtype_size(value->dtype));
        if (!data[k])
            return FAIL_NO_MEMORY(err);
        value_materialise(value, data[k]);
        value->data = data[k];
    }
    if (!data)
        return FAIL_NO_MEMORY(err);
    struct batch batch = {.graph = g, .data = data, .size = size};
    training->fill(&batch);
    return STATUS_OK;
}

static enum status open_step(const char *spec, int64_t batch, const struct train_options *options,
                             bool samples, struct graph **out, const struct training **training,
                             struct error *err)
{
    TRY(workload_open_loss(spec, batch, out, training, err));
    enum status status = train_step(*out, (*training)->recipe, options, err);
    if (status == STATUS_OK && samples)
        status = give_first_batch(*out, *training, batch ? batch : workload_of(spec)->batch, err);
    if (status == STATUS_OK)
        return STATUS_OK;
    graph_free(*out);
    *out = NULL;
    return error_context(err, "training of %s", spec);
}

enum status workload_open_training(const char *spec, int64_t batch,
                                   const struct train_options *options, struct graph **out,
                                   const struct training **training, struct error *err)
{
    return open_step(spec, batch, options, true, out, training, err);
}

enum status workload_open_step(const char *spec, int64_t batch, const struct train_options *options,
                               struct graph **out, const struct training **training,
                               struct error *err)
{
    return open_step(spec, batch, options, false, out, training, err);
}
