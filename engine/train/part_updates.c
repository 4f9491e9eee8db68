/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/part_updates.h"

#include <stdlib.h>

#include "base/numbers/integers.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/rank_parts.h"
#include "engine/train/reduce.h"

struct item {
    int weight, gradient, kind;
    int producer; /* of the gradient */
    int64_t bytes;
};

static int by_kind_and_time(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->producer != y->producer)
        return x->producer < y->producer ? -1 : 1;
    return (x->weight > y->weight) - (x->weight < y->weight);
}

/* wire: NULL, or as what elements cross. */
static int between(struct graph *g, const struct op *op, int x, int ranks, const char *wire)
{
    enum phase phase = g->phase;
    struct attr attrs[2] = {attr_int("ranks", ranks)};
    if (wire)
        attrs[1] = attr_string("wire", wire);
    g->phase = PHASE_COMMUNICATION;
    int y = graph_node(g, op->name, NULL, INPUTS(x), wire ? 2 : 1, attrs);
    g->phase = phase;
    return y;
}

static enum status make_unit(struct graph *g, const struct item *items, int count,
                             struct part_units *units, struct error *err)
{
    int *weights = arena_array(&g->arena, (size_t)count * 2, sizeof(*weights));
    if (!weights)
        return FAIL_NO_MEMORY(err);
    int *gradients = weights + count;
    for (int k = 0; k < count; k++) {
        weights[k] = items[k].weight;
        gradients[k] = items[k].gradient;
    }
    struct attr ranks = attr_int("ranks", units->ranks), rank = attr_int("rank", units->rank);
    int cut = graph_node(g, op_cut_for_ranks.name, NULL, count, gradients, ATTRS(ranks));
    int sum = between(g, &op_reduce_scatter, cut, units->ranks, units->wire);
    if (g->failed)
        return graph_failed(g, err);
    struct shape flat = shape_of(shape_count(&g->values[sum].shape));
    struct part_unit *unit = &units->of[units->count++];
    *unit = (struct part_unit){.count = count, .weights = weights, .like = weights[0]};
    unit->gradient = make_reshaped(g, sum, &flat);
    unit->own = graph_node(g, op_cut_for_ranks.name, NULL, count, weights, ATTRS(ranks, rank));
    unit->after = unit->own;
    return graph_failed(g, err);
}

/* Units of one kind share what there is evenly. */
static enum status cut_kind(struct graph *g, const struct item *items, int count,
                            struct part_units *units, struct error *err)
{
    int64_t left = 0;
    int64_t usual = units->unit_bytes > 0 ? units->unit_bytes : reduce_unit_bytes(units->ranks);
    for (int k = 0; k < count; k++)
        left += items[k].bytes;
    for (int first = 0, end = 0; first < count; first = end) {
        int64_t parts = divide_up(left, usual), bytes = 0;
        int64_t target = parts > 0 ? left / parts : 0;
        while (end < count && (end == first || bytes + items[end].bytes / 2 <= target))
            bytes += items[end++].bytes;
        TRY(make_unit(g, items + first, end - first, units, err));
        left -= bytes;
    }
    return STATUS_OK;
}

enum status part_units_make(struct graph *g, int count, const int *weights, const int *gradients,
                            const int *kinds, struct part_units *units, struct error *err)
{
    struct item *items = calloc((size_t)count + 1, sizeof(*items));
    enum phase phase = g->phase;
    enum status status = STATUS_OK;
    units->of = arena_array(&g->arena, (size_t)count + 1, sizeof(*units->of));
    units->count = 0;
    if (!items || !units->of) {
        free(items);
        return FAIL_NO_MEMORY(err);
    }
    for (int k = 0; k < count; k++) {
        const struct value *value = &g->values[gradients[k]];
        items[k] = (struct item){.weight = weights[k],
                                 .gradient = gradients[k],
                                 .kind = kinds[k],
                                 .producer = value->producer,
                                 .bytes = (int64_t)value_size(value)};
    }
    qsort(items, (size_t)count, sizeof(*items), by_kind_and_time);
    g->phase = PHASE_UPDATE;
    for (int first = 0, end = 0; status == STATUS_OK && first < count; first = end) {
        while (end < count && items[end].kind == items[first].kind)
            end++;
        status = cut_kind(g, items + first, end - first, units, err);
    }
    g->phase = phase;
    free(items);
    return status;
}

enum status part_unit_shards(const struct graph *g, const struct part_units *units, int unit,
                             int slot, const char *suffix, struct shards *shards, struct error *err)
{
    const struct part_unit *u = &units->of[unit];
    int64_t before = 0;
    if (g->failed)
        return graph_failed(g, err);
    for (int k = 0; k < u->count; k++) {
        const struct value *weight = &g->values[u->weights[k]];
        int64_t count = shape_count(&weight->shape), part = rank_part(count, units->ranks);
        struct shard shard = {.state = g->values[slot].name,
                              .first = before,
                              .whole = *weight,
                              .rows = 1,
                              .width = count,
                              .columns = part};
        shard.whole.name = arena_printf(&shards->arena, "%.150s.%s", weight->name, suffix);
        shard.whole.fill = g->values[slot].fill;
        shard.whole.data = NULL;
        if (!shard.whole.name)
            return FAIL_NO_MEMORY(err);
        TRY(shards_add(shards, &shard, err));
        before += part;
    }
    return STATUS_OK;
}

static enum status join(struct graph *g, const struct part_units *units, const struct part_unit *u,
                        int gathered, struct error *err)
{
    int *inputs = calloc((size_t)u->count * 2 + 1, sizeof(*inputs));
    if (!inputs)
        return FAIL_NO_MEMORY(err);
    int *outputs = inputs + u->count + 1;
    inputs[0] = gathered;
    for (int k = 0; k < u->count; k++)
        inputs[1 + k] = u->weights[k];
    graph_node_many(g, op_join_of_ranks.name, NULL, u->count + 1, inputs,
                    ATTRS(attr_int("ranks", units->ranks)), u->count, outputs);
    for (int k = 0; k < u->count && !g->failed; k++)
        graph_state_after(g, u->weights[k], outputs[k]);
    free(inputs);
    return graph_failed(g, err);
}

/* All are on their way before the first is waited for. */
enum status part_units_join(struct graph *g, const struct part_units *units, struct error *err)
{
    int *gathered = calloc((size_t)units->count + 1, sizeof(*gathered));
    enum status status = gathered ? STATUS_OK : FAIL_NO_MEMORY(err);
    for (int k = 0; k < units->count && status == STATUS_OK; k++) {
        gathered[k] = between(g, &op_all_gather, units->of[k].after, units->ranks, NULL);
        status = graph_failed(g, err);
    }
    for (int k = 0; k < units->count && status == STATUS_OK; k++)
        status = join(g, units, &units->of[k], gathered[k], err);
    free(gathered);
    return status;
}
