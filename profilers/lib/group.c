/* SPDX-License-Identifier: Apache-2.0 */
#include "profilers/lib/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "base/registry.h"
#include "base/text/toml.h"
#include "profilers/lib/formula.h"

static enum status complain(const struct toml_value *at, const char *key, const char *what,
                            struct error *err)
{
    return FAIL(err, STATUS_FAILED, "%s:%d: %s: %s", at->file, at->line, key, what);
}

static enum status check_keys(const struct toml_value *table, const char *const *known, int count,
                              struct error *err)
{
    for (const struct toml_value *v = table->first; v; v = v->next) {
        bool found = false;
        for (int k = 0; k < count; k++)
            found |= strcmp(v->key, known[k]) == 0;
        if (!found)
            return complain(v, v->key, "no such key in a counter group", err);
    }
    return STATUS_OK;
}

/* *text stays NULL when the key is absent and not needed. */
static enum status read_text(const struct toml_value *table, const char *key, bool needed,
                             const char **text, struct error *err)
{
    const struct toml_value *value = toml_find(table, key);
    if (!value)
        return needed ? complain(table, key, "missing", err) : STATUS_OK;
    if (value->kind != TOML_TEXT || !value->text[0])
        return complain(value, key, "must be a text that is not empty", err);
    *text = value->text;
    return STATUS_OK;
}

static enum status read_cpu(const struct toml_value *root, struct group *group, struct error *err)
{
    const struct toml_value *family = toml_find(root, "family"),
                            *models = toml_find(root, "models");
    TRY(read_text(root, "vendor", false, &group->vendor, err));
    if (!group->vendor)
        return family || models ? complain(root, "vendor", "needed with family and models", err)
                                : STATUS_OK;
    if (!family || family->kind != TOML_INT)
        return complain(family ? family : root, "family", "must be a whole number", err);
    group->family = family->integer;
    if (!models || models->kind != TOML_ARRAY || models->count % 2 || !models->count ||
        models->count > GROUP_MODELS_MAX)
        return complain(models ? models : root, "models", "must be [first, last, ...]", err);
    for (const struct toml_value *v = models->first; v; v = v->next) {
        if (v->kind != TOML_INT)
            return complain(v, "models", "must be whole numbers", err);
        group->models[group->model_count++] = v->integer;
    }
    return STATUS_OK;
}

/* ---- of GPUs ---- */

/* A list of texts; none when the key is absent. */
static enum status read_names(const struct toml_value *root, const char *key, int max,
                              const char **names, int *count, struct error *err)
{
    const struct toml_value *list = toml_find(root, key);
    if (!list)
        return STATUS_OK;
    if (list->kind != TOML_ARRAY || !list->count || list->count > max)
        return complain(list, key, "must be a list of names, and not too long", err);
    for (const struct toml_value *v = list->first; v; v = v->next) {
        if (v->kind != TOML_TEXT || !v->text[0])
            return complain(v, key, "must be names in quotes", err);
        names[(*count)++] = v->text;
    }
    return STATUS_OK;
}

static enum status read_truth(const struct toml_value *root, const char *key, bool *truth,
                              struct error *err)
{
    const struct toml_value *value = toml_find(root, key);
    if (value && value->kind != TOML_BOOL)
        return complain(value, key, "must be true or false", err);
    *truth = value && value->truth;
    return STATUS_OK;
}

static const char *const known[GROUP_KNOWN_MAX] = {"halves", "tensor_cores"};

int group_add_known(const struct group *group, bool halves, bool tensor_cores,
                    struct formula_value *values, int count)
{
    const bool are[GROUP_KNOWN_MAX] = {halves, tensor_cores};
    for (int k = 0; k < GROUP_KNOWN_MAX && group->chip_count; k++)
        values[count++] = (struct formula_value){known[k], are[k]};
    return count;
}

static int add_uses(const struct group *group, struct formula_value *values, int count)
{
    for (int k = 0; k < group->use_count; k++)
        values[count++] = (struct formula_value){group->uses[k], 1};
    return group_add_known(group, true, true, values, count);
}

