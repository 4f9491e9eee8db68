/* SPDX-License-Identifier: Apache-2.0
 *
 * A matrix product of a few rows that a loop over time steps repeats with the same weights. With
 * few rows it reads every weight once per step, so that memory bandwidth is the limit; with many
 * rows it is as fast as any.
 *
 * Life cycle: step_product_plan; step_product_alloc in prepare; step_product_pack; then
 * step_product_run once per step; step_product_release. */
#ifndef ENGINE_KERNELS_LIB_STEP_PRODUCT_H
#define ENGINE_KERNELS_LIB_STEP_PRODUCT_H

#include "engine/kernels/lib/gemm.h"

struct step_product {
    struct gemm_plan plan;
    float *packed, *bias; /* bias NULL: none */
};

/* [rows, k] times [k, n] */
#define step_product_plan SIMD_FN(step_product_plan)
struct step_product step_product_plan(int64_t rows, int64_t n, int64_t k, int threads);
/* Memory for packed weights, and for a bias of zeros if it is wanted; its size is added to *bytes.
 * false: there is none. */
#define step_product_alloc SIMD_FN(step_product_alloc)
bool step_product_alloc(struct step_product *p, bool biased, size_t *bytes);
/* Weight (k, n) is at weights[k row + n column]. */
#define step_product_pack SIMD_FN(step_product_pack)
void step_product_pack(const struct step_product *p, const float *weights, int64_t row,
                       int64_t column, struct pool *pool);

struct step_rows {
    const float *a;
    float *c;
    int64_t a_row, c_row; /* floats from one row to the next */
};
/* workspace: gemm_workspace of the plan. */
#define step_product_run SIMD_FN(step_product_run)
void step_product_run(const struct step_product *p, const struct step_rows *rows, void *workspace,
                      struct pool *pool);
#define step_product_release SIMD_FN(step_product_release)
void step_product_release(struct step_product *p);

#endif
