/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN's graph API: tensors and the operations between them, as one operation graph for which
 * cuDNN then offers engines (lib/engines.h).
 *
 * Life cycle: opgraph_begin; opgraph_tensor and the operations in execution order; opgraph_end;
 * opgraph_free. The first failure sticks: later calls do nothing and opgraph_end reports it, so
 * that a kernel's description reads without a test per line.
 */
#ifndef ENGINE_KERNELS_CUDNN_LIB_OPGRAPH_H
#define ENGINE_KERNELS_CUDNN_LIB_OPGRAPH_H

#include "engine/kernels/cudnn/lib/api.h"
#include "engine/ops/lib/window.h"

enum { OPGRAPH_OWNED = 64, OPGRAPH_OPS = 16, TENSOR_ALIGN = 16 };

typedef cudnnBackendDescriptor_t cudnn_desc;

struct opgraph {
    cudnn_desc owned[OPGRAPH_OWNED];
    cudnn_desc ops[OPGRAPH_OPS];
    int owned_count, op_count;
    int64_t next_uid;
    cudnn_desc root;  /* after opgraph_end */
    bool products;    /* holds a convolution or a matrix product */
    bool no_compiled; /* engines that are compiled at run time are not for it */
    uint64_t hash;    /* of all that was said: the same for graphs that are alike */
    enum status status;
    struct error why; /* of the first failure */
};

enum order {
    ORDER_OTHER,
    ORDER_PLAIN,
    ORDER_LAST,  /* of the channels */
    ORDER_EITHER /* both are the same memory; the strides say channels last */
};

/* dim and stride in cuDNN's order N, C, spatial, at least four. */
struct tensor {
    cudnnDataType_t type;
    enum order order;
    int rank;
    int64_t dim[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX];
    bool virtual;  /* lives inside the engine only */
    bool by_value; /* one number of the host's memory */
};

void opgraph_begin(struct opgraph *g);
enum status opgraph_end(struct opgraph *g, struct error *why);
void opgraph_free(struct opgraph *g);
/* What `from` owns is `to`'s; it is still known by its hash. */
void opgraph_move(struct opgraph *from, struct opgraph *to);

/* uid (may be NULL) is the name under which the tensor gets its memory. */
cudnn_desc opgraph_tensor(struct opgraph *g, const struct tensor *tensor, int64_t *uid);
/* A float tensor of the given sizes that is never stored. */
cudnn_desc opgraph_between(struct opgraph *g, const struct tensor *like);

/* ---- operations ---- */

struct conv_op {
    cudnn_desc x, w, y; /* backwards: y is the gradient that comes in, x the one that goes out */
    int spatial;
    int64_t stride[SPATIAL_MAX], dilation[SPATIAL_MAX];
    int64_t pad_begin[SPATIAL_MAX], pad_end[SPATIAL_MAX];
};

void opgraph_conv(struct opgraph *g, const struct conv_op *op);
void opgraph_conv_backward(struct opgraph *g, const struct conv_op *op); /* to the data */

struct pointwise_op {
    cudnnPointwiseMode_t mode;
    cudnn_desc x, b, y;      /* b NULL: one operand */
    double low, high, slope; /* RELU_FWD: clip to [low, high], slope below */
    double alpha;            /* ELU_FWD */
};

/* A plain pointwise operation has low 0, high infinite, slope 0. */
void opgraph_pointwise(struct opgraph *g, const struct pointwise_op *op);
void opgraph_unary(struct opgraph *g, cudnnPointwiseMode_t mode, cudnn_desc x, cudnn_desc y);
void opgraph_binary(struct opgraph *g, cudnnPointwiseMode_t mode, cudnn_desc x, cudnn_desc b,
                    cudnn_desc y);

struct resample_op {
    cudnnResampleMode_t mode;
    cudnn_desc x, y;
    int spatial;
    int64_t window[SPATIAL_MAX], stride[SPATIAL_MAX];
    int64_t pad_begin[SPATIAL_MAX], pad_end[SPATIAL_MAX];
};

void opgraph_resample(struct opgraph *g, const struct resample_op *op);

struct norm_op {
    cudnnBackendNormMode_t mode;
    cudnnBackendNormFwdPhase_t phase;
    cudnn_desc x, scale, bias, epsilon, y; /* bias may be NULL */
    cudnn_desc mean, inverse;              /* training: results; else NULL */
};

void opgraph_norm(struct opgraph *g, const struct norm_op *op);

struct sdpa_op {
    cudnn_desc q, k, v, o, scale;
};

void opgraph_sdpa(struct opgraph *g, const struct sdpa_op *op);
void opgraph_matmul(struct opgraph *g, cudnn_desc a, cudnn_desc b, cudnn_desc c);
void opgraph_reduce(struct opgraph *g, cudnnReduceTensorOp_t mode, cudnn_desc x, cudnn_desc y);

/* ---- for lib/engines.c ---- */

/* Attributes of a descriptor outside any graph; failures are cuDNN's. */
enum status desc_new(cudnnBackendDescriptorType_t type, cudnn_desc *desc, struct error *why);
void desc_free(cudnn_desc *desc); /* NULL is fine */
enum status desc_finalize(cudnn_desc desc, struct error *why);
enum status desc_set(cudnn_desc desc, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t count, const void *values,
                     struct error *why);

#endif
