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

for precision in bf16 f16; do
    for network in "ncf --batch 160" "wide_deep --batch 160" gcn; do # rows of a few tiles: it is slow
        run ridge verify $network --device cuda --precision $precision --no-tune
        cat "$output"
        exits 0
        prints "^${network%% *} +cuda $precision +max relative error 0\\.0.* ok$"
    done
done

refuses 'precision "bf16": ncf cannot run in it on the CPU' ridge verify ncf --precision bf16
finish
