#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Language models that generate text: sizes as published, both phases verified, as files, and refusals.
. tests/lib/tap.sh

parameters() { # network, and how many it has
    runs ridge graph "$1,phase=prefill,context=2"
    prints ", $2 parameters,"
}
parameters llama3:size=1b 1235814400
parameters llama3:size=3b 3212749824
parameters llama3:size=8b 8030261248
parameters qwen3:size=0.6b 596049920
parameters qwen3:size=8b 8190735360
# Factors of quantised weights are none of them.
parameters qwen3:weights=i4 596049920
parameters llama3:size=8b,weights=i8 8030261248
# Of networks of experts a part runs unless all of it is asked for.
parameters mixtral:depth=32 46702792704
parameters mixtral:size=8x22b,depth=56 140630071296
parameters qwen3_moe:depth=48 30532122624
parameters qwen3_moe:size=235b_a22b,depth=94 235093634560
parameters mixtral:depth=1 1713418240
parameters qwen3_moe:size=30b_a3b 1868573184

small=depth=2,vocabulary=3000
verifies() { # network and options
    run ridge verify "$@" --no-tune
    cat "$output"
    exits 0
    prints ' ok$'
}
for name in llama3 qwen3; do
    for phase in decode prefill; do
        for precision in f32 bf16; do
            verifies "$name:$small,context=40,phase=$phase" --batch 2 --precision $precision
        done
    done
done
# More keys than a task has, and prompts that end within a block.
verifies "llama3:$small,context=700"
verifies "qwen3:$small,context=531,phase=prefill"
verifies "llama3:$small,context=40" --isa scalar
verifies "llama3:$small,context=40" --isa avx2 --precision bf16

# The cache is changed where it lies and read as it lies: one key and one value per layer are written.
runs ridge explain "llama3:$small,context=300" --precision bf16 --no-tune --json
holds '[.[] | select(.op == "Cast")] | length <= 1'
holds '[.[] | select(.op == "TensorScatter")] | length == 4 and all(.[]; .bytes < 20000)'

# Weights of 8 and 4 bits, by the kernel for few rows and that for many, and on other instruction sets.
for weights in i8 i4; do
    for phase in decode prefill; do
        for precision in f32 bf16; do
            verifies "qwen3:$small,context=40,phase=$phase,weights=$weights" --batch 2 --precision $precision
        done
    done
done
verifies "llama3:$small,context=40,weights=i4" --isa scalar
verifies "llama3:$small,context=40,weights=i8" --isa avx2 --precision bf16

# Experts: a layer of them is gigabytes. Choices that differ in bf16 are followed.
verifies qwen3_moe:depth=1,vocabulary=1000,context=20 --precision f32
verifies qwen3_moe:depth=1,vocabulary=1000,context=20,phase=prefill --precision bf16
# A point of a part of a network says so, typed or not.
runs ridge plan qwen3_moe mixtral:depth=2
prints ' qwen3_moe:depth=2 '
prints ' mixtral:depth=2 '
# Arithmetic of each expert's rows, and the bytes of the eight that one token chooses.
runs ridge graph qwen3_moe:depth=1,context=20 --json
holds '[.nodes[] | select(.op == "GroupedMatMul") | .macs] == [12582912, 12582912, 12582912]'
holds '[.nodes[] | select(.op == "GroupedMatMul")] | all(.[]; .bytes > 50331648 and .bytes < 50450000)'

# Only what a query sees is counted.
flops() {
    "$RIDGE" graph "llama3:depth=1,phase=prefill,context=$1" --json |
        jq '[.nodes[] | select(.op == "Attention")][0].macs'
}
is "half of the square" $((2 * 32 * 64 * 101 * 50)) "$(printf '%.0f' "$(flops 100)")"

# As files, which other programs read.
for phase in decode prefill; do
    runs ridge export "qwen3:$small,context=20,phase=$phase" -o "$tap_dir/$phase.onnx"
    verifies "$tap_dir/$phase.onnx"
    runs ridge export "qwen3:$small,context=20,phase=$phase,weights=i4" -o "$tap_dir/$phase.i4.onnx"
    verifies "$tap_dir/$phase.i4.onnx"
done

run ridge graph llama3:depth=17
exits 2
run ridge graph qwen3:context=50000
exits 2
run ridge graph llama3:size=2b
exits 2
refuses 'depth is 49; it can be at most 48' ridge graph qwen3_moe:depth=49
refuses 'weights="i4" is none of floats' ridge graph mixtral:weights=i4
finish
