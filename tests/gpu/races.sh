#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every access to memory of the own CUDA kernels in all cases of their operators, without fused
# epilogues: none meets another one that nothing orders, none reads what nobody has written
# (tests/gpu/host/watch.h).
# parts: f32 rest
. tests/lib/tap.sh

build=${RIDGE_BUILD:-build/release}
cases=$build/tests/gpu/watch_cases
if [ ! -f "$cases" ]; then
    echo "skipped: the plug-in over the host is not built under sanitizers"
    exit 77
fi

RIDGE_PLUGIN_PATH=$build/tests/gpu/host/plugins
export RIDGE_PLUGIN_PATH
if [ "${LONG:-}" ]; then # else of each block the first 65,536 reads
    export RIDGE_HOST_WATCH=all
fi
if [ "${1:-f32}" = f32 ]; then
    run "$build/tests/ops/run" --providers cuda --device cuda --floats f32 --plain
    cat "$output"
    exits 0
    prints '^[1-9][0-9]{2,} passed, 0 failed'
fi
[ "${1:-rest}" = rest ] || finish

# Kernels that are wrong are found, with function and line.
for name in $("$cases"); do
    run "$cases" "$name"
    case $name in
    good_*) exits 0 ;;
    unordered_*) complains 'nothing orders an access' ;;
    unwritten_*) complains 'nobody has written' ;;
    esac
done
if command -v addr2line >/dev/null; then
    run "$cases" unordered_blocks
    complains 'unordered_blocks.* at watch_cases.cu:[0-9]+'
fi

# How lanes share what they move (tests/gpu/host/pattern.h).
runs env RIDGE_HOST_PATTERNS=1 "$cases" good_every_other
complains '^device read, 4 bytes, 32.0 lanes: 8.00 sectors per request, 4.00 at least$'
complains '^shared read, 4 bytes, 32.0 lanes: 2.00 turns per request, 1.00 at least$'

# Those that copy while they multiply, with 16 bits, too.
for floats in bf16 tf32; do
    for kernel in cuda_matmul_tensor cuda_attention_tensor; do
        run "$build/tests/ops/run" --providers cuda --device cuda --floats $floats --plain \
            --kernel $kernel
        cat "$output"
        exits 0
        prints '^[1-9][0-9]+ passed, 0 failed'
    done
done
# Both halves of a cluster's barrier (tests/gpu/host/grid.c).
runs env RIDGE_HOST_ARRIVE=1 "$build/tests/ops/run" --providers cuda --device cuda --floats bf16 --plain \
    --kernel cuda_lstm_cluster
prints '^[1-9][0-9]* passed, 0 failed'
# First convolutions, recurrences in clusters and the decoder multiply on tensor cores, too.
for kernel in cuda_conv_few cuda_lstm_cluster; do
    run "$build/tests/ops/run" --providers cuda --device cuda --floats f16 --plain --kernel $kernel
    cat "$output"
    exits 0
    prints '^[1-9][0-9]* passed, 0 failed'
done
run "$build/tests/ops/run" --providers cuda --device cuda --floats bf16 --plain --filter AttentionDecoder
cat "$output"
exits 0
prints '^[1-9][0-9]+ passed, 0 failed'
finish