/* It is asked before the group's own events are counted. */
static enum status read_zero_when(const struct toml_value *root, struct group *group,
                                  struct error *err)
{
    struct formula_value values[GROUP_VALUES_MAX];
    struct error why;
    double result;
    TRY(read_text(root, "zero_when", false, &group->zero_when, err));
    int count = add_uses(group, values, 0);
    if (!group->zero_when ||
        formula_evaluate(group->zero_when, values, count, &result, &why) == STATUS_OK)
        return STATUS_OK;
    return complain(root, "zero_when", why.message, err);
}

/* What only groups with chips have. */
static enum status read_chips(const struct toml_value *root, struct group *group, struct error *err)
{
    static const char *const others[] = {"method", "passes", "steps", "uses", "zero_when"};
    const char *method = NULL;
    const struct toml_value *passes = toml_find(root, "passes");
    TRY(read_names(root, "chips", GROUP_CHIPS_MAX, group->chips, &group->chip_count, err));
    for (int k = 0; k < ARRAY_COUNT(others) && !group->chip_count; k++)
        if (toml_find(root, others[k]))
            return complain(root, others[k], "needs chips", err);
    if (!group->chip_count)
        return STATUS_OK;
    if (group->vendor || toml_find(root, "system_wide"))
        return complain(root, "chips", "a group is for CPUs or for GPUs, not for both", err);
    TRY(read_text(root, "method", true, &method, err));
    group->samples = strcmp(method, "samples") == 0;
    if (!group->samples && strcmp(method, "ranges") != 0)
        return complain(root, "method", "must be \"ranges\" or \"samples\"", err);
    if (!passes || passes->kind != TOML_INT || passes->integer < 0 ||
        passes->integer > GROUP_PASSES_MAX)
        return complain(passes ? passes : root, "passes", "must be a number from 0 to 64", err);
    group->passes = (int)passes->integer;
    TRY(read_truth(root, "steps", &group->steps, err));
    TRY(read_names(root, "uses", GROUP_USES_MAX, group->uses, &group->use_count, err));
    return read_zero_when(root, group, err);
}

/* ---- events and metrics ---- */

/* The tables of an array; NULL when there are none. */
static enum status read_list(const struct toml_value *root, const char *key, int max,
                             const struct toml_value **first, struct error *err)
{
    const struct toml_value *list = toml_find(root, key);
    *first = NULL;
    if (!list)
        return STATUS_OK;
    if (list->kind != TOML_ARRAY)
        return complain(list, key, "write [[...]]", err);
    if (list->count > max)
        return complain(list, key, "too many of them", err);
    for (const struct toml_value *v = list->first; v; v = v->next)
        if (v->kind != TOML_TABLE)
            return complain(v, key, "must be a table", err);
    *first = list->first;
    return STATUS_OK;
}

static enum status read_events(const struct toml_value *root, struct group *group,
                               struct error *err)
{
    static const char *const keys[] = {"id", "name"};
    const struct toml_value *first;
    TRY(read_list(root, "event", GROUP_EVENTS_MAX, &first, err));
    for (const struct toml_value *v = first; v; v = v->next) {
        struct group_event *event = &group->events[group->event_count];
        TRY(check_keys(v, keys, ARRAY_COUNT(keys), err));
        TRY(read_text(v, "id", true, &event->id, err));
        TRY(read_text(v, "name", true, &event->name, err));
        for (int k = 0; k < group->event_count; k++)
            if (strcmp(group->events[k].id, event->id) == 0)
                return complain(v, event->id, "this id is taken", err);
        for (int k = 0; k < GROUP_KNOWN_MAX && group->chip_count; k++)
            if (strcmp(known[k], event->id) == 0)
                return complain(v, event->id, "this id is taken", err);
        group->event_count++;
    }
    return STATUS_OK;
}

static enum status try_formula(const struct toml_value *at, const struct group *group,
                               const char *formula, struct error *err)
{
    struct formula_value values[GROUP_VALUES_MAX];
    struct error why;
    double result;
    int count = 0;
    for (int k = 0; k < group->event_count; k++)
        values[count++] = (struct formula_value){group->events[k].id, 1};
    count = add_uses(group, values, count);
    if (formula_evaluate(formula, values, count, &result, &why) == STATUS_OK)
        return STATUS_OK;
    return complain(at, "formula", why.message, err);
}

