/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt's functions as the plug-in's table wants them, computing on the host: they check what
 * they are given, multiply what the descriptors say, count what is made and given back, and fail
 * where the script says (tests/gpu/fake_device.h). Every product has three algorithms, of which the
 * second is refused. They hold the caller to what he promised of addresses, and split sums in the
 * least exact way that he allows. */
#ifndef TESTS_GPU_FAKE_CUBLASLT_H
#define TESTS_GPU_FAKE_CUBLASLT_H

#include "engine/kernels/cublaslt/lib/api.h"

enum { FAKE_LT_WORKSPACE = 8192 };

struct fake_products {
    int count; /* calls of cublasLtMatmul */
    cudaStream_t stream;
    cublasComputeType_t compute;
    cublasLtEpilogue_t epilogue;
    int algorithm;
    uint64_t workspace_limit;       /* that was asked for */
    cublasLtReductionScheme_t sums; /* of the algorithm: the least exact one that was allowed */
};

extern struct fake_products fake_products;

void fake_cublaslt(struct cublaslt_api *api);

#endif
