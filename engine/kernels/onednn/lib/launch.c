/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans made ready: primitives created, constants packed, and the launch that all kernels share. */
#include <string.h>

#include "base/memory.h"
#include "engine/kernels/onednn/lib/adapter.h"

static enum status pack(struct kernel_state *state, const struct step_arg *arg, void *packed,
                        struct error *err)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_memory_t from = NULL, to = NULL;
    void *data = (void *)(uintptr_t)arg->data; /* read only, as DNNL_ARG_FROM */
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(
        &pd, layout_md(&arg->from), onednn_engine, layout_md(&arg->layout), onednn_engine, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&primitive, pd);
    if (status == dnnl_success)
        status = dnnl_memory_create(&from, layout_md(&arg->from), onednn_engine, data);
    if (status == dnnl_success)
        status = dnnl_memory_create(&to, layout_md(&arg->layout), onednn_engine, packed);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    if (status == dnnl_success)
        status = dnnl_primitive_execute(primitive, state->stream, 2, args);
    if (status == dnnl_success)
        status = dnnl_stream_wait(state->stream);
    dnnl_memory_destroy(to);
    dnnl_memory_destroy(from);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(pd);
    DNNL_TRY(status, err);
    return STATUS_OK;
}

static enum status ready_arg(struct kernel_state *state, struct ready_step *step,
                             const struct step_arg *arg, size_t *bytes, struct error *err)
{
    struct ready_arg *ready = &step->args[step->arg_count];
    dnnl_exec_arg_t *exec = &step->exec[step->arg_count++];
    *ready = (struct ready_arg){.source = arg->source, .index = arg->index};
    exec->arg = arg->arg;
    DNNL_TRY(
        dnnl_memory_create(&exec->memory, layout_md(&arg->layout), onednn_engine, DNNL_MEMORY_NONE),
        err);
    if (arg->source != SOURCE_PACKED)
        return STATUS_OK;
    size_t size = layout_size(&arg->layout);
    *bytes += size;
    ready->packed = memory_alloc(size);
    if (!ready->packed)
        return onednn_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    TRY(pack(state, arg, ready->packed, err));
    DNNL_TRY(dnnl_memory_set_data_handle(exec->memory, ready->packed), err);
    return STATUS_OK;
}

static enum status make_ready(struct kernel_state *state, const struct plan *plan, size_t *bytes,
                              struct error *err)
{
    DNNL_TRY(dnnl_stream_create(&state->stream, onednn_engine, dnnl_stream_default_flags), err);
    for (int s = 0; s < plan->step_count; s++) {
        const struct plan_step *from = &plan->steps[s];
        struct ready_step *to = &state->steps[state->step_count++];
        DNNL_TRY(dnnl_primitive_create(&to->primitive, from->pd), err);
        for (int k = 0; k < from->arg_count; k++)
            TRY(ready_arg(state, to, &from->args[k], bytes, err));
    }
    return STATUS_OK;
}

enum status plan_prepare(const struct kernel_query *q, struct kernel_state *state,
                         size_t *packed_bytes, struct error *err)
{
    struct plan plan = {.variant = state->variant, .packing = true};
    team_ready(q->threads);
    TRY(plan_make(state->build, q, &plan, err));
    enum status status = make_ready(state, &plan, packed_bytes, err);
    plan_free(&plan);
    return status;
}

void plan_release(struct kernel_state *state)
{
    for (int s = 0; s < state->step_count; s++) {
        struct ready_step *step = &state->steps[s];
        dnnl_primitive_destroy(step->primitive);
        for (int k = 0; k < step->arg_count; k++) {
            dnnl_memory_destroy(step->exec[k].memory);
            memory_free(step->args[k].packed);
        }
    }
    dnnl_stream_destroy(state->stream);
}

/* ---- the timed path ---- */

static dnnl_status_t launch_step(const struct ready_step *step, dnnl_stream_t stream,
                                 const struct kernel_args *args)
{
    for (int k = 0; k < step->arg_count; k++) {
        const struct ready_arg *arg = &step->args[k];
        void *memory;
        switch (arg->source) {
        case SOURCE_IN:
            memory = (void *)(uintptr_t)args->in[arg->index];
            break;
        case SOURCE_OUT:
            memory = args->out[arg->index];
            break;
        case SOURCE_WORK:
            memory = (char *)args->workspace + arg->index;
            break;
        default:
            continue;
        }
        dnnl_memory_set_data_handle(step->exec[k].memory, memory);
    }
    return dnnl_primitive_execute(step->primitive, stream, step->arg_count, step->exec);
}

/* A launch cannot fail by contract; one that does leaves NaN for verification to find. */
void plan_launch(const struct kernel_state *state, const struct kernel_args *args)
{
    dnnl_status_t status = dnnl_success;
    team_begin(state->threads);
    for (int k = 0; k < state->step_count && status == dnnl_success; k++)
        status = launch_step(&state->steps[k], state->stream, args);
    if (status == dnnl_success)
        status = dnnl_stream_wait(state->stream);
    team_end(state->threads);
    if (status != dnnl_success && args->out[0])
        memset(args->out[0], 0xff, state->out_bytes);
}
