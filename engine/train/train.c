/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/train/gather_rows.h"
#include "engine/train/recompute.h"
#include "engine/train/reduce.h"
#include "engine/train/split_tables.h"
#include "engine/train/sum_counts.h"
#include "engine/train/sync_norm.h"
#include "engine/train/updates.h"

/* Statistics are kept beside weights, but not by the optimiser. */
static void mark_statistics(const struct graph *g, bool *statistic)
{
    for (int n = 0; n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        for (int k = 0; k < node->op_inputs && k < 32; k++)
            if (node->inputs[k] != NONE && (node->op->buffers >> k & 1))
                statistic[node->inputs[k]] = true;
    }
}

static bool is_trained(const struct recipe *recipe, const struct value *value)
{
    const struct recipe_group *group = recipe_group_of(recipe, value->name);
    return value->kind == VALUE_PARAM && dtype_is_float(value->dtype) && !(group && group->frozen);
}

/* A group of no weight is a name that has changed. */
static enum status check_groups(const struct graph *g, const struct recipe *recipe,
                                struct error *err)
{
    for (const struct recipe_group *k = recipe->groups; k && k->weights; k++) {
        bool found = false;
        for (int v = 0; v < g->value_count; v++)
            found = found || (g->values[v].kind == VALUE_PARAM &&
                              recipe_group_of(recipe, g->values[v].name) == k);
        if (!found)
            return FAIL(err, STATUS_FAILED,
                        "the recipe has a group for weights \"%s...\", and there are none",
                        k->weights);
    }
    return STATUS_OK;
}

static enum status find_weights(const struct graph *g, const struct recipe *recipe,
                                struct weights *w, struct error *err)
{
    size_t values = (size_t)g->value_count + 1;
    bool *statistic = calloc(values, sizeof(*statistic));
    w->value = malloc(values * sizeof(int));
    w->gradient = malloc(values * sizeof(int));
    w->split = calloc(values, sizeof(bool));
    w->gathered = calloc(values, sizeof(bool));
    if (!statistic || !w->value || !w->gradient || !w->split || !w->gathered) {
        free(statistic);
        return FAIL_NO_MEMORY(err);
    }
    mark_statistics(g, statistic);
    for (int v = 0; v < g->value_count; v++)
        if (is_trained(recipe, &g->values[v]) && !statistic[v])
            w->value[w->count++] = v;
    free(statistic);
    return STATUS_OK;
}

/* Weights that the loss does not depend on stay as they are. */
static void drop_unused(struct weights *w)
{
    int kept = 0;
    for (int k = 0; k < w->count; k++) {
        if (w->gradient[k] == NONE)
            continue;
        w->value[kept] = w->value[k];
        w->split[kept] = w->split[k];
        w->gradient[kept++] = w->gradient[k];
    }
    w->count = kept;
}

static enum status sort(struct weights *w, struct error *err)
{
    int *old = calloc((size_t)w->count * 2 + 1, sizeof(*old)), at = 0;
    if (!old)
        return FAIL_NO_MEMORY(err);
    memcpy(old, w->value, (size_t)w->count * sizeof(*old));
    memcpy(old + w->count, w->gradient, (size_t)w->count * sizeof(*old));
    for (int turn = 0; turn < 3; turn++)
        for (int k = 0; k < w->count; k++) {
            if (turn != (w->split[k] ? 2 : w->gathered[k]))
                continue;
            w->gathered_count += turn == 1;
            w->split_count += turn == 2;
            w->value[at] = old[k];
            w->gradient[at++] = old[w->count + k];
        }
    free(old);
    return STATUS_OK;
}

/* Moments that are split are those of sums that are split. */
static enum status gather(struct graph *g, const struct train_options *o, struct weights *w,
                          struct error *err)
{
    if (o->part_updates || o->micro_batches > 1)
        return STATUS_OK;
    return gather_rows(g, o->ranks, w->count, w->gradient, w->split, w->gathered, err);
}

/* Weights of one group which decay, or which do not, are updated alike. */
static enum status make_units(struct graph *g, const struct recipe *recipe,
                              const struct train_options *o, struct weights *w, struct error *err)
{
    int whole = w->count - w->split_count;
    int *kinds = calloc((size_t)whole + 1, sizeof(*kinds));
    if (!kinds)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < whole; k++) {
        const struct recipe_group *group = recipe_group_of(recipe, g->values[w->value[k]].name);
        kinds[k] = 2 * (group ? 1 + (int)(group - recipe->groups) : 0) +
                   weight_decays(g, recipe, group, w->value[k]);
    }
    w->units = (struct part_units){
        .ranks = o->ranks, .rank = o->rank, .unit_bytes = o->unit_bytes, .wire = o->wire};
    enum status status = part_units_make(g, whole, w->value, w->gradient, kinds, &w->units, err);
    free(kinds);
    return status;
}

