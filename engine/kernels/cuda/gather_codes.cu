/* SPDX-License-Identifier: Apache-2.0
 *
 * GatherBlockQuantized: rows of a table in 4 or 8 bits as floats. A thread makes 16 bytes of
 * neighbours, or one element. An index outside the table gives zeros; the reference reports it as
 * an error. */
#include "engine/kernels/cuda/lib/codes.h"

enum { CODES, INDICES, SCALES, ZEROS };

struct gather_codes {
    struct codes table;
    const void *indices;
    void *y;
    unsigned work;         /* groups of results */
    struct divisor groups; /* of a row */
    bool wide;             /* indices of 64 bits */
};

template <int width>
__global__ void __launch_bounds__(BLOCK)
    gather_codes_rows(const __grid_constant__ struct gather_codes k)
{
    KERNEL_BEGIN();
    for (unsigned w = blockIdx.x * BLOCK + threadIdx.x; w < k.work; w += gridDim.x * BLOCK) {
        unsigned i = divide(w, k.groups), column = (w - i * k.groups.d) * width;
        int64_t row = index_at(k.indices, k.wide, i);
        struct group<width> y = {
        };
        row += row < 0 ? k.table.rows : 0;
        for (int e = 0; row >= 0 && row < k.table.rows && e < width; e++)
            y.v[e] = weight_at(k.table, (unsigned)row, column + e);
        group_store_as(k.table.type, k.y, (size_t)w * width, y);
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct gather_codes k; /* pointers are left open */
    unsigned given;
    int width;
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(indices_supported(q, why));
    if (!is_float(q->out[0].dtype) || q->in[SCALES].dtype != q->out[0].dtype)
        return REFUSE(why, "only factors of f32, f16 and bf16, and results of their type");
    const struct shape *y = &q->out[0].shape;
    int64_t columns = y->dim[y->rank - 1];
    s->k.table = codes_of(q, q->in[CODES].shape.dim[0], columns, SCALES);
    s->width = group_width(q->out[0].dtype, columns);
    s->k.groups = divisor_of(columns / s->width);
    s->k.work = (unsigned)(shape_count(y) / s->width);
    s->k.wide = q->in[INDICES].dtype == DTYPE_I64;
    s->given = inputs_given(q);
    s->grid = grid_for(q, s->k.work);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct gather_codes k = state->k;
    k.table.codes = (const uint8_t *)args->in[CODES];
    k.table.scales = args->in[SCALES];
    k.table.zeros = (const uint8_t *)input_of(args, state->given, ZEROS);
    k.indices = args->in[INDICES];
    k.y = args->out[0];
    LAUNCH_WIDTH(state->width, gather_codes_rows<width>, state->grid, cuda_size(BLOCK), 0, &k,
                 args);
}

static const char *const ops[] = {"GatherBlockQuantized", NULL};

CUDA_KERNEL(gather_codes) = {CUDA_NAME(gather_codes), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
