/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cudnn/lib/opgraph.h"

#include <float.h>
#include <stdio.h>

/* ---- single descriptors ---- */

enum status desc_new(cudnnBackendDescriptorType_t type, cudnn_desc *desc, struct error *why)
{
    *desc = NULL;
    CUDNN_TRY(cudnn.create(type, desc), why);
    return STATUS_OK;
}

void desc_free(cudnn_desc *desc)
{
    if (*desc)
        cudnn.destroy(*desc);
    *desc = NULL;
}

enum status desc_finalize(cudnn_desc desc, struct error *why)
{
    CUDNN_TRY(cudnn.finalize(desc), why);
    return STATUS_OK;
}

enum status desc_set(cudnn_desc desc, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t count, const void *values,
                     struct error *why)
{
    cudnnStatus_t status = cudnn.set(desc, name, type, count, values);
    char call[64];
    if (status == CUDNN_STATUS_SUCCESS)
        return STATUS_OK;
    snprintf(call, sizeof(call), "cudnnBackendSetAttribute of attribute %d", (int)name);
    return cudnn_refuse(why, status, call);
}

/* ---- a graph's descriptors ---- */

void opgraph_begin(struct opgraph *g)
{
    *g = (struct opgraph){.next_uid = 1};
}

void opgraph_free(struct opgraph *g)
{
    desc_free(&g->root);
    while (g->owned_count)
        desc_free(&g->owned[--g->owned_count]);
    g->op_count = 0;
}

void opgraph_move(struct opgraph *from, struct opgraph *to)
{
    *to = *from;
    from->root = NULL;
    from->owned_count = from->op_count = 0;
}

/* FNV-1a. */
static void mix(struct opgraph *g, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t k = 0; k < bytes; k++)
        g->hash = (g->hash ^ at[k]) * 1099511628211u;
}

static int place_of(const struct opgraph *g, cudnn_desc desc)
{
    int place = 0;
    while (place < g->owned_count && g->owned[place] != desc)
        place++;
    return place;
}

/* A descriptor counts by its place among the graph's, others by their values. */
static void mix_attribute(struct opgraph *g, cudnn_desc desc, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    int owner = place_of(g, desc);
    size_t size = type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_DOUBLE ? sizeof(int64_t)
                  : type == CUDNN_TYPE_BOOLEAN                          ? sizeof(bool)
                                                                        : sizeof(int);
    const cudnn_desc *descs = values;
    mix(g, &owner, sizeof(owner));
    mix(g, &name, sizeof(name));
    mix(g, &count, sizeof(count));
    if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
        mix(g, values, (size_t)count * size);
    for (int64_t k = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && k < count; k++) {
        int place = place_of(g, descs[k]);
        mix(g, &place, sizeof(place));
    }
}

static bool failed(struct opgraph *g, enum status status)
{
    if (status != STATUS_OK && g->status == STATUS_OK)
        g->status = status;
    return g->status != STATUS_OK;
}

/* NULL after a failure. */
static cudnn_desc begin(struct opgraph *g, cudnnBackendDescriptorType_t type)
{
    cudnn_desc desc;
    if (g->status != STATUS_OK)
        return NULL;
    if (g->owned_count == OPGRAPH_OWNED) {
        failed(g, REFUSE(&g->why, "more than %d descriptors", OPGRAPH_OWNED));
        return NULL;
    }
    if (failed(g, desc_new(type, &desc, &g->why)))
        return NULL;
    mix(g, &type, sizeof(type));
    return g->owned[g->owned_count++] = desc;
}

static void set(struct opgraph *g, cudnn_desc desc, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (g->status != STATUS_OK)
        return;
    mix_attribute(g, desc, name, type, count, values);
    failed(g, desc_set(desc, name, type, count, values, &g->why));
}

