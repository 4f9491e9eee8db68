/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/fake_cublaslt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/fake_device.h"

enum { MAGIC = 0x17b1a5, MATRICES = 4, TAKEN_FOR_GRANTED = 256, BIAS_ALIGN = 16 };

/* What is where in an algorithm's words. */
enum { WORD_ID, WORD_SUMS, WORD_ALIGNMENT };

struct thing {
    int magic;
    /* of a product */
    cublasComputeType_t compute;
    cublasOperation_t left, right;
    cublasLtEpilogue_t epilogue;
    const void *bias;
    cudaDataType bias_type;
    int8_t fast;
    /* of a matrix */
    cudaDataType type;
    uint64_t rows, cols;
    int64_t ld, stride;
    int32_t batch;
    /* of a preference */
    uint32_t schemes, alignment[MATRICES];
};

struct fake_products fake_products;

#define MAY_FAIL(name)                                                                             \
    do {                                                                                           \
        if (fake_fails(name))                                                                      \
            return CUBLAS_STATUS_INTERNAL_ERROR;                                                   \
    } while (0)
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "fake cuBLASLt: %s: not so: %s\n", __func__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void *make_thing(void)
{
    struct thing *thing = calloc(1, sizeof(*thing));
    MUST(thing);
    *thing = (struct thing){.magic = MAGIC, .batch = 1};
    fake.live++;
    return thing;
}

static cublasStatus_t end_thing(void *thing)
{
    struct thing *own = thing;
    MUST(own && own->magic == MAGIC);
    own->magic = 0;
    fake.live--;
    free(own);
    return CUBLAS_STATUS_SUCCESS;
}

static struct thing *of(const void *thing)
{
    struct thing *own;
    memcpy(&own, &thing, sizeof(own));
    MUST(own && own->magic == MAGIC);
    return own;
}

static size_t version(void)
{
    return CUBLAS_VERSION;
}

static const char *status_name(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_INTERNAL_ERROR ? "CUBLAS_STATUS_INTERNAL_ERROR" : "?";
}

