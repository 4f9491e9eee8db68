/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cublaslt/lib/algorithms.h"

#include <stdio.h>

enum { WORKSPACE = 32 << 20, WORKSPACE_BLACKWELL = 64 << 20 };

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

static enum status ask(const struct device *device, const struct product *p, const struct matmul *m,
                       cublasLtMatmulPreference_t preference, struct algorithms *choices,
                       struct error *why)
{
    cublasLtHandle_t handle;
    uint64_t limit = device->properties.major >= 10 ? WORKSPACE_BLACKWELL : WORKSPACE;
    TRY(cublaslt_handle(device, &handle, why));
    CUBLASLT_TRY(cublaslt.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &limit, sizeof(limit)),
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

enum status algorithms_find(const struct device *device, const struct product *p,
                            struct algorithms *choices, struct error *why)
{
    cublasLtMatmulPreference_t preference = NULL;
    struct matmul matmul;
    enum status status = matmul_make(p, &matmul, why);
    if (status == STATUS_OK) {
        cublasStatus_t made = cublaslt.preference_new(&preference);
        status = made == CUBLAS_STATUS_SUCCESS
                     ? ask(device, p, &matmul, preference, choices, why)
                     : cublaslt_refuse(why, made, "cublaslt.preference_new(");
    }
    if (preference)
        cublaslt.preference_free(preference);
    matmul_free(&matmul);
    return status;
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
void algorithm_describe(const cublasLtMatmulAlgo_t *algorithm, char *text, size_t size)
{
    size_t used = 0;
    for (int k = 0; k < ARRAY_COUNT(settings); k++) {
        int value = value_of(algorithm, &settings[k]);
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
