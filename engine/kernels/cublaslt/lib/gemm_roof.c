/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor cores as the largest products reach them: square, both factors along K, which every type
 * knows, 64 rows per multiprocessor (8192 on an H200), with the fastest of the algorithms that the
 * library's heuristic names first. It is no instruction's peak but what the best library makes of
 * it; where no own kernel knows the chip's instruction (tcgen05 of Blackwell) it is the roof. The
 * factors are noise, since a GPU's clock under load depends on how many bits change. */
#include "engine/kernels/cublaslt/lib/gemm_roof.h"

#include <stdlib.h>
#include <string.h>

#include "engine/kernels/cublaslt/lib/product.h"

enum {
    ROWS_PER_UNIT = 64,
    ROWS_STEP = 256,
    WORKSPACE = 32 << 20,
    ALGORITHMS = 8,
    ROUNDS = 3, /* of an algorithm, when they are compared */
    NOISE_BYTES = 1 << 20
};

struct gemm_type {
    const char *precision;
    cudaDataType_t factor, result, scale;
    cublasComputeType_t compute;
    size_t factor_bytes, result_bytes;
    bool fast_sums; /* f8: sums need not be those of f32 in full */
};

static const struct gemm_type types[] = {
    {"f16", CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2, 2, false},
    {"bf16", CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2, 2, false},
    {"tf32", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4, 4, false},
    {"i8", CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 1, 4, false},
    {"f8", CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1, 2, true},
};

struct roof_state {
    const struct device *device;
    const struct gemm_type *type;
    int64_t rows;
    void *factors[2], *result, *workspace; /* of the device */
    struct matmul matmul;
    cublasLtMatmulHeuristicResult_t results[ALGORITHMS];
    int count, best;
};

static void release(struct roof_state *s)
{
    void *memory[] = {s->factors[0], s->factors[1], s->result, s->workspace};
    for (int k = 0; k < ARRAY_COUNT(memory); k++)
        if (memory[k])
            s->device->kind->free(s->device, memory[k]);
    matmul_free(&s->matmul);
    free(s);
}

/* ---- descriptors ---- */

static enum status describe(struct roof_state *s, struct error *why)
{
    const struct gemm_type *t = s->type;
    struct matmul *m = &s->matmul;
    uint64_t n = (uint64_t)s->rows;
    cublasOperation_t left = CUBLAS_OP_T;
    int8_t fast = 1;
    CUBLASLT_TRY(cublaslt.desc_new(&m->desc, t->compute, t->scale), why);
    CUBLASLT_TRY(cublaslt.desc_set(m->desc, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof(left)), why);
    if (t->fast_sums)
        CUBLASLT_TRY(
            cublaslt.desc_set(m->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof(fast)), why);
    for (int k = 0; k < OPERANDS; k++)
        CUBLASLT_TRY(cublaslt.layout_new(&m->layout[k], k <= RIGHT ? t->factor : t->result, n, n,
                                         (int64_t)n),
                     why);
    return STATUS_OK;
}

static enum status ask(struct roof_state *s, cublasLtMatmulPreference_t preference,
                       struct error *why)
{
    const struct matmul *m = &s->matmul;
    cublasLtHandle_t handle;
    size_t limit = WORKSPACE;
    int count = 0;
    TRY(cublaslt_handle(s->device, &handle, why));
    CUBLASLT_TRY(cublaslt.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &limit, sizeof(limit)),
                 why);
    CUBLASLT_TRY(cublaslt.heuristic(handle, m->desc, m->layout[LEFT], m->layout[RIGHT],
                                    m->layout[ADDEND], m->layout[RESULT], preference, ALGORITHMS,
                                    s->results, &count),
                 why);
    for (int k = 0; k < count; k++)
        if (s->results[k].state == CUBLAS_STATUS_SUCCESS)
            s->results[s->count++] = s->results[k];
    return s->count ? STATUS_OK : REFUSE(why, "cuBLASLt has no algorithm for it on this chip");
}

static enum status ask_all(struct roof_state *s, struct error *why)
{
    cublasLtMatmulPreference_t preference;
    CUBLASLT_TRY(cublaslt.preference_new(&preference), why);
    enum status status = ask(s, preference, why);
    cublaslt.preference_free(preference);
    return status;
}

/* ---- memory ---- */

/* No exponent is all ones, in any of the types. */
static void make_noise(unsigned char *noise)
{
    uint32_t x = 1;
    for (int k = 0; k < NOISE_BYTES; k++) {
        x = x * 1664525u + 1013904223u;
        noise[k] = (unsigned char)(x >> 24 & 0xbf);
    }
}

static enum status fill(const struct roof_state *s, const unsigned char *noise, struct error *why)
{
    const struct device_kind *kind = s->device->kind;
    size_t bytes = (size_t)(s->rows * s->rows) * s->type->factor_bytes;
    for (int f = 0; f < 2; f++)
        for (size_t at = 0; at < bytes; at += NOISE_BYTES)
            TRY(kind->copy(s->device, (char *)s->factors[f] + at, noise,
                           bytes - at < NOISE_BYTES ? bytes - at : NOISE_BYTES, COPY_TO_DEVICE,
                           NULL, why));
    return kind->wait(s->device, NULL, why);
}

