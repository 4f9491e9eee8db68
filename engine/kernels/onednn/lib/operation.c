/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations in oneDNN's terms, and the choice among its implementations. Version 2 describes an
 * operation by a struct and walks the implementations with an iterator; version 3 creates the first
 * implementation directly and steps from one to the next. */
#include <string.h>

#include "engine/kernels/onednn/lib/adapter.h"

const char *implementation_name(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return name ? name : "?";
}

/* gemm:jit (also x64:gemm:jit) computes with the stack pointer in a block of the heap: the frame of
 * a signal that comes meanwhile overwrites what lies before the block. As part of a convolution it
 * also adds a wrong element on channels-last images. "ref" is slow, or built on gemm:jit (2.6.3).
 */
static bool is_avoided(const_dnnl_primitive_desc_t pd)
{
    const char *name = implementation_name(pd);
    return strstr(name, "gemm:jit") || strncmp(name, "ref", 3) == 0 || strstr(name, ":ref");
}

#define MD(name) layout_md(o->name)

#if DNNL_VERSION_MAJOR < 3

union description {
    dnnl_binary_desc_t binary;
    dnnl_convolution_desc_t conv;
    dnnl_eltwise_desc_t eltwise;
    dnnl_inner_product_desc_t inner_product;
    dnnl_layer_normalization_desc_t layer_norm;
    dnnl_rnn_desc_t lstm;
    dnnl_matmul_desc_t matmul;
    dnnl_pooling_v2_desc_t pool;
    dnnl_softmax_v2_desc_t softmax;
};

static dnnl_status_t describe(const struct operation *o, union description *d)
{
    const dnnl_prop_kind_t inference = dnnl_forward_inference;
    switch (o->kind) {
    case OPERATION_BINARY:
        return dnnl_binary_desc_init(&d->binary, o->alg, MD(src), MD(src1), MD(dst));
    case OPERATION_CONV:
        return dnnl_dilated_convolution_forward_desc_init(&d->conv, inference, o->alg, MD(src),
                                                          MD(weights), MD(bias), MD(dst), o->stride,
                                                          o->dilation, o->pad_begin, o->pad_end);
    case OPERATION_ELTWISE:
        return dnnl_eltwise_forward_desc_init(&d->eltwise, inference, o->alg, MD(src),
                                              (float)o->alpha, (float)o->beta);
    case OPERATION_INNER_PRODUCT:
        return dnnl_inner_product_forward_desc_init(&d->inner_product, inference, MD(src),
                                                    MD(weights), MD(bias), MD(dst));
    case OPERATION_LAYER_NORM:
        return dnnl_layer_normalization_forward_desc_init(&d->layer_norm, inference, MD(src), NULL,
                                                          (float)o->alpha, o->flags);
    case OPERATION_LSTM:
        return dnnl_lstm_forward_desc_init(&d->lstm, inference, o->direction, MD(src), MD(start),
                                           MD(start), MD(weights), MD(recurrent), MD(bias), MD(dst),
                                           MD(end), MD(end), 0);
    case OPERATION_MATMUL:
        return dnnl_matmul_desc_init(&d->matmul, MD(src), MD(weights), MD(bias), MD(dst));
    case OPERATION_POOL:
        return dnnl_pooling_v2_forward_desc_init(&d->pool, inference, o->alg, MD(src), MD(dst),
                                                 o->stride, o->kernel, o->dilation, o->pad_begin,
                                                 o->pad_end);
    case OPERATION_SOFTMAX:
        break;
    }
    return dnnl_softmax_v2_forward_desc_init(&d->softmax, inference, o->alg, MD(src), MD(dst),
                                             o->axis);
}

/* NULL when there are not so many. */
static dnnl_primitive_desc_t find(const union description *d, const_dnnl_primitive_attr_t attr,
                                  int variant)
{
    dnnl_primitive_desc_iterator_t at = NULL;
    dnnl_status_t status = dnnl_primitive_desc_iterator_create(&at, d, attr, onednn_engine, NULL);
    while (status == dnnl_success) {
        dnnl_primitive_desc_t found = dnnl_primitive_desc_iterator_fetch(at);
        if (found && !is_avoided(found) && variant-- == 0) {
            dnnl_primitive_desc_iterator_destroy(at);
            return found;
        }
        dnnl_primitive_desc_destroy(found);
        status = dnnl_primitive_desc_iterator_next(at);
    }
    dnnl_primitive_desc_iterator_destroy(at);
    return NULL;
}

