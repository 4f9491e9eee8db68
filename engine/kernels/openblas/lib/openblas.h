/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plug-in's files share. OpenBLAS is opened at run time rather than linked, because it
 * picks its kernels while it is loaded: OPENBLAS_CORETYPE must be set before. */
#ifndef ENGINE_KERNELS_OPENBLAS_LIB_OPENBLAS_H
#define ENGINE_KERNELS_OPENBLAS_LIB_OPENBLAS_H

#include <cblas.h>

#include "engine/run/plugin.h"

/* Filled at the entry, read only from then on. */
struct openblas {
    const struct plugin_host *host;
    __typeof__(cblas_sgemm) *sgemm;
    __typeof__(cblas_sgemv) *sgemv;
    __typeof__(openblas_set_num_threads) *set_num_threads;
    __typeof__(openblas_get_config) *get_config;
    __typeof__(openblas_get_corename) *get_corename;
    __typeof__(openblas_get_parallel) *get_parallel;
};

extern struct openblas openblas;

#define REFUSE(why, ...) openblas.host->refuse(why, STATUS_UNSUPPORTED, __VA_ARGS__)

/* Makes OpenBLAS use this many threads, none of them bound to the caller's CPU. */
void openblas_threads(int threads);

/* ---- the second pass over a result: lib/epilogue.c ---- */

enum { EPILOGUE_MAX = POST_MAX + 1 };

struct epilogue_op {
    struct post post; /* kind; act with a and b; input */
    float scale;      /* of the operand */
    int64_t row, col; /* strides of the operand */
};

/* On a result seen as [rows, cols], plain. */
struct epilogue {
    int64_t rows, cols;
    struct epilogue_op ops[EPILOGUE_MAX];
    int op_count;
};

/* Gemm's C and the node's posts. Refuses what is broadcast otherwise than as a scalar, a row, a
 * column or a whole tensor, and activations that need more than a few operations. */
enum status epilogue_from_query(const struct kernel_query *q, struct epilogue *epilogue,
                                struct error *why);
void epilogue_run(const struct epilogue *epilogue, const struct kernel_args *args);

#endif