static void set_desc(struct opgraph *g, cudnn_desc desc, cudnnBackendAttributeName_t name,
                     cudnn_desc value)
{
    if (value)
        set(g, desc, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void set_ints(struct opgraph *g, cudnn_desc desc, cudnnBackendAttributeName_t name,
                     int count, const int64_t *values)
{
    set(g, desc, name, CUDNN_TYPE_INT64, count, values);
}

static void set_double(struct opgraph *g, cudnn_desc desc, cudnnBackendAttributeName_t name,
                       double value)
{
    set(g, desc, name, CUDNN_TYPE_DOUBLE, 1, &value);
}

/* The factors of a convolution. The library reads them in the type in which is computed, and takes
 * one of another without a word. */
static void set_factor(struct opgraph *g, cudnn_desc desc, cudnnBackendAttributeName_t name,
                       float factor)
{
    set(g, desc, name, CUDNN_TYPE_FLOAT, 1, &factor);
}

static void set_type(struct opgraph *g, cudnn_desc desc, cudnnBackendAttributeName_t name,
                     cudnnDataType_t type)
{
    set(g, desc, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

static void end(struct opgraph *g, cudnn_desc desc)
{
    if (g->status == STATUS_OK)
        failed(g, desc_finalize(desc, &g->why));
}

static void end_op(struct opgraph *g, cudnn_desc op)
{
    end(g, op);
    if (g->status != STATUS_OK)
        return;
    if (g->op_count == OPGRAPH_OPS)
        failed(g, REFUSE(&g->why, "more than %d operations", OPGRAPH_OPS));
    else
        g->ops[g->op_count++] = op;
}

enum status opgraph_end(struct opgraph *g, struct error *why)
{
    const cudnn_desc *ops = g->ops;
    if (g->status == STATUS_OK &&
        !failed(g, desc_new(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &g->root, &g->why))) {
        set(g, g->root, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->op_count,
            ops);
        end(g, g->root);
    }
    if (g->status != STATUS_OK && why)
        *why = g->why;
    return g->status;
}

/* ---- tensors ---- */

cudnn_desc opgraph_tensor(struct opgraph *g, const struct tensor *tensor, int64_t *uid)
{
    int64_t id = g->next_uid++, align = TENSOR_ALIGN;
    cudnn_desc desc = begin(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_type(g, desc, CUDNN_ATTR_TENSOR_DATA_TYPE, tensor->type);
    set_ints(g, desc, CUDNN_ATTR_TENSOR_DIMENSIONS, tensor->rank, tensor->dim);
    set_ints(g, desc, CUDNN_ATTR_TENSOR_STRIDES, tensor->rank, tensor->stride);
    set_ints(g, desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, 1, &id);
    set_ints(g, desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1, &align);
    set(g, desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &tensor->virtual);
    if (tensor->by_value)
        set(g, desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &tensor->by_value);
    end(g, desc);
    if (uid)
        *uid = id;
    return desc;
}

cudnn_desc opgraph_between(struct opgraph *g, const struct tensor *like)
{
    struct tensor tensor = *like;
    tensor.type = CUDNN_DATA_FLOAT;
    tensor.virtual = true;
    tensor.by_value = false;
    return opgraph_tensor(g, &tensor, NULL);
}

/* ---- operations ---- */

static cudnn_desc conv_desc(struct opgraph *g, const struct conv_op *op)
{
    int64_t spatial = op->spatial;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnn_desc desc = begin(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set_ints(g, desc, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 1, &spatial);
    set_type(g, desc, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(g, desc, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set_ints(g, desc, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, op->spatial, op->pad_begin);
    set_ints(g, desc, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, op->spatial, op->pad_end);
    set_ints(g, desc, CUDNN_ATTR_CONVOLUTION_DILATIONS, op->spatial, op->dilation);
    set_ints(g, desc, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, op->spatial, op->stride);
    end(g, desc);
    g->products = true;
    return desc;
}

void opgraph_conv(struct opgraph *g, const struct conv_op *op)
{
    cudnn_desc conv = conv_desc(g, op);
    cudnn_desc desc = begin(g, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, op->x);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, op->w);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, op->y);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, conv);
    set_factor(g, desc, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1);
    set_factor(g, desc, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0);
    end_op(g, desc);
}

void opgraph_conv_backward(struct opgraph *g, const struct conv_op *op)
{
    cudnn_desc conv = conv_desc(g, op);
    cudnn_desc desc = begin(g, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, op->x);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, op->w);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, op->y);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, conv);
    set_factor(g, desc, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1);
    set_factor(g, desc, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0);
    end_op(g, desc);
}

void opgraph_pointwise(struct opgraph *g, const struct pointwise_op *op)
{
    cudnn_desc how = begin(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &op->mode);
    set_type(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    /* Set only where it says something: the engines with a built-in ReLU want the plain form. */
    if (op->mode == CUDNN_POINTWISE_RELU_FWD && op->low != 0)
        set_double(g, how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, op->low);
    if (op->mode == CUDNN_POINTWISE_RELU_FWD && op->high < (double)FLT_MAX)
        set_double(g, how, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, op->high);
    if (op->mode == CUDNN_POINTWISE_RELU_FWD && op->slope != 0)
        set_double(g, how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, op->slope);
    if (op->mode == CUDNN_POINTWISE_ELU_FWD)
        set_double(g, how, CUDNN_ATTR_POINTWISE_ELU_ALPHA, op->alpha);
    end(g, how);
    cudnn_desc desc = begin(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, op->x);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, op->b);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, op->y);
    end_op(g, desc);
}

void opgraph_unary(struct opgraph *g, cudnnPointwiseMode_t mode, cudnn_desc x, cudnn_desc y)
{
    struct pointwise_op op = {.mode = mode, .x = x, .y = y, .high = DBL_MAX, .alpha = 1};
    opgraph_pointwise(g, &op);
}

void opgraph_binary(struct opgraph *g, cudnnPointwiseMode_t mode, cudnn_desc x, cudnn_desc b,
                    cudnn_desc y)
{
    struct pointwise_op op = {.mode = mode, .x = x, .b = b, .y = y, .high = DBL_MAX};
    opgraph_pointwise(g, &op);
}

void opgraph_resample(struct opgraph *g, const struct resample_op *op)
{
    int64_t spatial = op->spatial;
    cudnnPaddingMode_t pad =
        op->mode == CUDNN_RESAMPLE_MAXPOOL ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
    cudnn_desc how = begin(g, CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    set(g, how, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, 1, &op->mode);
    set_type(g, how, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(g, how, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, 1, &pad);
    set_ints(g, how, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, 1, &spatial);
    set_ints(g, how, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, op->spatial, op->window);
    set_ints(g, how, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, op->spatial, op->pad_begin);
    set_ints(g, how, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, op->spatial, op->pad_end);
    set_ints(g, how, CUDNN_ATTR_RESAMPLE_STRIDES, op->spatial, op->stride);
    end(g, how);
    cudnn_desc desc = begin(g, CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, op->x);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, op->y);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, how);
    end_op(g, desc);
}

void opgraph_norm(struct opgraph *g, const struct norm_op *op)
{
    cudnn_desc desc = begin(g, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    set(g, desc, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &op->mode);
    set(g, desc, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &op->phase);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, op->x);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, op->mean);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, op->inverse);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, op->scale);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, op->bias);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, op->epsilon);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, op->y);
    end_op(g, desc);
}

void opgraph_sdpa(struct opgraph *g, const struct sdpa_op *op)
{
    cudnn_desc desc = begin(g, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, op->q);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, op->k);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, op->v);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, op->o);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, op->scale);
    end_op(g, desc);
    g->products = true;
}

void opgraph_matmul(struct opgraph *g, cudnn_desc a, cudnn_desc b, cudnn_desc c)
{
    cudnn_desc how = begin(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set_type(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    end(g, how);
    cudnn_desc desc = begin(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    end_op(g, desc);
    g->products = true;
}

void opgraph_reduce(struct opgraph *g, cudnnReduceTensorOp_t mode, cudnn_desc x, cudnn_desc y)
{
    cudnn_desc how = begin(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set_type(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    end(g, how);
    cudnn_desc desc = begin(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    set_desc(g, desc, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    end_op(g, desc);
}
