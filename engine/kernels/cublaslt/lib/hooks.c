/* SPDX-License-Identifier: Apache-2.0
 *
 * Variant v is the v-th algorithm that the library's heuristic names for the product. */
#include "engine/kernels/cublaslt/lib/hooks.h"

#include <stdlib.h>
#include <string.h>

#include "engine/kernels/cublaslt/lib/algorithms.h"

enum status cublaslt_plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                          struct error *why)
{
    struct algorithms choices;
    TRY(product_from(q, &state->product, why));
    TRY(algorithms_find(q->device, &state->product, &choices, why));
    if (variant >= choices.count)
        return REFUSE(why, "cuBLASLt names %d algorithms, none of number %d", choices.count,
                      variant);
    state->device = q->device;
    state->choices = choices.count;
    state->algorithm = choices.results[variant].algo;
    state->workspace = choices.results[variant].workspaceSize;
    state->count = shape_count(&q->out[0].shape);
    return STATUS_OK;
}

int cublaslt_variants(const struct kernel_state *state)
{
    return state->choices;
}

size_t cublaslt_workspace(const struct kernel_state *state)
{
    return state->workspace;
}

void cublaslt_describe(const struct kernel_state *state, char *text, size_t size)
{
    algorithm_describe(&state->algorithm, text, size);
}

/* ---- running ---- */

void cublaslt_release(struct kernel_state *state)
{
    matmul_free(&state->matmul);
    if (state->packed)
        state->device->kind->free(state->device, state->packed);
    if (state->spread)
        state->device->kind->free(state->device, state->spread);
}

static size_t packed_bytes(const struct product *p)
{
    return p->packs * p->type.factor_bytes;
}

/* The right operand, which is fixed, as the library reads it. */
static enum status pack(const struct kernel_query *q, struct kernel_state *state, struct error *err)
{
    const char *from = q->fixed[1];
    int64_t rows = state->product.shape.k, columns = state->product.shape.n;
    size_t element = state->product.type.factor_bytes, bytes = packed_bytes(&state->product);
    if (!state->product.turn)
        return device_upload(q->device, from, bytes, &state->packed, err);
    char *turned = malloc(bytes);
    if (!turned)
        return cublaslt_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    for (int64_t k = 0; k < (int64_t)state->product.packs; k++) {
        int64_t in_matrix = k % (rows * columns), first = k - in_matrix;
        int64_t to = first + in_matrix % columns * rows + in_matrix / columns;
        memcpy(turned + (size_t)to * element, from + (size_t)k * element, element);
    }
    enum status status = device_upload(q->device, turned, bytes, &state->packed, err);
    free(turned);
    return status;
}

static size_t spread_bytes(const struct product *p)
{
    return p->spread ? (size_t)(p->m * p->n) * sizeof(float) : 0;
}

/* The constant row once per row of the result. */
static enum status spread(const struct kernel_query *q, struct kernel_state *state,
                          struct error *err)
{
    const struct product *p = &state->product;
    size_t bytes = spread_bytes(p), row = (size_t)p->m * sizeof(float);
    char *all = malloc(bytes);
    if (!all)
        return cublaslt_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    for (size_t at = 0; at < bytes; at += row)
        memcpy(all + at, q->fixed[p->addend], row);
    enum status status = device_upload(q->device, all, bytes, &state->spread, err);
    free(all);
    return status;
}

enum status cublaslt_prepare(const struct kernel_query *q, struct kernel_state *state,
                             size_t *packed, struct error *err)
{
    const struct product *p = &state->product;
    *packed = packed_bytes(p) + spread_bytes(p);
    TRY(matmul_make(p, &state->matmul, err));
    if (p->packs)
        TRY(pack(q, state, err));
    return p->spread ? spread(q, state, err) : STATUS_OK;
}

static enum status enqueue_activation(const struct kernel_state *state,
                                      const struct kernel_args *args, struct error *err)
{
    const struct product *p = &state->product;
    if (!p->activates)
        return STATUS_OK;
    return state->device->kind->activate(state->device, &p->after, p->type.result, args->out[0],
                                         state->count, args->stream, err);
}

static enum status enqueue(const struct kernel_state *state, const struct kernel_args *args,
                           struct error *err)
{
    const struct product *p = &state->product;
    const struct matmul *m = &state->matmul;
    const char *right = state->packed ? state->packed : args->in[1];
    const void *bias = p->bias == NONE ? NULL : args->in[p->bias];
    const void *addend = p->addend == NONE ? NULL : p->spread ? state->spread : args->in[p->addend];
    const struct product_memory memory = {.left = args->in[0],
                                          .right = right,
                                          .addend = addend,
                                          .result = args->out[0],
                                          .workspace = args->workspace,
                                          .workspace_bytes = state->workspace};
    if (bias)
        CUBLASLT_TRY(
            cublaslt.desc_set(m->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)),
            err);
    TRY(product_run(state->device, p, m, &state->algorithm, &memory, args->stream, err));
    return enqueue_activation(state, args, err);
}

void cublaslt_launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct error *err = args->err;
    enqueue(state, args, err && err->code == STATUS_OK ? err : NULL);
}
