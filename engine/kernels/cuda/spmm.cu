/* SPDX-License-Identifier: Apache-2.0
 *
 * SpMM: a sparse matrix in CSR form times a dense one. A warp does a row: `lanes` threads lie
 * along the columns of the dense matrix, and where those are few, 32 / lanes entries of the row
 * are added side by side and meet at the end. */
#include "engine/kernels/cuda/lib/query.h"

enum { VALUES, COLUMNS, OFFSETS, DENSE };

struct spmm {
    const void *values, *dense;
    const void *columns, *offsets;
    void *y;
    unsigned rows, entries, width, inner; /* width in groups; inner: rows of dense */
    unsigned lanes;
    bool wide_columns, wide_offsets; /* i64 */
};

/* Numbers out of range read what is there: the reference has refused such a matrix. */
static __device__ __forceinline__ unsigned offset_at(const struct spmm &k, unsigned row)
{
    int64_t at = index_at(k.offsets, k.wide_offsets, row);
    return at < 0 ? 0 : at > k.entries ? k.entries : (unsigned)at;
}

template <int width, class element>
static __device__ __forceinline__ struct group<width>
sum_entries(const struct spmm &k, unsigned first, unsigned last, unsigned column) {
    struct group<width> sum = {
    };
#pragma unroll 4
    for (unsigned z = first; z < last; z += WARP / k.lanes) {
        int64_t row = index_at(k.columns, k.wide_columns, z);
        row = row >= 0 && row < k.inner ? row : 0;
        struct group<width> x = {
        };
        x = group_at((const element *)k.dense + ((size_t)row * k.width + column) * width, x);
        float value = to_float(((const element *)k.values)[z]);
        for (int e = 0; e < width; e++)
            sum.v[e] = fmaf(value, x.v[e], sum.v[e]);
    }
    return sum;
}

template <int width, class element>
__global__ void __launch_bounds__(BLOCK) spmm_rows(const __grid_constant__ struct spmm k)
{
    KERNEL_BEGIN();
    unsigned lane = threadIdx.x % WARP, part = lane / k.lanes;
    unsigned step = gridDim.x * (BLOCK / WARP);
    for (unsigned row = blockIdx.x * (BLOCK / WARP) + threadIdx.x / WARP; row < k.rows;
         row += step) {
        unsigned first = offset_at(k, row), last = offset_at(k, row + 1);
        for (unsigned from = 0; from < k.width; from += k.lanes) {
            unsigned column = from + lane % k.lanes;
            struct group<width> sum = {
            };
            if (column < k.width)
                sum = sum_entries<width, element>(k, first + part, last, column);
            for (unsigned with = WARP / 2; with >= k.lanes; with /= 2)
                for (int e = 0; e < width; e++)
                    sum.v[e] += __shfl_xor_sync(all_lanes, sum.v[e], (int)with);
            if (part == 0 && column < k.width)
                group_store((element *)k.y + ((size_t)row * k.width + column) * width, sum);
        }
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct spmm k; /* pointers are left open */
    enum dtype type;
    bool by_four;
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(plain_supported(q, why));
    if (!is_index(q->in[COLUMNS].dtype) || !is_index(q->in[OFFSETS].dtype))
        return REFUSE(why, "columns or offsets are neither i32 nor i64");
    TRY(floats_supported(q, VALUES, VALUES + 1, why));
    TRY(floats_supported(q, DENSE, DENSE + 1, why));
    const int64_t *dense = q->in[DENSE].shape.dim;
    struct spmm *k = &s->k;
    s->type = q->out[0].dtype;
    s->by_four = dense[1] % 4 == 0;
    k->rows = (unsigned)q->out[0].shape.dim[0];
    k->entries = (unsigned)q->in[VALUES].shape.dim[0];
    k->width = (unsigned)(dense[1] / (s->by_four ? 4 : 1));
    k->inner = (unsigned)dense[0];
    k->lanes = k->width < WARP ? power_of_two_from(k->width) : (unsigned)WARP;
    k->wide_columns = q->in[COLUMNS].dtype == DTYPE_I64;
    k->wide_offsets = q->in[OFFSETS].dtype == DTYPE_I64;
    s->grid = grid_for(q, k->width ? (int64_t)k->rows * WARP : 0);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct spmm k = state->k;
    k.values = args->in[VALUES];
    k.dense = args->in[DENSE];
    k.columns = args->in[COLUMNS];
    k.offsets = args->in[OFFSETS];
    k.y = args->out[0];
    if (state->by_four)
        LAUNCH_FLOATS(state->type, (spmm_rows<4, element>), state->grid, cuda_size(BLOCK), 0, &k,
                      args);
    else
        LAUNCH_FLOATS(state->type, (spmm_rows<1, element>), state->grid, cuda_size(BLOCK), 0, &k,
                      args);
}

static const char *const ops[] = {"SpMM", NULL};

CUDA_KERNEL(spmm) = {CUDA_NAME(spmm), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
