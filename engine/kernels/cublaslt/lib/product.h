/* SPDX-License-Identifier: Apache-2.0
 *
 * A MatMul, Gemm, MatMulF8 or MatMulInteger node in cuBLASLt's terms.
 *
 * cuBLASLt stores columns, ridge rows. Row-major C = A B is column-major C' = B' A', so B is the
 * library's left operand, and the rows of its result are our columns: that is what its bias, one
 * number per row, needs.
 *
 * Of bytes the library multiplies only factors that both lie along K, on 16 bytes (4 for integers).
 * Of 16-bit numbers it multiplies all, but those that do not begin at multiples of 16 bytes slowly:
 * fixed ones whose rows do not, though their columns would, are stored by columns, too.
 */
#ifndef ENGINE_KERNELS_CUBLASLT_LIB_PRODUCT_H
#define ENGINE_KERNELS_CUBLASLT_LIB_PRODUCT_H

#include "engine/kernels/cublaslt/lib/api.h"
#include "engine/ops/lib/matmul_shape.h"

enum { LEFT, RIGHT, ADDEND, RESULT, OPERANDS };

struct operand {
    int64_t rows, cols, ld; /* column-major, as stored */
    bool transposed;
    int64_t batch_stride; /* elements */
};

/* Ours and the library's. */
struct product_type {
    enum dtype factor, result;
    cudaDataType_t a, d, scale;
    cublasComputeType_t compute;
    size_t factor_bytes, result_bytes;
    int step; /* bytes that rows and sizes of byte factors must be multiples of; 0: nothing */
};

/* In the type `scale`. */
union number {
    float f;
    int32_t i;
};

struct product {
    struct matmul_shape shape; /* of the node */
    int64_t m, n, k;           /* of the library's product: m is our n */
    struct operand operand[OPERANDS];
    int first, last; /* batch dimensions of the shape that one call walks; none: first > last */
    int64_t batch;   /* products per call */
    int64_t calls;   /* over the other dimensions */
    struct product_type type;
    uint32_t alignment[OPERANDS]; /* of the first matrix of every call, bytes */
    size_t packs; /* elements of the right operand that prepare stores; 0: it comes with a launch */
    bool turn;    /* they lie by rows and are stored by columns */
    union number alpha, beta;
    int addend;  /* input that is added, times beta, before everything else; NONE: none */
    int bias;    /* input with one number per column of ours; NONE: none */
    bool spread; /* the addend is a constant row: prepare makes a tensor of the result's size */
    cublasLtEpilogue_t epilogue;
    bool activates;    /* `after` follows in place, by the device: a second launch */
    struct post after; /* an activation that the library does not have */
};

/* UNSUPPORTED when the node's strides or epilogue have no form there. */
enum status product_from(const struct kernel_query *q, struct product *product, struct error *why);

/* alpha A B of plain f32, as the shape says. */
enum status product_of_floats(const struct matmul_shape *shape, bool tf32, float alpha,
                              struct product *product, struct error *why);

struct matmul {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layout[OPERANDS];
};

/* matmul_free it whatever the status. */
enum status matmul_make(const struct product *product, struct matmul *matmul, struct error *why);
void matmul_free(struct matmul *matmul);

/* left and right: our A and B. */
struct product_memory {
    const void *left, *right, *addend; /* addend: NULL: nothing is added */
    void *result, *workspace;
    size_t workspace_bytes;
};

/* Puts all calls into the stream. */
enum status product_run(const struct device *device, const struct product *product,
                        const struct matmul *matmul, const cublasLtMatmulAlgo_t *algorithm,
                        const struct product_memory *memory, void *stream, struct error *err);

#endif
