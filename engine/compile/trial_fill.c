/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step on trial computes with: inputs of the network as they are filled, and where other
 * steps would have computed an input, numbers between -1 and 1, or integers that are 0. */
#include <string.h>

#include "engine/compile/trial.h"
#include "engine/graph/op_list.h"

/* Of integers that an ExpertSort would have made zeros are none: rows in their order, as many for
 * each expert as for others, or where there are fewer rows, experts all over the weights. */
static bool fill_experts(const struct graph *g, const struct value *value, int64_t *memory)
{
    const struct node *node = value->producer == NONE ? NULL : &g->nodes[value->producer];
    if (!node || node->op != &op_expert_sort)
        return false;
    int64_t count = shape_count(&value->shape);
    int64_t places = shape_count(&g->values[node->inputs[0]].shape);
    bool offsets = value->producer_out == 1;
    for (int64_t k = 0; k < count; k++)
        memory[k] = offsets && count > 1 ? k * places / (count - 1) : k;
    return true;
}

void trial_fill(const struct exe *exe, int v, void *memory)
{
    const struct value *value = &exe->g->values[v];
    const struct place *place = &exe->places[v];
    if (value->kind == VALUE_INPUT || value->kind == VALUE_STATE) {
        value_materialise(value, memory);
        return;
    }
    memset(memory, 0, place->bytes);
    size_t size = dtype_size(value->dtype);
    if (fill_experts(exe->g, value, memory))
        return;
    if (!dtype_is_float(value->dtype) || value->dtype == DTYPE_F64)
        return; /* zeros are valid indices, sizes and masks */
    uint32_t state = 12345;
    for (size_t k = 0; k < place->bytes / size; k++) {
        state = state * 1664525u + 1013904223u;
        float x = (float)(int32_t)state * 0x1p-31f;
        floats_store(value->dtype, &x, (char *)memory + k * size, 1);
    }
}
