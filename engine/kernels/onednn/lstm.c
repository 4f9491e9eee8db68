/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM. Both directions are one primitive; weights and biases are constants, kept with their gates
 * in oneDNN's order. */
#include <string.h>

#include "engine/kernels/onednn/lib/adapter.h"

enum { IN_X, IN_W, IN_R, IN_B, IN_LENGTHS, IN_H, IN_C, IN_P };
enum { GATES = 4 };

/* ONNX orders the gates i, o, f, c; oneDNN i, f, c, o. */
static const int order[GATES] = {0, 2, 3, 1};

struct lstm {
    int64_t steps, batch, inputs, hidden, directions;
    bool batch_first;
    dnnl_rnn_direction_t direction;
    bool has_state;                          /* initial states are inputs */
    struct memory_layout x, y, state;        /* [T, N, I], [T, N, D H], [1, D, N, H] */
    struct memory_layout weights, recurrent; /* any */
    struct memory_layout bias;               /* [1, D, 4, H] */
};

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

static enum status check_tensors(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct memory_layout checked;
    for (int k = 0; k < q->in_count; k++) {
        if (!query_in(q, k))
            continue;
        TRY(layout_from_desc(plan, &q->in[k], &checked, why));
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

static struct memory_layout dense(struct plan *plan, int rank, const int64_t *dims)
{
    int64_t strides[RANK_MAX];
    for (int k = rank - 1; k >= 0; k--)
        strides[k] = k == rank - 1 ? 1 : strides[k + 1] * dims[k + 1];
    return layout_strided(plan, rank, dims, strides);
}

static void set_layouts(struct plan *plan, struct lstm *lstm)
{
    const int64_t t = lstm->steps, n = lstm->batch, i = lstm->inputs, h = lstm->hidden,
                  d = lstm->directions;
    int64_t x[] = {t, n, i}, y[] = {t, n, d * h}, state[] = {1, d, n, h};
    int64_t batch_first[] = {i, t * i, 1};
    int64_t w[] = {1, d, i, GATES, h}, u[] = {1, d, h, GATES, h};
    int64_t bias[] = {1, d, GATES, h};
    lstm->x = lstm->batch_first ? layout_strided(plan, 3, x, batch_first) : dense(plan, 3, x);
    lstm->y = dense(plan, 3, y);
    lstm->state = dense(plan, 4, state);
    lstm->weights = layout_any(plan, 5, w);
    lstm->recurrent = layout_any(plan, 5, u);
    lstm->bias = dense(plan, 4, bias);
}

static enum status lstm_from_query(const struct kernel_query *q, struct plan *plan,
                                   struct lstm *lstm, struct error *why)
{
    TRY(check_attributes(q, why));
    TRY(check_tensors(q, plan, why));
    const struct shape *x = &q->in[IN_X].shape, *r = &q->in[IN_R].shape;
    lstm->batch_first = onednn_host->node_int(q->node, "layout", 0) != 0;
    lstm->steps = x->dim[lstm->batch_first];
    lstm->batch = x->dim[!lstm->batch_first];
    lstm->inputs = x->dim[2];
    lstm->directions = r->dim[0];
    lstm->hidden = r->dim[2];
    lstm->direction = direction_of(q->node);
    lstm->has_state = query_in(q, IN_H) != NULL;
    if (lstm->batch_first && lstm->batch > 1)
        return REFUSE(why, "batch-first states");
    if (lstm->has_state != (query_in(q, IN_C) != NULL))
        return REFUSE(why, "one of the two initial states is missing");
    set_layouts(plan, lstm);
    return STATUS_OK;
}

/* [D, gates, H, I] with the gates in oneDNN's order. */
static const void *ordered_weights(const struct kernel_query *q, const struct lstm *lstm, int input,
                                   struct plan *plan)
{
    size_t block = (size_t)(lstm->hidden * q->in[input].shape.dim[2]);
    size_t rows = (size_t)lstm->directions * GATES;
    if (!plan->packing)
        return NULL;
    float *to = plan_temporary(plan, rows * block * sizeof(float));
    const float *from = query_fixed(q, input);
    for (size_t row = 0; to && row < rows; row++) {
        size_t gate = row - row % GATES + (size_t)order[row % GATES];
        memcpy(to + row * block, from + gate * block, block * sizeof(float));
    }
    return to;
}

static enum status add_weights(const struct kernel_query *q, const struct lstm *lstm, int input,
                               struct plan *plan, struct plan_step *step, struct error *why)
{
    int64_t k = q->in[input].shape.dim[2], h = lstm->hidden, g = GATES;
    int64_t dims[] = {1, lstm->directions, k, g, h};
    int64_t strides[] = {lstm->directions * g * h * k, g * h * k, 1, h * k, k};
    struct memory_layout from = layout_strided(plan, 5, dims, strides);
    const void *data = ordered_weights(q, lstm, input, plan);
    if (plan->packing && !data)
        return onednn_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    step_packed(step, input == IN_W ? DNNL_ARG_WEIGHTS_LAYER : DNNL_ARG_WEIGHTS_ITER, &from, data);
    return STATUS_OK;
}

/* ONNX has a bias for W and one for R; oneDNN their sum. */
static enum status add_bias(const struct kernel_query *q, const struct lstm *lstm,
                            struct plan *plan, struct plan_step *step, struct error *why)
{
    size_t h = (size_t)lstm->hidden, d = (size_t)lstm->directions;
    float *to = plan_temporary(plan, d * GATES * h * sizeof(float));
    const float *b = query_fixed(q, IN_B);
    if (!to)
        return onednn_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    for (size_t row = 0; b && row < d * GATES; row++) {
        const float *w = b + (row / GATES * 2 * GATES + (size_t)order[row % GATES]) * h;
        for (size_t k = 0; k < h; k++)
            to[row * h + k] = w[k] + w[GATES * h + k];
    }
    step_packed(step, DNNL_ARG_BIAS, &lstm->bias, to);
    return STATUS_OK;
}

/* Y is [T, D, N, H], oneDNN's result [T, N, D H]: the same for one direction. */
static enum status add_result(const struct kernel_query *q, const struct lstm *lstm,
                              struct plan *plan, struct plan_step *step, struct error *why)
{
    const int64_t t = lstm->steps, n = lstm->batch, h = lstm->hidden, d = lstm->directions;
    bool wanted = q->out_count > 0 && q->out[0].dtype != DTYPE_NONE;
    if (wanted && d == 1) {
        step_io(step, DNNL_ARG_DST_LAYER, SOURCE_OUT, 0, &lstm->y);
        return STATUS_OK;
    }
    size_t work = plan_work(plan, layout_size(&lstm->y));
    step_io(step, DNNL_ARG_DST_LAYER, SOURCE_WORK, work, &lstm->y);
    if (!wanted)
        return STATUS_OK;
    int64_t dims[] = {t, d, n, h}, strides[] = {n * d * h, h, d * h, 1};
    struct memory_layout from = layout_strided(plan, 4, dims, strides), to = dense(plan, 4, dims);
    struct plan_step *split;
    TRY(plan_reorder(plan, &from, &to, &split, why));
    step_io(split, DNNL_ARG_FROM, SOURCE_WORK, work, &from);
    step_io(split, DNNL_ARG_TO, SOURCE_OUT, 0, &to);
    return STATUS_OK;
}

static void final_state(const struct kernel_query *q, const struct lstm *lstm, struct plan *plan,
                        struct plan_step *step, int arg, int output)
{
    if (output < q->out_count && q->out[output].dtype != DTYPE_NONE)
        step_io(step, arg, SOURCE_OUT, (size_t)output, &lstm->state);
    else
        step_io(step, arg, SOURCE_WORK, plan_work(plan, layout_size(&lstm->state)), &lstm->state);
}

static enum status add_arguments(const struct kernel_query *q, const struct lstm *lstm,
                                 struct plan *plan, struct plan_step *step, struct error *why)
{
    step_io(step, DNNL_ARG_SRC_LAYER, SOURCE_IN, IN_X, &lstm->x);
    if (lstm->has_state)
        step_io(step, DNNL_ARG_SRC_ITER, SOURCE_IN, IN_H, &lstm->state);
    TRY(add_weights(q, lstm, IN_W, plan, step, why));
    TRY(add_weights(q, lstm, IN_R, plan, step, why));
    TRY(add_bias(q, lstm, plan, step, why));
    final_state(q, lstm, plan, step, DNNL_ARG_DST_ITER, 1);
    return add_result(q, lstm, plan, step, why);
}

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct lstm lstm = {.steps = 0};
    struct plan_step *step;
    TRY(lstm_from_query(q, plan, &lstm, why));
    struct operation operation = {
        OPERATION_LSTM,           .direction = lstm.direction,
        .src = &lstm.x,           .start = lstm.has_state ? &lstm.state : NULL,
        .weights = &lstm.weights, .recurrent = &lstm.recurrent,
        .bias = &lstm.bias,       .dst = &lstm.y,
        .end = &lstm.state};
    TRY(plan_attr(plan, why));
    TRY(plan_step(plan, &operation, &step, why));
    if (lstm.has_state)
        step_io(step, DNNL_ARG_SRC_ITER_C, SOURCE_IN, IN_C, &lstm.state);
    final_state(q, &lstm, plan, step, DNNL_ARG_DST_ITER_C, 2);
    return add_arguments(q, &lstm, plan, step, why);
}

ONEDNN_KERNEL(lstm, build, PLAN_VARIANTS, .ops = OPS("LSTM"), .packs = 1u << 1 | 1u << 2 | 1u << 3);