static enum status place(struct roof_state *s, struct error *why)
{
    const struct device_kind *kind = s->device->kind;
    size_t count = (size_t)(s->rows * s->rows), workspace = 0;
    for (int f = 0; f < 2; f++)
        TRY(kind->alloc(s->device, count * s->type->factor_bytes, &s->factors[f], why));
    TRY(kind->alloc(s->device, count * s->type->result_bytes, &s->result, why));
    for (int k = 0; k < s->count; k++)
        workspace =
            s->results[k].workspaceSize > workspace ? s->results[k].workspaceSize : workspace;
    TRY(kind->alloc(s->device, workspace, &s->workspace, why));
    unsigned char *noise = malloc(NOISE_BYTES);
    if (!noise)
        return cublaslt_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    make_noise(noise);
    enum status status = fill(s, noise, why);
    free(noise);
    return status;
}

/* ---- running ---- */

static enum status run(const struct roof_state *s, int64_t rounds, void *stream, struct error *err)
{
    const cublasLtMatmulHeuristicResult_t *choice = &s->results[s->best];
    const struct matmul *m = &s->matmul;
    const float one = 1, zero = 0;
    const int32_t one_i = 1, zero_i = 0;
    bool integers = s->type->scale == CUDA_R_32I;
    cublasLtHandle_t handle;
    TRY(cublaslt_handle(s->device, &handle, err));
    for (int64_t k = 0; k < rounds; k++)
        CUBLASLT_TRY(cublaslt.matmul(handle, m->desc, integers ? (const void *)&one_i : &one,
                                     s->factors[0], m->layout[LEFT], s->factors[1],
                                     m->layout[RIGHT], integers ? (const void *)&zero_i : &zero,
                                     s->result, m->layout[ADDEND], s->result, m->layout[RESULT],
                                     &choice->algo, s->workspace, choice->workspaceSize, stream),
                     err);
    return STATUS_OK;
}

/* ---- choosing ---- */

/* Of the algorithm that is `best` now, after one round that nobody times. */
static enum status time_rounds(const struct roof_state *s, void *const *events, double *ns,
                               struct error *why)
{
    const struct device_kind *kind = s->device->kind;
    TRY(run(s, 1, NULL, why));
    TRY(kind->event_record(s->device, events[0], NULL, why));
    TRY(run(s, ROUNDS, NULL, why));
    TRY(kind->event_record(s->device, events[1], NULL, why));
    TRY(kind->wait(s->device, NULL, why));
    return kind->event_elapsed(s->device, events[0], events[1], ns, why);
}

static enum status compare(struct roof_state *s, void *const *events, struct error *why)
{
    double ns, least = 0;
    int best = 0;
    for (s->best = 0; s->best < s->count; s->best++) {
        TRY(time_rounds(s, events, &ns, why));
        if (s->best && ns >= least)
            continue;
        least = ns;
        best = s->best;
    }
    s->best = best;
    return STATUS_OK;
}

static enum status choose(struct roof_state *s, struct error *why)
{
    const struct device_kind *kind = s->device->kind;
    void *events[2] = {NULL, NULL};
    enum status status = STATUS_OK;
    for (int k = 0; k < 2 && status == STATUS_OK; k++)
        status = kind->event_new(s->device, &events[k], why);
    if (status == STATUS_OK)
        status = compare(s, events, why);
    for (int k = 0; k < 2; k++)
        if (events[k])
            kind->event_free(s->device, events[k]);
    return status;
}

/* ---- hooks ---- */

static const struct gemm_type *type_of(const char *precision)
{
    for (int k = 0; k < ARRAY_COUNT(types); k++)
        if (strcmp(types[k].precision, precision) == 0)
            return &types[k];
    return NULL;
}

static enum status prepare(const struct device_roof *roof, const struct device *device,
                           struct roof_work *work, struct roof_state **state, struct error *why)
{
    int64_t wanted = (int64_t)device->properties.units * ROWS_PER_UNIT;
    struct roof_state *s = calloc(1, sizeof(*s));
    if (!s)
        return cublaslt_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    s->device = device;
    s->type = type_of(roof->precision);
    s->rows = wanted < ROWS_STEP ? ROWS_PER_UNIT : wanted / ROWS_STEP * ROWS_STEP;
    enum status status = describe(s, why);
    if (status == STATUS_OK)
        status = ask_all(s, why);
    if (status == STATUS_OK)
        status = place(s, why);
    if (status == STATUS_OK)
        status = choose(s, why);
    if (status != STATUS_OK) {
        release(s);
        return status;
    }
    work->amount = 2.0 * (double)s->rows * (double)s->rows * (double)s->rows;
    *state = s;
    return STATUS_OK;
}

#define GEMM_ROOF(type, unit, sums)                                                                \
    {                                                                                              \
        "gemm " type, "cuda", "", type, "gemm", "cublasLtMatmul, 64 rows per multiprocessor" sums, \
            unit, ROOF_COMPUTE, prepare, run, release                                              \
    }

static const struct device_roof roofs[] = {
    GEMM_ROOF("f16", "FLOP/s", ""),
    GEMM_ROOF("bf16", "FLOP/s", ""),
    GEMM_ROOF("tf32", "FLOP/s", ""),
    GEMM_ROOF("i8", "OP/s", ""),
    GEMM_ROOF("f8", "FLOP/s", ", short sums, which no kernel of ridge asks for"),
};

const struct roof_group cublaslt_gemm_roofs = {sizeof(struct device_roof), roofs,
                                               ARRAY_COUNT(roofs)};
