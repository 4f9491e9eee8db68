/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cudnn/lib/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTES_MAX = 32, KNOBS_MAX = 32, OFFERED_MAX = 128 };

/* ---- what a configuration is ---- */

static unsigned bits_of(const int *notes, int64_t count)
{
    unsigned bits = 0;
    for (int64_t k = 0; k < count && k < NOTES_MAX; k++)
        if (notes[k] >= 0 && notes[k] < NOTES_MAX)
            bits |= 1u << notes[k];
    return bits;
}

/* The enums of the notes have the size of an int. */
static enum status read_notes(cudnn_desc engine, struct engine_info *info, struct error *why)
{
    int notes[NOTES_MAX];
    int64_t count = 0;
    CUDNN_TRY(cudnn.get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                        NOTES_MAX, &count, notes),
              why);
    info->numerics = bits_of(notes, count);
    CUDNN_TRY(cudnn.get(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                        NOTES_MAX, &count, notes),
              why);
    info->behaviour = bits_of(notes, count);
    return STATUS_OK;
}

static enum status read_engine(cudnn_desc config, struct engine_info *info, struct error *why)
{
    cudnn_desc engine;
    int64_t count;
    TRY(desc_new(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine, why));
    cudnnStatus_t got = cudnn.get(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine);
    if (got == CUDNN_STATUS_SUCCESS)
        got = cudnn.get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count,
                        &info->id);
    enum status status = got == CUDNN_STATUS_SUCCESS
                             ? read_notes(engine, info, why)
                             : cudnn_refuse(why, got, "cudnnBackendGetAttribute of an engine");
    desc_free(&engine);
    return status;
}

static const struct {
    int type;
    const char *name;
} knob_names[] = {
    {CUDNN_KNOB_TYPE_TILE_SIZE, "tile"},    {CUDNN_KNOB_TYPE_STAGES, "stages"},
    {CUDNN_KNOB_TYPE_SPLIT_K_SLC, "split"}, {CUDNN_KNOB_TYPE_TILE_M, "m"},
    {CUDNN_KNOB_TYPE_TILE_N, "n"},          {CUDNN_KNOB_TYPE_TILEK, "k"},
    {CUDNN_KNOB_TYPE_KERNEL_CFG, "kernel"}, {CUDNN_KNOB_TYPE_IDX_MODE, "index"},
    {CUDNN_KNOB_TYPE_TILE_CGA_M, "cga_m"},  {CUDNN_KNOB_TYPE_TILE_CGA_N, "cga_n"},
};

static const char *knob_name(int type)
{
    for (int k = 0; k < ARRAY_COUNT(knob_names); k++)
        if (knob_names[k].type == type)
            return knob_names[k].name;
    return NULL;
}

static void mix(struct engine_info *info, int64_t value)
{
    info->hash = (info->hash ^ (uint64_t)value) * 1099511628211u; /* FNV-1a, by words */
}

static enum status put_knob(cudnn_desc knob, struct engine_info *info, struct error *why)
{
    int type = -1;
    int64_t value = 0, count;
    CUDNN_TRY(
        cudnn.get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &count, &type),
        why);
    CUDNN_TRY(
        cudnn.get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &count, &value),
        why);
    mix(info, type);
    mix(info, value);
    size_t used = strlen(info->text), left = sizeof(info->text) - used;
    const char *name = knob_name(type);
    int length = name ? snprintf(info->text + used, left, " %s %lld", name, (long long)value)
                      : snprintf(info->text + used, left, " %d=%lld", type, (long long)value);
    if (length < 0 || (size_t)length >= left)
        info->text[used] = 0; /* a knob is named whole or not at all */
    return STATUS_OK;
}

/* Asked for no knobs, the library reports how many were written: none. Their number is known only
 * when there was left for all. */
