/* SPDX-License-Identifier: Apache-2.0
 *
 * Variant v is the v-th algorithm that the library's heuristic names for the product. */
#include "engine/kernels/cublaslt/lib/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kernels/cublaslt/lib/product.h"

enum { ALGORITHMS_MAX = 12, WORKSPACE_HOPPER = 32 << 20, WORKSPACE_OLDER = 4 << 20 };

struct choice {
    struct product product;
    struct matmul matmul;
    cublasLtMatmulHeuristicResult_t results[ALGORITHMS_MAX];
    int count;
};

struct kernel_state {
    const struct device *device;
    struct product product;
    struct matmul matmul;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
    void *packed; /* of the device; NULL: the right operand comes with each launch */
    void *spread; /* there, too; NULL: what is added comes with each launch */
};

/* ---- choosing ---- */

/* The library takes addresses as they are aligned on the device, 256 bytes; not those that a loop
 * over products moves. Bytes were refused unless they lie on more than one element. */
static enum status set_alignment(const struct choice *choice, cublasLtMatmulPreference_t preference,
                                 struct error *why)
{
    static const cublasLtMatmulPreferenceAttributes_t names[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    uint32_t bytes = choice->product.alignment;
    if (choice->product.calls == 1)
        return STATUS_OK;
    for (int k = 0; k < ARRAY_COUNT(names); k++)
        CUBLASLT_TRY(cublaslt.preference_set(preference, names[k], &bytes, sizeof(bytes)), why);
    return STATUS_OK;
}

static enum status ask(const struct kernel_query *q, struct choice *choice,
                       cublasLtMatmulPreference_t preference, struct error *why)
{
    cublasLtHandle_t handle;
    size_t most = q->device->properties.major >= 9 ? WORKSPACE_HOPPER : WORKSPACE_OLDER;
    const struct matmul *m = &choice->matmul;
    TRY(cublaslt_handle(q->device, &handle, why));
    CUBLASLT_TRY(cublaslt.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &most, sizeof(most)),
                 why);
    TRY(set_alignment(choice, preference, why));
    CUBLASLT_TRY(cublaslt.heuristic(handle, m->desc, m->layout[LEFT], m->layout[RIGHT],
                                    m->layout[ADDEND], m->layout[RESULT], preference,
                                    ALGORITHMS_MAX, choice->results, &choice->count),
                 why);
    int kept = 0;
    for (int k = 0; k < choice->count; k++)
        if (choice->results[k].state == CUBLAS_STATUS_SUCCESS)
            choice->results[kept++] = choice->results[k];
    choice->count = kept;
    return kept ? STATUS_OK : REFUSE(why, "cuBLASLt has no algorithm for this");
}

/* matmul_free choice->matmul when this is OK. */
static enum status choose(const struct kernel_query *q, struct choice *choice, struct error *why)
{
    cublasLtMatmulPreference_t preference = NULL;
    memset(choice, 0, sizeof(*choice));
    TRY(product_from(q, &choice->product, why));
    enum status status = matmul_make(q, &choice->product, &choice->matmul, why);
    if (status == STATUS_OK) {
        cublasStatus_t made = cublaslt.preference_new(&preference);
        status = made == CUBLAS_STATUS_SUCCESS
                     ? ask(q, choice, preference, why)
                     : cublaslt_refuse(why, made, "cublaslt.preference_new(");
    }
    if (preference)
        cublaslt.preference_free(preference);
    if (status != STATUS_OK)
        matmul_free(&choice->matmul);
    return status;
}

enum status cublaslt_supports(const struct kernel_query *q, struct error *why)
{
    struct choice choice;
    TRY(choose(q, &choice, why));
    matmul_free(&choice.matmul);
    return STATUS_OK;
}

int cublaslt_variants(const struct kernel_query *q)
{
    struct choice choice;
    if (choose(q, &choice, NULL) != STATUS_OK)
        return 1;
    matmul_free(&choice.matmul);
    return choice.count;
}

static int setting(const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulAlgoConfigAttributes_t name)
{
    int value = -1;
    size_t written;
    if (cublaslt.algo_get(algorithm, name, &value, sizeof(value), &written) !=
        CUBLAS_STATUS_SUCCESS)
        return -1;
    return value;
}

