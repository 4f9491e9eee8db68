#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Workloads out to .onnx files and back: export, infer, run, verify.
. tests/lib/tap.sh
model=$tap_dir/ncf.onnx

run ridge export ncf --batch 4 --output "$model" --inputs-dir "$tap_dir/in"
exits 0
complains 'wrote .*ncf.onnx'
check "the model is there" test -s "$model"
check "its inputs are there" test "$(find "$tap_dir/in" -name '*.npy' | wc -l)" -ge 1

# The file computes what the workload computes, on the same inputs.
run ridge infer ncf --batch 4 --no-tune --output-dir "$tap_dir/a" --json
exits 0
holds 'length == 2 and .[1].dtype == "i32" and .[1].shape == [4] and .[0].dtype == "f32" and .[0].min <= .[0].mean and .[0].mean <= .[0].max'
set --
for file in "$tap_dir"/in/*.npy; do
    name=$(basename "$file" .npy)
    set -- "$@" --input "$name=$file"
done
run ridge infer "$model" "$@" --no-tune --output-dir "$tap_dir/b"
exits 0
prints '  f32\[4,1\]  min '
for file in "$tap_dir"/a/*.npy; do
    check "same output $(basename "$file")" cmp "$file" "$tap_dir/b/$(basename "$file")"
done

run ridge verify "$model" --no-tune
exits 0
prints 'ncf.onnx .* ok'

run ridge export ncf --batch 4 --output "$tap_dir/split.onnx" --external
exits 0
check "weights lie beside the model" test -s "$tap_dir/split.onnx.data"
run ridge verify "$tap_dir/split.onnx" --no-tune
exits 0
rm "$tap_dir/split.onnx.data"
run ridge verify "$tap_dir/split.onnx" --no-tune
exits 2
complains 'external data.*split.onnx.data'

# A network that decides, in two parts: what the first one makes is what the second one takes.
run ridge infer crnn --no-tune --output-dir "$tap_dir/whole"
exits 0
set --
for part in before-decisions after-decisions; do
    run ridge export crnn --part $part --output "$tap_dir/$part.onnx"
    exits 0
    run ridge infer crnn --part $part "$@" --no-tune --output-dir "$tap_dir/$part"
    exits 0
    for file in "$tap_dir/$part"/*.npy; do
        name=$(basename "$file" .npy)
        set -- "$@" --input "$name=$file"
    done
done
for file in "$tap_dir"/after-decisions/*.npy; do
    check "same output $(basename "$file")" cmp "$file" "$tap_dir/whole/$(basename "$file")"
done
run ridge infer wide_deep --part before-decisions --no-tune
exits 2
complains 'wide_deep decides nothing'
run ridge export crnn --part half --output "$tap_dir/half.onnx"
exits 2
complains '"half" is not before-decisions or after-decisions'

# What is wrong is said.
run ridge export ncf
exits 2
complains '--output FILE is missing'
run ridge infer "$model" --input nonsense
exits 2
complains 'should be NAME=FILE'
run ridge infer "$model" --input "no_such_input=$(find "$tap_dir/in" -name '*.npy' | head -1)"
exits 2
complains 'no input "no_such_input"'
run ridge infer "$tap_dir/missing.onnx"
exits 2
complains 'missing.onnx: No such file'
head -c 1000 "$model" >"$tap_dir/cut.onnx"
run ridge infer "$tap_dir/cut.onnx"
exits 2
complains 'cut.onnx: .*past the end'
echo 'no model at all' >"$tap_dir/text.onnx"
run ridge infer "$tap_dir/text.onnx"
exits 2
complains 'text.onnx: '
run ridge infer "$model" --batch 9
exits 2
complains 'fixes the batch'
run ridge infer "$tap_dir"
exits 2

finish
