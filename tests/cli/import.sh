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
# A first size of 0, which was taken for 1 without a word.
build=${RIDGE_BUILD:-build/release}
check "the models are written" "$build/tests/unit/test_onnx_semantics" --write "$tap_dir"
zero='input "x": the file says \[\?,8\], with the size 0 for "\?", which was taken as unknown: it is \[1,8\] here'
runs ridge import "$tap_dir/zero.onnx"
prints "^note +$zero"
runs ridge import "$tap_dir/zero.onnx" --json
holds '.note | test("taken as unknown")'
runs ridge infer "$tap_dir/zero.onnx" --no-tune
complains "$zero"
runs ridge graph "$tap_dir/pass.onnx"
check "no note" sh -c "! grep -q unknown '$output'"

# An ending in capitals was read as a suite.
mv "$tap_dir/only_pass.onnx" "$tap_dir/UP.ONNX"
runs ridge plan "$tap_dir/UP.ONNX"
runs ridge import "$tap_dir/UP.ONNX"
prints '^output +x '
finish
