/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product behind the references of MatMul, Gemm, Conv, Attention and the recurrent
 * operators, in double: C += A B. Every element of C is one sum over k in ascending order, whatever
 * the number of threads. Plain blocking makes it fast enough to verify BERT-large in seconds.
 */
#ifndef ENGINE_OPS_COMPUTE_REF_GEMM_H
#define ENGINE_OPS_COMPUTE_REF_GEMM_H

#include <stdint.h>

#include "base/system/pool.h"

enum { REF_GEMM_COLUMNS = 8 }; /* columns in a packed panel */

struct ref_gemm;

/* Writes B[k0 .. k0 + count_k) x [n0 .. n0 + count_n) to panel[k][REF_GEMM_COLUMNS]; columns from
 * count_n on may stay unwritten. */
typedef void ref_gemm_pack(const struct ref_gemm *g, int64_t k0, int64_t count_k, int64_t n0,
                           int64_t count_n, double *panel);

struct ref_gemm {
    int64_t m, n, k;
    const double *a; /* [m, k] by strides */
    int64_t a_row, a_col;
    const double *b; /* [k, n] by strides */
    int64_t b_row, b_col;
    double *c; /* [m, n], rows c_row apart; holds the start of the sums */
    int64_t c_row;
    ref_gemm_pack *pack; /* NULL: by b_row and b_col; else B is what this writes */
    const void *source;  /* for pack */
};

/* All items are of the same m, n and k; none writes where another one reads or writes. */
void ref_gemm_run(struct pool *pool, const struct ref_gemm *items, int64_t count);

#endif
