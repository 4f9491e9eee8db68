/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cublaslt/lib/product.h"

#include <string.h>

/* ---- operands ---- */

struct view {
    int64_t rows, cols, row, col; /* sizes and strides of a matrix of ours */
    const int64_t *batch;         /* strides of the batch dimensions */
};

/* Strides of dimensions of size 1 can be anything. A dense column is a factor of one line, not of
 * many lines of one element, which would begin anywhere. */
static enum status operand_from(struct view v, bool factor, const char *name, struct operand *o,
                                struct error *why)
{
    bool column = factor && v.cols == 1 && v.rows > 1 && v.row == 1;
    if (v.cols == 1)
        v.col = column ? v.rows : 1;
    if (v.rows == 1)
        v.row = v.col == 1 ? v.cols : 1;
    bool by_rows = !column && v.col == 1 && v.row >= v.cols;
    bool by_cols = v.row == 1 && v.col >= v.rows;
    if (!by_rows && !by_cols)
        return REFUSE(why, "%s has gaps in rows and columns", name);
    *o = (struct operand){.rows = by_rows ? v.cols : v.rows,
                          .cols = by_rows ? v.rows : v.cols,
                          .ld = by_rows ? v.row : v.col,
                          .transposed = !by_rows};
    return STATUS_OK;
}

static bool goes_on(const struct matmul_shape *s, const int64_t *stride, int outer)
{
    return stride[outer] == stride[outer + 1] * s->batch_dim[outer + 1];
}

/* The first of the neighbouring batch dimensions that one stride walks, up to `last`. */
static int first_of(const struct matmul_shape *s, int last)
{
    int first = last;
    while (first > 0 && goes_on(s, s->a_batch, first - 1) && goes_on(s, s->b_batch, first - 1) &&
           goes_on(s, s->c_batch, first - 1))
        first--;
    return first;
}

/* The most products that one stride can walk become one call. */
static void split_batch(struct product *p)
{
    const struct matmul_shape *s = &p->shape;
    p->batch = 1;
    p->last = -1;
    for (int last = s->batch_rank - 1; last >= 0; last--) {
        int64_t count = 1;
        int first = first_of(s, last);
        for (int k = first; k <= last; k++)
            count *= s->batch_dim[k];
        if (p->last >= 0 && count <= p->batch)
            continue;
        p->first = first;
        p->last = last;
        p->batch = count;
    }
    p->calls = s->batch / p->batch;
    if (p->last < 0)
        return;
    p->operand[LEFT].batch_stride = s->b_batch[p->last];
    p->operand[RIGHT].batch_stride = s->a_batch[p->last];
    p->operand[ADDEND].batch_stride = p->operand[RESULT].batch_stride = s->c_batch[p->last];
}

/* Where the matrices of one of its calls begin, in elements. */
static struct matmul_offset product_offset(const struct product *p, int64_t call)
{
    const struct matmul_shape *s = &p->shape;
    struct matmul_offset at = {.a = 0};
    for (int k = s->batch_rank - 1; k >= 0; k--) {
        if (k >= p->first && k <= p->last)
            continue;
        int64_t index = call % s->batch_dim[k];
        call /= s->batch_dim[k];
        at.a += index * s->a_batch[k];
        at.b += index * s->b_batch[k];
        at.c += index * s->c_batch[k];
    }
    return at;
}

/* Tensors begin at ALIGN_DEVICE, which is what the library takes for granted; what lies in between
 * divides that. */
static uint32_t alignment_of(const struct product *p, const int64_t *stride, size_t element)
{
    uint64_t bits = ALIGN_DEVICE;
    for (int k = 0; k < p->shape.batch_rank; k++)
        if ((k < p->first || k > p->last) && p->shape.batch_dim[k] > 1)
            bits |= (uint64_t)stride[k] * element;
    return (uint32_t)(bits & -bits);
}

static void align(struct product *p)
{
    const struct matmul_shape *s = &p->shape;
    p->alignment[LEFT] = alignment_of(p, s->b_batch, p->type.factor_bytes);
    p->alignment[RIGHT] = alignment_of(p, s->a_batch, p->type.factor_bytes);
    p->alignment[ADDEND] = p->alignment[RESULT] = alignment_of(p, s->c_batch, p->type.result_bytes);
}

static void turn(struct product *p)
{
    struct operand *o = &p->operand[LEFT];
    p->turn = true;
    *o = (struct operand){.rows = p->k,
                          .cols = p->m,
                          .ld = p->k,
                          .transposed = true,
                          .batch_stride = o->batch_stride};
}

