/* SPDX-License-Identifier: Apache-2.0
 *
 * ConnectedComponents by union and find with halved paths; the smaller root wins, so that a root is
 * its component's label. Images side by side. The list of edges is known beforehand and its ends
 * are checked once; links that are off, nearly all, are skipped eight at a time. */
#include <stdlib.h>

#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/simd.h"

enum { ACTIVE, LINKS, EDGES };

struct kernel_state {
    int64_t images, nodes, edges;
    int32_t *ends; /* pairs; both 0 where there is no edge */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    for (int k = 0; k < 3; k++)
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    if (q->in[ACTIVE].dtype != DTYPE_BOOL || q->in[LINKS].dtype != DTYPE_BOOL)
        return UNSUPPORTED(why, "flags are not bool");
    if (!q->fixed[EDGES] || q->in[EDGES].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "edges are not constant i64");
    if (q->in[ACTIVE].shape.dim[1] > INT32_MAX)
        return UNSUPPORTED(why, "more than 2^31 nodes");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(query_plain_results(q, why));
    s->images = q->in[ACTIVE].shape.dim[0];
    s->nodes = q->in[ACTIVE].shape.dim[1];
    s->edges = q->in[EDGES].shape.dim[0];
    return STATUS_OK;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    const int64_t *ends = q->fixed[EDGES];
    *packed_bytes = (size_t)s->edges * 2 * sizeof(*s->ends);
    s->ends = calloc(1, *packed_bytes + 1);
    if (!s->ends)
        return FAIL_NO_MEMORY(err);
    for (int64_t e = 0; e < s->edges; e++) {
        const int64_t *end = ends + 2 * e;
        if (end[0] < 0 || end[1] < 0 || end[0] >= s->nodes || end[1] >= s->nodes)
            continue;
        s->ends[2 * e] = (int32_t)end[0];
        s->ends[2 * e + 1] = (int32_t)end[1];
    }
    return STATUS_OK;
}

struct job {
    const struct kernel_state *state;
    const uint8_t *active, *links;
    int64_t *labels;
};

/* Labels of active nodes are their parents. */
static int64_t root_of(int64_t *parent, int64_t node)
{
    while (parent[node] != node)
        node = parent[node] = parent[parent[node]];
    return node;
}

static void join(const struct job *job, int64_t *parent, int64_t e)
{
    int64_t from = job->state->ends[2 * e], to = job->state->ends[2 * e + 1];
    if (from == to || parent[from] < 0 || parent[to] < 0)
        return;
    from = root_of(parent, from);
    to = root_of(parent, to);
    if (from < to)
        parent[to] = from;
    else
        parent[from] = to;
}

static void image(void *context, int64_t i, int thread)
{
    (void)thread;
    const struct job *job = context;
    int64_t nodes = job->state->nodes, edges = job->state->edges, e = 0;
    const uint8_t *active = job->active + i * nodes, *links = job->links + i * edges;
    int64_t *parent = job->labels + i * nodes;
    for (int64_t k = 0; k < nodes; k++)
        parent[k] = active[k] ? k : -1;
    while (e < edges) {
        uint64_t eight = 1;
        if (e + 8 <= edges)
            memcpy(&eight, links + e, 8);
        int64_t stop = eight && e + 8 <= edges ? e + 8 : edges;
        if (!eight) {
            e += 8;
            continue;
        }
        for (; e < stop; e++)
            if (links[e])
                join(job, parent, e);
    }
    /* Parents are smaller than their children: done in order, one step reaches the root. */
    for (int64_t k = 0; k < nodes; k++)
        if (parent[k] >= 0)
            parent[k] = parent[parent[k]];
}

static void release(struct kernel_state *s)
{
    free(s->ends);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {.state = state,
                      .active = args->in[ACTIVE],
                      .links = args->in[LINKS],
                      .labels = args->out[0]};
    pool_run(args->pool, state->images, image, &job);
}

REGISTER_KERNEL(components_union) = {
    NATIVE(components_union),
    .ops = OPS("ConnectedComponents"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .packs = 1u << EDGES,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
