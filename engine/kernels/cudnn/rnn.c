/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM, and GRU with linear_before_reset. */
#include "engine/kernels/cudnn/lib/rnn.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/kernels/cudnn/lib/work.h"

/* In the order in which they are tried; not every one takes every size. */
static const struct {
    cudnnRNNAlgo_t algorithm;
    const char *name;
} variant_rows[] = {
    {CUDNN_RNN_ALGO_STANDARD, "standard"},
    {CUDNN_RNN_ALGO_PERSIST_STATIC, "persistent"},
    {CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, "persistent, small state"},
    {CUDNN_RNN_ALGO_PERSIST_DYNAMIC, "persistent, compiled"},
};

struct kernel_state {
    const struct device *device;
    struct rnn_plan plan;
    void *weights; /* on the device */
    void *lengths; /* there, too */
};

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct rnn_form form;
    return rnn_form_from(q, &form, why);
}

static int variants(const struct kernel_query *q)
{
    (void)q;
    return ARRAY_COUNT(variant_rows);
}

static void describe(const struct kernel_query *q, int variant, char *text, size_t size)
{
    (void)q;
    snprintf(text, size, "%s", variant_rows[variant].name);
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    struct rnn_plan plan = {.work_bytes = 0};
    cudnnHandle_t handle;
    size_t bytes = 0;
    if (device_handle(q->device, &handle, NULL) == STATUS_OK &&
        rnn_plan_make(q, variant_rows[variant].algorithm, handle, &plan, NULL) == STATUS_OK)
        bytes = plan.work_bytes + plan.y_bytes;
    rnn_plan_free(&plan);
    return bytes;
}

static void release(struct kernel_state *state)
{
    if (!state)
        return;
    device_handle_rest(state->device);
    if (state->weights)
        state->device->kind->free(state->device, state->weights);
    if (state->lengths)
        state->device->kind->free(state->device, state->lengths);
    rnn_plan_free(&state->plan);
    free(state);
}

/* The lengths once more, for the device. */
static enum status upload_lengths(struct kernel_state *state, struct error *err)
{
    size_t count = (size_t)state->plan.form.batch;
    int32_t *lengths = malloc(count * sizeof(*lengths) + 1);
    if (!lengths)
        return cudnn_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    for (size_t k = 0; k < count; k++)
        lengths[k] = state->plan.form.steps;
    enum status status =
        device_upload(state->device, lengths, count * sizeof(*lengths), &state->lengths, err);
    free(lengths);
    return status;
}

static enum status fill(struct kernel_state *state, const struct kernel_query *q, int variant,
                        struct error *err)
{
    const struct device *device = q->device;
    cudnnHandle_t handle;
    TRY(device_handle(device, &handle, err));
    TRY(rnn_plan_make(q, variant_rows[variant].algorithm, handle, &state->plan, err));
    TRY(device->kind->alloc(device, state->plan.weight_bytes, &state->weights, err));
    TRY(rnn_pack(q, &state->plan, handle, state->weights, err));
    return upload_lengths(state, err);
}

static enum status prepare(const struct kernel_query *q, int variant, struct kernel_state **state,
                           size_t *state_bytes, struct error *err)
{
    *state = NULL;
    *state_bytes = 0;
    struct kernel_state *made = calloc(1, sizeof(*made));
    if (!made)
        return cudnn_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    made->device = q->device;
    enum status status = fill(made, q, variant, err);
    if (status != STATUS_OK) {
        release(made);
        return status;
    }
    *state_bytes = made->plan.weight_bytes;
    *state = made;
    return STATUS_OK;
}

static const void *input(const struct kernel_query *q, const struct kernel_args *args, int k)
{
    return query_in(q, k) ? args->in[k] : NULL;
}

static void *output(const struct kernel_query *q, const struct kernel_args *args, int k)
{
    return wants_output(q, k) ? args->out[k] : NULL;
}

static enum status enqueue(const struct kernel_state *state, const struct kernel_query *q,
                           const struct kernel_args *args, struct error *err)
{
    const struct rnn_plan *p = &state->plan;
    const float one = 1, zero = 0;
    cudnnHandle_t handle;
    char *copy = (char *)args->workspace + p->work_bytes;
    void *y = p->y_bytes ? copy : args->out[0];
    bool lstm = p->form.lstm;
    TRY(device_handle(state->device, &handle, err));
    CUDNN_TRY(cudnn.set_stream(handle, args->stream), err);
    CUDNN_TRY(cudnn.rnn_forward(handle, p->rnn, CUDNN_FWD_MODE_INFERENCE, state->lengths, p->x,
                                args->in[RNN_X], p->y, y, p->state, input(q, args, RNN_H),
                                output(q, args, 1), p->state, lstm ? input(q, args, RNN_C) : NULL,
                                lstm ? output(q, args, 2) : NULL, p->weight_bytes, state->weights,
                                p->work_bytes, args->workspace, 0, NULL),
              err);
    if (p->to)
        CUDNN_TRY(cudnn.transform(handle, &one, p->from, y, &zero, p->to, args->out[0]), err);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    struct error *err = args->err;
    enqueue(state, q, args, err && err->code == STATUS_OK ? err : NULL);
}

REGISTER(kernel, cudnn_rnn) = {.name = "cudnn_rnn",
                               .provider = "cudnn",
                               .device = "cuda",
                               .ops = OPS("LSTM", "GRU"),
                               .packs = 1u << RNN_W | 1u << RNN_R | 1u << RNN_B,
                               .supports = supports,
                               .old_variants = variants,
                               .old_describe = describe,
                               .old_workspace = workspace,
                               .old_prepare = prepare,
                               .old_launch = launch,
                               .release = release,
                               .unlike_variants = true};
