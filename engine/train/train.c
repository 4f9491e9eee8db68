/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/train/accumulate.h"
#include "engine/train/recompute.h"
#include "engine/train/reduce.h"
#include "engine/train/sync_norm.h"

struct weights {
    int count;
    int *value, *gradient;
};

const struct op *optimiser_find(const char *name)
{
    for (int k = 0; k < op_count(); k++)
        if (op_at(k)->update && op_at(k)->update->name && strcmp(op_at(k)->update->name, name) == 0)
            return op_at(k);
    return NULL;
}

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

/* NULL: the weight is trained as the recipe says. */
static const struct recipe_group *group_of(const struct recipe *recipe, const char *weight)
{
    for (const struct recipe_group *k = recipe->groups; k && k->weights; k++)
        if (strncmp(weight, k->weights, strlen(k->weights)) == 0)
            return k;
    return NULL;
}

static bool is_trained(const struct recipe *recipe, const struct value *value)
{
    const struct recipe_group *group = group_of(recipe, value->name);
    return value->kind == VALUE_PARAM && dtype_is_float(value->dtype) && !(group && group->frozen);
}

/* A group of no weight is a name that has changed. */
static enum status check_groups(const struct graph *g, const struct recipe *recipe,
                                struct error *err)
{
    for (const struct recipe_group *k = recipe->groups; k && k->weights; k++) {
        bool found = false;
        for (int v = 0; v < g->value_count; v++)
            found = found ||
                    (g->values[v].kind == VALUE_PARAM && group_of(recipe, g->values[v].name) == k);
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
    if (!statistic || !w->value || !w->gradient) {
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
        w->gradient[kept++] = w->gradient[k];
    }
    w->count = kept;
}

/* Gradients become their sums over all ranks, and the loss its mean. */
static enum status reduce(struct graph *g, const struct train_options *o, struct weights *w,
                          struct error *err)
{
    int loss = g->outputs[0], sum = loss;
    TRY(reduce_gradients(g, o->ranks, o->unit_bytes, w->count, w->gradient, 1, &sum, err));
    g->phase = PHASE_COMMUNICATION;
    g->outputs[0] = make_div(g, sum, make_number(g, g->values[loss].dtype, o->ranks));
    return graph_failed(g, err);
}

/* What makes gradients of sums of `batches`: their mean, times min(1, most / its norm). NONE: 1. */
static int gradient_scale(struct graph *g, const struct weights *w, double most, int64_t batches)
{
    double mean = 1 / (double)batches;
    if (most <= 0)
        return batches > 1 ? make_number(g, DTYPE_F32, mean) : NONE;
    int norm = graph_node(g, op_global_norm.name, NULL, w->count, w->gradient, NO_ATTRS);
    norm = batches > 1 ? make_scaled(g, norm, mean) : norm;
    int ratio = make_div(g, make_number(g, DTYPE_F32, most), make_plus(g, norm, 1e-6));
    int scale = make_binary(g, &op_min, ratio, make_number(g, DTYPE_F32, 1));
    return batches > 1 ? make_scaled(g, scale, mean) : scale;
}

/* Each sum of `batches` gradients times most / max(most, norm of their mean). */
static void clip_each(struct graph *g, const struct weights *w, double most, int64_t batches)
{
    int bound = make_number(g, DTYPE_F32, most);
    for (int k = 0; k < w->count; k++) {
        int norm = make_unary(g, &op_global_norm, w->gradient[k]);
        norm = batches > 1 ? make_scaled(g, norm, 1 / (double)batches) : norm;
        int factor = make_div(g, bound, make_binary(g, &op_max, norm, bound));
        w->gradient[k] = make_mul(g, w->gradient[k], factor);
    }
}

/* ---- updates ---- */

/* How the weights of one group are updated. */
struct update {
    struct graph *g;
    const struct recipe *recipe;
    const struct recipe_group *group; /* NULL: all that are in none */
    const struct op *op;
    const struct attr *attrs; /* RECIPE_ATTRS */
    double decay;
    int rate, step, scale;
};

static enum status choose_group(struct update *u, const struct recipe_group *group,
                                struct error *err)
{
    bool own = group && group->optimiser;
    const char *name = own ? group->optimiser : u->recipe->optimiser;
    u->group = group;
    u->op = optimiser_find(name);
    u->attrs = own ? group->attrs : u->recipe->attrs;
    u->decay = group ? group->decay : u->recipe->decay;
    return u->op ? STATUS_OK : UNSUPPORTED(err, "there is no optimiser \"%s\"", name);
}

static int slot(const struct update *u, int weight, int index)
{
    struct graph *g = u->g;
    char name[200];
    struct shape shape = gradient_shape(g, weight);
    struct fill fill = {.kind = FILL_CONST};
    const char *initial = index == 0 ? u->op->update->initial : NULL;
    for (int k = 0; initial && k < RECIPE_ATTRS && u->attrs[k].name; k++)
        if (strcmp(u->attrs[k].name, initial) == 0)
            fill.a = u->attrs[k].f;
    snprintf(name, sizeof(name), "%.150s.%s%d", g->values[weight].name, u->op->update->name, index);
    return graph_state(g, name, g->values[weight].dtype, shape, fill);
}

/* Biases, and the scales and offsets of normalisations, have one dimension. */
static bool decays(const struct update *u, int weight)
{
    return u->decay > 0 && (u->recipe->decay_all || gradient_shape(u->g, weight).rank > 1);
}

static bool is_meant(const struct update *u, int weight, bool decay)
{
    return group_of(u->recipe, u->g->values[weight].name) == u->group && decays(u, weight) == decay;
}

static int rate_of(const struct update *u)
{
    double factor = u->group ? u->group->rate : 0;
    return factor > 0 ? make_scaled(u->g, u->rate, factor) : u->rate;
}

/* One node updates all weights of the group that decay, another one all that do not. */
static enum status update_weights(struct update *u, const struct weights *w, bool decay,
                                  struct error *err)
{
    struct graph *g = u->g;
    int each = 1 + u->op->update->slots, count = 0, wanted = 0;
    int *inputs = calloc((size_t)w->count * (size_t)(each + 1) + UPDATE_WEIGHTS, sizeof(int));
    int *outputs = calloc((size_t)w->count * (size_t)each + 1, sizeof(int));
    struct attr attrs[RECIPE_ATTRS + 1];
    int attr_count = 0;
    if (!inputs || !outputs) {
        free(inputs);
        free(outputs);
        return FAIL_NO_MEMORY(err);
    }
    while (attr_count < RECIPE_ATTRS && u->attrs[attr_count].name) {
        attrs[attr_count] = u->attrs[attr_count];
        attr_count++;
    }
    if (decay)
        attrs[attr_count++] = attr_float("decay", u->decay);
    inputs[UPDATE_RATE] = rate_of(u);
    inputs[UPDATE_STEP] = u->step;
    inputs[UPDATE_SCALE] = u->scale;
    count = UPDATE_WEIGHTS;
    for (int k = 0; k < w->count; k++) {
        if (!is_meant(u, w->value[k], decay))
            continue;
        inputs[count++] = w->value[k];
        inputs[count++] = w->gradient[k];
        for (int s = 0; s < each - 1; s++)
            inputs[count++] = slot(u, w->value[k], s);
        wanted += each;
    }
    if (wanted)
        graph_node_many(g, u->op->name, NULL, count, inputs, attr_count, attrs, wanted, outputs);
    for (int k = 0, i = UPDATE_WEIGHTS; !g->failed && k < wanted; k += each, i += each + 1) {
        graph_state_after(g, inputs[i], outputs[k]);
        for (int s = 1; s < each; s++)
            graph_state_after(g, inputs[i + 1 + s], outputs[k + s]);
    }
    free(inputs);
    free(outputs);
    return graph_failed(g, err);
}

int train_steps(struct graph *g)
{
    int known = graph_find_value(g, TRAIN_STEP);
    return graph_state_of(g, known) != NONE ? known
                                            : graph_state(g, TRAIN_STEP, DTYPE_I64, shape_scalar(),
                                                          (struct fill){.kind = FILL_CONST});
}

static enum status update_group(struct update *u, const struct recipe_group *group,
                                const struct weights *w, struct error *err)
{
    TRY(choose_group(u, group, err));
    TRY(update_weights(u, w, true, err));
    return update_weights(u, w, false, err);
}

/* The number of this step, from 1 on. */
static int count_steps(struct graph *g)
{
    static const int64_t one = 1;
    int before = train_steps(g);
    int after = make_add(g, before, graph_const_i64(g, -1, &one));
    graph_state_after(g, before, after);
    return after;
}

static enum status add_updates(struct graph *g, const struct recipe *recipe, struct weights *w,
                               const struct train_options *o, struct error *err)
{
    struct update u = {.g = g, .recipe = recipe};
    int64_t batches = o->micro_batches > 1 ? o->micro_batches : 1;
    int64_t summed = batches * (o->ranks > 1 ? o->ranks : 1);
    g->phase = PHASE_UPDATE;
    u.rate =
        graph_input(g, TRAIN_RATE, DTYPE_F32, shape_scalar(),
                    (struct fill){.kind = FILL_CONST, .a = schedule_rate(&recipe->schedule, 0)});
    u.step = count_steps(g);
    if (batches > 1)
        u.step = accumulate_gradients(g, w->count, w->value, w->gradient, u.step, batches);
    if (recipe->clip_each > 0)
        clip_each(g, w, recipe->clip_each, summed);
    u.scale = gradient_scale(g, w, recipe->clip_norm, summed);
    for (int k = 0; k < w->count; k++)
        graph_make_state(g, w->value[k]);
    TRY(graph_failed(g, err));
    TRY(update_group(&u, NULL, w, err));
    for (const struct recipe_group *k = recipe->groups; k && k->weights; k++)
        TRY(update_group(&u, k, w, err));
    return STATUS_OK;
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

enum status train_step(struct graph *g, const struct recipe *recipe,
                       const struct train_options *options, struct error *err)
{
    static const struct train_options usual = {.micro_batches = 1};
    const struct train_options *o = options ? options : &usual;
    struct weights w = {0};
    TRY(graph_check(g, err));
    TRY(graph_find_patterns(g, err));
    if (o->ranks > 1)
        TRY(part_dropout(g, o->rank, err));
    if (o->sync_norms && o->ranks > 1)
        TRY(synchronise_batch_norms(g, o->ranks, err));
    TRY(check_groups(g, recipe, err));
    enum status status = find_weights(g, recipe, &w, err);
    if (status == STATUS_OK)
        status = autodiff(g, g->outputs[0], NONE, w.count, w.value, w.gradient, err);
    if (status == STATUS_OK) {
        drop_unused(&w);
        if (o->ranks > 1)
            status = reduce(g, o, &w, err);
        if (o->gradients_as_outputs)
            show_gradients(g, &w);
    }
    if (status == STATUS_OK)
        status = add_updates(g, recipe, &w, o, err);
    free(w.value);
    free(w.gradient);
    TRY(status);
    graph_compact(g);
    if (o->recompute)
        TRY(recompute_forward(g, o->segments, err));
    return graph_check(g, err);
}
