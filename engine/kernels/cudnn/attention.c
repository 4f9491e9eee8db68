/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in f16 and bf16: one operation without a mask; with one the same spelled out, as
 * cuDNN's flash engines recognise it: product, scale, mask, softmax by maximum and sum, product. */
#include "engine/ops/lib/attention.h"
#include "engine/kernels/cudnn/lib/state.h"

struct heads {
    struct attention_shape shape;
    cudnnDataType_t type;
    size_t element;
};

/* [batch, heads, positions, head_size], rows of the node's tensors. */
static struct tensor per_head(const struct heads *h, int64_t positions, int64_t row)
{
    int64_t size = h->shape.head_size;
    return (struct tensor){.type = h->type,
                           .rank = 4,
                           .dim = {h->shape.batch, h->shape.heads, positions, size},
                           .stride = {positions * row, size, row, 1}};
}

static struct tensor swapped(struct tensor t)
{
    int64_t dim = t.dim[2], stride = t.stride[2];
    t.dim[2] = t.dim[3];
    t.stride[2] = t.stride[3];
    t.dim[3] = dim;
    t.stride[3] = stride;
    return t;
}

static cudnn_desc from(struct work *work, const struct heads *h, int input, int64_t start,
                       const struct tensor *tensor)
{
    return work_in_at(work, h->shape.packed ? 0 : input, (size_t)start * h->element, tensor);
}

static enum status from_query(const struct kernel_query *q, struct heads *h, struct error *why)
{
    const struct desc *k = query_in(q, 1), *v = query_in(q, 2);
    struct tensor checked;
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    for (int i = 0; i < q->in_count; i++)
        if (query_in(q, i) && !cudnn_host->desc_is_plain(&q->in[i]))
            return REFUSE(why, "input %d is not plain", i);
    TRY(tensor_from(&q->in[0], &checked, why));
    if (checked.type == CUDNN_DATA_FLOAT) /* offered, but 9.19's writes outside its shared memory */
        return REFUSE(why, "only f16 and bf16");
    TRY(attention_shape_from(q->node, &q->in[0].shape, k ? &k->shape : NULL, v ? &v->shape : NULL,
                             &h->shape, why));
    if (h->shape.zero_empty)
        return REFUSE(why, "zeros where the mask leaves no key");
    if (h->shape.causal || h->shape.group > 1)
        return REFUSE(why, "causal, or heads that share keys and values");
    h->type = checked.type;
    h->element = sizeof(uint16_t);
    if (h->shape.head_size % 8)
        return REFUSE(why, "heads of %lld: a multiple of 8 is needed",
                      (long long)h->shape.head_size);
    return STATUS_OK;
}

static void softmax(struct opgraph *g, cudnn_desc x, const struct tensor *scores, cudnn_desc y)
{
    struct tensor rows = *scores;
    rows.dim[3] = 1;
    rows.stride[0] = rows.dim[1] * rows.dim[2];
    rows.stride[1] = rows.dim[2];
    rows.stride[2] = rows.stride[3] = 1;
    cudnn_desc largest = opgraph_between(g, &rows), sum = opgraph_between(g, &rows);
    cudnn_desc lower = opgraph_between(g, scores), power = opgraph_between(g, scores);
    opgraph_reduce(g, CUDNN_REDUCE_TENSOR_MAX, x, largest);
    opgraph_binary(g, CUDNN_POINTWISE_SUB, x, largest, lower);
    opgraph_unary(g, CUDNN_POINTWISE_EXP, lower, power);
    opgraph_reduce(g, CUDNN_REDUCE_TENSOR_ADD, power, sum);
    cudnn_desc logarithm = opgraph_between(g, &rows);
    opgraph_unary(g, CUDNN_POINTWISE_LOG, sum, logarithm);
    opgraph_binary(g, CUDNN_POINTWISE_ADD, largest, logarithm, opgraph_between(g, &rows));
    opgraph_binary(g, CUDNN_POINTWISE_DIV, power, sum, y);
}

static enum status masked(const struct kernel_query *q, const struct heads *h, struct work *work,
                          struct error *why)
{
    const struct attention_shape *s = &h->shape;
    struct opgraph *g = &work->graph;
    struct tensor tq = per_head(h, s->queries, s->q_row);
    struct tensor tk = swapped(per_head(h, s->keys, s->k_row));
    struct tensor tv = per_head(h, s->keys, s->v_row);
    struct tensor to = per_head(h, s->queries, s->heads * s->head_size);
    struct tensor scores = {.rank = 4, .dim = {s->batch, s->heads, s->queries, s->keys}};
    struct tensor mask;
    for (int64_t k = 3, step = 1; k >= 0; step *= scores.dim[k--])
        scores.stride[k] = step;
    TRY(tensor_operand(query_in(q, 3), 4, &mask, why));
    for (int64_t k = 3, step = 1; k >= 0; step *= mask.dim[k--])
        mask.stride[k] = step; /* plain, whatever else it could be called */
    cudnn_desc product = opgraph_between(g, &scores), scaled = opgraph_between(g, &scores);
    cudnn_desc moved = opgraph_between(g, &scores);
    /* Only this one has the type of the inputs: what goes into a product must. */
    struct tensor rounded = scores;
    rounded.type = h->type;
    rounded.virtual = true;
    cudnn_desc weights = opgraph_tensor(g, &rounded, NULL);
    opgraph_matmul(g, from(work, h, 0, s->q_start, &tq), from(work, h, 1, s->k_start, &tk),
                   product);
    opgraph_binary(g, CUDNN_POINTWISE_MUL, product, work_value(work, 4, (float)s->scale), scaled);
    opgraph_binary(g, CUDNN_POINTWISE_ADD, scaled, work_in(work, 3, &mask), moved);
    softmax(g, moved, &scores, weights);
    opgraph_matmul(g, weights, from(work, h, 2, s->v_start, &tv), work_out(work, 0, &to));
    return STATUS_OK;
}

static enum status build(const struct kernel_query *q, struct work *work, struct error *why)
{
    struct heads h;
    TRY(from_query(q, &h, why));
    if (q->node->op_inputs > 3 && query_in(q, 3))
        return masked(q, &h, work, why);
    const struct attention_shape *s = &h.shape;
    struct tensor tq = per_head(&h, s->queries, s->q_row), tk = per_head(&h, s->keys, s->k_row);
    struct tensor tv = per_head(&h, s->keys, s->v_row);
    struct tensor to = per_head(&h, s->queries, s->heads * s->head_size);
    struct sdpa_op op = {.q = from(work, &h, 0, s->q_start, &tq),
                         .k = from(work, &h, 1, s->k_start, &tk),
                         .v = from(work, &h, 2, s->v_start, &tv),
                         .o = work_out(work, 0, &to),
                         .scale = work_value(work, 4, (float)s->scale)};
    opgraph_sdpa(&work->graph, &op);
    return STATUS_OK;
}

CUDNN_KERNEL(attention, build, .ops = OPS("Attention"));
