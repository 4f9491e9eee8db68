/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the sliding window of convolutions and pools out in full (kernel_shape, strides, pads,
 * dilations; auto_pad and ceil_mode resolved into pads), so that kernels and plug-ins read plain
 * attributes. Padding that ceil_mode adds is an end padding here, which average pools with
 * count_include_pad must not count: those keep ceil_mode. */
#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/ops/lib/window.h"

static const int64_t *ints(struct graph *g, const int64_t *values, int count)
{
    return arena_copy(&g->arena, values, (size_t)count * sizeof(*values));
}

static enum status rewrite_attrs(struct graph *g, struct node *node, const struct window *w,
                                 struct error *err)
{
    struct attr *attrs = arena_array(&g->arena, (size_t)node->attr_count + 5, sizeof(*attrs));
    int64_t pads[2 * SPATIAL_MAX];
    int count = 0, rank = w->rank;
    if (!attrs)
        return FAIL_NO_MEMORY(err);
    static const char *const replaced[] = {"kernel_shape", "strides", "pads", "dilations",
                                           "auto_pad"};
    for (int k = 0; k < node->attr_count; k++) {
        bool keep = true;
        for (int r = 0; r < ARRAY_COUNT(replaced); r++)
            keep = keep && strcmp(node->attrs[k].name, replaced[r]) != 0;
        if (keep)
            attrs[count++] = node->attrs[k];
    }
    for (int k = 0; k < rank; k++) {
        pads[k] = w->pad_begin[k];
        pads[rank + k] = w->pad_end[k];
    }
    attrs[count++] = attr_ints("kernel_shape", rank, ints(g, w->kernel, rank));
    attrs[count++] = attr_ints("strides", rank, ints(g, w->stride, rank));
    attrs[count++] = attr_ints("dilations", rank, ints(g, w->dilation, rank));
    attrs[count++] = attr_ints("pads", 2 * rank, ints(g, pads, 2 * rank));
    for (int k = count - 4; k < count; k++)
        if (!attrs[k].ints)
            return FAIL_NO_MEMORY(err);
    node->attrs = attrs;
    node->attr_count = count;
    return STATUS_OK;
}

enum status pass_normalise(struct graph *g, struct error *err)
{
    for (int n = 0; n < g->node_count; n++) {
        struct node *node = &g->nodes[n];
        if (node->dead || !node->op->window)
            continue;
        int weights = node->op->window_input;
        struct window window;
        TRY(window_from_node(node, &g->values[node->inputs[0]].shape,
                             weights ? g->values[node->inputs[weights]].shape.dim + 2 : NULL,
                             &window, err));
        TRY(rewrite_attrs(g, node, &window, err));
    }
    return STATUS_OK;
}