/* An iterator that finds its first item in oneDNN's cache of primitives does not step on from it
 * but starts again (2.6.3): the cache must be empty when more than the first item is wanted. It is
 * kept otherwise, so that equal layers share their code. */
static enum status choose(const struct operation *o, const_dnnl_primitive_attr_t attr, int variant,
                          dnnl_primitive_desc_t *pd, struct error *why)
{
    union description d;
    int capacity = 0;
    DNNL_TRY(describe(o, &d), why);
    if (variant > 0) {
        DNNL_TRY(dnnl_get_primitive_cache_capacity(&capacity), why);
        DNNL_TRY(dnnl_set_primitive_cache_capacity(0), why);
    }
    *pd = find(&d, attr, variant);
    if (variant > 0)
        DNNL_TRY(dnnl_set_primitive_cache_capacity(capacity), why);
    return STATUS_OK;
}

#else

static dnnl_status_t first(const struct operation *o, const_dnnl_primitive_attr_t attr,
                           dnnl_primitive_desc_t *pd)
{
    const dnnl_prop_kind_t inference = dnnl_forward_inference;
    dnnl_engine_t engine = onednn_engine;
    switch (o->kind) {
    case OPERATION_BINARY:
        return dnnl_binary_primitive_desc_create(pd, engine, o->alg, MD(src), MD(src1), MD(dst),
                                                 attr);
    case OPERATION_CONV:
        return dnnl_convolution_forward_primitive_desc_create(
            pd, engine, inference, o->alg, MD(src), MD(weights), MD(bias), MD(dst), o->stride,
            o->dilation, o->pad_begin, o->pad_end, attr);
    case OPERATION_ELTWISE:
        return dnnl_eltwise_forward_primitive_desc_create(
            pd, engine, inference, o->alg, MD(src), MD(dst), (float)o->alpha, (float)o->beta, attr);
    case OPERATION_INNER_PRODUCT:
        return dnnl_inner_product_forward_primitive_desc_create(
            pd, engine, inference, MD(src), MD(weights), MD(bias), MD(dst), attr);
    case OPERATION_LAYER_NORM:
        return dnnl_layer_normalization_forward_primitive_desc_create(
            pd, engine, inference, MD(src), MD(dst), NULL, (float)o->alpha, o->flags, attr);
    case OPERATION_LSTM:
        return dnnl_lstm_forward_primitive_desc_create(
            pd, engine, inference, o->direction, MD(src), MD(start), MD(start), MD(weights),
            MD(recurrent), NULL, NULL, MD(bias), MD(dst), MD(end), MD(end), 0, attr);
    case OPERATION_MATMUL:
        return dnnl_matmul_primitive_desc_create(pd, engine, MD(src), MD(weights), MD(bias),
                                                 MD(dst), attr);
    case OPERATION_POOL:
        return dnnl_pooling_forward_primitive_desc_create(
            pd, engine, inference, o->alg, MD(src), MD(dst), o->stride, o->kernel, o->dilation,
            o->pad_begin, o->pad_end, attr);
    case OPERATION_SOFTMAX:
        break;
    }
    return dnnl_softmax_forward_primitive_desc_create(pd, engine, inference, o->alg, MD(src),
                                                      MD(dst), o->axis, attr);
}

static enum status choose(const struct operation *o, const_dnnl_primitive_attr_t attr, int variant,
                          dnnl_primitive_desc_t *pd, struct error *why)
{
    dnnl_status_t status = first(o, attr, pd);
    if (status == dnnl_unimplemented)
        return STATUS_OK;
    DNNL_TRY(status, why);
    while (status == dnnl_success && (is_avoided(*pd) || variant-- > 0))
        status = dnnl_primitive_desc_next_impl(*pd);
    if (status == dnnl_success)
        return STATUS_OK;
    dnnl_primitive_desc_destroy(*pd);
    *pd = NULL;
    return STATUS_OK;
}

#endif

enum status operation_choose(const struct operation *operation, const_dnnl_primitive_attr_t attr,
                             int variant, dnnl_primitive_desc_t *pd, struct error *why)
{
    *pd = NULL;
    TRY(choose(operation, attr, variant, pd, why));
    return *pd ? STATUS_OK : REFUSE(why, "oneDNN has nothing but its slow reference for it");
}
