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
    int variant;
    struct rnn_plan plan; /* its form; the rest is made by prepare */
    void *weights;        /* on the device */
    void *lengths;        /* there, too */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    state->device = q->device;
    state->variant = variant;
    return rnn_form_from(q, &state->plan.form, why);
}

static int variants(const struct kernel_state *state)
{
    (void)state;
    return ARRAY_COUNT(variant_rows);
}

static void describe(const struct kernel_state *state, char *text, size_t size)
{
    snprintf(text, size, "%s", variant_rows[state->variant].name);
}

/* What the library wants, it says of a finished plan only. */
static size_t workspace(const struct kernel_state *state)
{
    struct rnn_plan made = {.form = state->plan.form};
    cudnnHandle_t handle;
    size_t bytes = 0;
    if (device_handle(state->device, &handle, NULL) == STATUS_OK &&
        rnn_plan_make(&made, variant_rows[state->variant].algorithm, handle, NULL) == STATUS_OK)
        bytes = made.work_bytes + made.y_bytes;
    rnn_plan_free(&made);
    return bytes;
}

static void release(struct kernel_state *state)
{
    if (state->plan.rnn)
        device_handle_rest(state->device);
    if (state->weights)
        state->device->kind->free(state->device, state->weights);
    if (state->lengths)
        state->device->kind->free(state->device, state->lengths);
    rnn_plan_free(&state->plan);
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

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    const struct device *device = q->device;
    struct rnn_plan *p = &state->plan;
    cudnnHandle_t handle;
    TRY(device_handle(device, &handle, err));
    TRY(rnn_plan_make(p, variant_rows[state->variant].algorithm, handle, err));
    *packed_bytes = p->weight_bytes;
    TRY(device->kind->alloc(device, p->weight_bytes, &state->weights, err));
    TRY(rnn_pack(q, p, handle, state->weights, err));
    return upload_lengths(state, err);
}

static enum status enqueue(const struct kernel_state *state, const struct kernel_args *args,
                           struct error *err)
{
    const struct rnn_plan *p = &state->plan;
    const float one = 1, zero = 0;
    cudnnHandle_t handle;
    const struct rnn_form *f = &p->form;
    char *copy = (char *)args->workspace + p->work_bytes;
    void *y = p->y_bytes ? copy : args->out[0];
    const void *h = f->starts ? args->in[RNN_H] : NULL;
    const void *c = f->starts && f->lstm ? args->in[RNN_C] : NULL;
    void *last_h = f->wants[1] ? args->out[1] : NULL;
    void *last_c = f->lstm && f->wants[2] ? args->out[2] : NULL;
    TRY(device_handle(state->device, &handle, err));
    CUDNN_TRY(cudnn.set_stream(handle, args->stream), err);
    CUDNN_TRY(cudnn.rnn_forward(handle, p->rnn, CUDNN_FWD_MODE_INFERENCE, state->lengths, p->x,
                                args->in[RNN_X], p->y, y, p->state, h, last_h, p->state, c, last_c,
                                p->weight_bytes, state->weights, p->work_bytes, args->workspace, 0,
                                NULL),
              err);
    if (p->to)
        CUDNN_TRY(cudnn.transform(handle, &one, p->from, y, &zero, p->to, args->out[0]), err);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct error *err = args->err;
    enqueue(state, args, err && err->code == STATUS_OK ? err : NULL);
}

REGISTER(kernel, cudnn_rnn) = {.name = "cudnn_rnn",
                               .provider = "cudnn",
                               .device = "cuda",
                               .ops = OPS("LSTM", "GRU"),
                               .packs = 1u << RNN_W | 1u << RNN_R | 1u << RNN_B,
                               .state_size = sizeof(struct kernel_state),
                               .plan = plan,
                               .variants = variants,
                               .describe = describe,
                               .workspace = workspace,
                               .prepare = prepare,
                               .launch = launch,
                               .release = release,
                               .unlike_variants = true};
