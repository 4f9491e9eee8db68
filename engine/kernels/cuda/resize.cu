/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize and Upsample: all modes, along up to three axes, any layout. Which elements of the
 * input an element takes along an axis, and their weights, are the operator's business
 * (engine/ops/lib/resize.h) and tabulated once; a thread per element of the result, in the order of
 * its memory, adds the products up. */
#include "engine/kernels/cuda/lib/query.h"

extern "C" {
#include "engine/ops/lib/resize.h"
}

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
    struct resizing k;
    const struct device *device;
    void *tables;
};

static bool is_resized(const struct resize *r, int axis)
{
    const struct resize_axis *a = &r->axes[axis];
    return a->in != a->out || a->scale != 1 || r->coordinate == RESIZE_TF_CROP_AND_RESIZE;
}

/* How many axes are resized, and how many tables' elements that takes. */
static int count_axes(const struct resize *r, size_t *elements)
{
    int count = 0;
    *elements = 0;
    for (int d = 0; d < r->rank; d++) {
        count += is_resized(r, d);
        *elements += is_resized(r, d) ? (size_t)r->axes[d].out : 0;
    }
    return count;
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct resize r;
    size_t elements;
    const struct desc *x = &q->in[0], *y = &q->out[0];
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    TRY(floats_supported(q, 0, 1, why));
    if (!fits_index(x) || !fits_index(y))
        return REFUSE(why, "more than 2^31 elements");
    if (!cuda_host->desc_is_dense(y))
        return REFUSE(why, "the output is not dense");
    TRY(cuda_host->resize(q, &r, why));
    for (int d = 0; d < r.rank; d++)
        if (r.axes[d].in == 0)
            return REFUSE(why, "no elements");
    return count_axes(&r, &elements) > AXES_MAX
               ? REFUSE(why, "resized along more than %d axes", AXES_MAX)
               : STATUS_OK;
}

static void tabulate(const struct resize *r, int axis, int64_t stride, struct taps *to)
{
    for (int64_t i = 0; i < r->axes[axis].out; i++) {
        struct resize_taps from;
        cuda_host->resize_taps(r, axis, i, &from);
        to[i].count = from.count;
        to[i].outside = from.outside;
        for (int t = 0; t < from.count; t++) {
            to[i].at[t] = (int)(from.index[t] * stride);
            to[i].weight[t] = (float)from.weight[t];
        }
    }
}

/* Axes in the order of y's memory, outermost first. */
static void memory_order(const struct desc *y, int *order)
{
    for (int d = 0; d < y->shape.rank; d++) {
        int at = d;
        for (; at > 0 && y->stride[order[at - 1]] < y->stride[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
}

/* tables: of the host, to be filled; `device`: where they will be. */
static void fill(const struct kernel_query *q, const struct resize *r, struct resizing *k,
                 struct taps *tables, const struct taps *device)
{
    const struct desc *x = &q->in[0], *y = &q->out[0];
    int order[RANK_MAX];
    memory_order(y, order);
    k->rank = r->rank;
    k->count = (unsigned)shape_count(&y->shape);
    k->extrapolation = (float)r->extrapolation;
    size_t used = 0;
    for (int d = 0; d < r->rank && k->count; d++) {
        int axis = order[d];
        k->dim[d] = divisor_of(y->shape.dim[axis]);
        k->stride[d] = (int)x->stride[axis];
        k->table[d] = NULL;
        if (!is_resized(r, axis))
            continue;
        tabulate(r, axis, x->stride[axis], tables + used);
        k->table[d] = device + used;
        k->stride[d] = 0;
        k->axes++;
        used += (size_t)r->axes[axis].out;
    }
}

static void release(struct kernel_state *state)
{
    if (state->tables)
        state->device->kind->free(state->device, state->tables);
    free(state);
}

static enum status upload(const struct kernel_query *q, const struct resize *r,
                          struct kernel_state *s, size_t elements, struct error *err)
{
    const struct device_kind *kind = q->device->kind;
    struct taps *tables = (struct taps *)calloc(elements + 1, sizeof(*tables));
    if (!tables)
        return cuda_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    size_t bytes = elements * sizeof(*tables);
    enum status status = kind->alloc(q->device, bytes, &s->tables, err);
    if (status == STATUS_OK) {
        fill(q, r, &s->k, tables, (const struct taps *)s->tables);
        if (bytes)
            status = kind->copy(q->device, s->tables, tables, bytes, COPY_TO_DEVICE, NULL, err);
        if (status == STATUS_OK)
            status = kind->wait(q->device, NULL, err);
    }
    free(tables);
    return status;
}

static enum status prepare(const struct kernel_query *q, int variant, struct kernel_state **state,
                           size_t *state_bytes, struct error *err)
{
    (void)variant;
    struct resize r;
    size_t elements;
    TRY(cuda_host->resize(q, &r, err));
    struct kernel_state *s = (struct kernel_state *)calloc(1, sizeof(*s));
    if (!s)
        return cuda_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    s->device = q->device;
    count_axes(&r, &elements);
    enum status status = upload(q, &r, s, elements, err);
    if (status != STATUS_OK) {
        release(s);
        return status;
    }
    *state = s;
    *state_bytes = elements * sizeof(struct taps);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    struct resizing k = state->k;
    k.x = args->in[0];
    k.y = args->out[0];
    if (k.count)
        LAUNCH_FLOATS(q->in[0].dtype, resize_elements<element>, grid_for(q, k.count),
                      cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"Resize", "Upsample", NULL};

CUDA_KERNEL(resize) = {CUDA_NAME(resize),      .ops = ops,           .supports = supports,
                       .old_prepare = prepare, .old_launch = launch, .release = release};
