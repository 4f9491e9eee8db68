/* SPDX-License-Identifier: Apache-2.0
 *
 * The hooks of all kernels of cuBLASLt: they read the node's types and strides (lib/product.h). */
#ifndef ENGINE_KERNELS_CUBLASLT_LIB_HOOKS_H
#define ENGINE_KERNELS_CUBLASLT_LIB_HOOKS_H

#include "engine/kernels/cublaslt/lib/product.h"

enum status cublaslt_supports(const struct kernel_query *q, struct error *why);
int cublaslt_variants(const struct kernel_query *q);
void cublaslt_describe(const struct kernel_query *q, int variant, char *text, size_t size);
size_t cublaslt_workspace(const struct kernel_query *q, int variant);
enum status cublaslt_prepare(const struct kernel_query *q, int variant, struct kernel_state **state,
                             size_t *state_bytes, struct error *err);
void cublaslt_launch(const struct kernel_state *state, const struct kernel_query *q,
                     const struct kernel_args *args);
void cublaslt_release(struct kernel_state *state);

/* Use as: CUBLASLT_KERNEL(matmul, .ops = OPS("MatMul"), ...); */
#define CUBLASLT_KERNEL(symbol, ...)                                                               \
    REGISTER(kernel, cublaslt_##symbol) = {.name = "cublaslt_" #symbol,                            \
                                           .provider = "cublaslt",                                 \
                                           .device = "cuda",                                       \
                                           .supports = cublaslt_supports,                          \
                                           .old_variants = cublaslt_variants,                      \
                                           .ranked_variants = true,                                \
                                           .old_describe = cublaslt_describe,                      \
                                           .old_workspace = cublaslt_workspace,                    \
                                           .old_prepare = cublaslt_prepare,                        \
                                           .old_launch = cublaslt_launch,                          \
                                           .release = cublaslt_release,                            \
                                           __VA_ARGS__}

#endif