static enum status put_knobs(cudnn_desc config, struct engine_info *info, struct error *why)
{
    cudnn_desc knobs[KNOBS_MAX] = {0};
    int64_t count = 0;
    int made = 0;
    enum status status = STATUS_OK;
    for (; made < KNOBS_MAX && status == STATUS_OK; made++)
        status = desc_new(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knobs[made], why);
    if (status == STATUS_OK) {
        cudnnStatus_t read = cudnn.get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, KNOBS_MAX, &count, knobs);
        if (read != CUDNN_STATUS_SUCCESS)
            status = cudnn_refuse(why, read, "cudnnBackendGetAttribute of knobs");
    }
    for (int k = 0; k < count && k < KNOBS_MAX && status == STATUS_OK; k++)
        status = put_knob(knobs[k], info, why);
    while (made)
        desc_free(&knobs[--made]);
    return status;
}

static enum status engine_describe(cudnn_desc config, struct engine_info *info, struct error *why)
{
    int64_t bytes = 0, count;
    *info = (struct engine_info){.id = -1};
    TRY(read_engine(config, info, why));
    CUDNN_TRY(
        cudnn.get(config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes),
        why);
    info->workspace = bytes > 0 ? (size_t)bytes : 0;
    mix(info, info->id);
    snprintf(info->text, sizeof(info->text), "engine %lld", (long long)info->id);
    return put_knobs(config, info, why);
}

bool engine_is_compiled(const struct engine_info *info)
{
    return info->behaviour >> CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION & 1;
}

/* ---- asking ---- */

/* Engines for elementwise work and pooling say, too, that they use tensor cores: only in graphs
 * with a product do these notes speak of rounding. */
static bool fits(const struct engine_info *info, const struct engine_rule *rule,
                 const struct opgraph *g)
{
    bool products = g->products;
    const unsigned reorder = 1u << CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER |
                             1u << CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER;
    unsigned refused = 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    if (products)
        refused |= 1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    if (products && rule->exact)
        refused |=
            1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE | 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    return !(info->numerics & refused) && !(info->behaviour & reorder) &&
           !(g->no_compiled && engine_is_compiled(info));
}

/* Whether it is another one than those that were taken, and worth its time: each engine that is
 * compiled at run time takes a second or so when it is tried. */
static bool adds(const struct engines *engines, const struct engine_info *info)
{
    int compiled = 0;
    for (int e = 0; e < engines->count; e++) {
        if (engines->info[e].hash == info->hash)
            return false;
        compiled += engine_is_compiled(&engines->info[e]);
    }
    return !engine_is_compiled(info) || compiled < ENGINES_COMPILED;
}

/* Takes what fits of the offered configurations; the others are destroyed. The two lists overlap.
 * One that does not say what it is is left out, with the cause in why. */
static enum status choose(struct engines *engines, cudnn_desc *offered, int64_t count, int limit,
                          const struct engine_rule *rule, const struct opgraph *g,
                          struct error *why)
{
    for (int64_t k = 0; k < count && engines->count < limit; k++) {
        struct engine_info info;
        enum status status = engine_describe(offered[k], &info, why);
        if (status == STATUS_NO_MEMORY)
            return status;
        if (status != STATUS_OK) {
            engines->partial = true;
            continue;
        }
        engines->offered++;
        if (!fits(&info, rule, g) || !adds(engines, &info))
            continue;
        engines->info[engines->count] = info;
        engines->config[engines->count++] = offered[k];
        offered[k] = NULL;
    }
    return STATUS_OK;
}

static enum status results(cudnn_desc heuristic, struct engines *engines, int limit,
                           const struct engine_rule *rule, const struct opgraph *g,
                           struct error *why)
{
    cudnn_desc offered[OFFERED_MAX] = {0};
    int64_t count = 0, got = 0;
    int made = 0;
    CUDNN_TRY(cudnn.get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                        &count, NULL),
              why);
    count = count < OFFERED_MAX ? count : OFFERED_MAX;
    enum status status = STATUS_OK;
    for (; made < count && status == STATUS_OK; made++)
        status = desc_new(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &offered[made], why);
    if (status == STATUS_OK && count) {
        cudnnStatus_t read = cudnn.get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &got, offered);
        if (read != CUDNN_STATUS_SUCCESS)
            status = cudnn_refuse(why, read, "cudnnBackendGetAttribute of engine configurations");
    }
    if (status == STATUS_OK)
        status = choose(engines, offered, got, limit, rule, g, why);
    while (made)
        desc_free(&offered[--made]);
    return status;
}

