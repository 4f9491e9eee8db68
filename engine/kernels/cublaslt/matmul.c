/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm with bias, residual and activation. Variant v is the v-th algorithm that the
 * library's heuristic names for the product. */
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
};

/* ---- choosing ---- */

/* The library takes addresses as they are aligned on the device, 256 bytes; not those that a loop
 * over products moves. */
static enum status set_alignment(const struct choice *choice, cublasLtMatmulPreference_t preference,
                                 struct error *why)
{
    static const cublasLtMatmulPreferenceAttributes_t names[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    uint32_t bytes = choice->product.type == CUDA_R_32F ? sizeof(float) : sizeof(uint16_t);
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

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct choice choice;
    TRY(choose(q, &choice, why));
    matmul_free(&choice.matmul);
    return STATUS_OK;
}

static int variants(const struct kernel_query *q)
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

static void describe(const struct kernel_query *q, int variant, char *text, size_t size)
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

static size_t workspace(const struct kernel_query *q, int variant)
{
    struct choice choice;
    if (choose(q, &choice, NULL) != STATUS_OK)
        return 0;
    size_t bytes = variant < choice.count ? choice.results[variant].workspaceSize : 0;
    matmul_free(&choice.matmul);
    return bytes;
}

/* ---- running ---- */

static void release(struct kernel_state *state)
{
    if (!state)
        return;
    matmul_free(&state->matmul);
    free(state);
}

static enum status prepare(const struct kernel_query *q, int variant, struct kernel_state **state,
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
    *state = made;
    return STATUS_OK;
}

static enum status enqueue(const struct kernel_state *state, const struct kernel_args *args,
                           struct error *err)
{
    const struct product *p = &state->product;
    const struct matmul *m = &state->matmul;
    size_t element = p->type == CUDA_R_32F ? sizeof(float) : sizeof(uint16_t);
    const void *bias = p->bias == NONE ? NULL : args->in[p->bias];
    cublasLtHandle_t handle;
    TRY(cublaslt_handle(state->device, &handle, err));
    if (bias)
        CUBLASLT_TRY(
            cublaslt.desc_set(m->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)),
            err);
    for (int64_t call = 0; call < p->calls; call++) {
        struct matmul_offset at = cublaslt_host->matmul_offset(&p->shape, call * p->batch);
        const char *a = (const char *)args->in[0] + (size_t)at.a * element;
        const char *b = (const char *)args->in[1] + (size_t)at.b * element;
        char *d = (char *)args->out[0] + (size_t)at.c * element;
        const char *c =
            p->addend == NONE ? d : (const char *)args->in[p->addend] + (size_t)at.c * element;
        CUBLASLT_TRY(cublaslt.matmul(handle, m->desc, &p->alpha, b, m->layout[LEFT], a,
                                     m->layout[RIGHT], &p->beta, c, m->layout[ADDEND], d,
                                     m->layout[RESULT], &state->algorithm, args->workspace,
                                     state->workspace, args->stream),
                     err);
    }
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)q;
    struct error *err = args->err;
    enqueue(state, args, err && err->code == STATUS_OK ? err : NULL);
}

REGISTER(kernel, cublaslt_matmul) = {.name = "cublaslt_matmul",
                                     .provider = "cublaslt",
                                     .device = "cuda",
                                     .ops = OPS("MatMul", "Gemm"),
                                     .supports = supports,
                                     .variants = variants,
                                     .describe = describe,
                                     .workspace = workspace,
                                     .prepare = prepare,
                                     .launch = launch,
                                     .release = release};