static cublasStatus_t handle_new(cublasLtHandle_t *handle)
{
    MAY_FAIL("cublasLtCreate");
    *handle = make_thing();
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t handle_free(cublasLtHandle_t handle)
{
    return end_thing(handle);
}

/* ---- descriptors ---- */

static cublasStatus_t desc_new(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                               cudaDataType_t scale)
{
    MUST(scale == (compute == CUBLAS_COMPUTE_32I ? CUDA_R_32I : CUDA_R_32F));
    MAY_FAIL("cublasLtMatmulDescCreate");
    *desc = make_thing();
    of(*desc)->compute = compute;
    of(*desc)->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t desc_free(cublasLtMatmulDesc_t desc)
{
    return end_thing(desc);
}

static cublasStatus_t desc_set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name,
                               const void *value, size_t size)
{
    struct thing *thing = of(desc);
    void *to = name == CUBLASLT_MATMUL_DESC_TRANSA           ? (void *)&thing->left
               : name == CUBLASLT_MATMUL_DESC_TRANSB         ? (void *)&thing->right
               : name == CUBLASLT_MATMUL_DESC_EPILOGUE       ? (void *)&thing->epilogue
               : name == CUBLASLT_MATMUL_DESC_FAST_ACCUM     ? (void *)&thing->fast
               : name == CUBLASLT_MATMUL_DESC_BIAS_POINTER   ? (void *)&thing->bias
               : name == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE ? (void *)&thing->bias_type
                                                             : NULL;
    MUST(to);
    MUST(size == (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? sizeof(void *)
                  : name == CUBLASLT_MATMUL_DESC_FAST_ACCUM ? sizeof(int8_t)
                                                            : sizeof(int32_t)));
    MAY_FAIL("cublasLtMatmulDescSetAttribute");
    memcpy(to, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t layout_new(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                 uint64_t cols, int64_t ld)
{
    MUST(rows > 0 && cols > 0 && ld >= (int64_t)rows);
    MAY_FAIL("cublasLtMatrixLayoutCreate");
    *layout = make_thing();
    struct thing *thing = of(*layout);
    thing->type = type;
    thing->rows = rows;
    thing->cols = cols;
    thing->ld = ld;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t layout_free(cublasLtMatrixLayout_t layout)
{
    return end_thing(layout);
}

static cublasStatus_t layout_set(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t name, const void *value,
                                 size_t size)
{
    struct thing *thing = of(layout);
    bool count = name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
    MUST(count || name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
    MUST(size == (count ? sizeof(int32_t) : sizeof(int64_t)));
    MAY_FAIL("cublasLtMatrixLayoutSetAttribute");
    memcpy(count ? (void *)&thing->batch : (void *)&thing->stride, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t preference_new(cublasLtMatmulPreference_t *preference)
{
    MAY_FAIL("cublasLtMatmulPreferenceCreate");
    *preference = make_thing();
    of(*preference)->schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
    for (int k = 0; k < MATRICES; k++)
        of(*preference)->alignment[k] = TAKEN_FOR_GRANTED;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t preference_free(cublasLtMatmulPreference_t preference)
{
    return end_thing(preference);
}

static cublasStatus_t preference_set(cublasLtMatmulPreference_t preference,
                                     cublasLtMatmulPreferenceAttributes_t name, const void *value,
                                     size_t size)
{
    struct thing *thing = of(preference);
    int matrix = (int)name - (int)CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    void *to = name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
                   ? (void *)&fake_products.workspace_limit
               : name == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK ? (void *)&thing->schemes
               : matrix >= 0 && matrix < MATRICES ? (void *)&thing->alignment[matrix]
                                                  : NULL;
    MUST(to);
    MUST(size ==
         (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? sizeof(uint64_t) : sizeof(uint32_t)));
    MAY_FAIL("cublasLtMatmulPreferenceSetAttribute");
    memcpy(to, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- types ---- */

static int64_t bytes_of(cudaDataType_t type)
{
    return type == CUDA_R_8I || type == CUDA_R_8F_E4M3 ? 1
           : type == CUDA_R_32F || type == CUDA_R_32I  ? 4
                                                       : 2;
}

static double number_at(cudaDataType_t type, const void *data, int64_t at)
{
    float number;
    const char *from = (const char *)data + at * bytes_of(type);
    if (type == CUDA_R_8I)
        return *(const int8_t *)from;
    MUST(type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_8F_E4M3);
    floats_load(type == CUDA_R_32F    ? DTYPE_F32
                : type == CUDA_R_16F  ? DTYPE_F16
                : type == CUDA_R_16BF ? DTYPE_BF16
                                      : DTYPE_F8E4M3,
                from, &number, 1);
    return (double)number;
}

static void put(cudaDataType_t type, void *data, double number)
{
    float result = (float)number;
    if (type == CUDA_R_32I)
        *(int32_t *)data = (int32_t)number;
    else
        floats_store(type == CUDA_R_32F   ? DTYPE_F32
                     : type == CUDA_R_16F ? DTYPE_F16
                                          : DTYPE_BF16,
                     &result, data, 1);
}

/* The tables of cublasLtMatmul in the library's manual: what goes together, and what of bytes. */
static bool knows(const struct thing *desc, const struct thing *a, const struct thing *b,
                  const struct thing *d)
{
    bool f8 = a->type == CUDA_R_8F_E4M3, i8 = a->type == CUDA_R_8I,
         bias = desc->epilogue & CUBLASLT_EPILOGUE_BIAS;
    int64_t step = f8 ? 16 : 4, row = step / bytes_of(d->type);
    if (a->type != b->type ||
        (i8 ? desc->epilogue != CUBLASLT_EPILOGUE_DEFAULT : bias && desc->bias_type != d->type))
        return false;
    if (!f8 && !i8)
        return a->type == d->type && desc->compute != CUBLAS_COMPUTE_32I;
    if (f8 && (d->type == CUDA_R_32I || desc->compute != CUBLAS_COMPUTE_32F ||
               (bias && d->type == CUDA_R_32F)))
        return false;
    if (i8 && (d->type != CUDA_R_32I || desc->compute != CUBLAS_COMPUTE_32I))
        return false;
    return desc->left == CUBLAS_OP_T && desc->right == CUBLAS_OP_N && a->rows % step == 0 &&
           d->rows % step == 0 && a->ld % step == 0 && b->ld % step == 0 && d->ld % row == 0;
}

/* ---- algorithms ---- */

static cublasStatus_t heuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                cublasLtMatmulPreference_t preference, int wanted,
                                cublasLtMatmulHeuristicResult_t results[], int *count)
{
    const struct thing *wishes = of(preference);
    of(handle);
    of(desc);
    MUST(of(a) && of(b) && of(c) && of(d) && wanted >= 3);
    MAY_FAIL("cublasLtMatmulAlgoGetHeuristic");
    *count = knows(of(desc), of(a), of(b), of(d)) ? 3 : 0;
    for (int k = 0; k < *count; k++) {
        memset(&results[k], 0, sizeof(results[k]));
        results[k].algo.data[WORD_ID] = (uint64_t)k;
        results[k].algo.data[WORD_SUMS] = wishes->schemes & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE
                                              ? CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE
                                              : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
        for (int m = 0; m < MATRICES; m++)
            results[k].algo.data[WORD_ALIGNMENT + m] = wishes->alignment[m];
        results[k].workspaceSize = FAKE_LT_WORKSPACE;
        results[k].state = k == 1 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t algo_get(const cublasLtMatmulAlgo_t *algorithm,
                               cublasLtMatmulAlgoConfigAttributes_t name, void *value, size_t size,
                               size_t *written)
{
    bool narrow = name == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ||
                  name == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
    uint32_t number = name == CUBLASLT_ALGO_CONFIG_ID ? (uint32_t)algorithm->data[WORD_ID]
                      : name == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME
                          ? (uint32_t)algorithm->data[WORD_SUMS]
                      : name == CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING ? 0
                                                                   : (uint32_t)name;
    uint16_t low = (uint16_t)number;
    MUST(size == (narrow ? sizeof(low) : sizeof(number)));
    MAY_FAIL("cublasLtMatmulAlgoConfigGetAttribute");
    memcpy(value, narrow ? (void *)&low : (void *)&number, size);
    *written = size;
    return CUBLAS_STATUS_SUCCESS;
}

/* Whether the addresses are what was promised when the algorithm was asked for. */
static bool lies_as_promised(const cublasLtMatmulAlgo_t *algorithm, const void *const *matrices)
{
    for (int m = 0; m < MATRICES; m++) {
        uint64_t promised = algorithm->data[WORD_ALIGNMENT + m];
        if ((uintptr_t)matrices[m] % (promised < TAKEN_FOR_GRANTED ? promised : TAKEN_FOR_GRANTED))
            return false;
    }
    return true;
}

/* ---- the product, column-major ---- */

static double element(const struct thing *layout, const void *data, bool transposed, int64_t row,
                      int64_t col)
{
    int64_t at = transposed ? col + row * layout->ld : row + col * layout->ld;
    return number_at(layout->type, data, at);
}

static double finish(const struct thing *desc, double value, int64_t row)
{
    int epilogue = (int)desc->epilogue;
    if (epilogue & CUBLASLT_EPILOGUE_BIAS)
        value += number_at(desc->bias_type, desc->bias, row);
    if (epilogue & CUBLASLT_EPILOGUE_RELU)
        value = value > 0 ? value : 0;
    if (epilogue & CUBLASLT_EPILOGUE_GELU)
        value *= 0.5 * (1 + tanh(0.79788456080286536 * (value + 0.044715 * value * value * value)));
    return value;
}

struct matrices {
    const struct thing *desc, *a, *b, *c, *d;
    double alpha, beta;
};

static void multiply(const struct matrices *m, const char *a, const char *b, const char *c, char *d)
{
    const int64_t size = bytes_of(m->d->type);
    bool left = m->desc->left == CUBLAS_OP_T, right = m->desc->right == CUBLAS_OP_T;
    int64_t depth = (int64_t)(left ? m->a->rows : m->a->cols);
    MUST((int64_t)(right ? m->b->cols : m->b->rows) == depth);
    MUST((left ? m->a->cols : m->a->rows) == m->d->rows);
    MUST((right ? m->b->rows : m->b->cols) == m->d->cols);
    for (int64_t col = 0; col < (int64_t)m->d->cols; col++)
        for (int64_t row = 0; row < (int64_t)m->d->rows; row++) {
            double sum = 0;
            for (int64_t k = 0; k < depth; k++)
                sum += element(m->a, a, left, row, k) * element(m->b, b, right, k, col);
            sum *= m->alpha;
            if (m->beta != 0)
                sum += m->beta * element(m->c, c, false, row, col);
            put(m->d->type, d + (row + col * m->d->ld) * size, finish(m->desc, sum, row));
        }
}

static cublasStatus_t matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                             const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                             cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                             cublasLtMatrixLayout_t c_layout, void *d,
                             cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algorithm,
                             void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    struct matrices m = {.desc = of(desc),
                         .a = of(a_layout),
                         .b = of(b_layout),
                         .c = of(c_layout),
                         .d = of(d_layout)};
    bool whole = m.desc->compute == CUBLAS_COMPUTE_32I;
    m.alpha = whole ? *(const int32_t *)alpha : (double)*(const float *)alpha;
    m.beta = whole ? *(const int32_t *)beta : (double)*(const float *)beta;
    of(handle);
    MUST(algorithm && algorithm->data[WORD_ID] != 1);
    MUST(workspace && workspace_bytes == FAKE_LT_WORKSPACE);
    MUST((uintptr_t)workspace % TAKEN_FOR_GRANTED == 0);
    MUST(lies_as_promised(algorithm, (const void *const[]){a, b, c, d}));
    MUST(!(m.desc->epilogue & CUBLASLT_EPILOGUE_BIAS) || (uintptr_t)m.desc->bias % BIAS_ALIGN == 0);
    MUST(m.c->type == m.d->type && knows(m.desc, m.a, m.b, m.d));
    MUST(m.a->batch == m.d->batch && m.b->batch == m.d->batch && m.c->batch == m.d->batch);
    MAY_FAIL("cublasLtMatmul");
    const int64_t factor = bytes_of(m.a->type), size = bytes_of(m.d->type);
    for (int64_t k = 0; k < m.d->batch; k++)
        multiply(&m, (const char *)a + k * m.a->stride * factor,
                 (const char *)b + k * m.b->stride * factor,
                 (const char *)c + k * m.c->stride * size, (char *)d + k * m.d->stride * size);
    fake.clock_ns += algorithm->data[WORD_ID] ? 1000 : 2000;
    fake_products.count++;
    fake_products.stream = stream;
    fake_products.compute = m.desc->compute;
    fake_products.epilogue = m.desc->epilogue;
    fake_products.algorithm = (int)algorithm->data[WORD_ID];
    fake_products.sums = (cublasLtReductionScheme_t)algorithm->data[WORD_SUMS];
    return CUBLAS_STATUS_SUCCESS;
}

void fake_cublaslt(struct cublaslt_api *api)
{
    *api = (struct cublaslt_api){.version = version,
                                 .status_name = status_name,
                                 .handle_new = handle_new,
                                 .handle_free = handle_free,
                                 .desc_new = desc_new,
                                 .desc_free = desc_free,
                                 .desc_set = desc_set,
                                 .layout_new = layout_new,
                                 .layout_free = layout_free,
                                 .layout_set = layout_set,
                                 .preference_new = preference_new,
                                 .preference_free = preference_free,
                                 .preference_set = preference_set,
                                 .heuristic = heuristic,
                                 .algo_get = algo_get,
                                 .matmul = matmul};
    fake_products = (struct fake_products){.count = 0};
}
