#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The own CUDA kernels on all cases of their operators, on the host: tests/gpu/host/ runs them block
# by block, fiber by fiber. No GPU and no CUDA toolkit is needed. In f32 without fused epilogues
# races.sh does the same, and watches their accesses. An epilogue is one piece of code for all types
# (engine/kernels/cuda/lib/epilogue.h): in f16 only what has no form in f32, on tensor cores, has it
# here, unless LONG=1.
# parts: f32 bf16 f16 rest
. tests/lib/tap.sh

build=${RIDGE_BUILD:-build/release}
plugins=$build/tests/gpu/host/plugins
if [ ! -f "$plugins/cuda.so" ]; then
    echo "skipped: the plug-in over the host is not built under sanitizers"
    exit 77
fi
RIDGE_PLUGIN_PATH=$plugins
RIDGE_HOST_WATCH=0
export RIDGE_PLUGIN_PATH RIDGE_HOST_WATCH
for floats in ${1:-f32 bf16 f16 rest}; do
    case $floats${LONG:+long} in
    rest*) continue ;;
    f32) some=--fused ;;
    f16) some=--plain ;;
    *) some= ;;
    esac
    run "$build/tests/ops/run" --providers cuda --device cuda --floats "$floats" $some
    cat "$output"
    exits 0
    prints '^[1-9][0-9]{2,} passed, 0 failed'
    [ "$some" = --plain ] || continue
    for kernel in cuda_matmul_tensor cuda_conv_few; do
        run "$build/tests/ops/run" --providers cuda --device cuda --floats "$floats" --fused --kernel $kernel
        cat "$output"
        exits 0
        prints '^[1-9][0-9]+ passed, 0 failed'
    done
done
[ "${1:-rest}" = rest ] || finish
for kernel in cuda_matmul_tensor cuda_attention_tensor; do
    run "$build/tests/ops/run" --providers cuda --device cuda --floats tf32 --kernel $kernel
    cat "$output"
    exits 0
    prints '^[1-9][0-9]+ passed, 0 failed'
done
# f8 in sizes that no library takes.
runs "$build/ridge" verify gemm:m=70,n=50,k=131 --precision f8 --device cuda
prints 'cuda f8 .* ok'
run "$build/ridge" explain gemm:m=70,n=50,k=131 --precision f8 --device cuda
prints 'MatMulF8 .* cuda_matmul'
prints '^1 step,'
refuses 'precision "f8": ncf cannot run in it on cuda' "$build/ridge" verify ncf --precision f8 --device cuda

# Bytes, too: exact, and on the device.
runs "$build/ridge" verify gemm:m=70,n=50,k=131 --precision i8 --device cuda
prints 'max relative error 0 \(bound 0\)'
run "$build/ridge" explain gemm:m=70,n=50,k=131 --precision i8 --device cuda
prints 'MatMulInte.* cuda_matmul_integer'

# A file with operators in bf16 was judged by the bound of f32, which it was run in.
runs "$build/ridge" export gemm:m=70,n=50,k=131 --precision bf16 --output "$tap_dir/bf16.onnx"
runs "$build/ridge" verify "$tap_dir/bf16.onnx" --device cuda
prints 'cuda f32 .* ok'

# Without a trial, too, what is made for a case comes before what computes all of them.
runs "$build/ridge" explain gemm:m=72,n=50,k=131 --precision bf16 --device cuda --no-tune
prints 'Gemm .* cuda_matmul_tensor'

# Where there is no room for a cluster of blocks, the next kernel computes it.
small=rnn:units=64,sequence=2
runs "$build/ridge" explain $small --batch 3 --precision bf16 --device cuda --no-tune
prints 'LSTM .* cuda_lstm_cluster'
runs env RIDGE_HOST_CLUSTERS=0 "$build/ridge" explain $small --batch 3 --precision bf16 --device cuda --no-tune
prints 'LSTM .* cuda_rnn'
runs env RIDGE_HOST_CODE=80 "$build/ridge" explain $small --batch 3 --precision bf16 --device cuda --no-tune
prints 'LSTM .* cuda_rnn'

# Two layers share a kernel: the smaller one lowered the shared memory that the larger one may ask for.
runs "$build/ridge" verify crnn:units=128,width=8,filters=64 -b 1 --device cuda --precision bf16 --no-tune
runs "$build/ridge" explain crnn:units=128,width=8,filters=64 -b 1 --device cuda --precision bf16 --no-tune
prints 'LSTM .* cuda_lstm_cluster'

# Without a trial a library's kernel comes before those that came with the device.
RIDGE_PLUGIN_PATH=$plugins:$build/tests/plugin_sample
RIDGE_SAMPLE=idle
export RIDGE_SAMPLE
runs "$build/ridge" explain active:case=94 --device cuda --no-tune
prints 'Relu .* sample_idle'
finish
