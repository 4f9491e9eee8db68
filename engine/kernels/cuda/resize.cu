/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize and Upsample: all modes, along up to three axes, any layout. Which elements of the
 * input an element takes along an axis, and their weights, are the operator's business
 * (engine/ops/lib/resize.h) and tabulated once; a thread per element of the result, in the order of
 * its memory, adds the products up. */
#include "engine/kernels/cuda/lib/packed.h"

enum { AXES_MAX = 3 };

struct taps {
    int count, outside;
    int at[RESIZE_TAPS]; /* elements of x */
    float weight[RESIZE_TAPS];
};

struct resizing {
    const void *x;
    void *y;
    unsigned count;
    int rank, axes; /* dimensions in the order of y's memory, the innermost last; resized ones */
    struct divisor dim[RANK_MAX];
    int stride[RANK_MAX];               /* of x; where it is resized, 0 */
    const struct taps *table[RANK_MAX]; /* NULL: the dimension is not resized */
    float extrapolation;
};

/* Sum over the taps of `axes` axes from the given place on. */
template <class element>
static __device__ __forceinline__ float blend(const struct resizing &k, const element *x,
                                              const struct taps *const *t)
{
    float sum = 0;
    for (int a = 0; a < t[0]->count; a++) {
        const element *plane = x + t[0]->at[a];
        if (k.axes == 1) {
            sum += t[0]->weight[a] * to_float(*plane);
            continue;
        }
        for (int b = 0; b < t[1]->count; b++) {
            const element *row = plane + t[1]->at[b];
            float weight = t[0]->weight[a] * t[1]->weight[b];
            if (k.axes == 2) {
                sum += weight * to_float(*row);
                continue;
            }
            for (int c = 0; c < t[2]->count; c++)
                sum += weight * t[2]->weight[c] * to_float(row[t[2]->at[c]]);
        }
    }
    return sum;
}

template <class element>
__global__ void __launch_bounds__(BLOCK) resize_elements(const __grid_constant__ struct resizing k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += step) {
        const struct taps *t[AXES_MAX] = {};
        unsigned rest = e;
        int at = 0, outside = 0;
        for (int d = k.rank - 1; d >= 0; d--) {
            unsigned next = divide(rest, k.dim[d]), i = rest - next * k.dim[d].d;
            rest = next;
            at += (int)i * k.stride[d];
            if (!k.table[d])
                continue;
            outside |= k.table[d][i].outside;
            t[2] = t[1]; /* fixed places, so that they are registers */
            t[1] = t[0];
            t[0] = &k.table[d][i];
        }
        const element *x = (const element *)k.x + at;
        float_put((element *)k.y + e, outside  ? k.extrapolation
                                      : k.axes ? blend(k, x, t)
                                               : to_float(*x));
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct resizing k; /* pointers are left open */
    const struct device *device;
    void *tables;            /* of the dimensions that are resized, one after the other */
    int axis[RANK_MAX];      /* of the node, by dimension */
    int64_t first[RANK_MAX]; /* element of the tables; NONE: the dimension is not resized */
    int64_t elements;
    enum dtype type;
    struct cuda_grid grid;
};

static bool is_resized(const struct resize *r, int axis)
{
    const struct resize_axis *a = &r->axes[axis];
    return a->in != a->out || a->scale != 1 || r->coordinate == RESIZE_TF_CROP_AND_RESIZE;
}

static enum status check(const struct kernel_query *q, struct error *why)
{
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    TRY(floats_supported(q, 0, 1, why));
    if (!fits_index(&q->in[0]) || !fits_index(&q->out[0]))
        return REFUSE(why, "more than 2^31 elements");
    return cuda_host->desc_is_dense(&q->out[0]) ? STATUS_OK
                                                : REFUSE(why, "the output is not dense");
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct resize r;
    const struct desc *y = &q->out[0];
    struct resizing *k = &s->k;
    TRY(check(q, why));
    TRY(resize_of_query(q, &r, why));
    memory_order(y, s->axis);
    k->rank = r.rank;
    k->count = (unsigned)shape_count(&y->shape);
    k->extrapolation = (float)r.extrapolation;
    for (int d = 0; d < r.rank; d++) {
        int axis = s->axis[d];
        if (r.axes[axis].in == 0)
            return REFUSE(why, "no elements");
        bool resized = is_resized(&r, axis);
        k->dim[d] = divisor_of(y->shape.dim[axis]);
        k->stride[d] = resized ? 0 : (int)q->in[0].stride[axis];
        k->axes += resized;
        s->first[d] = resized ? s->elements : (int64_t)NONE;
        s->elements += resized ? r.axes[axis].out : 0;
    }
    if (k->axes > AXES_MAX)
        return REFUSE(why, "resized along more than %d axes", AXES_MAX);
    s->device = q->device;
    s->type = q->in[0].dtype;
    s->grid = grid_for(q, k->count);
    return STATUS_OK;
}

static void tabulate(const struct resize *r, int axis, int64_t stride, struct taps *to)
{
    for (int64_t i = 0; i < r->axes[axis].out; i++) {
        struct resize_taps from;
        resize_taps_at(r, axis, i, &from);
        to[i].count = from.count;
        to[i].outside = from.outside;
        for (int t = 0; t < from.count; t++) {
            to[i].at[t] = (int)(from.index[t] * stride);
            to[i].weight[t] = (float)from.weight[t];
        }
    }
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    struct resize r;
    TRY(resize_of_query(q, &r, err));
    struct taps *tables = (struct taps *)calloc((size_t)s->elements + 1, sizeof(*tables));
    for (int d = 0; tables && d < r.rank; d++)
        if (s->first[d] != NONE)
            tabulate(&r, s->axis[d], q->in[0].stride[s->axis[d]], tables + s->first[d]);
    *packed_bytes = (size_t)s->elements * sizeof(*tables);
    TRY(upload_packed(q->device, tables, *packed_bytes, &s->tables, err));
    for (int d = 0; d < r.rank; d++)
        if (s->first[d] != NONE)
            s->k.table[d] = (const struct taps *)s->tables + s->first[d];
    return STATUS_OK;
}

static void release(struct kernel_state *state)
{
    if (state->tables)
        state->device->kind->free(state->device, state->tables);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct resizing k = state->k;
    k.x = args->in[0];
    k.y = args->out[0];
    LAUNCH_FLOATS(state->type, resize_elements<element>, state->grid, cuda_size(BLOCK), 0, &k,
                  args);
}

static const char *const ops[] = {"Resize", "Upsample", NULL};

CUDA_KERNEL(resize) = {CUDA_NAME(resize),  .ops = ops,        CUDA_PLAN,
                       CUDA_HOOK(prepare), CUDA_HOOK(launch), CUDA_HOOK(release)};
