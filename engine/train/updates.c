/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/updates.h"

#include <stdio.h>
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/update.h"
#include "engine/train/accumulate.h"

const struct op *optimiser_find(const char *name)
{
    for (int k = 0; k < op_count(); k++)
        if (op_at(k)->update && op_at(k)->update->name && strcmp(op_at(k)->update->name, name) == 0)
            return op_at(k);
    return NULL;
}

const struct recipe_group *recipe_group_of(const struct recipe *recipe, const char *weight)
{
    for (const struct recipe_group *k = recipe->groups; k && k->weights; k++)
        if (strncmp(weight, k->weights, strlen(k->weights)) == 0)
            return k;
    return NULL;
}

bool weight_decays(const struct graph *g, const struct recipe *recipe,
                   const struct recipe_group *group, int weight)
{
    double decay = group ? group->decay : recipe->decay;
    return decay > 0 && (recipe->decay_all || gradient_shape(g, weight).rank > 1);
}

static int square_norm(struct graph *g, int count, const int *values)
{
    int norm = graph_node(g, op_global_norm.name, NULL, count, values, NO_ATTRS);
    return make_mul(g, norm, norm);
}

/* The joint norm of all gradients. Of some each rank has a part, and squares of parts add up. */
static int norm_of_all(struct graph *g, const struct weights *w, int ranks)
{
    int whole = w->units.count ? 0 : w->count - w->split_count, parts = w->units.count;
    if (whole == w->count)
        return graph_node(g, op_global_norm.name, NULL, w->count, w->gradient, NO_ATTRS);
    int *own = arena_array(&g->arena, (size_t)(parts + w->split_count), sizeof(*own));
    if (!own)
        return NONE;
    for (int k = 0; k < parts; k++)
        own[k] = w->units.of[k].gradient;
    for (int k = 0; k < w->split_count; k++)
        own[parts++] = w->gradient[w->count - w->split_count + k];
    int sum = square_norm(g, parts, own);
    g->phase = PHASE_COMMUNICATION;
    sum = graph_node(g, op_all_reduce.name, NULL, INPUTS(sum), ATTRS(attr_int("ranks", ranks)));
    g->phase = PHASE_UPDATE;
    if (whole)
        sum = make_add(g, sum, square_norm(g, whole, w->gradient));
    return make_unary(g, &op_sqrt, sum);
}

/* What makes gradients of sums of `batches`: their mean, times min(1, most / its norm). NONE: 1. */
static int gradient_scale(struct graph *g, const struct weights *w, double limit, int64_t batches,
                          int ranks)
{
    double mean = 1 / (double)batches;
    if (limit <= 0)
        return batches > 1 ? make_number(g, DTYPE_F32, mean) : NONE;
    int norm = norm_of_all(g, w, ranks);
    norm = batches > 1 ? make_scaled(g, norm, mean) : norm;
    int ratio = make_div(g, make_number(g, DTYPE_F32, limit), make_plus(g, norm, 1e-6));
    int scale = make_binary(g, &op_min, ratio, make_number(g, DTYPE_F32, 1));
    return batches > 1 ? make_scaled(g, scale, mean) : scale;
}

