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
    KERNEL_BEGIN();
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

struct kernel_state {
    struct gather g; /* pointers are left open */
    int unit;        /* bytes that a thread copies */
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    const struct shape *x = &q->in[0].shape;
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    if (!is_index(q->in[1].dtype))
        return REFUSE(why, "indices are neither i32 nor i64");
    if (!cuda_host->desc_is_plain(&q->in[0]) || !cuda_host->desc_is_plain(&q->in[1]) ||
        !cuda_host->desc_is_plain(&q->out[0]))
        return REFUSE(why, "only plain tensors");
    struct axis axis = axis_of(x, axis_from(q, "axis", x->rank, 0));
    int64_t row_bytes = axis.inner * element_bytes(q->in[0].dtype);
    int64_t count = shape_count(&q->in[1].shape), bytes = axis.outer * count * row_bytes;
    if (bytes >= INT32_MAX || axis.size >= INT32_MAX)
        return REFUSE(why, "more than 2^31 bytes of result");
    for (s->unit = 16; row_bytes % s->unit;)
        s->unit /= 2;
    s->g.work = (unsigned)(bytes / s->unit);
    s->g.rows = (unsigned)count;
    s->g.size = (unsigned)axis.size;
    s->g.by_units = divisor_of(row_bytes / s->unit);
    s->g.by_rows = divisor_of(count);
    s->g.wide = q->in[1].dtype == DTYPE_I64;
    s->grid = grid_for(q, s->g.work);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct gather g = state->g;
    g.table = (const char *)args->in[0];
    g.index = (const char *)args->in[1];
    g.to = (char *)args->out[0];
    if (state->unit == 16)
        LAUNCH(gather_rows<uint4>, state->grid, cuda_size(BLOCK), 0, &g, args);
    else
        LAUNCH_WORDS(state->unit, gather_rows<word>, state->grid, cuda_size(BLOCK), 0, &g, args);
}

static const char *const ops[] = {"Gather", NULL};

CUDA_KERNEL(gather) = {CUDA_NAME(gather), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
