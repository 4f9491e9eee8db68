#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whole networks in 16 bits through the own CUDA kernels, on the host (tests/gpu/host/).
. tests/lib/tap.sh

build=${RIDGE_BUILD:-build/release}
RIDGE_PLUGIN_PATH=$build/tests/gpu/host/plugins
export RIDGE_PLUGIN_PATH
if [ ! -f "$RIDGE_PLUGIN_PATH/cuda.so" ]; then
    echo "skipped: the plug-in over the host is not built under sanitizers"
    exit 77
fi

verifies() { # precision, network and options
    precision=$1
    shift
    run ridge verify "$@" --device cuda --precision $precision --no-tune
    cat "$output"
    exits 0
    prints "^$1 +cuda $precision +max relative error 0\\.0.* ok$"
}

# Rows of a few tiles: it is slow. The kernels are the same in both types.
verifies bf16 ncf --batch 160
verifies bf16 wide_deep --batch 160
verifies bf16 gcn
verifies f16 wide_deep --batch 160
verifies bf16 qwen3:depth=1,vocabulary=100,context=17,weights=i4

refuses 'precision "f16": ncf cannot run in it on the CPU' ridge verify ncf --precision f16
finish
