#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ridge import on a model that ridge exported, and on what is no model.
. tests/lib/tap.sh
model=$tap_dir/ncf.onnx

run ridge export ncf --batch 4 --output "$model"
exits 0
run ridge import "$model"
exits 0
prints '3136[89][0-9] parameters' # and the values of OneHot
prints '^MatMul'
run ridge import "$model" --json
exits 0
holds '(.params >= 313681 and .params < 313700) and .batch == 4'
holds '.inputs | length == 2 and all(.[]; .shape[0] == 4)'
holds '[.operators[].nodes] | add > 10'
holds 'all(.operators[]; .kernels > 0)'

run ridge import "$model" --output "$tap_dir/again.onnx" --json
exits 0
cp "$output" "$tap_dir/first"
run ridge import "$tap_dir/again.onnx" --json
check "what was written is the same model" test "$(jq -c '.params,.macs,.inputs' "$output")" = \
    "$(jq -c '.params,.macs,.inputs' "$tap_dir/first")"

run ridge import
exits 2
run ridge import "$model" "$model"
exits 2
complains 'one word too many'
run ridge import README.md
exits 2
complains 'README.md'
run ridge import /nonexistent.onnx
exits 2
complains 'nonexistent'
finish
