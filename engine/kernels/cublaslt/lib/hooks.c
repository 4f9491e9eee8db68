/* SPDX-License-Identifier: Apache-2.0
 *
 * Variant v is the v-th algorithm that the library's heuristic names for the product. */
#include "engine/kernels/cublaslt/lib/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kernels/cublaslt/lib/product.h"

enum { ALGORITHMS_MAX = 20, WORKSPACE = 32 << 20, WORKSPACE_BLACKWELL = 64 << 20 };

struct choices {
    cublasLtMatmulHeuristicResult_t results[ALGORITHMS_MAX];
    int count;
};

/* ---- choosing ---- */

static enum status set_number(cublasLtMatmulPreference_t preference,
                              cublasLtMatmulPreferenceAttributes_t name, uint32_t number,
                              struct error *why)
{
    CUBLASLT_TRY(cublaslt.preference_set(preference, name, &number, sizeof(number)), why);
    return STATUS_OK;
}

/* What the library would take for granted. */
static enum status set_alignment(const struct product *p, cublasLtMatmulPreference_t preference,
                                 struct error *why)
{
    static const cublasLtMatmulPreferenceAttributes_t names[OPERANDS] = {
        [LEFT] = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        [RIGHT] = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        [ADDEND] = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        [RESULT] = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    for (int k = 0; k < OPERANDS; k++)
        if (p->alignment[k] != ALIGN_DEVICE)
            TRY(set_number(preference, names[k], p->alignment[k], why));
    return STATUS_OK;
}

/* A sum that is split over K goes through its parts; those of 16-bit results would have 16 bits,
 * were the library free to choose. All sums are f32 (docs/gpu.md). */
static enum status set_reduction(const struct product *p, cublasLtMatmulPreference_t preference,
                                 struct error *why)
{
    if (p->type.result_bytes != sizeof(uint16_t))
        return STATUS_OK;
    return set_number(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                      CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, why);
}

static enum status ask(const struct kernel_query *q, const struct product *p,
                       const struct matmul *m, cublasLtMatmulPreference_t preference,
                       struct choices *choices, struct error *why)
{
    cublasLtHandle_t handle;
    uint64_t most = q->device->properties.major >= 10 ? WORKSPACE_BLACKWELL : WORKSPACE;
    TRY(cublaslt_handle(q->device, &handle, why));
    CUBLASLT_TRY(cublaslt.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &most, sizeof(most)),
                 why);
    TRY(set_alignment(p, preference, why));
    TRY(set_reduction(p, preference, why));
    CUBLASLT_TRY(cublaslt.heuristic(handle, m->desc, m->layout[LEFT], m->layout[RIGHT],
                                    m->layout[ADDEND], m->layout[RESULT], preference,
                                    ALGORITHMS_MAX, choices->results, &choices->count),
                 why);
    int kept = 0;
    for (int k = 0; k < choices->count; k++)
        if (choices->results[k].state == CUBLAS_STATUS_SUCCESS)
            choices->results[kept++] = choices->results[k];
    choices->count = kept;
    return kept ? STATUS_OK : REFUSE(why, "cuBLASLt has no algorithm for this");
}

static enum status choose(const struct kernel_query *q, const struct product *p,
                          struct choices *choices, struct error *why)
{
    cublasLtMatmulPreference_t preference = NULL;
    struct matmul matmul;
    enum status status = matmul_make(p, &matmul, why);
    if (status == STATUS_OK) {
        cublasStatus_t made = cublaslt.preference_new(&preference);
        status = made == CUBLAS_STATUS_SUCCESS
                     ? ask(q, p, &matmul, preference, choices, why)
                     : cublaslt_refuse(why, made, "cublaslt.preference_new(");
    }
    if (preference)
        cublaslt.preference_free(preference);
    matmul_free(&matmul);
    return status;
}

enum status cublaslt_plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                          struct error *why)
{
    struct choices choices;
    TRY(product_from(q, &state->product, why));
    TRY(choose(q, &state->product, &choices, why));
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

/* ---- describing ---- */

struct setting {
    const char *name;
    cublasLtMatmulAlgoConfigAttributes_t attribute;
    size_t size;
    bool always; /* reported although it is 0 */
};

static const struct setting settings[] = {
    {"algorithm", CUBLASLT_ALGO_CONFIG_ID, 4, true},
    {"tile", CUBLASLT_ALGO_CONFIG_TILE_ID, 4, true},
    {"stages", CUBLASLT_ALGO_CONFIG_STAGES_ID, 4, true},
    {"split", CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4, true},
    {"sums", CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4, false}, /* 1, 4: of the result's type */
    {"cluster", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2, false},
    {"inner", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2, false},
    {"swizzle", CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4, false},
    {"custom", CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4, false},
};

/* Read into zeros: a short number is one of the machine's low bytes. */
static int value_of(const cublasLtMatmulAlgo_t *algorithm, const struct setting *setting)
{
    int value = 0;
    size_t written;
    if (cublaslt.algo_get(algorithm, setting->attribute, &value, setting->size, &written) !=
        CUBLAS_STATUS_SUCCESS)
        return setting->always ? -1 : 0;
    return value;
}

/* Each setting is named whole or not at all. */
void cublaslt_describe(const struct kernel_state *state, char *text, size_t size)
{
    size_t used = 0;
    for (int k = 0; k < ARRAY_COUNT(settings); k++) {
        int value = value_of(&state->algorithm, &settings[k]);
        if (!value && !settings[k].always)
            continue;
        int length =
            snprintf(text + used, size - used, "%s%s %d", used ? " " : "", settings[k].name, value);
        if (length < 0 || (size_t)length >= size - used) {
            text[used] = 0;
            return;
        }
        used += (size_t)length;
    }
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
    cublasLtHandle_t handle;
    TRY(cublaslt_handle(state->device, &handle, err));
    if (bias)
        CUBLASLT_TRY(
            cublaslt.desc_set(m->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)),
            err);
    for (int64_t call = 0; call < p->calls; call++) {
        struct matmul_offset at = product_offset(p, call);
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
    return enqueue_activation(state, args, err);
}

void cublaslt_launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct error *err = args->err;
    enqueue(state, args, err && err->code == STATUS_OK ? err : NULL);
}
