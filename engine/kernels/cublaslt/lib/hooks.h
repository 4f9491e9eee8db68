/* SPDX-License-Identifier: Apache-2.0
 *
 * The hooks of all kernels of cuBLASLt: they read the node's types and strides (lib/product.h). */
#ifndef ENGINE_KERNELS_CUBLASLT_LIB_HOOKS_H
#define ENGINE_KERNELS_CUBLASLT_LIB_HOOKS_H

#include "engine/kernels/cublaslt/lib/product.h"

struct kernel_state {
    const struct device *device;
    struct product product;
    cublasLtMatmulAlgo_t algorithm;
    int choices; /* algorithms that the library names for the product */
    size_t workspace;
    int64_t count; /* elements of the result */
    /* prepare: */
    struct matmul matmul;
    void *packed; /* of the device; NULL: the right operand comes with each launch */
    void *spread; /* there, too; NULL: what is added comes with each launch */
};

enum status cublaslt_plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                          struct error *why);
int cublaslt_variants(const struct kernel_state *state);
void cublaslt_describe(const struct kernel_state *state, char *text, size_t size);
size_t cublaslt_workspace(const struct kernel_state *state);
enum status cublaslt_prepare(const struct kernel_query *q, struct kernel_state *state,
                             size_t *packed, struct error *err);
void cublaslt_launch(const struct kernel_state *state, const struct kernel_args *args);
void cublaslt_release(struct kernel_state *state);

/* Use as: CUBLASLT_KERNEL(matmul, .ops = OPS("MatMul"), ...); */
#define CUBLASLT_KERNEL(symbol, ...)                                                               \
    REGISTER(kernel, cublaslt_##symbol) = {.name = "cublaslt_" #symbol,                            \
                                           .provider = "cublaslt",                                 \
                                           .device = "cuda",                                       \
                                           .state_size = sizeof(struct kernel_state),              \
                                           .plan = cublaslt_plan,                                  \
                                           .variants = cublaslt_variants,                          \
                                           .ranked_variants = true,                                \
                                           .describe = cublaslt_describe,                          \
                                           .workspace = cublaslt_workspace,                        \
                                           .prepare = cublaslt_prepare,                            \
                                           .launch = cublaslt_launch,                              \
                                           .release = cublaslt_release,                            \
                                           __VA_ARGS__}

#endif
