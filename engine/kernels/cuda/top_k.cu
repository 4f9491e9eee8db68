/* SPDX-License-Identifier: Apache-2.0
 *
 * TopK along any axis: a block per line selects, sorts and writes (lib/ranking.h); few long lines
 * are ranked by all blocks (lib/ranking_lists.h) and written then. */
#include "engine/kernels/cuda/lib/ranking_lists.h"

struct top_k {
    struct candidates from; /* of line 0 */
    void *value;            /* NULL: not wanted */
    int64_t *place;         /* the same */
    rank_key *keys;         /* room for each block's keys; NULL: shared memory is enough */
    unsigned lines, inner, k, room;
};

static __device__ __forceinline__ struct candidates line_of(const struct top_k &t, unsigned line)
{
    struct candidates c = t.from;
    unsigned outer = line / t.inner, at = line - outer * t.inner;
    c.x = (const unsigned *)t.from.x + (size_t)outer * c.count * t.inner + at;
    return c;
}

static __device__ __forceinline__ void write_best(const struct top_k &t, unsigned line, unsigned i,
                                                  rank_key key)
{
    struct candidates c = line_of(t, line);
    unsigned outer = line / t.inner, place = place_of_key(c, key);
    size_t to = ((size_t)outer * t.k + i) * t.inner + (line - outer * t.inner);
    if (t.value)
        ((unsigned *)t.value)[to] = ((const unsigned *)c.x)[(size_t)place * t.inner];
    if (t.place)
        t.place[to] = place;
}

__global__ void __launch_bounds__(RANK_THREADS) top_k_lines(const __grid_constant__ struct top_k t)
{
    __shared__ rank_key few[RANK_SHARED];
    __shared__ struct rank_memory memory;
    rank_key *keys = t.keys ? t.keys + (size_t)blockIdx.x * t.room : few;
    for (unsigned line = blockIdx.x; line < t.lines; line += gridDim.x) {
        unsigned found = rank_best(line_of(t, line), t.k, keys, t.room, &memory);
        for (unsigned i = threadIdx.x; i < found; i += blockDim.x)
            write_best(t, line, i, keys[i]);
        __syncthreads();
    }
}

/* Lines are ranked in t.keys, each has at least k elements. */
__global__ void __launch_bounds__(BLOCK) top_k_write(const __grid_constant__ struct top_k t)
{
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < t.k; i += gridDim.x * BLOCK)
        write_best(t, blockIdx.y, i, t.keys[(size_t)blockIdx.y * t.room + i]);
}

/* ---- hooks ---- */

static int axis_of_line(const struct kernel_query *q)
{
    return axis_from(q, "axis", q->in[0].shape.rank, -1);
}

static unsigned count_of_best(const struct kernel_query *q)
{
    int output = !output_wanted(q, 0);
    return (unsigned)q->out[output].shape.dim[axis_of_line(q)];
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    TRY(plain_supported(q, why));
    if (q->in[0].dtype != DTYPE_F32 && q->in[0].dtype != DTYPE_I32)
        return REFUSE(why, "only f32 and i32");
    return STATUS_OK;
}

static struct cuda_grid grid_of(const struct kernel_query *q, const struct top_k *t)
{
    return grid_for(q, (int64_t)t->lines * BLOCK);
}

/* How lines are ranked; parts 0: top_k_lines does. */
static struct rank_lists read_query(const struct kernel_query *q, struct top_k *t)
{
    struct axis axis = axis_of(&q->in[0].shape, axis_of_line(q));
    struct rank_lists r = {};
    *t = (struct top_k){};
    t->from.dtype = q->in[0].dtype;
    t->from.step = t->inner = (unsigned)axis.inner;
    t->from.count = (unsigned)axis.size;
    t->from.largest = cuda_host->node_int(q->node, "largest", 1) != 0;
    t->lines = (unsigned)(axis.outer * axis.inner);
    t->k = count_of_best(q);
    t->room = power_of_two_from(t->k);
    r.first = t->from;
    r.lists = t->lines;
    r.inner = t->inner;
    r.outer_step = t->from.count * t->inner;
    r.k = t->k;
    rank_plan(&r, q);
    return r;
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    (void)variant;
    struct top_k t;
    struct rank_lists r = read_query(q, &t);
    if (r.parts)
        return rank_lay_out(&r, NULL);
    return t.room <= RANK_SHARED ? 0 : (size_t)grid_of(q, &t).x * t.room * sizeof(rank_key);
}

static void launch_spread(struct rank_lists *r, struct top_k *t, const struct kernel_query *q,
                          const struct kernel_args *args)
{
    rank_lay_out(r, (char *)args->workspace);
    r->first.x = args->in[0];
    rank_launch(r, q, args);
    t->keys = r->keys;
    t->room = r->room;
    LAUNCH(top_k_write, cuda_size(grid_for(q, t->k).x, t->lines), cuda_size(BLOCK), 0, t, args);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct top_k t;
    struct rank_lists r = read_query(q, &t);
    t.from.x = args->in[0];
    t.value = output_wanted(q, 0) ? args->out[0] : NULL;
    t.place = output_wanted(q, 1) ? (int64_t *)args->out[1] : NULL;
    t.keys = t.room <= RANK_SHARED ? NULL : (rank_key *)args->workspace;
    if (t.lines == 0 || t.k == 0)
        return;
    if (r.parts)
        launch_spread(&r, &t, q, args);
    else
        LAUNCH(top_k_lines, grid_of(q, &t), rank_threads(t.from.count), 0, &t, args);
}

static const char *const ops[] = {"TopK", NULL};

CUDA_KERNEL(top_k) = {CUDA_NAME(top_k), .ops = ops, .supports = supports,
                      .old_workspace = workspace, .old_launch = launch};
