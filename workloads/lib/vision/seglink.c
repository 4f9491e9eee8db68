/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/seglink.h"

#include <stdlib.h>

static int64_t cells_of(const struct seglink_layer *layer)
{
    return layer->height * layer->width;
}

static int64_t add_edge(int64_t *edges, int64_t count, int64_t from, int64_t to)
{
    edges[2 * count] = from;
    edges[2 * count + 1] = to;
    return count + 1;
}

/* To the eight cells around (y, x), row by row; -1 where the map ends. */
static int64_t within(int64_t *edges, int64_t count, const struct seglink_layer *layer,
                      int64_t start, int64_t cell)
{
    int64_t y = cell / layer->width, x = cell % layer->width;
    for (int k = 0; k < 9; k++) {
        int64_t to_y = y + k / 3 - 1, to_x = x + k % 3 - 1;
        bool inside = to_y >= 0 && to_y < layer->height && to_x >= 0 && to_x < layer->width;
        if (k != 4)
            count = add_edge(edges, count, start + cell,
                             inside ? start + to_y * layer->width + to_x : NONE);
    }
    return count;
}

/* To the four cells of the layer before, which is twice as fine. */
static int64_t across(int64_t *edges, int64_t count, const struct seglink_layer *layer,
                      int64_t start, int64_t cell)
{
    const struct seglink_layer *fine = layer - 1;
    int64_t first = start - cells_of(fine);
    for (int k = 0; k < 4; k++) {
        int64_t y = cell / layer->width * 2 + k / 2, x = cell % layer->width * 2 + k % 2;
        bool inside = y < fine->height && x < fine->width;
        count = add_edge(edges, count, start + cell, inside ? first + y * fine->width + x : NONE);
    }
    return count;
}

static int64_t edge_list(const struct seglink *net, int64_t *edges)
{
    int64_t count = 0, start = 0;
    for (int l = 0; l < SEGLINK_LAYERS; start += cells_of(&net->layers[l++])) {
        const struct seglink_layer *layer = &net->layers[l];
        for (int64_t cell = 0; cell < cells_of(layer); cell++) {
            count = within(edges, count, layer, start, cell);
            if (layer->links > 8)
                count = across(edges, count, layer, start, cell);
        }
    }
    return count;
}

/* Per cell its centre in pixels and its anchor twice: what offsets are added to and scaled by. */
static void anchor_table(const struct seglink *net, float *centres, float *sizes)
{
    int64_t k = 0;
    for (int l = 0; l < SEGLINK_LAYERS; l++) {
        const struct seglink_layer *layer = &net->layers[l];
        double step_x = (double)net->width / (double)layer->width;
        double step_y = (double)net->height / (double)layer->height;
        for (int64_t cell = 0; cell < cells_of(layer); cell++, k++) {
            centres[2 * k] = (float)(((double)(cell % layer->width) + 0.5) * step_x);
            centres[2 * k + 1] = (float)(((double)(cell / layer->width) + 0.5) * step_y);
            sizes[2 * k] = sizes[2 * k + 1] = (float)layer->anchor;
        }
    }
}

struct seglink_tables seglink_tables(struct graph *g, const struct seglink *net)
{
    struct seglink_tables t = {.edges = NONE, .centres = NONE, .sizes = NONE};
    for (int l = 0; l < SEGLINK_LAYERS; l++) {
        t.cells += cells_of(&net->layers[l]);
        t.links += cells_of(&net->layers[l]) * net->layers[l].links;
    }
    int64_t *edges = arena_array(&g->arena, (size_t)t.links * 2 + 1, sizeof(*edges));
    float *centres = arena_array(&g->arena, (size_t)t.cells * 2 + 1, sizeof(*centres));
    float *sizes = arena_array(&g->arena, (size_t)t.cells * 2 + 1, sizeof(*sizes));
    if (!edges || !centres || !sizes)
        return t; /* graph_node reports the missing inputs */
    t.links = edge_list(net, edges);
    t.edge = edges;
    anchor_table(net, centres, sizes);
    t.edges = graph_const(g, "edges", DTYPE_I64, shape_of(t.links, 2), edges);
    t.centres = graph_const(g, "cell_centres", DTYPE_F32, shape_of(1, t.cells, 2), centres);
    t.sizes = graph_const(g, "cell_anchors", DTYPE_F32, shape_of(1, t.cells, 2), sizes);
    return t;
}

/* Elements [first, last) of the last axis. */
static int columns(struct graph *g, int x, int64_t first, int64_t last)
{
    int begin = graph_const_i64(g, 1, &first), end = graph_const_i64(g, 1, &last);
    int axis = graph_const_i64(g, 1, (const int64_t[]){2});
    return graph_node(g, "Slice", NULL, INPUTS(x, begin, end, axis), NO_ATTRS);
}

/* Probability of the second of two classes reaches the threshold: [N, K, 2] -> bool [N, K]. */
static int passes(struct graph *g, int x, float threshold, int64_t batch)
{
    int yes = reshape(g, columns(g, softmax(g, x, -1), 1, 2), 2, (const int64_t[]){batch, -1});
    return graph_node(g, "GreaterOrEqual", NULL, INPUTS(yes, graph_const_f32(g, threshold)),
                      NO_ATTRS);
}

/* centre = offset x anchor + cell centre, size = exp(offset) x anchor, sine and cosine as read. */
static int geometry(struct graph *g, int offsets, const struct seglink_tables *t)
{
    offsets = mul(g, offsets, graph_const_f32(g, 0.1f));
    int centre = add(g, mul(g, columns(g, offsets, 0, 2), t->sizes), t->centres);
    int size = graph_node(g, "Exp", NULL, INPUTS(columns(g, offsets, 2, 4)), NO_ATTRS);
    size = mul(g, size, t->sizes);
    return concat(g, 2, 3, (const int[]){centre, size, columns(g, offsets, 4, 6)});
}

void seglink_decode(struct graph *g, const struct seglink *net, int outputs[2])
{
    struct seglink_tables t = seglink_tables(g, net);
    int active = passes(g, net->segments, 0.9f, net->batch);
    int linked = passes(g, net->links, 0.7f, net->batch);
    int segments = geometry(g, net->offsets, &t);
    int labels =
        graph_node(g, "ConnectedComponents", "group", INPUTS(active, linked, t.edges), NO_ATTRS);
    graph_node_many(g, "MergeSegments", "merge", INPUTS(segments, labels), NO_ATTRS, 2, outputs);
}
