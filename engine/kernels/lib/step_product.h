/* SPDX-License-Identifier: Apache-2.0
 *
 * A matrix product of a few rows that a loop over time steps repeats with the same weights. With
 * few rows it reads every weight once per step, so that memory bandwidth is the limit; with many
 * rows it is as fast as any.
 *
 * Weights of bf16 are packed as words of two (lib/gemm_tile.h). Rows are f32 and remain so: each is
 * split into a bf16 and a bf16 of what that leaves, which makes two rows of the product. With few
 * rows the second one costs nothing, with many it costs what AVX512-BF16 is faster than f32; on
 * CPUs without, weights that many rows share are widened when they are packed.
 *
 * Life cycle: step_product_plan; step_product_alloc in prepare; step_product_pack; then
 * step_product_run once per step; step_product_release. */
#ifndef ENGINE_KERNELS_LIB_STEP_PRODUCT_H
#define ENGINE_KERNELS_LIB_STEP_PRODUCT_H

#include "engine/kernels/lib/gemm.h"

struct step_product {
    struct gemm_plan plan; /* split: of those rows */
    int64_t rows, n, k;
    bool bf16, split;     /* the weights; the rows, because weights are packed as words */
    float *packed, *bias; /* bias NULL: none */
};

/* [rows, k] times [k, n] */
#define step_product_plan SIMD_FN(step_product_plan)
struct step_product step_product_plan(int64_t rows, int64_t n, int64_t k, bool bf16, int threads);
#define step_product_workspace SIMD_FN(step_product_workspace)
size_t step_product_workspace(const struct step_product *p);
/* Memory for packed weights, and for a bias of zeros if it is wanted; its size is added to *bytes.
 * false: there is none. */
#define step_product_alloc SIMD_FN(step_product_alloc)
bool step_product_alloc(struct step_product *p, bool biased, size_t *bytes);
/* Weight (k, n) is element k row + n column. */
#define step_product_pack SIMD_FN(step_product_pack)
void step_product_pack(const struct step_product *p, const void *weights, int64_t row,
                       int64_t column, struct pool *pool);

struct step_rows {
    const float *a;
    float *c;
    int64_t a_row, c_row; /* floats from one row to the next */
};
#define step_product_run SIMD_FN(step_product_run)
void step_product_run(const struct step_product *p, const struct step_rows *rows, void *workspace,
                      struct pool *pool);
#define step_product_release SIMD_FN(step_product_release)
void step_product_release(struct step_product *p);

#endif
