/* SPDX-License-Identifier: Apache-2.0
 *
 * A node as cuDNN computes it. A kernel file describes its node as an operation graph and says
 * where each tensor's memory is; everything else is the same for all kernels (lib/state.h).
 *
 *   static enum status build(const struct kernel_query *q, struct work *work, struct error *why)
 *   {
 *       struct tensor x, y;
 *       TRY(tensor_from(&q->in[0], &x, why));
 *       TRY(tensor_from(&q->out[0], &y, why));
 *       opgraph_unary(&work->graph, CUDNN_POINTWISE_TANH_FWD, work_in(work, 0, &x),
 *                     work_out(work, 0, &y));
 *       return STATUS_OK;
 *   }
 *   CUDNN_KERNEL(tanh, build, .ops = OPS("Tanh"));
 */
#ifndef ENGINE_KERNELS_CUDNN_LIB_WORK_H
#define ENGINE_KERNELS_CUDNN_LIB_WORK_H

#include "engine/kernels/cudnn/lib/device.h"
#include "engine/kernels/cudnn/lib/engines.h"

enum { WORK_TENSORS = 16 };

enum source {
    SOURCE_IN,     /* input `index` of the query */
    SOURCE_OUT,    /* output `index` */
    SOURCE_PACKED, /* device memory of the state, filled at prepare */
    SOURCE_VALUE,  /* `value`, a number of the host */
};

/* Constant data, copied element by element into a dense tensor of dimensions dim, the last one
 * innermost. stride: of the data, in elements. */
struct packing {
    const void *data;
    size_t element;
    int rank;
    int64_t dim[RANK_MAX], stride[RANK_MAX];
};

struct binding {
    int64_t uid;
    enum source source;
    int index;
    size_t offset; /* bytes from the start of the input */
    float value;
    struct packing packing;
};

struct work {
    struct opgraph graph;
    struct binding bindings[WORK_TENSORS];
    int binding_count;
    bool packing;    /* constants are read after build: those that are computed must be there */
    void *temporary; /* of work_temporary */
};

typedef enum status work_build(const struct kernel_query *q, struct work *work, struct error *why);

cudnn_desc work_in(struct work *work, int input, const struct tensor *tensor);
cudnn_desc work_in_at(struct work *work, int input, size_t offset, const struct tensor *tensor);
cudnn_desc work_out(struct work *work, int output, const struct tensor *tensor);
cudnn_desc work_packed(struct work *work, const struct tensor *tensor,
                       const struct packing *packing);
cudnn_desc work_value(struct work *work, int rank, float value);
/* Memory that lives as long as the work, once per work; NULL: none. */
void *work_temporary(struct work *work, size_t bytes);

/* ---- tensors and epilogues: lib/tensor.c ---- */

/* Logical shape and strides as they are; at least four dimensions, with sizes of 1 in front of the
 * last. Refuses types that cuDNN's floating-point engines do not know. */
enum status tensor_from(const struct desc *desc, struct tensor *tensor, struct error *why);
/* One that may lie in either order lies as the other does from now on; whether both lie alike. */
bool tensors_agree(struct tensor *a, struct tensor *b);
/* Plain data seen as rows of one length: [rows, length, 1, 1]. */
struct tensor tensor_rows(cudnnDataType_t type, int64_t rows, int64_t length);
/* An operand that broadcasts to a result of the given rank. */
enum status tensor_operand(const struct desc *desc, int rank, struct tensor *tensor,
                           struct error *why);

/* What follows a product: bias (an input, or NONE; one number per channel) and the node's posts.
 * `count` of them; the operations are added by epilogue_append, from `x` to `y`. */
struct link {
    enum post_kind kind;
    const struct post *act; /* ACT */
    int input;              /* ADD, MUL */
    bool channels;          /* the operand is one number per channel */
};

/* How an input lies that is added to or multiplied with a result like y. */
typedef enum status operand_from(const struct kernel_query *q, int input, const struct tensor *y,
                                 struct tensor *operand, struct error *why);

struct epilogue {
    struct link links[POST_MAX + 1];
    int count;
    operand_from *operand; /* epilogue_from sets it for results that lie like output 0 */
};

void epilogue_from(const struct kernel_query *q, int bias, struct epilogue *epilogue);
/* Additions at the beginning in the order of cuDNN's own convolutions with an epilogue: whole
 * tensors, then one number per channel. epilogue_from does it. */
void epilogue_order(struct epilogue *epilogue);
enum status epilogue_append(const struct kernel_query *q, const struct epilogue *epilogue,
                            struct work *work, cudnn_desc x, const struct tensor *y,
                            struct error *why);
/* Where the product goes: output 0 itself when nothing follows, else a tensor in between. */
cudnn_desc epilogue_start(const struct epilogue *epilogue, struct work *work,
                          const struct tensor *y);

/* ---- helpers for build functions ---- */

bool is_op(const struct kernel_query *q, const char *name);
bool wants_output(const struct kernel_query *q, int output);

#endif
