/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/onednn/lib/rnn.h"

#include <string.h>

enum { IN_X, IN_W, IN_R, IN_B, IN_LENGTHS, IN_H, IN_C, IN_P };

static enum status check_attributes(const struct kernel_query *q, struct error *why)
{
    const struct node *node = q->node;
    if (node->post_count) /* before any look at optional inputs: operands of posts follow them */
        return REFUSE(why, "no fused epilogue");
    if (onednn_host->node_attr(node, "activations"))
        return REFUSE(why, "activations of the node's own");
    if (onednn_host->node_attr(node, "clip"))
        return REFUSE(why, "clipped gates");
    if (onednn_host->node_int(node, "input_forget", 0))
        return REFUSE(why, "coupled input and forget gates");
    if (query_in(q, IN_LENGTHS))
        return REFUSE(why, "sequences of different lengths");
    if (query_in(q, IN_P))
        return REFUSE(why, "peepholes");
    if (!query_fixed(q, IN_W) || !query_fixed(q, IN_R) ||
        (query_in(q, IN_B) && !query_fixed(q, IN_B)))
        return REFUSE(why, "weights change from run to run");
    return STATUS_OK;
}

static enum status check_tensors(const struct kernel_query *q, struct error *why)
{
    dnnl_memory_desc_t checked;
    for (int k = 0; k < q->in_count; k++) {
        if (!query_in(q, k))
            continue;
        TRY(md_from_desc(&q->in[k], &checked, why));
        if (!onednn_host->desc_is_plain(&q->in[k]))
            return REFUSE(why, "input %d is not plain", k);
    }
    for (int k = 0; k < q->out_count; k++)
        if (q->out[k].dtype != DTYPE_NONE && !onednn_host->desc_is_plain(&q->out[k]))
            return REFUSE(why, "output %d is not plain", k);
    return STATUS_OK;
}

static dnnl_rnn_direction_t direction_of(const struct node *node)
{
    const char *name = onednn_host->node_string(node, "direction", "forward");
    if (strcmp(name, "reverse") == 0)
        return dnnl_unidirectional_right2left;
    return strcmp(name, "forward") == 0 ? dnnl_unidirectional_left2right
                                        : dnnl_bidirectional_concat;
}

static dnnl_memory_desc_t dense(int rank, const int64_t *dims)
{
    int64_t strides[RANK_MAX];
    for (int k = rank - 1; k >= 0; k--)
        strides[k] = k == rank - 1 ? 1 : strides[k + 1] * dims[k + 1];
    return md_strided(rank, dims, strides);
}

static void set_mds(struct rnn *r)
{
    const int64_t t = r->steps, n = r->batch, i = r->inputs, h = r->hidden, d = r->directions;
    int64_t x[] = {t, n, i}, y[] = {t, n, d * h}, state[] = {1, d, n, h};
    int64_t batch_first[] = {i, t * i, 1};
    int64_t w[] = {1, d, i, r->gates, h}, u[] = {1, d, h, r->gates, h};
    int64_t bias[] = {1, d, r->biases, h};
    r->x = r->batch_first ? md_strided(3, x, batch_first) : dense(3, x);
    r->y = dense(3, y);
    r->state = dense(4, state);
    r->weights = md_any(5, w);
    r->recurrent = md_any(5, u);
    r->bias = dense(4, bias);
}

enum status rnn_from_query(const struct kernel_query *q, struct rnn *rnn, struct error *why)
{
    TRY(check_attributes(q, why));
    TRY(check_tensors(q, why));
    const struct shape *x = &q->in[IN_X].shape, *r = &q->in[IN_R].shape;
    rnn->batch_first = onednn_host->node_int(q->node, "layout", 0) != 0;
    rnn->steps = x->dim[rnn->batch_first];
    rnn->batch = x->dim[!rnn->batch_first];
    rnn->inputs = x->dim[2];
    rnn->directions = r->dim[0];
    rnn->hidden = r->dim[2];
    rnn->direction = direction_of(q->node);
    rnn->has_state = query_in(q, IN_H) != NULL;
    if (rnn->batch_first && rnn->batch > 1)
        return REFUSE(why, "batch-first states");
    if (rnn->gates == RNN_GATES && rnn->has_state != (query_in(q, IN_C) != NULL))
        return REFUSE(why, "one of the two initial states is missing");
    set_mds(rnn);
    return STATUS_OK;
}

/* [D, gates, H, I] with the gates in oneDNN's order. */
static const void *ordered_weights(const struct kernel_query *q, const struct rnn *r, int input,
                                   struct plan *plan)
{
    size_t block = (size_t)(r->hidden * q->in[input].shape.dim[2]);
    size_t gates = (size_t)r->gates;
    if (!plan->packing)
        return NULL;
    float *to = plan_temporary(plan, (size_t)r->directions * gates * block * sizeof(float));
    const float *from = query_fixed(q, input);
    for (size_t d = 0; to && d < (size_t)r->directions; d++)
        for (size_t g = 0; g < gates; g++)
            memcpy(to + (d * gates + g) * block, from + (d * gates + (size_t)r->order[g]) * block,
                   block * sizeof(float));
    return to;
}

