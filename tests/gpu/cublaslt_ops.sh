#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The cuBLASLt kernels on all cases of their operators, alone and in executables on a device, over a
# device and a library that compute on the host (tests/gpu/vendor/). What epilogues there are in bf16
# and f16 is one piece of code: in f16 none, unless LONG=1.
. tests/lib/tap.sh

build=${RIDGE_BUILD:-build/release}
RIDGE_PLUGIN_PATH=$build/tests/gpu/vendor/plugins
export RIDGE_PLUGIN_PATH
if [ ! -e "$RIDGE_PLUGIN_PATH/cublaslt.so" ]; then
    echo "skipped: no cublaslt when this was built"
    exit 77
fi

for floats in f32 bf16 f16; do
    some=
    [ $floats${LONG:+long} != f16 ] || some=--plain
    run "$build/tests/ops/run" --device cuda --providers cublaslt --kernel cublaslt_matmul \
        --floats $floats $some
    cat "$output"
    exits 0
    prints '^# plug-in cublaslt on the host'
    prints '^[1-9][0-9]+ passed, 0 failed'
done
for kernel in cublaslt_matmul_f8 cublaslt_matmul_bytes cublaslt_attention; do
    run "$build/tests/ops/run" --device cuda --providers cublaslt --kernel $kernel
    cat "$output"
    exits 0
    prints '^[1-9][0-9]+ passed, 0 failed'
done

# The workload: one product of codes, whose casts are gone; integers are exact.
ridge=$build/ridge
runs "$ridge" verify gemm:m=70,n=64,k=128 --precision f8 --device cuda
prints 'cuda f8 .* ok'
run "$ridge" explain gemm:m=70,n=64,k=128 --precision f8 --device cuda
prints 'MatMulF8 .* cublaslt_matmul_f8'
prints '^1 step,'
runs "$ridge" verify gemm:m=70,n=64,k=128 --precision i8 --device cuda
prints 'max relative error 0 \(bound 0\)'
run "$ridge" explain gemm:m=70,n=64,k=128 --precision i8 --device cuda
prints 'MatMulInte.* cublaslt_matmul_bytes'
finish
