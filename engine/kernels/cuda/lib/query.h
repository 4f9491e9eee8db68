/* SPDX-License-Identifier: Apache-2.0
 *
 * What hooks of several kernels ask of a query. */
#ifndef ENGINE_KERNELS_CUDA_LIB_QUERY_H
#define ENGINE_KERNELS_CUDA_LIB_QUERY_H

#include "engine/kernels/cuda/lib/kernel.h"

enum { GRID_YZ = 65535 }; /* most blocks of a grid's second and third dimension */

/* The operator's own input k, not an operand of a fused epilogue. */
static inline bool input_given(const struct kernel_query *q, int k)
{
    return k < q->node->op_inputs && k < q->in_count && q->in[k].dtype != DTYPE_NONE;
}

static inline bool output_wanted(const struct kernel_query *q, int k)
{
    return k < q->out_count && q->out[k].dtype != DTYPE_NONE;
}

/* Bit k: the operator's own input k is given. */
static inline unsigned inputs_given(const struct kernel_query *q)
{
    unsigned given = 0;
    for (int k = 0; k < q->node->op_inputs && k < 32; k++)
        given |= (unsigned)input_given(q, k) << k;
    return given;
}

/* Bit k: output k is wanted. */
static inline unsigned outputs_wanted(const struct kernel_query *q)
{
    unsigned wanted = 0;
    for (int k = 0; k < q->out_count && k < 32; k++)
        wanted |= (unsigned)output_wanted(q, k) << k;
    return wanted;
}

/* NULL: it is not among those that are given or wanted. */
static inline const void *input_of(const struct kernel_args *args, unsigned given, int k)
{
    return given >> k & 1 ? args->in[k] : NULL;
}

static inline void *output_of(const struct kernel_args *args, unsigned wanted, int k)
{
    return wanted >> k & 1 ? args->out[k] : NULL;
}

static inline int element_bytes(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_I8:
    case DTYPE_U8:
    case DTYPE_BOOL:
    case DTYPE_F8E4M3:
        return 1;
    case DTYPE_F16:
    case DTYPE_BF16:
    case DTYPE_I16:
    case DTYPE_U16:
        return 2;
    case DTYPE_F32:
    case DTYPE_I32:
    case DTYPE_U32:
        return 4;
    default:
        return 8;
    }
}

/* LAUNCH of a kernel that names `word`, for elements of 1, 2, 4 or 8 bytes. */
#define LAUNCH_WORDS(size, kernel, grid_size, block_size, bytes, parameters, args)                 \
    do {                                                                                           \
        if ((size) == 1) {                                                                         \
            using word = uint8_t;                                                                  \
            LAUNCH(kernel, grid_size, block_size, bytes, parameters, args);                        \
        } else if ((size) == 2) {                                                                  \
            using word = uint16_t;                                                                 \
            LAUNCH(kernel, grid_size, block_size, bytes, parameters, args);                        \
        } else if ((size) == 4) {                                                                  \
            using word = uint32_t;                                                                 \
            LAUNCH(kernel, grid_size, block_size, bytes, parameters, args);                        \
        } else {                                                                                   \
            using word = uint64_t;                                                                 \
            LAUNCH(kernel, grid_size, block_size, bytes, parameters, args);                        \
        }                                                                                          \
    } while (0)

/* Elements of a group that neighbours in runs of `size` can be read by: 16 bytes, or four, or 1. */
static inline int group_width(enum dtype dtype, int64_t size)
{
    int widest = 16 / element_bytes(dtype);
    return size % widest == 0 ? widest : size % 4 == 0 ? 4 : 1;
}

static inline bool is_float(enum dtype dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype == DTYPE_BF16;
}

