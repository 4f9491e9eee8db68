/* SPDX-License-Identifier: Apache-2.0
 *
 * Gather along any axis of plain memory: a row (everything after the axis) per index, by up to 16
 * bytes a thread. An index outside the table gives zeros; the reference reports it as an error. */
#include "engine/kernels/cuda/lib/query.h"

struct gather {
    const char *table, *index;
    char *to;
    unsigned work, rows, size; /* work: units; rows: indices; size: rows of the table */
    struct divisor by_units, by_rows;
    bool wide; /* 64-bit indices */
};

template <class T>
__global__ void __launch_bounds__(BLOCK) gather_rows(const __grid_constant__ struct gather g)
{
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < g.work; k += gridDim.x * BLOCK) {
        unsigned row = divide(k, g.by_units), unit = k - row * g.by_units.d;
        unsigned outer = divide(row, g.by_rows);
        int64_t at = index_at(g.index, g.wide, row - outer * g.by_rows.d);
        at += at < 0 ? g.size : 0;
        T value = {};
        if (at >= 0 && at < g.size)
            value = ((const T *)g.table)[(outer * (int64_t)g.size + at) * g.by_units.d + unit];
        ((T *)g.to)[k] = value;
    }
}

/* ---- hooks ---- */

struct shape_of_gather {
    int64_t outer, size, row_bytes, count;
};

static struct shape_of_gather shape_from(const struct kernel_query *q)
{
    const struct shape *x = &q->in[0].shape;
    int64_t axis = cuda_host->node_int(q->node, "axis", 0);
    struct shape_of_gather s = {1, 1, element_bytes(q->in[0].dtype), shape_count(&q->in[1].shape)};
    axis += axis < 0 ? x->rank : 0;
    for (int d = 0; d < x->rank; d++)
        *(d < axis ? &s.outer : d == axis ? &s.size : &s.row_bytes) *= x->dim[d];
    return s;
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    if (q->in[1].dtype != DTYPE_I32 && q->in[1].dtype != DTYPE_I64)
        return REFUSE(why, "indices are neither i32 nor i64");
    if (!cuda_host->desc_is_plain(&q->in[0]) || !cuda_host->desc_is_plain(&q->in[1]) ||
        !cuda_host->desc_is_plain(&q->out[0]))
        return REFUSE(why, "only plain tensors");
    struct shape_of_gather s = shape_from(q);
    if (s.outer * s.count * s.row_bytes >= INT32_MAX || s.size >= INT32_MAX)
        return REFUSE(why, "more than 2^31 bytes of result");
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct shape_of_gather s = shape_from(q);
    int64_t bytes = s.outer * s.count * s.row_bytes;
    int unit = 16;
    if (bytes == 0)
        return;
    while (s.row_bytes % unit)
        unit /= 2;
    struct gather g = {
        (const char *)args->in[0],      (const char *)args->in[1], (char *)args->out[0],
        (unsigned)(bytes / unit),       (unsigned)s.count,         (unsigned)s.size,
        divisor_of(s.row_bytes / unit), divisor_of(s.count),       q->in[1].dtype == DTYPE_I64};
    struct cuda_grid grid = grid_for(q, g.work), block = cuda_size(BLOCK);
    if (unit == 16)
        LAUNCH(gather_rows<uint4>, grid, block, 0, &g, args);
    else if (unit == 8)
        LAUNCH(gather_rows<uint64_t>, grid, block, 0, &g, args);
    else if (unit == 4)
        LAUNCH(gather_rows<uint32_t>, grid, block, 0, &g, args);
    else if (unit == 2)
        LAUNCH(gather_rows<uint16_t>, grid, block, 0, &g, args);
    else
        LAUNCH(gather_rows<uint8_t>, grid, block, 0, &g, args);
}

static const char *const ops[] = {"Gather", NULL};

CUDA_KERNEL(gather) = {CUDA_NAME(gather), .ops = ops, .supports = supports, .old_launch = launch};
