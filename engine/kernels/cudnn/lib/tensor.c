/* SPDX-License-Identifier: Apache-2.0
 *
 * Ridge's tensors and epilogues in cuDNN's terms. */
#include <float.h>
#include <string.h>

#include "engine/kernels/cudnn/lib/work.h"

bool is_op(const struct kernel_query *q, const char *name)
{
    return strcmp(cudnn_host->node_op(q->node), name) == 0;
}

bool wants_output(const struct kernel_query *q, int output)
{
    return output < q->out_count && q->out[output].dtype != DTYPE_NONE;
}

/* ---- tensors ---- */

static enum status type_of(enum dtype dtype, cudnnDataType_t *type, struct error *why)
{
    switch (dtype) {
    case DTYPE_F32:
        *type = CUDNN_DATA_FLOAT;
        return STATUS_OK;
    case DTYPE_F16:
        *type = CUDNN_DATA_HALF;
        return STATUS_OK;
    case DTYPE_BF16:
        *type = CUDNN_DATA_BFLOAT16;
        return STATUS_OK;
    default:
        return REFUSE(why, "only f32, f16 and bf16");
    }
}

/* cuDNN takes a layout by its strides, so those of dimensions of size 1 must go with the others.
 * What is channels-last and plain at once (one position, or one channel) counts as the former. */
static void set_dense(struct tensor *t, bool channels_last)
{
    int64_t step = 1;
    if (channels_last) {
        t->stride[1] = 1;
        step = t->dim[1];
    }
    for (int k = t->rank - 1; k >= 0; k--) {
        if (k == 1 && channels_last)
            continue;
        t->stride[k] = step;
        step *= t->dim[k];
    }
}

/* At least four dimensions: [N, C] becomes [N, C, 1, 1], [N, C, L] becomes [N, C, 1, L]. */
static void fill_dims(const struct desc *desc, struct tensor *t)
{
    int rank = desc->shape.rank;
    t->rank = rank < 4 ? 4 : rank;
    for (int k = 0; k < t->rank; k++) {
        int from = k;
        if (rank == 3 && k > 1)
            from = k == 3 ? 2 : rank;
        t->dim[k] = from < rank ? desc->shape.dim[from] : 1;
        t->stride[k] = from < rank ? desc->stride[from] : 1;
    }
}

enum status tensor_from(const struct desc *desc, struct tensor *tensor, struct error *why)
{
    *tensor = (struct tensor){.rank = 0};
    TRY(type_of(desc->dtype, &tensor->type, why));
    if (desc->shape.rank > 5)
        return REFUSE(why, "rank %d", desc->shape.rank);
    for (int k = 0; k < desc->shape.rank; k++)
        if (desc->shape.dim[k] == 0)
            return REFUSE(why, "empty tensor");
    fill_dims(desc, tensor);
    bool plain = cudnn_host->desc_is_plain(desc);
    bool last = desc->shape.rank < 3 || cudnn_host->desc_is_nhwc(desc);
    tensor->order = plain && last ? ORDER_EITHER
                    : last        ? ORDER_LAST
                    : plain       ? ORDER_PLAIN
                                  : ORDER_OTHER;
    if (plain || last)
        set_dense(tensor, last);
    return STATUS_OK;
}

static void follow(struct tensor *tensor, const struct tensor *other)
{
    if (tensor->order != ORDER_EITHER || other->order == ORDER_EITHER)
        return;
    tensor->order = other->order == ORDER_PLAIN ? ORDER_PLAIN : ORDER_LAST;
    set_dense(tensor, tensor->order == ORDER_LAST);
}

bool tensors_agree(struct tensor *a, struct tensor *b)
{
    follow(a, b);
    follow(b, a);
    return a->order == b->order;
}

struct tensor tensor_rows(cudnnDataType_t type, int64_t rows, int64_t length)
{
    struct tensor t = {.type = type, .rank = 4, .dim = {rows, length, 1, 1}};
    set_dense(&t, true);
    return t;
}

enum status tensor_operand(const struct desc *desc, int rank, struct tensor *tensor,
                           struct error *why)
{
    struct desc full = *desc;
    int missing = rank - desc->shape.rank;
    if (missing < 0)
        return REFUSE(why, "operand of the epilogue has a larger rank than the output");
    full.shape.rank = rank;
    for (int k = 0; k < rank; k++) {
        full.shape.dim[k] = k < missing ? 1 : desc->shape.dim[k - missing];
        full.stride[k] = k < missing ? 1 : desc->stride[k - missing];
    }
    return tensor_from(&full, tensor, why);
}

/* ---- epilogues ---- */

static bool one_per_channel(const struct kernel_query *q, const struct desc *operand)
{
    int rank = q->out[0].shape.rank, shift = rank - operand->shape.rank;
    for (int k = 0; k < operand->shape.rank; k++)
        if (k + shift != 1 && operand->shape.dim[k] != 1)
            return false;
    return true;
}

void epilogue_order(struct epilogue *e)
{
    int adds = 0;
    while (adds < e->count && e->links[adds].kind == POST_ADD)
        adds++;
    for (int k = 1; k < adds; k++)
        for (int j = k; j > 0 && e->links[j - 1].channels && !e->links[j].channels; j--) {
            struct link swap = e->links[j];
            e->links[j] = e->links[j - 1];
            e->links[j - 1] = swap;
        }
}

