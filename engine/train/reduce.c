/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/reduce.h"

#include <stdlib.h>
#include <string.h>

#include "engine/graph/op_list.h"

enum { FIRST_PART = 8 };

struct item {
    int *value; /* where the caller keeps it */
    int producer;
    int64_t bytes;
};

static int earlier(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->producer != y->producer)
        return x->producer < y->producer ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* One unit of `count` items. */
static enum status reduce_unit(struct graph *g, int ranks, const struct item *items, int count,
                               struct error *err)
{
    int *inputs = calloc((size_t)count * 2, sizeof(*inputs));
    if (!inputs)
        return FAIL_NO_MEMORY(err);
    int *outputs = inputs + count;
    for (int k = 0; k < count; k++)
        inputs[k] = *items[k].value;
    graph_node_many(g, op_all_reduce.name, NULL, count, inputs, 1,
                    (const struct attr[]){attr_int("ranks", ranks)}, count, outputs);
    for (int k = 0; k < count && !g->failed; k++)
        *items[k].value = outputs[k];
    free(inputs);
    return graph_failed(g, err);
}

/* Those that remain are shared evenly by as many units as are
 * needed. */
static enum status cut_into_units(struct graph *g, int ranks, int64_t unit_bytes,
                                  const struct item *items, int count, struct error *err)
{
    int64_t left = 0;
    for (int k = 0; k < count; k++)
        left += items[k].bytes;
    int64_t target = left > unit_bytes ? unit_bytes / FIRST_PART : left;
    for (int first = 0, end = 0; first < count; first = end) {
        int64_t bytes = 0;
        while (end < count && (bytes == 0 || bytes + items[end].bytes / 2 <= target))
            bytes += items[end++].bytes;
        TRY(reduce_unit(g, ranks, items + first, end - first, err));
        left -= bytes;
        int64_t units = (left + unit_bytes - 1) / unit_bytes;
        target = units ? (left + units - 1) / units : 0;
    }
    return STATUS_OK;
}

static struct item item_of(const struct graph *g, int *value)
{
    const struct value *v = &g->values[*value];
    return (struct item){.value = value,
                         .producer = v->producer,
                         .bytes = shape_count(&v->shape) * (int64_t)dtype_size(v->dtype)};
}

enum status reduce_gradients(struct graph *g, int ranks, int64_t unit_bytes, int count,
                             int *gradients, int shared_count, int *shared, struct error *err)
{
    struct item *items = calloc((size_t)(count + shared_count) + 1, sizeof(*items));
    enum phase phase = g->phase;
    if (!items)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < count; k++)
        items[k] = item_of(g, &gradients[k]);
    qsort(items, (size_t)count, sizeof(*items), earlier);
    for (int k = 0; k < shared_count; k++)
        items[count + k] = item_of(g, &shared[k]);
    g->phase = PHASE_COMMUNICATION;
    enum status status = cut_into_units(g, ranks, unit_bytes > 0 ? unit_bytes : REDUCE_UNIT_BYTES,
                                        items, count + shared_count, err);
    g->phase = phase;
    free(items);
    return status;
}

enum status part_dropout(struct graph *g, int rank, struct error *err)
{
    for (int n = 0; n < g->node_count; n++) {
        struct node *node = &g->nodes[n];
        if (node->op != &op_random_dropout)
            continue;
        int64_t count = shape_count(&g->values[node->outputs[0]].shape);
        struct attr *attrs = arena_array(&g->arena, (size_t)node->attr_count + 1, sizeof(*attrs));
        if (!attrs)
            return FAIL_NO_MEMORY(err);
        memcpy(attrs, node->attrs, (size_t)node->attr_count * sizeof(*attrs));
        attrs[node->attr_count++] = attr_int("first", rank * count);
        node->attrs = attrs;
    }
    return STATUS_OK;
}