/* Inputs first .. last - 1 and output 0, where they are given: floats of output 0's type. */
static inline enum status floats_supported(const struct kernel_query *q, int first, int last,
                                           struct error *why)
{
    if (!is_float(q->out[0].dtype))
        return REFUSE(why, "only f32, f16 and bf16");
    for (int k = first; k < last && k < q->in_count; k++)
        if (q->in[k].dtype != DTYPE_NONE && q->in[k].dtype != q->out[0].dtype)
            return REFUSE(why, "input %d and the output are of different types", k);
    return STATUS_OK;
}

/* Plain tensors of any type, small enough for 32-bit indices, and no posts. */
static inline enum status plain_supported(const struct kernel_query *q, struct error *why)
{
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    for (int k = 0; k < q->in_count + q->out_count; k++) {
        const struct desc *desc = k < q->in_count ? &q->in[k] : &q->out[k - q->in_count];
        if (desc->dtype == DTYPE_NONE)
            continue;
        if (!cuda_host->desc_is_plain(desc))
            return REFUSE(why, "only plain memory");
        if (!fits_index(desc))
            return REFUSE(why, "more than 2^31 elements");
    }
    return STATUS_OK;
}

static inline bool is_index(enum dtype dtype)
{
    return dtype == DTYPE_I32 || dtype == DTYPE_I64;
}

/* Plain tensors of any type, with indices in input 1. */
static inline enum status indices_supported(const struct kernel_query *q, struct error *why)
{
    TRY(plain_supported(q, why));
    return is_index(q->in[1].dtype) ? STATUS_OK : REFUSE(why, "indices are neither i32 nor i64");
}

/* The node's axis counted from the front; lowering has checked its range. */
static inline int axis_from(const struct kernel_query *q, const char *name, int rank, int fallback)
{
    int axis = (int)cuda_host->node_int(q->node, name, fallback);
    return axis < 0 ? axis + rank : axis;
}

/* Dimensions in the order of their memory, outermost first. */
static inline void memory_order(const struct desc *desc, int *order)
{
    for (int d = 0; d < desc->shape.rank; d++) {
        int at = d;
        for (; at > 0 && desc->stride[order[at - 1]] < desc->stride[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
}

static inline struct axis axis_of(const struct shape *shape, int axis)
{
    struct axis a = {1, shape->dim[axis], 1};
    for (int d = 0; d < shape->rank; d++)
        *(d < axis ? &a.outer : &a.inner) *= d == axis ? 1 : shape->dim[d];
    return a;
}

/* Into how many parts each of few large tasks is split over blocks: 12 parts a multiprocessor,
 * which are whole waves where 6, 4, 3 or 2 blocks share one; four times as many where whole tasks
 * would leave it half idle in the end. limit: parts that are worth a block's start. */
static inline unsigned splits_for(const struct kernel_query *q, int64_t tasks, int64_t limit)
{
    int units = q->device->properties.units;
    int64_t wave = 12 * (int64_t)(units > 0 ? units : 1), splits = 1;
    if (tasks <= wave / 2)
        splits = wave / (tasks > 0 ? tasks : 1);
    else if (tasks < 4 * wave)
        splits = div_up(4 * wave, tasks);
    splits = splits < limit ? splits : limit;
    return (unsigned)(splits > 1 ? splits : 1);
}

static inline unsigned power_of_two_from(int64_t least)
{
    unsigned power = 1;
    while (power < least)
        power *= 2;
    return power;
}

/* Parts of a workspace, one after the other on 256 bytes. */
static inline size_t padded_bytes(int64_t count, size_t size)
{
    return ((size_t)count * size + 255) / 256 * 256;
}

/* Which of `parts` an element lies in: the last one that starts at or before it. */
static __device__ __forceinline__ unsigned part_of(const unsigned *start, unsigned parts,
                                                   unsigned element)
{
    unsigned low = 0, high = parts - 1;
    while (low < high) {
        unsigned middle = (low + high + 1) / 2;
        if (start[middle] <= element)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static __device__ __forceinline__ int64_t index_at(const void *list, bool wide, unsigned i)
{
    return wide ? ((const int64_t *)list)[i] : ((const int *)list)[i];
}

#endif