/* Rows of a constant that do not begin at multiples of 16 bytes, where its columns would. */
static void right_words(const struct kernel_query *q, struct product *p)
{
    const int64_t step = 16 / (int64_t)sizeof(uint16_t);
    const struct operand *o = &p->operand[LEFT];
    if (p->type.factor_bytes != sizeof(uint16_t) || !query_fixed(q, 1) || o->transposed ||
        p->m == 1 || p->m % step == 0 || p->k % step || !cublaslt_host->desc_is_plain(&q->in[1]))
        return;
    p->packs = (size_t)shape_count(&q->in[1].shape);
    turn(p);
}

/* The right operand as the library reads it: one byte per element, K first. */
static enum status right_bytes(const struct kernel_query *q, struct product *p, struct error *why)
{
    const struct operand *o = &p->operand[LEFT];
    p->packs = query_fixed(q, 1) ? (size_t)shape_count(&q->in[1].shape) : 0;
    if (p->packs && !cublaslt_host->desc_is_plain(&q->in[1]))
        return REFUSE(why, "the constant operand is not plain");
    if (p->packs && !o->transposed)
        turn(p);
    return STATUS_OK;
}

static bool on_steps(const struct matmul_shape *s, int64_t step, int64_t result_step)
{
    for (int k = 0; k < s->batch_rank; k++)
        if (s->a_batch[k] % step || s->b_batch[k] % step || s->c_batch[k] % result_step)
            return false;
    return true;
}

static enum status bytes(const struct kernel_query *q, struct product *p, struct error *why)
{
    int step = p->type.step, result_step = step / (int)p->type.result_bytes;
    if (p->type.factor_bytes > 1) {
        right_words(q, p);
        return STATUS_OK;
    }
    TRY(right_bytes(q, p, why));
    if (!p->operand[LEFT].transposed || p->operand[RIGHT].transposed)
        return REFUSE(why, "of bytes both factors must lie along the length of the sums, or the "
                           "right one be constant");
    bool sizes = p->k % step == 0 && p->m % step == 0;
    if (!sizes)
        return REFUSE(why, "%lld columns of sums of %lld bytes: both must be multiples of %d",
                      (long long)p->m, (long long)p->k, step);
    if (p->operand[LEFT].ld % step || p->operand[RIGHT].ld % step ||
        p->operand[RESULT].ld % result_step || !on_steps(&p->shape, step, result_step))
        return REFUSE(why, "rows or matrices do not begin on %d bytes", step);
    return STATUS_OK;
}

/* Of p->shape. */
static enum status operands(struct product *p, struct error *why)
{
    const struct matmul_shape *s = &p->shape;
    struct view a = {s->m, s->k, s->a_row, s->a_col, s->a_batch};
    struct view b = {s->k, s->n, s->b_row, s->b_col, s->b_batch};
    struct view c = {s->m, s->n, s->c_row, s->c_col, s->c_batch};
    if (s->batch < 1 || s->m < 1 || s->n < 1 || s->k < 1)
        return REFUSE(why, "empty product");
    TRY(operand_from(b, true, "the right operand", &p->operand[LEFT], why));
    TRY(operand_from(a, true, "the left operand", &p->operand[RIGHT], why));
    TRY(operand_from(c, false, "the result", &p->operand[RESULT], why));
    if (p->operand[RESULT].transposed)
        return REFUSE(why, "the result is stored by columns");
    p->operand[ADDEND] = p->operand[RESULT];
    p->m = s->n;
    p->n = s->m;
    p->k = s->k;
    split_batch(p);
    align(p);
    return STATUS_OK;
}

/* ---- the epilogue ---- */

static bool is_row(const struct desc *desc, int64_t columns)
{
    const struct shape *s = &desc->shape;
    return cublaslt_host->desc_is_plain(desc) && s->rank > 0 && s->dim[s->rank - 1] == columns &&
           shape_count(s) == columns;
}

/* The library's bias of a product of f8 to f32 would be bf16, 8 bits of our 24. */
static enum status spread(const struct kernel_query *q, struct product *p, int input, float factor,
                          struct error *why)
{
    if (!query_fixed(q, input) || p->batch * p->calls != 1 || p->addend != NONE)
        return REFUSE(why, "a product of f8 to f32 adds a row only if it is constant, and alone");
    p->spread = true;
    p->addend = input;
    p->beta.f = factor;
    return STATUS_OK;
}

/* A sum that is added before any activation: a row, or a tensor like the result. A row counts for
 * one when both fit, except where the node's result has no columns. */