static enum status add_weights(const struct kernel_query *q, const struct rnn *r, int input,
                               struct plan *plan, struct plan_step *step, struct error *why)
{
    int64_t k = q->in[input].shape.dim[2], h = r->hidden, g = r->gates;
    int64_t dims[] = {1, r->directions, k, g, h};
    int64_t strides[] = {r->directions * g * h * k, g * h * k, 1, h * k, k};
    dnnl_memory_desc_t from = md_strided(5, dims, strides);
    const void *data = ordered_weights(q, r, input, plan);
    if (plan->packing && !data)
        return onednn_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    step_packed(step, input == IN_W ? DNNL_ARG_WEIGHTS_LAYER : DNNL_ARG_WEIGHTS_ITER, &from, data);
    return STATUS_OK;
}

/* ONNX has a bias for W and one for R; oneDNN their sum, but for a gate whose recurrent part is
 * reset after its bias (biases > gates): there R's bias is the last row. */
static enum status add_bias(const struct kernel_query *q, const struct rnn *r, struct plan *plan,
                            struct plan_step *step, struct error *why)
{
    size_t h = (size_t)r->hidden, gates = (size_t)r->gates, rows = (size_t)r->biases;
    float *to = plan_temporary(plan, (size_t)r->directions * rows * h * sizeof(float));
    const float *b = query_fixed(q, IN_B);
    if (!to)
        return onednn_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    for (size_t d = 0; b && d < (size_t)r->directions; d++, b += 2 * gates * h) {
        float *row = to + d * rows * h;
        for (size_t g = 0; g < gates; g++) {
            const float *w = b + (size_t)r->order[g] * h, *u = w + gates * h;
            bool apart = rows > gates && g == gates - 1;
            for (size_t k = 0; k < h; k++)
                row[g * h + k] = apart ? w[k] : w[k] + u[k];
            if (apart)
                memcpy(row + rows * h - h, u, h * sizeof(float));
        }
    }
    step_packed(step, DNNL_ARG_BIAS, &r->bias, to);
    return STATUS_OK;
}

/* Y is [T, D, N, H], oneDNN's result [T, N, D H]: the same for one direction. */
static enum status add_result(const struct kernel_query *q, const struct rnn *r, struct plan *plan,
                              struct plan_step *step, struct error *why)
{
    const int64_t t = r->steps, n = r->batch, h = r->hidden, d = r->directions;
    bool wanted = q->out_count > 0 && q->out[0].dtype != DTYPE_NONE;
    if (wanted && d == 1) {
        step_io(step, DNNL_ARG_DST_LAYER, SOURCE_OUT, 0, &r->y);
        return STATUS_OK;
    }
    size_t work = plan_work(plan, dnnl_memory_desc_get_size(&r->y));
    step_io(step, DNNL_ARG_DST_LAYER, SOURCE_WORK, work, &r->y);
    if (!wanted)
        return STATUS_OK;
    int64_t dims[] = {t, d, n, h}, strides[] = {n * d * h, h, d * h, 1};
    dnnl_memory_desc_t from = md_strided(4, dims, strides), to = dense(4, dims);
    struct plan_step *split;
    TRY(plan_reorder(plan, &from, &to, &split, why));
    step_io(split, DNNL_ARG_FROM, SOURCE_WORK, work, &from);
    step_io(split, DNNL_ARG_TO, SOURCE_OUT, 0, &to);
    return STATUS_OK;
}

enum status rnn_arguments(const struct kernel_query *q, const struct rnn *rnn, struct plan *plan,
                          struct plan_step *step, struct error *why)
{
    step_io(step, DNNL_ARG_SRC_LAYER, SOURCE_IN, IN_X, &rnn->x);
    if (rnn->has_state)
        step_io(step, DNNL_ARG_SRC_ITER, SOURCE_IN, IN_H, &rnn->state);
    TRY(add_weights(q, rnn, IN_W, plan, step, why));
    TRY(add_weights(q, rnn, IN_R, plan, step, why));
    TRY(add_bias(q, rnn, plan, step, why));
    rnn_final_state(q, rnn, plan, step, DNNL_ARG_DST_ITER, 1);
    return add_result(q, rnn, plan, step, why);
}

void rnn_final_state(const struct kernel_query *q, const struct rnn *rnn, struct plan *plan,
                     struct plan_step *step, int arg, int output)
{
    if (output < q->out_count && q->out[output].dtype != DTYPE_NONE)
        step_io(step, arg, SOURCE_OUT, (size_t)output, &rnn->state);
    else
        step_io(step, arg, SOURCE_WORK, plan_work(plan, dnnl_memory_desc_get_size(&rnn->state)),
                &rnn->state);
}
