/* SPDX-License-Identifier: Apache-2.0
 *
 * A MatMul or Gemm node in cuBLASLt's terms.
 *
 * cuBLASLt stores columns, ridge rows. Row-major C = A B is column-major C' = B' A', so B is the
 * library's left operand, and the rows of its result are our columns: that is what its bias, one
 * number per row, needs.
 */
#ifndef ENGINE_KERNELS_CUBLASLT_LIB_PRODUCT_H
#define ENGINE_KERNELS_CUBLASLT_LIB_PRODUCT_H

#include "engine/kernels/cublaslt/lib/api.h"

enum { LEFT, RIGHT, ADDEND, RESULT, OPERANDS };

struct operand {
    int64_t rows, cols, ld; /* column-major, as stored */
    bool transposed;
    int64_t batch_stride; /* elements */
};

struct product {
    struct matmul_shape shape; /* of the node */
    int64_t m, n, k;           /* of the library's product: m is our n */
    struct operand operand[OPERANDS];
    int64_t batch; /* products per call */
    int64_t calls; /* calls, each of `batch` consecutive products of the shape */
    cudaDataType_t type;
    bool tf32;
    float alpha, beta;
    int addend; /* input that is added, times beta, before everything else; NONE: none */
    int bias;   /* input with one number per column of ours; NONE: none */
    cublasLtEpilogue_t epilogue;
};

/* UNSUPPORTED when the node's strides or epilogue have no form there. */
enum status product_from(const struct kernel_query *q, struct product *product, struct error *why);

struct matmul {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layout[OPERANDS];
};

/* matmul_free it whatever the status. */
enum status matmul_make(const struct kernel_query *q, const struct product *product,
                        struct matmul *matmul, struct error *why);
void matmul_free(struct matmul *matmul);

#endif