static enum status ask(const struct opgraph *g, const struct engine_rule *rule,
                       cudnnBackendHeurMode_t mode, struct engines *engines, struct error *why)
{
    cudnn_desc heuristic;
    int limit = mode == CUDNN_HEUR_MODE_A ? ENGINES_BEST : ENGINES_MAX;
    limit = limit < rule->enough ? limit : rule->enough;
    TRY(desc_new(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic, why));
    enum status status = desc_set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->root, why);
    if (status == STATUS_OK)
        status =
            desc_set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode, why);
    if (status == STATUS_OK)
        status = desc_set(heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &rule->device, why);
    if (status == STATUS_OK)
        status = desc_finalize(heuristic, why);
    if (status == STATUS_OK)
        status = results(heuristic, engines, limit, rule, g, why);
    desc_free(&heuristic);
    return status;
}

/* What ended in nothing: a failure of the library before that of its offers to fit. */
static enum status none(const struct engines *engines, const struct engine_rule *rule,
                        const struct opgraph *g, const struct error *causes, int count,
                        struct error *why)
{
    const char *wanted = g->no_compiled ? "is compiled already"
                         : rule->exact  ? "keeps f32 exact (tf32 is not asked for)"
                                        : "is deterministic";
    const struct error *cause = NULL;
    for (int k = 0; k < count; k++)
        if (causes[k].code != STATUS_OK && (!cause || causes[k].code != STATUS_UNSUPPORTED))
            cause = &causes[k];
    if (engines->offered && (!cause || cause->code == STATUS_UNSUPPORTED))
        return REFUSE(why, "none of the %d engines that cuDNN offers %s", engines->offered, wanted);
    if (cause)
        return cudnn_host->refuse(why, cause->code, "%s", cause->message);
    return REFUSE(why, "cuDNN has no engine for this");
}

enum status engines_find(const struct opgraph *g, const struct engine_rule *rule,
                         struct engines *engines, struct error *why)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    struct error causes[ARRAY_COUNT(modes)] = {{.code = STATUS_OK}};
    enum status status = STATUS_OK;
    *engines = (struct engines){.count = 0};
    for (int k = 0; k < ARRAY_COUNT(modes) && status != STATUS_NO_MEMORY; k++) {
        status = ask(g, rule, modes[k], engines, &causes[k]);
        engines->partial = engines->partial || status != STATUS_OK;
        if (engines->count >= rule->enough)
            return STATUS_OK;
    }
    if (engines->count && status != STATUS_NO_MEMORY)
        return STATUS_OK;
    status = none(engines, rule, g, causes, ARRAY_COUNT(modes), why);
    engines_free(engines);
    return status;
}

void engines_free(struct engines *engines)
{
    while (engines->count)
        desc_free(&engines->config[--engines->count]);
}

/* ---- plans ---- */

/* The handle is what plans have always been made with. The library has begun to call that old, and
 * a later version that refuses it takes the properties, which must do where there is no device. */
static enum status set_device(cudnn_desc plan, cudnn_desc device, cudnnHandle_t handle,
                              struct error *why)
{
    if (handle && desc_set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle,
                           NULL) == STATUS_OK)
        return STATUS_OK;
    return desc_set(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                    &device, why);
}

static enum status workspace_of(cudnn_desc plan, size_t *workspace, struct error *why)
{
    int64_t bytes = 0, count;
    cudnnStatus_t got = cudnn.get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                  1, &count, &bytes);
    if (got != CUDNN_STATUS_SUCCESS)
        return cudnn_refuse(why, got, "cudnnBackendGetAttribute of a plan's workspace");
    *workspace = bytes > 0 ? (size_t)bytes : 0;
    return STATUS_OK;
}

enum status plan_make(cudnn_desc config, cudnn_desc device, cudnnHandle_t handle, cudnn_desc *plan,
                      size_t *workspace, struct error *why)
{
    TRY(desc_new(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, plan, why));
    enum status status = desc_set(*plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config, why);
    if (status == STATUS_OK)
        status = set_device(*plan, device, handle, why);
    if (status == STATUS_OK)
        status = desc_finalize(*plan, why);
    if (status == STATUS_OK)
        status = workspace_of(*plan, workspace, why);
    if (status != STATUS_OK)
        desc_free(plan);
    return status;
}