/* Each sum of `batches` gradients times most / max(most, norm of their mean). */
static void clip_each(struct graph *g, const struct weights *w, double limit, int64_t batches)
{
    int bound = make_number(g, DTYPE_F32, limit);
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
    struct shards *shards;
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

/* Of a value that is updated; `weight`: it, or what it is a part of. */
static int slot(const struct update *u, int value, int weight, int index)
{
    struct graph *g = u->g;
    char name[200];
    struct shape shape = gradient_shape(g, value);
    struct fill fill = {.kind = FILL_CONST};
    const char *initial = index == 0 ? u->op->update->initial : NULL;
    for (int k = 0; initial && k < RECIPE_ATTRS && u->attrs[k].name; k++)
        if (strcmp(u->attrs[k].name, initial) == 0)
            fill.a = u->attrs[k].f;
    snprintf(name, sizeof(name), "%.150s%s.%s%d", g->values[weight].name,
             value == weight ? "" : ".parts", u->op->update->name, index);
    return graph_state(g, name, g->values[weight].dtype, shape, fill);
}

static bool is_meant(const struct update *u, int weight, bool decay)
{
    return recipe_group_of(u->recipe, u->g->values[weight].name) == u->group &&
           weight_decays(u->g, u->recipe, u->group, weight) == decay;
}

static int rate_of(const struct update *u)
{
    double factor = u->group ? u->group->rate : 0;
    return factor > 0 ? make_scaled(u->g, u->rate, factor) : u->rate;
}

/* What one node updates. */
struct batch {
    int count;
    int *value, *gradient;
    int *weight; /* value, or what it is a part of */
    int *slots;  /* of each; the states that are made for it */
    int *after;  /* what each becomes */
};

static bool batch_make(struct graph *g, int limit, struct batch *b)
{
    int *all = arena_array(&g->arena, (size_t)(limit + 1) * (4 + UPDATE_SLOTS_MAX), sizeof(*all));
    *b = (struct batch){.value = all};
    b->gradient = all + limit;
    b->weight = b->gradient + limit;
    b->after = b->weight + limit;
    b->slots = b->after + limit;
    return all;
}

static void batch_add(struct batch *b, int value, int gradient, int weight)
{
    b->value[b->count] = value;
    b->gradient[b->count] = gradient;
    b->weight[b->count++] = weight;
}

static int attrs_of(const struct update *u, bool decay, struct attr *attrs)
{
    int count = 0;
    while (count < RECIPE_ATTRS && u->attrs[count].name) {
        attrs[count] = u->attrs[count];
        count++;
    }
    if (decay)
        attrs[count++] = attr_float("decay", u->decay);
    return count;
}

static enum status update_batch(struct update *u, struct batch *b, bool decay, struct error *err)
{
    struct graph *g = u->g;
    int slots = u->op->update->slots, each = 1 + slots, count = UPDATE_WEIGHTS;
    size_t limit = (size_t)b->count * (size_t)(each + 1) + UPDATE_WEIGHTS;
    int *inputs = arena_array(&g->arena, limit, sizeof(int));
    int *outputs = arena_array(&g->arena, limit, sizeof(int));
    struct attr attrs[RECIPE_ATTRS + 1];
    int attr_count = attrs_of(u, decay, attrs);
    if (!inputs || !outputs)
        return FAIL_NO_MEMORY(err);
    inputs[UPDATE_RATE] = rate_of(u);
    inputs[UPDATE_STEP] = u->step;
    inputs[UPDATE_SCALE] = u->scale;
    for (int k = 0; k < b->count; k++) {
        inputs[count++] = b->value[k];
        inputs[count++] = b->gradient[k];
        for (int s = 0; s < slots; s++)
            inputs[count++] = b->slots[k * slots + s] = slot(u, b->value[k], b->weight[k], s);
    }
    graph_node_many(g, u->op->name, NULL, count, inputs, attr_count, attrs, b->count * each,
                    outputs);
    for (int k = 0; !g->failed && k < b->count; k++) {
        b->after[k] = outputs[k * each];
        for (int s = 0; s < slots; s++)
            graph_state_after(g, b->slots[k * slots + s], outputs[k * each + 1 + s]);
    }
    return graph_failed(g, err);
}

/* The slot of a table of which each rank has columns is cut like the table. */
static enum status note_split_slot(struct update *u, int table, int slot, struct error *err)
{
    const char *name = u->g->values[slot].name;
    for (int k = 0; k < u->shards->count; k++) {
        struct shard shard = u->shards->of[k];
        if (strcmp(shard.state, u->g->values[table].name) != 0)
            continue;
        shard.state = shard.whole.name = name;
        shard.whole.fill = u->g->values[slot].fill;
        return shards_add(u->shards, &shard, err);
    }
    return STATUS_OK;
}

/* One node updates all weights of the group that decay, another one all that do not. */
static enum status update_whole(struct update *u, const struct weights *w, bool decay,
                                struct error *err)
{
    int first = w->units.count ? w->count - w->split_count : 0, slots = u->op->update->slots;
    struct batch b;
    if (!batch_make(u->g, w->count, &b))
        return FAIL_NO_MEMORY(err);
    for (int k = first; k < w->count; k++)
        if (is_meant(u, w->value[k], decay))
            batch_add(&b, w->value[k], w->gradient[k], w->value[k]);
    if (b.count == 0)
        return STATUS_OK;
    TRY(update_batch(u, &b, decay, err));
    for (int k = 0; k < b.count; k++)
        graph_state_after(u->g, b.value[k], b.after[k]);
    for (int k = 0; u->shards && k < b.count * slots; k++)
        TRY(note_split_slot(u, b.value[k / slots], b.slots[k], err));
    return graph_failed(u->g, err);
}

/* A node for each unit, so that the first is on its way while others are updated. */
static enum status update_units(struct update *u, const struct weights *w, bool decay,
                                struct error *err)
{
    for (int k = 0; k < w->units.count; k++) {
        struct part_unit *unit = &w->units.of[k];
        struct batch b;
        char suffix[32];
        if (!is_meant(u, unit->like, decay))
            continue;
        if (!batch_make(u->g, 1, &b))
            return FAIL_NO_MEMORY(err);
        batch_add(&b, unit->own, unit->gradient, unit->like);
        TRY(update_batch(u, &b, decay, err));
        unit->after = b.after[0];
        for (int s = 0; s < u->op->update->slots; s++) {
            snprintf(suffix, sizeof(suffix), "%s%d", u->op->update->name, s);
            TRY(part_unit_shards(u->g, &w->units, k, b.slots[s], suffix, u->shards, err));
        }
    }
    return STATUS_OK;
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
    for (int decay = 1; decay >= 0; decay--) {
        TRY(update_units(u, w, decay, err));
        TRY(update_whole(u, w, decay, err));
    }
    return STATUS_OK;
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

enum status updates_add(struct graph *g, const struct recipe *recipe, struct weights *w,
                        const struct train_options *o, struct error *err)
{
    struct update u = {.g = g, .recipe = recipe, .shards = o->shards};
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
    u.scale = gradient_scale(g, w, recipe->clip_norm, summed, o->ranks);
    for (int k = 0; k < w->count; k++)
        graph_make_state(g, w->value[k]);
    TRY(graph_failed(g, err));
    TRY(update_group(&u, NULL, w, err));
    for (const struct recipe_group *k = recipe->groups; k && k->weights; k++)
        TRY(update_group(&u, k, w, err));
    return part_units_join(g, &w->units, err);
}
