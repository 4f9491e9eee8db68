/* SPDX-License-Identifier: Apache-2.0
 *
 * ConnectedComponents: a block per image, union and find. A root is hung below a smaller one by an
 * atomic exchange that succeeds only while it still is a root, so that the smallest node of a
 * component ends as its root whatever the order. Parents are read past the first cache, which does
 * not see other threads' exchanges. */
#include "engine/kernels/cuda/lib/query.h"

enum { ACTIVE, LINKS, EDGES };
enum { THREADS = 512 };

struct components {
    const unsigned char *active, *links;
    const int64_t *edges;
    int64_t *labels;
    int *parents; /* [images, nodes]; -1: not active */
    int nodes, count;
};

static __device__ __forceinline__ int root_of(const volatile int *parent, int node)
{
    for (int next = parent[node]; next != node; next = parent[node])
        node = next;
    return node;
}

static __device__ __forceinline__ void join(int *parent, int from, int to)
{
    for (;;) {
        int a = root_of(parent, from), b = root_of(parent, to);
        int low = min(a, b), high = max(a, b);
        if (low == high || atomicCAS(&parent[high], high, low) == high)
            return;
    }
}

__global__ void __launch_bounds__(THREADS)
    components_images(const __grid_constant__ struct components k)
{
    KERNEL_BEGIN();
    size_t first = (size_t)blockIdx.x * (unsigned)k.nodes;
    int *parent = k.parents + first;
    const unsigned char *links = k.links + (size_t)blockIdx.x * (unsigned)k.count;
    for (int i = (int)threadIdx.x; i < k.nodes; i += THREADS)
        parent[i] = k.active[first + i] ? i : -1;
    __syncthreads();
    for (int e = (int)threadIdx.x; e < k.count; e += THREADS) {
        if (!links[e])
            continue;
        int64_t from = k.edges[2 * e], to = k.edges[2 * e + 1];
        bool inside = from >= 0 && to >= 0 && from < k.nodes && to < k.nodes;
        if (inside && k.active[first + from] && k.active[first + to])
            join(parent, (int)from, (int)to);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < k.nodes; i += THREADS)
        k.labels[first + i] = k.active[first + i] ? root_of(parent, i) : -1;
}

/* ---- hooks ---- */

struct kernel_state {
    struct components k; /* pointers are left open */
    unsigned images;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(plain_supported(q, why));
    if (q->in[ACTIVE].dtype != DTYPE_BOOL || q->in[LINKS].dtype != DTYPE_BOOL)
        return REFUSE(why, "flags are not bool");
    if (q->in[EDGES].dtype != DTYPE_I64)
        return REFUSE(why, "edges are not i64");
    const int64_t *active = q->in[ACTIVE].shape.dim;
    s->images = active[1] ? (unsigned)active[0] : 0;
    s->k.nodes = (int)active[1];
    s->k.count = (int)q->in[EDGES].shape.dim[0];
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    return (size_t)state->images * (size_t)state->k.nodes * sizeof(int);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct components k = state->k;
    k.active = (const unsigned char *)args->in[ACTIVE];
    k.links = (const unsigned char *)args->in[LINKS];
    k.edges = (const int64_t *)args->in[EDGES];
    k.labels = (int64_t *)args->out[0];
    k.parents = (int *)args->workspace;
    LAUNCH(components_images, cuda_size(state->images), cuda_size(THREADS), 0, &k, args);
}

static const char *const ops[] = {"ConnectedComponents", NULL};

CUDA_KERNEL(components) = {CUDA_NAME(components), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                           CUDA_HOOK(launch)};