static enum status read_metrics(const struct toml_value *root, struct group *group,
                                struct error *err)
{
    static const char *const keys[] = {"name", "unit", "formula", "missing"};
    const struct toml_value *first;
    TRY(read_list(root, "metric", GROUP_METRICS_MAX, &first, err));
    for (const struct toml_value *v = first; v; v = v->next) {
        struct group_metric *metric = &group->metrics[group->metric_count];
        TRY(check_keys(v, keys, ARRAY_COUNT(keys), err));
        TRY(read_text(v, "name", true, &metric->name, err));
        TRY(read_text(v, "unit", true, &metric->unit, err));
        TRY(read_text(v, "formula", false, &metric->formula, err));
        TRY(read_text(v, "missing", false, &metric->missing, err));
        if (!metric->formula == !metric->missing)
            return complain(v, metric->name, "needs a formula, or says why it is missing", err);
        if (metric->formula)
            TRY(try_formula(v, group, metric->formula, err));
        group->metric_count++;
    }
    return group->metric_count ? STATUS_OK : complain(root, "metric", "there is none", err);
}

enum status group_read(const char *file, const char *text, size_t size, struct arena *arena,
                       struct group *group, struct error *err)
{
    static const char *const keys[] = {"summary", "vendor", "family",   "models", "system_wide",
                                       "chips",   "method", "passes",   "steps",  "uses",
                                       "event",   "metric", "zero_when"};
    const struct toml_value *root;
    TRY(toml_parse(file, text, size, arena, &root, err));
    *group = (struct group){.file = file};
    TRY(check_keys(root, keys, ARRAY_COUNT(keys), err));
    TRY(read_text(root, "summary", true, &group->summary, err));
    TRY(read_cpu(root, group, err));
    TRY(read_truth(root, "system_wide", &group->system_wide, err));
    TRY(read_chips(root, group, err));
    TRY(read_events(root, group, err));
    if (group->chip_count && !group->passes != !group->event_count)
        return complain(root, "passes", "must be 0 without events, and only then", err);
    return read_metrics(root, group, err);
}

enum status group_read_all(struct arena *arena, const struct group **out, int *count,
                           struct error *err)
{
    const struct embedded *file = NULL;
    struct group *groups = arena_array(arena, GROUP_FILES_MAX, sizeof(*groups));
    *count = 0;
    if (!groups)
        return FAIL_NO_MEMORY(err);
    while ((file = embedded_next("profilers/groups/", file)) && *count < GROUP_FILES_MAX)
        TRY(group_read(file->path, file->text, file->size, arena, &groups[(*count)++], err));
    *out = groups;
    return STATUS_OK;
}

bool group_is_for_chip(const struct group *group, const char *chip)
{
    for (int k = 0; k < group->chip_count; k++)
        if (strcmp(group->chips[k], chip) == 0)
            return true;
    return false;
}

bool group_matches(const struct group *group, const struct cpu_identity *cpu)
{
    if (group->chip_count)
        return false;
    if (!group->vendor)
        return true;
    if (strcmp(group->vendor, cpu->vendor) != 0 || group->family != cpu->family)
        return false;
    for (int k = 0; k + 1 < group->model_count; k += 2)
        if (group->models[k] <= cpu->model && cpu->model <= group->models[k + 1])
            return true;
    return false;
}

/* Text after "key<blanks>:" at the beginning of a line; NULL when there is none. */
static const char *value_of(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0)
            continue;
        const char *colon = line + length + strspn(line + length, " \t");
        if (*colon == ':')
            return colon + 1 + strspn(colon + 1, " \t");
    }
    return NULL;
}

void cpu_identity_parse(const char *cpuinfo, struct cpu_identity *cpu)
{
    const char *vendor = value_of(cpuinfo, "vendor_id"), *model = value_of(cpuinfo, "model");
    const char *family = value_of(cpuinfo, "cpu family");
    snprintf(cpu->vendor, sizeof(cpu->vendor), "%.*s", vendor ? (int)strcspn(vendor, " \t\n") : 0,
             vendor ? vendor : "");
    cpu->family = family ? strtoll(family, NULL, 10) : -1;
    cpu->model = model ? strtoll(model, NULL, 10) : -1;
}
