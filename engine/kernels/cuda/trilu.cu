/* SPDX-License-Identifier: Apache-2.0
 *
 * Trilu of any type: a row is bytes of which those on one side of a place are copied, the others
 * zeros. A thread has 16 of them, 4 where rows have no multiple, or 1; what is not copied is not
 * read, either. */
#include "engine/kernels/cuda/lib/query.h"

struct trilu {
    const void *x, *diagonal; /* diagonal: NULL, i32 or i64 */
    void *y;
    unsigned count, bytes;          /* of units in all; of an element */
    struct divisor by_row, by_rows; /* units of a row, rows of a matrix */
    int columns;
    bool upper, wide;
};

/* Bit masks of what is left of a word whose first `n` bytes are zeros; n may lie outside of it. */
static __device__ __forceinline__ unsigned bytes_from(int n)
{
    return n <= 0 ? ~0u : n >= 4 ? 0 : ~0u << 8 * n;
}

static __device__ __forceinline__ unsigned masked(unsigned word, int cut, bool upper)
{
    unsigned from = bytes_from(cut);
    return word & (upper ? from : ~from);
}

static __device__ __forceinline__ uint8_t masked(uint8_t byte, int cut, bool upper)
{
    return (cut <= 0) == upper ? byte : (uint8_t)0;
}

static __device__ __forceinline__ uint4 masked(uint4 words, int cut, bool upper)
{
    return make_uint4(masked(words.x, cut, upper), masked(words.y, cut - 4, upper),
                      masked(words.z, cut - 8, upper), masked(words.w, cut - 12, upper));
}

template <class unit>
__global__ void __launch_bounds__(BLOCK) trilu_units(const __grid_constant__ struct trilu k)
{
    KERNEL_BEGIN();
    const int size = sizeof(unit);
    int64_t shift = k.diagonal ? index_at(k.diagonal, k.wide, 0) : 0;
    int rows = (int)k.by_rows.d;
    shift = shift < -rows ? -rows : shift > k.columns ? k.columns : shift;
    for (unsigned t = blockIdx.x * BLOCK + threadIdx.x; t < k.count; t += gridDim.x * BLOCK) {
        unsigned line = divide(t, k.by_row);
        int row = (int)(line - divide(line, k.by_rows) * k.by_rows.d);
        int first = (int)(t - line * k.by_row.d) * size;
        /* Columns before it are below the diagonal; in bytes from the unit's first. */
        int cut = (row + (int)shift + (k.upper ? 0 : 1)) * (int)k.bytes - first;
        unit value = {};
        if (k.upper ? cut < size : cut > 0)
            value = masked(((const unit *)k.x)[t], cut, k.upper);
        ((unit *)k.y)[t] = value;
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct trilu k; /* pointers are left open */
    int unit;       /* bytes */
    bool shifts;
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct trilu *k = &s->k;
    const struct shape *x = &q->in[0].shape;
    TRY(plain_supported(q, why));
    s->shifts = input_given(q, 1);
    if (s->shifts && !is_index(q->in[1].dtype))
        return REFUSE(why, "a diagonal that is neither i32 nor i64");
    k->bytes = (unsigned)element_bytes(q->in[0].dtype);
    int64_t rows = x->dim[x->rank - 2], columns = x->dim[x->rank - 1], row = columns * k->bytes;
    if ((rows + columns) * k->bytes > INT32_MAX)
        return REFUSE(why, "rows of more than 2 GiB");
    if (row == 0)
        return STATUS_OK; /* no units */
    s->unit = row % 16 == 0 ? 16 : row % 4 == 0 ? 4 : 1;
    int64_t units = shape_count(x) / columns * (row / s->unit);
    if (units > INT32_MAX)
        return REFUSE(why, "more than 2^31 units of %d bytes", s->unit);
    k->count = (unsigned)units;
    k->by_row = divisor_of(row / s->unit);
    k->by_rows = divisor_of(rows);
    k->columns = (int)columns;
    k->upper = cuda_host->node_int(q->node, "upper", 1) != 0;
    k->wide = s->shifts && q->in[1].dtype == DTYPE_I64;
    s->grid = grid_for(q, k->count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct trilu k = state->k;
    k.x = args->in[0];
    k.diagonal = state->shifts ? args->in[1] : NULL;
    k.y = args->out[0];
    if (state->unit == 16)
        LAUNCH(trilu_units<uint4>, state->grid, cuda_size(BLOCK), 0, &k, args);
    else if (state->unit == 4)
        LAUNCH(trilu_units<uint32_t>, state->grid, cuda_size(BLOCK), 0, &k, args);
    else
        LAUNCH(trilu_units<uint8_t>, state->grid, cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"Trilu", NULL};

CUDA_KERNEL(trilu) = {CUDA_NAME(trilu), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
