#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The cuBLASLt kernels on all cases of their operators, alone and in executables on a device, over a
# device and a library that compute on the host (tests/gpu/host/, tests/gpu/vendor/).
. tests/lib/tap.sh

build=${RIDGE_BUILD:-build/release}
for plugin in host/plugins/cuda.so vendor/plugins/cublaslt.so; do
    [ -e "$build/tests/gpu/$plugin" ] || {
        echo "skipped: $plugin was not built"
        exit 77
    }
done
RIDGE_PLUGIN_PATH=$build/tests/gpu/host/plugins:$build/tests/gpu/vendor/plugins
export RIDGE_PLUGIN_PATH

run "$build/tests/ops/run" --device cuda --providers cuda,cublaslt --kernel cublaslt_matmul
cat "$output"
exits 0
prints '^# plug-in cublaslt on the host'
prints '^[1-9][0-9]+ passed, 0 failed'
finish