/* The operator's own bias [C] means [C, 1 ...]; operands of posts broadcast by numpy's rules. */
static enum status operand_like_output(const struct kernel_query *q, int input,
                                       const struct tensor *y, struct tensor *operand,
                                       struct error *why)
{
    int rank = q->out[0].shape.rank;
    struct desc desc = *query_in(q, input);
    if (input < q->node->op_inputs) {
        desc.shape.rank = rank - 1;
        for (int k = 1; k < rank - 1; k++)
            desc.shape.dim[k] = desc.stride[k] = 1;
    }
    TRY(tensor_operand(&desc, rank, operand, why));
    follow(operand, y);
    return STATUS_OK;
}

void epilogue_from(const struct kernel_query *q, int bias, struct epilogue *epilogue)
{
    *epilogue = (struct epilogue){.operand = operand_like_output};
    if (bias != NONE)
        epilogue->links[epilogue->count++] =
            (struct link){.kind = POST_ADD, .input = bias, .channels = true};
    for (int k = 0; k < q->node->post_count; k++) {
        const struct post *post = &q->node->posts[k];
        const struct desc *operand = post->kind == POST_ACT ? NULL : query_in(q, post->input);
        epilogue->links[epilogue->count++] =
            (struct link){.kind = post->kind,
                          .act = post,
                          .input = post->input,
                          .channels = operand && one_per_channel(q, operand)};
    }
    epilogue_order(epilogue);
}

cudnn_desc epilogue_start(const struct epilogue *epilogue, struct work *work,
                          const struct tensor *y)
{
    return epilogue->count ? opgraph_between(&work->graph, y) : work_out(work, 0, y);
}

/* x clip(a x + b, 0, 1) or, `gated` false, the clip alone. */
static void append_hard(struct work *work, const struct link *link, bool gated, cudnn_desc x,
                        cudnn_desc y, const struct tensor *like)
{
    struct opgraph *g = &work->graph;
    float a = gated ? 1.0f / 6 : link->act->a, b = gated ? 0.5f : link->act->b;
    cudnn_desc scaled = opgraph_between(g, like), moved = opgraph_between(g, like);
    cudnn_desc clipped = gated ? opgraph_between(g, like) : y;
    opgraph_binary(g, CUDNN_POINTWISE_MUL, x, work_value(work, like->rank, a), scaled);
    opgraph_binary(g, CUDNN_POINTWISE_ADD, scaled, work_value(work, like->rank, b), moved);
    struct pointwise_op clip = {
        .mode = CUDNN_POINTWISE_RELU_FWD, .x = moved, .y = clipped, .high = 1};
    opgraph_pointwise(g, &clip);
    if (gated)
        opgraph_binary(g, CUDNN_POINTWISE_MUL, x, clipped, y);
}

static enum status append_act(struct work *work, const struct link *link, cudnn_desc x,
                              cudnn_desc y, const struct tensor *like, struct error *why)
{
    double a = (double)link->act->a, b = (double)link->act->b;
    struct pointwise_op op = {.mode = CUDNN_POINTWISE_RELU_FWD, .x = x, .y = y, .high = DBL_MAX};
    switch (link->act->act) {
    case FN_RELU:
        break;
    case FN_CLIP:
        op.low = a > -DBL_MAX ? a : -DBL_MAX; /* infinite: no bound */
        op.high = b < DBL_MAX ? b : DBL_MAX;
        break;
    case FN_LEAKY_RELU:
        op.slope = a;
        break;
    case FN_ELU:
        op.mode = CUDNN_POINTWISE_ELU_FWD;
        op.alpha = a;
        break;
    case FN_SIGMOID:
        op.mode = CUDNN_POINTWISE_SIGMOID_FWD;
        break;
    case FN_TANH:
        op.mode = CUDNN_POINTWISE_TANH_FWD;
        break;
    case FN_GELU_ERF:
        op.mode = CUDNN_POINTWISE_GELU_FWD;
        break;
    case FN_GELU_TANH:
        op.mode = CUDNN_POINTWISE_GELU_APPROX_TANH_FWD;
        break;
    case FN_SILU:
        op.mode = CUDNN_POINTWISE_SWISH_FWD;
        break;
    case FN_HARD_SIGMOID:
    case FN_HARD_SWISH:
        append_hard(work, link, link->act->act == FN_HARD_SWISH, x, y, like);
        return STATUS_OK;
    default:
        return REFUSE(why, "no such activation in the epilogue");
    }
    opgraph_pointwise(&work->graph, &op);
    return STATUS_OK;
}

enum status epilogue_append(const struct kernel_query *q, const struct epilogue *epilogue,
                            struct work *work, cudnn_desc x, const struct tensor *y,
                            struct error *why)
{
    for (int k = 0; k < epilogue->count; k++) {
        const struct link *link = &epilogue->links[k];
        bool last = k == epilogue->count - 1;
        cudnn_desc next = last ? work_out(work, 0, y) : opgraph_between(&work->graph, y);
        struct tensor operand;
        if (link->kind == POST_ACT) {
            TRY(append_act(work, link, x, next, y, why));
        } else {
            if (!query_in(q, link->input))
                return REFUSE(why, "operand of the epilogue is absent");
            TRY(epilogue->operand(q, link->input, y, &operand, why));
            opgraph_binary(&work->graph,
                           link->kind == POST_ADD ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_MUL, x,
                           work_in(work, link->input, &operand), next);
        }
        x = next;
    }
    return STATUS_OK;
}