void cublaslt_describe(const struct kernel_query *q, int variant, char *text, size_t size)
{
    struct choice choice;
    if (!size || choose(q, &choice, NULL) != STATUS_OK)
        return;
    if (variant < choice.count) {
        const cublasLtMatmulAlgo_t *algorithm = &choice.results[variant].algo;
        snprintf(text, size, "algorithm %d tile %d stages %d split %d",
                 setting(algorithm, CUBLASLT_ALGO_CONFIG_ID),
                 setting(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
                 setting(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                 setting(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
    }
    matmul_free(&choice.matmul);
}

size_t cublaslt_workspace(const struct kernel_query *q, int variant)
{
    struct choice choice;
    if (choose(q, &choice, NULL) != STATUS_OK)
        return 0;
    size_t bytes = variant < choice.count ? choice.results[variant].workspaceSize : 0;
    matmul_free(&choice.matmul);
    return bytes;
}

/* ---- running ---- */

void cublaslt_release(struct kernel_state *state)
{
    if (!state)
        return;
    matmul_free(&state->matmul);
    if (state->packed)
        state->device->kind->free(state->device, state->packed);
    if (state->spread)
        state->device->kind->free(state->device, state->spread);
    free(state);
}

/* The right operand, which is fixed, as the library reads it. */
static enum status pack(const struct kernel_query *q, struct kernel_state *state, struct error *err)
{
    const char *from = q->fixed[1];
    int64_t rows = state->product.shape.k, columns = state->product.shape.n;
    size_t bytes = state->product.packs;
    if (!state->product.turn)
        return device_upload(q->device, from, bytes, &state->packed, err);
    char *turned = malloc(bytes);
    if (!turned)
        return cublaslt_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    for (int64_t k = 0; k < (int64_t)bytes; k++) {
        int64_t in_matrix = k % (rows * columns), first = k - in_matrix;
        turned[first + in_matrix % columns * rows + in_matrix / columns] = from[k];
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

enum status cublaslt_prepare(const struct kernel_query *q, int variant, struct kernel_state **state,
                             size_t *state_bytes, struct error *err)
{
    struct choice choice;
    *state = NULL;
    *state_bytes = 0;
    TRY(choose(q, &choice, err));
    struct kernel_state *made = variant < choice.count ? calloc(1, sizeof(*made)) : NULL;
    if (!made) {
        matmul_free(&choice.matmul);
        return variant < choice.count
                   ? cublaslt_host->refuse(err, STATUS_NO_MEMORY, "out of memory")
                   : REFUSE(err, "cuBLASLt names %d algorithms, none of number %d", choice.count,
                            variant);
    }
    *made = (struct kernel_state){.device = q->device,
                                  .product = choice.product,
                                  .matmul = choice.matmul,
                                  .algorithm = choice.results[variant].algo,
                                  .workspace = choice.results[variant].workspaceSize};
    enum status status = made->product.packs ? pack(q, made, err) : STATUS_OK;
    if (status == STATUS_OK && made->product.spread)
        status = spread(q, made, err);
    *state_bytes = made->product.packs + spread_bytes(&made->product);
    if (status == STATUS_OK)
        *state = made;
    else
        cublaslt_release(made);
    return status;
}

static enum status enqueue(const struct kernel_state *state, const struct kernel_args *args,
                           struct error *err)
{
    const struct product *p = &state->product;
    const struct matmul *m = &state->matmul;
    const char *right = state->packed ? state->packed : args->in[1];
    const void *bias = p->bias == NONE ? NULL : args->in[p->bias];
    const void *addend = p->addend == NONE ? NULL : p->spread ? state->spread : args->in[p->addend];
    cublasLtHandle_t handle;
    TRY(cublaslt_handle(state->device, &handle, err));
    if (bias)
        CUBLASLT_TRY(
            cublaslt.desc_set(m->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)),
            err);
    for (int64_t call = 0; call < p->calls; call++) {
        struct matmul_offset at = cublaslt_host->matmul_offset(&p->shape, call * p->batch);
        size_t result = (size_t)at.c * p->type.result_bytes;
        const char *a = (const char *)args->in[0] + (size_t)at.a * p->type.factor_bytes;
        const char *b = right + (size_t)at.b * p->type.factor_bytes;
        char *d = (char *)args->out[0] + result;
        const char *c = p->addend == NONE ? d : (const char *)addend + result;
        CUBLASLT_TRY(cublaslt.matmul(handle, m->desc, &p->alpha, b, m->layout[LEFT], a,
                                     m->layout[RIGHT], &p->beta, c, m->layout[ADDEND], d,
                                     m->layout[RESULT], &state->algorithm, args->workspace,
                                     state->workspace, args->stream),
                     err);
    }
    return STATUS_OK;
}

void cublaslt_launch(const struct kernel_state *state, const struct kernel_query *q,
                     const struct kernel_args *args)
{
    (void)q;
    struct error *err = args->err;
    enqueue(state, args, err && err->code == STATUS_OK ? err : NULL);
}
