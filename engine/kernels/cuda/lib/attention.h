/* SPDX-License-Identifier: Apache-2.0
 *
 * What both kernels of Attention know of a node: a block has some queries of one head. */
#ifndef ENGINE_KERNELS_CUDA_LIB_ATTENTION_H
#define ENGINE_KERNELS_CUDA_LIB_ATTENTION_H

#include "engine/kernels/cuda/lib/query.h"

struct attention {
    const void *q, *k, *v, *mask;
    void *y;
    unsigned heads, size, queries, keys;
    unsigned group; /* heads of q that share one of k and v */
    bool causal;    /* each query sees one key more than the one before it, else all see all */
    unsigned first; /* how many the first one sees then */
    int64_t q_row, k_row, v_row, mask_at[4]; /* mask: batch, head, query, key */
    float scale;
    float empty; /* counts as the sum of a query to which the mask leaves no key */
    int type;
};

/* How many keys a query sees, if no mask hides them. */
static __device__ __forceinline__ unsigned attention_seen(const struct attention &a, unsigned query)
{
    return a.causal ? a.first + query : a.keys;
}

/* The end of the keys that any of the queries before `end` sees. */
static __device__ __forceinline__ unsigned attention_keys(const struct attention &a, unsigned end)
{
    return attention_seen(a, min(end, a.queries) - 1);
}

/* Of one type of floats: the first element of the block's head, of the first query or key there is,
 * and its mask. */
template <class element> struct attention_head {
    const element *q, *k, *v, *mask;
    element *y;
};

template <class element>
static __device__ __forceinline__ struct attention_head<element>
attention_head_of(const struct attention &a) {
    unsigned head = blockIdx.y, batch = blockIdx.z;
    int64_t column = (int64_t)head * a.size, shared = (int64_t)(head / a.group) * a.size;
    struct attention_head<element> h;
    h.q = (const element *)a.q + (int64_t)batch * a.queries * a.q_row + column;
    h.k = (const element *)a.k + (int64_t)batch * a.keys * a.k_row + shared;
    h.v = (const element *)a.v + (int64_t)batch * a.keys * a.v_row + shared;
    h.mask = (const element *)a.mask;
    h.y = (element *)a.y + (int64_t)batch * a.queries * a.heads * a.size + column;
    if (h.mask)
        h.mask += batch * a.mask_at[0] + head * a.mask_at[1];
    return h;
}

/* What the results are divided by. */
static __device__ __forceinline__ float
attention_divisor(const struct attention &a, float sum)
{
    return sum == 0 ? a.empty : sum;
}

/* ---- host ---- */

struct attention_call {
    struct attention a; /* pointers are left open */
    int in[3];          /* inputs that hold q, k and v */
    int64_t start[3];   /* bytes from their begin */
    bool masked;
    struct cuda_grid grid;
};

static inline const struct desc *attention_input(const struct kernel_query *q, int k)
{
    return k < q->in_count && q->in[k].dtype != DTYPE_NONE ? &q->in[k] : NULL;
}

static inline void attention_place_mask(const struct desc *mask, struct attention *a)
{
    for (int d = 0; d < 4; d++) {
        int own = d - (4 - mask->shape.rank);
        a->mask_at[d] = own >= 0 && mask->shape.dim[own] != 1 ? mask->stride[own] : 0;
    }
}

/* For blocks of `queries` and heads of at most `size_max` elements. */
static inline enum status attention_plan(const struct kernel_query *q, int queries, int size_max,
                                         struct attention_call *c, struct error *why)
{
    struct attention_shape of;
    const struct desc *k = attention_input(q, 1), *v = attention_input(q, 2);
    const struct desc *mask = attention_input(q, 3);
    TRY(plain_supported(q, why));
    TRY(floats_supported(q, 0, q->in_count, why));
    TRY(attention_shape_from(q->node, &q->in[0].shape, k ? &k->shape : NULL, v ? &v->shape : NULL,
                             &of, why));
    if (of.head_size > size_max)
        return REFUSE(why, "heads of more than %d elements", size_max);
    if (mask && !places_fit_index(mask))
        return REFUSE(why, "a mask of more than 2^31 elements");
    if (of.heads > GRID_YZ || of.batch > GRID_YZ || of.keys == 0)
        return REFUSE(why, "no keys, or more heads or batches than a grid has");
    const int64_t starts[] = {of.q_start, of.k_start, of.v_start};
    c->a.type = q->in[0].dtype;
    for (int i = 0; i < ARRAY_COUNT(starts); i++) {
        c->in[i] = of.packed ? 0 : i;
        c->start[i] = starts[i] * element_bytes(q->in[0].dtype);
    }
    c->masked = mask != NULL;
    if (mask)
        attention_place_mask(mask, &c->a);
    c->a.heads = (unsigned)of.heads;
    c->a.size = (unsigned)of.head_size;
    c->a.queries = (unsigned)of.queries;
    c->a.keys = (unsigned)of.keys;
    c->a.group = (unsigned)of.group;
    c->a.first = (unsigned)(of.keys - of.queries + 1);
    c->a.causal = of.causal;
    c->a.q_row = of.q_row;
    c->a.k_row = of.k_row;
    c->a.v_row = of.v_row;
    c->a.scale = (float)of.scale;
    c->a.empty = of.zero_empty ? 1 : 0;
    c->grid = cuda_size(of.head_size ? (unsigned)div_up(of.queries, queries) : 0,
                        (unsigned)of.heads, (unsigned)of.batch);
    return STATUS_OK;
}

static inline struct attention attention_resolve(const struct attention_call *c,
                                                 const struct kernel_args *args)
{
    struct attention a = c->a;
    const void **to[] = {&a.q, &a.k, &a.v};
    for (int i = 0; i < ARRAY_COUNT(to); i++)
        *to[i] = (const char *)args->in[c->in[i]] + c->start[i];
    a.mask = c->masked ? args->in[3] : NULL;
    a.y = args->out[0];
    return a;
}

#endif
