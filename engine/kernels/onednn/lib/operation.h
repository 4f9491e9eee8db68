/* SPDX-License-Identifier: Apache-2.0
 *
 * What a primitive of oneDNN computes, in words that its versions 2 and 3 share, and the choice
 * among oneDNN's implementations of it. */
#ifndef ENGINE_KERNELS_ONEDNN_LIB_OPERATION_H
#define ENGINE_KERNELS_ONEDNN_LIB_OPERATION_H

#include "base/error.h"
#include "engine/kernels/onednn/lib/layout.h"

/* Members that its kind does not have are 0 or NULL. */
enum operation_kind {
    OPERATION_BINARY, /* src, src1 */
    OPERATION_CONV,   /* src, weights, bias */
    OPERATION_ELTWISE,
    OPERATION_INNER_PRODUCT, /* src, weights, bias */
    OPERATION_LAYER_NORM,    /* alpha: epsilon */
    OPERATION_LSTM,          /* src, weights, recurrent, bias; start and end: both states */
    OPERATION_MATMUL,        /* src, weights, bias */
    OPERATION_POOL,
    OPERATION_SOFTMAX,
};

struct operation {
    enum operation_kind kind;
    dnnl_alg_kind_t alg;
    const struct memory_layout *src, *src1, *weights, *recurrent, *bias, *dst, *start, *end;
    const int64_t *kernel, *stride, *dilation, *pad_begin, *pad_end;
    double alpha, beta;
    unsigned flags;
    int axis;
    dnnl_rnn_direction_t direction;
};

/* The variant-th implementation of an operation that will do. */
const char *implementation_name(const_dnnl_primitive_desc_t pd);
enum status operation_choose(const struct operation *operation, const_dnnl_primitive_attr_t attr,
                             int variant, dnnl_primitive_desc_t *pd, struct error *why);

#endif
