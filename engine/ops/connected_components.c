/* SPDX-License-Identifier: Apache-2.0
 * ConnectedComponents (ridge): active [N, S] bool, links [N, E] bool, edges [E, 2] i64 -> labels
 * [N, S] i64. Edge e joins nodes edges[e] when links say so and both are active; -1 as an end is no
 * edge. The label of an active node is the smallest node that it is joined with over any number of
 * edges, that of others -1. */
#include <stdlib.h>

#include "engine/graph/op.h"

enum { ACTIVE, LINKS, EDGES };

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *active = &c->in[ACTIVE]->shape, *links = &c->in[LINKS]->shape;
    const struct shape *edges = &c->in[EDGES]->shape;
    char a[96], b[96], e[96];
    if (active->rank != 2 || links->rank != 2 || edges->rank != 2 || edges->dim[1] != 2 ||
        active->dim[0] != links->dim[0] || links->dim[1] != edges->dim[0])
        return FAIL(err, STATUS_FAILED,
                    "ConnectedComponents takes [N,S], [N,E] and [E,2], not %s, %s, %s",
                    shape_text(active, a), shape_text(links, b), shape_text(edges, e));
    infer_set(c, 0, DTYPE_I64, active);
    return STATUS_OK;
}

static int64_t root_of(int64_t *parent, int64_t node)
{
    while (parent[node] != node)
        node = parent[node] = parent[parent[node]];
    return node;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *active = call->in[ACTIVE], *edges = call->in[EDGES];
    int64_t n = active->shape.dim[0], nodes = active->shape.dim[1], count = edges->shape.dim[0];
    int64_t *parent = malloc((size_t)nodes * sizeof(*parent) + 1);
    if (!parent)
        return FAIL_NO_MEMORY(err);
    for (int64_t i = 0; i < n; i++) {
        const int64_t *on = active->i + i * nodes, *linked = call->in[LINKS]->i + i * count;
        for (int64_t k = 0; k < nodes; k++)
            parent[k] = k;
        for (int64_t e = 0; e < count; e++) {
            int64_t from = edges->i[2 * e], to = edges->i[2 * e + 1];
            if (!linked[e] || from < 0 || to < 0 || from >= nodes || to >= nodes || !on[from] ||
                !on[to])
                continue;
            from = root_of(parent, from);
            to = root_of(parent, to);
            parent[from > to ? from : to] = from > to ? to : from;
        }
        for (int64_t k = 0; k < nodes; k++)
            call->out[0]->i[i * nodes + k] = on[k] ? root_of(parent, k) : -1;
    }
    free(parent);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "ring", .inputs = "bool[1,5]=1,1,1,1,1 bool[1,5] i64[5,2]=0,1,1,2,2,3,3,4,4,0"},
    {.name = "far", .inputs = "bool[2,6]=1 bool[2,4]=1 i64[4,2]=5,4,4,2,3,1,-1,0"},
    {.name = "inactive", .inputs = "bool[3,7] bool[3,6]=1 i64[6,2]=0,1,1,2,2,3,3,4,4,5,5,6"},
    {.name = "random", .inputs = "bool[2,40] bool[2,30] i64[30,2]{0:40}"},
};

REGISTER(op, connected_components) = {
    .name = "ConnectedComponents",
    .domain = "ridge",
    .inputs_min = 3,
    .int_inputs = 7,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its result is an index",
    OP_CASES(cases),
};