static enum status add(const struct kernel_query *q, struct product *p, int input, float factor,
                       struct error *why)
{
    const struct desc *desc = query_in(q, input);
    if (!desc || desc->dtype != q->out[0].dtype)
        return REFUSE(why, "operand of the epilogue has another type");
    bool row = is_row(desc, p->m) && q->in[1].shape.rank > 1;
    if (row && p->type.step && p->type.d == CUDA_R_32F)
        return spread(q, p, input, factor, why);
    if (row && factor == 1 && p->bias == NONE) {
        p->bias = input;
        return STATUS_OK;
    }
    bool whole = shape_count(&desc->shape) == shape_count(&q->out[0].shape) &&
                 cublaslt_host->desc_is_plain(desc) && cublaslt_host->desc_is_plain(&q->out[0]);
    if (!whole || p->addend != NONE)
        return REFUSE(why, "it adds one row and one tensor of the result's size, no more");
    p->addend = input;
    p->beta.f = factor;
    return STATUS_OK;
}

/* What the library lacks the device computes in a second launch, where the result is one piece.
 * The result of the product is rounded to its type in between. */
static enum status activate(const struct kernel_query *q, const struct post *post,
                            struct product *p, struct error *why)
{
    if (post->act == FN_RELU) {
        p->epilogue = CUBLASLT_EPILOGUE_RELU;
        return STATUS_OK;
    }
    if (post->act == FN_GELU_TANH) {
        p->epilogue = CUBLASLT_EPILOGUE_GELU; /* the library's is the form by tanh */
        return STATUS_OK;
    }
    if (!q->device->kind->activate || !cublaslt_host->desc_is_dense(&q->out[0]))
        return REFUSE(why, "its only activations are relu and gelu by tanh");
    p->activates = true;
    p->after = *post;
    return STATUS_OK;
}

/* alpha, and what Gemm adds; integers know nothing of that. */
static enum status numbers(const struct kernel_query *q, struct product *p, struct error *why)
{
    const struct node *node = q->node;
    if (p->type.scale == CUDA_R_32I) {
        p->alpha.i = 1;
        return node->post_count ? REFUSE(why, "integers have no epilogue") : STATUS_OK;
    }
    bool gemm = strcmp(cublaslt_host->node_op(node), "Gemm") == 0;
    float beta = gemm ? (float)cublaslt_host->node_float(node, "beta", 1) : 1;
    p->alpha.f = (float)cublaslt_host->node_float(node, "alpha", 1);
    return gemm && node->op_inputs > 2 && query_in(q, 2) && beta != 0 ? add(q, p, 2, beta, why)
                                                                      : STATUS_OK;
}

static enum status epilogue(const struct kernel_query *q, struct product *p, struct error *why)
{
    const struct node *node = q->node;
    p->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    TRY(numbers(q, p, why));
    for (int k = 0; k < node->post_count; k++) {
        const struct post *post = &node->posts[k];
        if (p->epilogue != CUBLASLT_EPILOGUE_DEFAULT || p->activates)
            return REFUSE(why, "nothing can follow the activation");
        if (post->kind == POST_MUL)
            return REFUSE(why, "no product in the epilogue");
        TRY(post->kind == POST_ADD ? add(q, p, post->input, 1, why) : activate(q, post, p, why));
    }
    if (p->bias != NONE)
        p->epilogue = p->epilogue == CUBLASLT_EPILOGUE_RELU   ? CUBLASLT_EPILOGUE_RELU_BIAS
                      : p->epilogue == CUBLASLT_EPILOGUE_GELU ? CUBLASLT_EPILOGUE_GELU_BIAS
                                                              : CUBLASLT_EPILOGUE_BIAS;
    return STATUS_OK;
}

/* ---- types ---- */

static const struct product_type types[] = {
    {DTYPE_F32, DTYPE_F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 4, 4, 0},
    {DTYPE_F16, DTYPE_F16, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2, 2, 0},
    {DTYPE_BF16, DTYPE_BF16, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2, 2, 0},
    {DTYPE_F8E4M3, DTYPE_BF16, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1, 2,
     16},
    {DTYPE_F8E4M3, DTYPE_F16, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1, 2, 16},
    {DTYPE_F8E4M3, DTYPE_F32, CUDA_R_8F_E4M3, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1, 4, 16},
    {DTYPE_I8, DTYPE_I32, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 1, 4, 4},
};

/* MatMulInteger's: absent, or known to be 0. */
static enum status no_zero_points(const struct kernel_query *q, struct error *why)
{
    for (int k = 2; k < q->node->op_inputs; k++) {
        const char *zero = query_fixed(q, k);
        int64_t count = query_in(q, k) ? shape_count(&q->in[k].shape) : 0;
        for (int64_t i = 0; i < count; i++)
            if (!zero || zero[i])
                return REFUSE(why, "a zero point that is not 0, or not known");
    }
    return STATUS_OK;
}

