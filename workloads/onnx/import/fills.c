/* SPDX-License-Identifier: Apache-2.0
 *
 * What inputs of a file hold when nobody gives their contents: images for images, valid indices for
 * what is used as an index, ones for masks. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "engine/graph/op_list.h"
#include "workloads/onnx/import/import.h"

enum { CHAIN_STEPS_MAX = 64 };

static bool moves_or_casts(const struct op *op)
{
    return op->alias || op->move || op->reads == READS_ROWS || op == &op_cast;
}

/* The input that a value is, seen through operators that only move elements or cast. */
static int source_of(const struct graph *g, int value)
{
    for (int step = 0; step < CHAIN_STEPS_MAX; step++) {
        int producer = g->values[value].producer;
        const struct node *node = producer == NONE ? NULL : &g->nodes[producer];
        if (!node || !moves_or_casts(node->op) || node->inputs[0] == NONE)
            break;
        value = node->inputs[0];
    }
    return value;
}

static void limit_index(struct graph *g, int index, double end)
{
    struct value *source = &g->values[source_of(g, index)];
    if (source->kind != VALUE_INPUT || dtype_is_float(source->dtype))
        return;
    bool tighter = source->fill.kind != FILL_INDEX || end < source->fill.b;
    if (tighter)
        source->fill = (struct fill){.kind = FILL_INDEX, .a = 0, .b = end > 1 ? end : 1};
}

static bool contains(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (; *text; text++) {
        size_t k = 0;
        while (k < length && tolower((unsigned char)text[k]) == word[k])
            k++;
        if (k == length)
            return true;
    }
    return false;
}

static struct fill plain_fill(const struct value *value)
{
    const struct shape *shape = &value->shape;
    if (contains(value->name, "mask"))
        return (struct fill){.kind = FILL_CONST, .a = 1};
    if (!dtype_is_float(value->dtype))
        return (struct fill){.kind = FILL_INDEX, .a = 0, .b = 2};
    bool image = shape->rank == 4 && (shape->dim[1] == 3 || shape->dim[1] == 1);
    return (struct fill){.kind = image ? FILL_IMAGE : FILL_NORMAL, .a = 0, .b = 1};
}

void choose_fills(struct graph *g)
{
    for (int k = 0; k < g->input_count; k++)
        g->values[g->inputs[k]].fill = plain_fill(&g->values[g->inputs[k]]);
    for (int n = 0; n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        bool gather = node->op == &op_gather || node->op == &op_gather_elements;
        if (!gather || node->inputs[0] == NONE || node->inputs[1] == NONE)
            continue;
        const struct shape *table = &g->values[node->inputs[0]].shape;
        int axis = shape_axis(table, node_int(node, "axis", 0));
        if (axis >= 0)
            limit_index(g, node->inputs[1], (double)table->dim[axis]);
    }
}
