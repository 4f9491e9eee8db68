/* SPDX-License-Identifier: Apache-2.0
 *
 * TopK along any axis: a block per line selects and sorts (lib/ranking.h). */
#include "engine/kernels/cuda/lib/ranking.h"

struct top_k {
    struct candidates from; /* of line 0 */
    void *value;            /* NULL: not wanted */
    int64_t *place;         /* the same */
    rank_key *keys;         /* room for each block's keys; NULL: shared memory is enough */
    unsigned lines, inner, k, room;
};

__global__ void __launch_bounds__(RANK_THREADS) top_k_lines(const __grid_constant__ struct top_k t)
{
    __shared__ rank_key few[RANK_SHARED];
    __shared__ struct rank_memory memory;
    rank_key *keys = t.keys ? t.keys + (size_t)blockIdx.x * t.room : few;
    for (unsigned line = blockIdx.x; line < t.lines; line += gridDim.x) {
        unsigned outer = line / t.inner, at = line - outer * t.inner;
        struct candidates c = t.from;
        c.x = (const unsigned *)t.from.x + (size_t)outer * c.count * t.inner + at;
        unsigned found = rank_best(c, t.k, keys, t.room, &memory);
        for (unsigned i = threadIdx.x; i < found; i += blockDim.x) {
            size_t to = ((size_t)outer * t.k + i) * t.inner + at;
            unsigned place = place_of_key(c, keys[i]);
            if (t.value)
                ((unsigned *)t.value)[to] = ((const unsigned *)c.x)[(size_t)place * t.inner];
            if (t.place)
                t.place[to] = place;
        }
        __syncthreads();
    }
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

static struct cuda_grid grid_of(const struct kernel_query *q, const struct axis *axis)
{
    return grid_for(q, axis->outer * axis->inner * BLOCK);
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    (void)variant;
    struct axis axis = axis_of(&q->in[0].shape, axis_of_line(q));
    unsigned room = power_of_two_from(count_of_best(q));
    return room <= RANK_SHARED ? 0 : (size_t)grid_of(q, &axis).x * room * sizeof(rank_key);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct axis axis = axis_of(&q->in[0].shape, axis_of_line(q));
    struct top_k t = {};
    t.from.x = args->in[0];
    t.from.dtype = q->in[0].dtype;
    t.from.step = t.inner = (unsigned)axis.inner;
    t.from.count = (unsigned)axis.size;
    t.from.largest = cuda_host->node_int(q->node, "largest", 1) != 0;
    t.value = output_wanted(q, 0) ? args->out[0] : NULL;
    t.place = output_wanted(q, 1) ? (int64_t *)args->out[1] : NULL;
    t.lines = (unsigned)(axis.outer * axis.inner);
    t.k = count_of_best(q);
    t.room = power_of_two_from(t.k);
    t.keys = t.room <= RANK_SHARED ? NULL : (rank_key *)args->workspace;
    if (t.lines && t.k)
        LAUNCH(top_k_lines, grid_of(q, &axis), rank_threads(axis.size), 0, &t, args);
}

static const char *const ops[] = {"TopK", NULL};

CUDA_KERNEL(top_k) = {CUDA_NAME(top_k), .ops = ops, .supports = supports, .workspace = workspace,
                      .launch = launch};
