/* SPDX-License-Identifier: Apache-2.0
 *
 * What a training is to do, from the words of the command line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/options.h"
#include "engine/graph/op.h"
#include "harness/train/trainer.h"
#include "workloads/workload.h"

enum { STEPS_USUAL = 1000 };

enum status train_job_of(const char *spec, bool tiny, struct train_job *job, char **owned_spec,
                         struct error *err)
{
    const struct workload *w = workload_of(spec);
    const struct training *t = w ? w->training : NULL;
    *owned_spec = NULL;
    if (!w && !workload_is_file(spec))
        return FAIL(err, STATUS_FAILED, "workload \"%s\" is not known; see `ridge list`", spec);
    if (!t)
        return UNSUPPORTED(err, "%s is not trained: %s", spec,
                           w ? "it has no loss" : "a model file holds no loss");
    const char *more = tiny && t->tiny ? t->tiny : "", *own = strchr(spec, ':');
    size_t size = strlen(spec) + strlen(more) + 3;
    *owned_spec = malloc(size);
    if (!*owned_spec)
        return FAIL_NO_MEMORY(err);
    /* What was named comes last, and counts. */
    snprintf(*owned_spec, size, "%.*s%s%s%s%s", own ? (int)(own - spec) : (int)strlen(spec), spec,
             own || *more ? ":" : "", more, own && *more ? "," : "", own ? own + 1 : "");
    *job = (struct train_job){.spec = *owned_spec, .recipe = *t->recipe, .until = (double)NAN};
    struct schedule *s = &job->recipe.schedule;
    s->steps = s->steps > 0 ? s->steps : STEPS_USUAL;
    if (!tiny)
        return STATUS_OK;
    *s = (struct schedule){.kind = SCHEDULE_CONSTANT, .rate = t->tiny_rate, .steps = t->tiny_steps};
    job->model.batch = t->tiny_batch;
    return STATUS_OK;
}

enum status train_optimiser_parse(const char *name, struct recipe *recipe, struct error *err)
{
    enum { NAMES_MAX = 32 };
    const char *names[NAMES_MAX];
    int count = 0;
    if (!name || strcmp(name, recipe->optimiser) == 0)
        return STATUS_OK;
    if (optimiser_find(name)) {
        recipe->optimiser = name;
        recipe->attrs[0].name = NULL;
        recipe->groups = NULL;
        return STATUS_OK;
    }
    char all[200] = "";
    size_t used = 0;
    for (int k = 0; k < op_count() && count < NAMES_MAX; k++)
        if (op_at(k)->update && op_at(k)->update->name)
            names[count++] = op_at(k)->update->name;
    for (int k = 0; k < count && used < sizeof(all); k++)
        used +=
            (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", names[k]);
    const char *near = nearest_word(name, names, count);
    return FAIL(err, STATUS_FAILED, "--optimiser \"%.40s\" is none of %s%s%s%s", name, all,
                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

enum status train_letters_parse(const char *text, struct train_job *job, struct error *err)
{
    job->letters = LETTERS_AS_VOCABULARY;
    if (!text)
        return STATUS_OK;
    if (!job->data)
        return FAIL(err, STATUS_FAILED, "--letter-case is about the text of --data");
    bool keep = strcmp(text, "keep") == 0;
    job->letters = keep ? LETTERS_KEPT : LETTERS_LOWERED;
    if (keep || strcmp(text, "lower") == 0)
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "--letter-case \"%.40s\" is not keep or lower", text);
}

enum status train_sizes_parse(const char *text, struct train_job *job, struct error *err)
{
    const char *at = text;
    char *end;
    for (job->size_count = 0; job->size_count < TRAIN_SIZES; at = end + 1) {
        struct train_size *size = &job->sizes[job->size_count++];
        size->image = strtoll(at, &end, 10);
        bool fine = end > at && *end == ':';
        at = end + 1;
        size->count = fine ? strtoll(at, &end, 10) : 0;
        if (!fine || end == at || size->image < 1 || size->count < 1 || size->image > 1 << 20 ||
            size->count > 1000000000 || (*end && *end != ','))
            return FAIL(err, STATUS_FAILED,
                        "--sizes \"%s\": it must be like 128:10,192:10,224:5, a size and for how "
                        "long",
                        text);
        if (!*end)
            return STATUS_OK;
    }
    return FAIL(err, STATUS_FAILED, "--sizes \"%s\": more than %d sizes", text, TRAIN_SIZES);
}
