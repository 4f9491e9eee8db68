/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorScatter of any type, by up to 16 bytes a thread. Where the cache is changed in place a
 * thread puts a unit of the update where it belongs; else each unit of the result is written once,
 * from the update or from the cache. Positions outside a cache that is not circular are left out;
 * the reference reports them as an error. */
#include "engine/kernels/cuda/lib/query.h"

struct tensor_scatter {
    const char *past, *update;
    const void *indices; /* NULL, i32 or i64 */
    char *y;
    unsigned work;        /* units: of the update in place, else of the result */
    unsigned size, count; /* positions of the cache, of the update */
    struct divisor by_units, by_size, by_count; /* units of a row; rows of a line */
    struct divisor by_lines;                    /* lines of a sample */
    bool circular, wide;
};

/* Where a line's run begins: in [0, size) of a circle, else in [-count, size], both of which mean
 * that all of it is outside. */
static __device__ __forceinline__ int64_t start_of(const struct tensor_scatter &k, unsigned line)
{
    if (!k.indices)
        return 0;
    int64_t at = index_at(k.indices, k.wide, divide(line, k.by_lines));
    int64_t size = k.size, least = -(int64_t)k.count;
    if (!k.circular)
        return at < least ? least : at > size ? size : at;
    at %= size;
    return at < 0 ? at + size : at;
}

template <class unit>
__global__ void __launch_bounds__(BLOCK)
    scatter_put(const __grid_constant__ struct tensor_scatter k)
{
    KERNEL_BEGIN();
    for (unsigned w = blockIdx.x * BLOCK + threadIdx.x; w < k.work; w += gridDim.x * BLOCK) {
        unsigned row = divide(w, k.by_units), at = w - row * k.by_units.d;
        unsigned line = divide(row, k.by_count);
        int64_t to = start_of(k, line) + (row - line * k.by_count.d);
        if (k.circular && to >= k.size)
            to -= k.size;
        if (to < 0 || to >= k.size)
            continue;
        size_t place = ((size_t)line * k.size + (size_t)to) * k.by_units.d + at;
        ((unit *)k.y)[place] = ((const unit *)k.update)[w];
    }
}

template <class unit>
__global__ void __launch_bounds__(BLOCK)
    scatter_all(const __grid_constant__ struct tensor_scatter k)
{
    KERNEL_BEGIN();
    for (unsigned w = blockIdx.x * BLOCK + threadIdx.x; w < k.work; w += gridDim.x * BLOCK) {
        unsigned row = divide(w, k.by_units), at = w - row * k.by_units.d;
        unsigned line = divide(row, k.by_size);
        int64_t from = (int64_t)(row - line * k.by_size.d) - start_of(k, line);
        if (k.circular && from < 0)
            from += k.size;
        const unit *source = (const unit *)k.past + w;
        if (from >= 0 && from < k.count)
            source = (const unit *)k.update +
                     ((size_t)line * k.count + (size_t)from) * k.by_units.d + at;
        ((unit *)k.y)[w] = *source;
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct tensor_scatter k; /* pointers and work are left open */
    int unit;                /* bytes that a thread moves */
    bool given;
    unsigned put, all; /* units of the update, of the result */
    struct cuda_grid put_grid, all_grid;
};

static enum status check_query(const struct kernel_query *q, struct error *why)
{
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    for (int k = 0; k < q->in_count; k++)
        if (input_given(q, k) && !cuda_host->desc_is_plain(&q->in[k]))
            return REFUSE(why, "only plain memory");
    if (!cuda_host->desc_is_plain(&q->out[0]))
        return REFUSE(why, "only plain memory");
    if (q->in[0].dtype != q->out[0].dtype || q->in[1].dtype != q->out[0].dtype)
        return REFUSE(why, "the update is of another type than the cache");
    if (input_given(q, 2) && !is_index(q->in[2].dtype))
        return REFUSE(why, "indices are neither i32 nor i64");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct tensor_scatter *k = &s->k;
    const struct shape *x = &q->in[0].shape;
    TRY(check_query(q, why));
    int along = axis_from(q, "axis", x->rank, -2);
    struct axis axis = axis_of(x, along);
    int64_t row_bytes = axis.inner * element_bytes(q->out[0].dtype);
    for (s->unit = 16; row_bytes % s->unit;)
        s->unit /= 2;
    int64_t units = row_bytes / s->unit, count = q->in[1].shape.dim[along];
    if (axis.outer * axis.size * units >= INT32_MAX || axis.size >= INT32_MAX)
        return REFUSE(why, "more than 2^31 units of %d bytes", s->unit);
    s->all = (unsigned)(axis.outer * axis.size * units);
    s->put = (unsigned)(axis.outer * count * units);
    s->all_grid = grid_for(q, s->all);
    s->put_grid = grid_for(q, s->put);
    s->given = input_given(q, 2);
    k->size = (unsigned)axis.size;
    k->count = (unsigned)count;
    k->by_units = divisor_of(units);
    k->by_size = divisor_of(axis.size);
    k->by_count = divisor_of(count);
    k->by_lines = divisor_of(x->dim[0] ? axis.outer / x->dim[0] : 0);
    k->circular = strcmp(cuda_host->node_string(q->node, "mode", "linear"), "circular") == 0;
    k->wide = s->given && q->in[2].dtype == DTYPE_I64;
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct tensor_scatter k = state->k;
    struct cuda_grid block = cuda_size(BLOCK);
    k.past = (const char *)args->in[0];
    k.update = (const char *)args->in[1];
    k.indices = state->given ? args->in[2] : NULL;
    k.y = (char *)args->out[0];
    bool in_place = k.past == k.y;
    k.work = in_place ? state->put : state->all;
    if (in_place && state->unit == 16)
        LAUNCH(scatter_put<uint4>, state->put_grid, block, 0, &k, args);
    else if (in_place)
        LAUNCH_WORDS(state->unit, scatter_put<word>, state->put_grid, block, 0, &k, args);
    else if (state->unit == 16)
        LAUNCH(scatter_all<uint4>, state->all_grid, block, 0, &k, args);
    else
        LAUNCH_WORDS(state->unit, scatter_all<word>, state->all_grid, block, 0, &k, args);
}

static const char *const ops[] = {"TensorScatter", NULL};

CUDA_KERNEL(tensor_scatter) = {CUDA_NAME(tensor_scatter), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
