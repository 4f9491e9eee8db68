/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cudnn/lib/state.h"

#include <stdlib.h>
#include <string.h>

/* Changed by launch: one thread at a time launches a state. */
struct addresses {
    void *memory[WORK_TENSORS];
    void *workspace;
    cudnn_desc pack; /* NULL: not made yet */
};

/* ---- constants ---- */

static void pack(const struct packing *p, char *to)
{
    int64_t at[RANK_MAX] = {0}, offset = 0;
    for (;;) {
        memcpy(to, (const char *)p->data + (size_t)offset * p->element, p->element);
        to += p->element;
        int k = p->rank - 1;
        for (; k >= 0; k--) {
            offset += p->stride[k];
            if (++at[k] < p->dim[k])
                break;
            offset -= at[k] * p->stride[k];
            at[k] = 0;
        }
        if (k < 0)
            return;
    }
}

static enum status upload(struct kernel_state *state, int tensor, size_t *bytes, struct error *err)
{
    struct packing *packing = &state->bindings[tensor].packing;
    size_t size = packing->element;
    for (int k = 0; k < packing->rank; k++)
        size *= (size_t)packing->dim[k];
    char *data = malloc(size);
    if (!data)
        return cudnn_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    pack(packing, data);
    enum status status = device_upload(state->q->device, data, size, &state->packed[tensor], err);
    free(data);
    packing->data = NULL; /* may be gone from now on */
    *bytes += size;
    return status;
}

enum status state_bind(struct kernel_state *state, const struct work *work, size_t *packed_bytes,
                       struct error *err)
{
    state->addresses = calloc(1, sizeof(*state->addresses));
    if (!state->addresses)
        return cudnn_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    state->binding_count = work->binding_count;
    memcpy(state->bindings, work->bindings, sizeof(work->bindings));
    for (int k = 0; k < work->binding_count; k++)
        if (work->bindings[k].source == SOURCE_PACKED)
            TRY(upload(state, k, packed_bytes, err));
    return STATUS_OK;
}

void work_release(struct kernel_state *state)
{
    if (!state->plan)
        return;
    device_handle_rest(state->q->device);
    for (int k = 0; k < state->binding_count; k++)
        if (state->packed[k])
            state->q->device->kind->free(state->q->device, state->packed[k]);
    if (state->addresses)
        desc_free(&state->addresses->pack);
    free(state->addresses);
    plan_give_back(state->plan);
}

/* ---- launching ---- */

/* cuDNN takes addresses of inputs as void *, too. */
static void *writable(const void *memory)
{
    void *copy;
    memcpy(&copy, &memory, sizeof(copy));
    return copy;
}

static void *address(const struct kernel_state *state, int tensor, const struct kernel_args *args)
{
    const struct binding *b = &state->bindings[tensor];
    switch (b->source) {
    case SOURCE_IN:
        return writable((const char *)args->in[b->index] + b->offset);
    case SOURCE_OUT:
        return args->out[b->index];
    case SOURCE_PACKED:
        return state->packed[tensor];
    case SOURCE_VALUE:
        return writable(&b->value);
    }
    return NULL;
}

static enum status make_pack(const struct kernel_state *state, const struct addresses *wanted,
                             cudnn_desc *made, struct error *err)
{
    int64_t uids[WORK_TENSORS];
    int count = state->binding_count;
    for (int k = 0; k < count; k++)
        uids[k] = state->bindings[k].uid;
    TRY(desc_new(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, made, err));
    enum status status =
        desc_set(*made, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids, err);
    if (status == STATUS_OK)
        status = desc_set(*made, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                          wanted->memory, err);
    if (status == STATUS_OK)
        status = desc_set(*made, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                          &wanted->workspace, err);
    if (status == STATUS_OK)
        status = desc_finalize(*made, err);
    if (status != STATUS_OK)
        desc_free(made);
    return status;
}

static enum status use_addresses(const struct kernel_state *state, const struct kernel_args *args,
                                 struct error *err)
{
    struct addresses wanted = {.workspace = args->workspace}, *own = state->addresses;
    for (int k = 0; k < state->binding_count; k++)
        wanted.memory[k] = address(state, k, args);
    if (own->pack && own->workspace == wanted.workspace &&
        memcmp(own->memory, wanted.memory, sizeof(wanted.memory)) == 0)
        return STATUS_OK;
    desc_free(&own->pack);
    TRY(make_pack(state, &wanted, &wanted.pack, err));
    *own = wanted;
    return STATUS_OK;
}

static enum status launch(const struct kernel_state *state, const struct kernel_args *args,
                          struct error *err)
{
    cudnnHandle_t handle;
    TRY(use_addresses(state, args, err));
    TRY(device_handle(state->q->device, &handle, err));
    CUDNN_TRY(cudnn.set_stream(handle, args->stream), err);
    CUDNN_TRY(cudnn.execute(handle, state->plan->desc, state->addresses->pack), err);
    return STATUS_OK;
}

void work_launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct error *err = args->err;
    launch(state, args, err && err->code == STATUS_OK ? err : NULL);
}
