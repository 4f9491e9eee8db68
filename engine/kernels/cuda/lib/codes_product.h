/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel of MatMulNBits computes: rows of A, one after the other, times rows of weights, and
 * an epilogue, which begins with the node's bias. */
#ifndef ENGINE_KERNELS_CUDA_LIB_CODES_PRODUCT_H
#define ENGINE_KERNELS_CUDA_LIB_CODES_PRODUCT_H

#include "engine/kernels/cuda/lib/codes.h"
#include "engine/kernels/cuda/lib/product.h"

enum { CODES_A, CODES_B, CODES_SCALES, CODES_ZEROS, CODES_ORDER, CODES_BIAS };

struct codes_product {
    struct product p; /* of the right factor there are no addresses */
    struct codes weights;
    bool has_zeros;
};

/* ---- host ---- */

static inline enum status codes_product_plan(const struct kernel_query *q, struct codes_product *k,
                                             struct error *why)
{
    struct product *p = &k->p;
    int rank = q->out[0].shape.rank;
    int64_t depth = q->in[CODES_A].shape.dim[rank - 1], n = q->out[0].shape.dim[rank - 1];
    if (!is_float(q->out[0].dtype) || q->in[CODES_A].dtype != q->out[0].dtype ||
        q->in[CODES_SCALES].dtype != q->out[0].dtype)
        return REFUSE(why, "only f32, f16 and bf16, and factors of that type");
    for (int i = 0; i < q->node->op_inputs; i++)
        if (input_given(q, i) && (!cuda_host->desc_is_plain(&q->in[i]) || !fits_index(&q->in[i])))
            return REFUSE(why, "input %d is not plain or has more than 2^31 elements", i);
    if (!cuda_host->desc_is_plain(&q->out[0]) || !fits_index(&q->out[0]))
        return REFUSE(why, "a result that is not plain or has more than 2^31 elements");
    k->weights = codes_of(q, n, depth, CODES_SCALES);
    k->has_zeros = input_given(q, CODES_ZEROS);
    p->m = (unsigned)(shape_count(&q->out[0].shape) / n);
    p->n = (unsigned)n;
    p->k = (unsigned)depth;
    p->a_row = depth;
    p->c_row = n;
    p->a_col = p->c_col = 1;
    p->batch = 1;
    p->alpha = 1;
    if (input_given(q, CODES_BIAS)) {
        struct epilogue_op bias = {POST_ADD, 0, 0, CODES_BIAS, 1, 0, NULL};
        TRY(epilogue_add(q, bias, rank - 1, NONE, &p->epilogue, why));
    }
    return epilogue_add_posts(q, rank - 1, &p->epilogue, why);
}

static inline void codes_product_resolve(struct codes_product *k, const struct kernel_args *args)
{
    k->p.a = args->in[CODES_A];
    k->p.c = args->out[0];
    k->weights.codes = (const uint8_t *)args->in[CODES_B];
    k->weights.scales = args->in[CODES_SCALES];
    k->weights.zeros = k->has_zeros ? (const uint8_t *)args->in[CODES_ZEROS] : NULL;
    epilogue_resolve(&k->p.epilogue, args);
}

#endif