/* Gradients become their sums over all ranks, and the loss its mean. */
static enum status reduce(struct graph *g, const struct recipe *recipe,
                          const struct train_options *o, struct weights *w, struct error *err)
{
    int loss = g->outputs[0], sum = loss, own = w->count - w->gathered_count - w->split_count;
    if (o->part_updates)
        TRY(make_units(g, recipe, o, w, err));
    const struct reduction how = {o->ranks, o->unit_bytes, o->wire};
    TRY(reduce_gradients(g, &how, o->part_updates ? 0 : own, w->gradient, 1, &sum, err));
    g->phase = PHASE_COMMUNICATION;
    g->outputs[0] = make_div(g, sum, make_number(g, g->values[loss].dtype, o->ranks));
    return graph_failed(g, err);
}

static void show_gradients(struct graph *g, const struct weights *w)
{
    char name[200];
    for (int k = 0; k < w->count; k++) {
        snprintf(name, sizeof(name), "gradient.%.150s", g->values[w->value[k]].name);
        graph_rename(g, w->gradient[k], name);
        graph_output(g, w->gradient[k]);
    }
}

static bool takes_norms(const char *optimiser)
{
    const struct op *op = optimiser ? optimiser_find(optimiser) : NULL;
    return op && op->update->takes_norms;
}

/* What needs whole weights or whole gradients is not for parts. */
static enum status check_parts(const struct recipe *recipe, const struct train_options *o,
                               struct error *err)
{
    const char *what = o->part_updates ? "moments" : "tables", *by = recipe->optimiser;
    for (const struct recipe_group *k = recipe->groups; k && k->weights && !takes_norms(by); k++)
        by = k->optimiser;
    if (takes_norms(by))
        return UNSUPPORTED(err,
                           "%s cannot be divided among ranks: \"%s\" takes norms of whole weights, "
                           "which no rank has",
                           what, by);
    if (recipe->clip_each > 0)
        return UNSUPPORTED(err,
                           "%s cannot be divided among ranks: the recipe clips each gradient by "
                           "its norm, and no rank has a whole one",
                           what);
    if (o->micro_batches > 1 || o->gradients_as_outputs)
        return UNSUPPORTED(err, "%s cannot be divided among ranks where gradients are kept", what);
    return STATUS_OK;
}

enum status train_draw_as_rank(struct graph *g, int ranks, int rank, struct error *err)
{
    for (int n = 0; n < g->node_count; n++) {
        struct node *node = &g->nodes[n];
        if (node->op->draw_as_rank && !node->op->draw_as_rank(g, node, ranks, rank))
            return FAIL_NO_MEMORY(err);
    }
    return STATUS_OK;
}

static enum status prepare_ranks(struct graph *g, const struct recipe *recipe,
                                 const struct train_options *o, struct error *err)
{
    if (o->tables == TABLES_SPLIT || o->part_updates)
        TRY(check_parts(recipe, o, err));
    TRY(train_draw_as_rank(g, o->ranks, o->rank, err));
    TRY(sum_counts(g, o->ranks, err));
    return o->sync_norms ? synchronise_batch_norms(g, o->ranks, err) : STATUS_OK;
}

static enum status add_gradients(struct graph *g, const struct recipe *recipe,
                                 const struct train_options *o, struct weights *w,
                                 struct error *err)
{
    TRY(find_weights(g, recipe, w, err));
    if (o->tables == TABLES_SPLIT && o->ranks > 1)
        TRY(split_tables(g, o->ranks, w->count, w->value, w->split, o->shards, err));
    TRY(autodiff(g, g->outputs[0], NONE, w->count, w->value, w->gradient, err));
    drop_unused(w);
    if (o->tables != TABLES_WHOLE && o->ranks > 1)
        TRY(gather(g, o, w, err));
    TRY(sort(w, err));
    if (o->ranks > 1)
        TRY(reduce(g, recipe, o, w, err));
    if (o->gradients_as_outputs)
        show_gradients(g, w);
    return STATUS_OK;
}

enum status train_step(struct graph *g, const struct recipe *recipe,
                       const struct train_options *options, struct error *err)
{
    static const struct train_options usual = {.micro_batches = 1};
    const struct train_options *o = options ? options : &usual;
    struct weights w = {0};
    TRY(graph_check(g, err));
    TRY(graph_find_patterns(g, err));
    if (o->ranks > 1)
        TRY(prepare_ranks(g, recipe, o, err));
    TRY(check_groups(g, recipe, err));
    enum status status = add_gradients(g, recipe, o, &w, err);
    if (status == STATUS_OK)
        status = updates_add(g, recipe, &w, o, err);
    free(w.value);
    free(w.gradient);
    free(w.split);
    free(w.gathered);
    TRY(status);
    graph_compact(g);
    if (o->recompute)
        TRY(recompute_forward(g, o->segments, err));
    return graph_check(g, err);
}
