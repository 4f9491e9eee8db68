/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/reduce.h"

#include <stdlib.h>

#include "base/numbers/integers.h"
#include "engine/graph/op_list.h"

/* Bytes: see reduce_unit_bytes. */
enum { FIRST_PART = 8, UNIT_LEAST = 4 << 20, MESSAGE_COST = 32 << 10 };

int64_t reduce_unit_bytes(int ranks)
{
    int64_t bytes = (int64_t)ranks * MESSAGE_COST;
    return bytes > UNIT_LEAST ? bytes : UNIT_LEAST;
}

/* What remains is shared evenly by as many units as are needed. */
int reduce_cut(int64_t unit_bytes, int count, const int64_t *bytes, int *ends)
{
    int64_t left = 0;
    int units = 0;
    for (int k = 0; k < count; k++)
        left += bytes[k];
    int64_t target = left > unit_bytes ? unit_bytes / FIRST_PART : left;
    for (int end = 0; end < count;) {
        int64_t unit = 0;
        while (end < count && (unit == 0 || unit + bytes[end] / 2 <= target))
            unit += bytes[end++];
        ends[units++] = end;
        left -= unit;
        int64_t more = divide_up(left, unit_bytes);
        target = more ? divide_up(left, more) : 0;
    }
    return units;
}

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
static enum status reduce_unit(struct graph *g, int ranks, const char *wire,
                               const struct item *items, int count, struct error *err)
{
    struct attr attrs[2] = {attr_int("ranks", ranks)};
    int *inputs = calloc((size_t)count * 2, sizeof(*inputs));
    if (!inputs)
        return FAIL_NO_MEMORY(err);
    int *outputs = inputs + count;
    for (int k = 0; k < count; k++)
        inputs[k] = *items[k].value;
    if (wire)
        attrs[1] = attr_string("wire", wire);
    graph_node_many(g, op_all_reduce.name, NULL, count, inputs, wire ? 2 : 1, attrs, count,
                    outputs);
    for (int k = 0; k < count && !g->failed; k++)
        *items[k].value = outputs[k];
    free(inputs);
    return graph_failed(g, err);
}

static enum status reduce_units(struct graph *g, const struct reduction *how,
                                const struct item *items, int count, struct error *err)
{
    int64_t unit_bytes = how->unit_bytes > 0 ? how->unit_bytes : reduce_unit_bytes(how->ranks);
    int64_t *bytes = calloc((size_t)count + 1, sizeof(*bytes));
    int *ends = calloc((size_t)count + 1, sizeof(*ends)), units = 0, first = 0;
    enum status status = bytes && ends ? STATUS_OK : FAIL_NO_MEMORY(err);
    for (int k = 0; k < count && bytes; k++)
        bytes[k] = items[k].bytes;
    if (status == STATUS_OK)
        units = reduce_cut(unit_bytes, count, bytes, ends);
    for (int k = 0; k < units && status == STATUS_OK; first = ends[k++])
        status = reduce_unit(g, how->ranks, how->wire, items + first, ends[k] - first, err);
    free(bytes);
    free(ends);
    return status;
}

static struct item item_of(const struct graph *g, int *value)
{
    const struct value *v = &g->values[*value];
    return (struct item){.value = value, .producer = v->producer, .bytes = (int64_t)value_size(v)};
}

enum status reduce_gradients(struct graph *g, const struct reduction *how, int count,
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
    int together = how->wire ? count : count + shared_count;
    enum status status = reduce_units(g, how, items, together, err);
    if (status == STATUS_OK && together < count + shared_count)
        status = reduce_unit(g, how->ranks, NULL, items + together, shared_count, err);
    g->phase = phase;
    free(items);
    return status;
}