static enum status type_of(const struct kernel_query *q, struct product *p, struct error *why)
{
    const struct device_properties *chip = &q->device->properties;
    const struct product_type *type = NULL;
    for (int k = 0; k < (int)(sizeof(types) / sizeof(types[0])); k++)
        if (types[k].factor == q->in[0].dtype && types[k].result == q->out[0].dtype)
            type = &types[k];
    if (!type)
        return REFUSE(why, "only f32, f16, bf16, f8 and signed bytes");
    if (q->in[1].dtype != type->factor)
        return REFUSE(why, "operands of different types");
    if (type->factor == DTYPE_F8E4M3 && chip->major * 10 + chip->minor < 89)
        return REFUSE(why, "products of f8 need sm_89 or newer (L40, H100); this is sm_%d%d",
                      chip->major, chip->minor);
    p->type = *type;
    if (type->factor == DTYPE_F32 && q->tf32)
        p->type.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    return type->factor == DTYPE_I8 ? no_zero_points(q, why) : STATUS_OK;
}

enum status product_from(const struct kernel_query *q, struct product *product, struct error *why)
{
    *product = (struct product){.addend = NONE, .bias = NONE};
    TRY(type_of(q, product, why));
    product->shape = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    TRY(operands(product, why));
    TRY(bytes(q, product, why));
    return epilogue(q, product, why);
}

enum status product_of_floats(const struct matmul_shape *shape, bool tf32, float alpha,
                              struct product *product, struct error *why)
{
    *product = (struct product){.addend = NONE,
                                .bias = NONE,
                                .shape = *shape,
                                .type = types[0],
                                .alpha = {.f = alpha},
                                .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    if (tf32)
        product->type.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    return operands(product, why);
}

/* ---- descriptors ---- */

static enum status layout(const struct product *p, int which, struct matmul *matmul,
                          struct error *why)
{
    const struct operand *o = &p->operand[which];
    cublasLtMatrixLayout_t *made = &matmul->layout[which];
    int32_t batch = (int32_t)p->batch;
    cudaDataType_t type = which == LEFT || which == RIGHT ? p->type.a : p->type.d;
    CUBLASLT_TRY(cublaslt.layout_new(made, type, (uint64_t)o->rows, (uint64_t)o->cols, o->ld), why);
    if (batch == 1)
        return STATUS_OK;
    CUBLASLT_TRY(
        cublaslt.layout_set(*made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)), why);
    CUBLASLT_TRY(cublaslt.layout_set(*made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                     &o->batch_stride, sizeof(o->batch_stride)),
                 why);
    return STATUS_OK;
}

enum status matmul_make(const struct product *p, struct matmul *matmul, struct error *why)
{
    cublasOperation_t left = p->operand[LEFT].transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t right = p->operand[RIGHT].transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    *matmul = (struct matmul){.desc = NULL};
    if (p->batch > INT32_MAX)
        return REFUSE(why, "more than 2^31 products");
    CUBLASLT_TRY(cublaslt.desc_new(&matmul->desc, p->type.compute, p->type.scale), why);
    CUBLASLT_TRY(cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof(left)),
                 why);
    CUBLASLT_TRY(
        cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof(right)), why);
    CUBLASLT_TRY(cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &p->epilogue,
                                   sizeof(p->epilogue)),
                 why);
    if (p->bias != NONE)
        CUBLASLT_TRY(cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                       &p->type.d, sizeof(p->type.d)),
                     why);
    for (int k = 0; k < OPERANDS; k++)
        TRY(layout(p, k, matmul, why));
    return STATUS_OK;
}

void matmul_free(struct matmul *matmul)
{
    for (int k = 0; k < OPERANDS; k++)
        if (matmul->layout[k])
            cublaslt.layout_free(matmul->layout[k]);
    if (matmul->desc)
        cublaslt.desc_free(matmul->desc);
    *matmul = (struct matmul){.desc = NULL};
}

/* ---- running ---- */

enum status product_run(const struct device *device, const struct product *p,
                        const struct matmul *m, const cublasLtMatmulAlgo_t *algorithm,
                        const struct product_memory *memory, void *stream, struct error *err)
{
    cublasLtHandle_t handle;
    TRY(cublaslt_handle(device, &handle, err));
    for (int64_t call = 0; call < p->calls; call++) {
        struct matmul_offset at = product_offset(p, call);
        size_t result = (size_t)at.c * p->type.result_bytes;
        const char *a = (const char *)memory->left + (size_t)at.a * p->type.factor_bytes;
        const char *b = (const char *)memory->right + (size_t)at.b * p->type.factor_bytes;
        char *d = (char *)memory->result + result;
        const char *c = memory->addend ? (const char *)memory->addend + result : d;
        CUBLASLT_TRY(cublaslt.matmul(handle, m->desc, &p->alpha, b, m->layout[LEFT], a,
                                     m->layout[RIGHT], &p->beta, c, m->layout[ADDEND], d,
                                     m->layout[RESULT], algorithm, memory->workspace,
                                     memory->workspace_bytes, stream),
                     err);
    }
    return STATUS_OK;
}
