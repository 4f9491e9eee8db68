#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ridge import on a model that ridge exported, and on what is no model.
. tests/lib/tap.sh
model=$tap_dir/ncf.onnx

runs ridge export ncf --batch 4 --output "$model"
runs ridge import "$model"
prints '3136[89][0-9] parameters' # and the values of OneHot
prints '^MatMul'
runs ridge import "$model" --json
holds '(.params >= 313681 and .params < 313700) and .batch == 4'
holds '.inputs | length == 2 and all(.[]; .shape[0] == 4)'
holds '[.operators[].nodes] | add > 10'
holds 'all(.operators[]; .kernels > 0)'

runs ridge import "$model" --output "$tap_dir/again.onnx" --json
cp "$output" "$tap_dir/first"
run ridge import "$tap_dir/again.onnx" --json
check "what was written is the same model" test "$(jq -c '.params,.macs,.inputs' "$output")" = \
    "$(jq -c '.params,.macs,.inputs' "$tap_dir/first")"

run ridge import
exits 2
refuses 'one word too many' ridge import "$model" "$model"
refuses 'README.md' ridge import README.md
refuses 'nonexistent' ridge import /nonexistent.onnx
finish
