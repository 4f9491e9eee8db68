#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Workloads out to .onnx files and back: export, infer, run, verify.
. tests/lib/tap.sh
build=${RIDGE_BUILD:-build/release}
model=$tap_dir/ncf.onnx

runs ridge export ncf --batch 4 --output "$model" --inputs-dir "$tap_dir/in"
complains 'wrote .*ncf.onnx'
check "the model is there" test -s "$model"
check "its inputs are there" test "$(find "$tap_dir/in" -name '*.npy' | wc -l)" -ge 1

# The file computes what the workload computes, on the same inputs.
runs ridge infer ncf --batch 4 --no-tune --output-dir "$tap_dir/a" --json
holds 'length == 2 and .[1].dtype == "i32" and .[1].shape == [4] and .[0].dtype == "f32" and .[0].min <= .[0].mean and .[0].mean <= .[0].max'
set --
for file in "$tap_dir"/in/*.npy; do
    name=$(basename "$file" .npy)
    set -- "$@" --input "$name=$file"
done
runs ridge infer "$model" "$@" --no-tune --output-dir "$tap_dir/b"
prints '  f32\[4,1\]  min '
for file in "$tap_dir"/a/*.npy; do
    check "same output $(basename "$file")" cmp "$file" "$tap_dir/b/$(basename "$file")"
done

runs ridge verify "$model" --no-tune
prints 'ncf.onnx .* ok'

runs ridge export ncf --batch 4 --output "$tap_dir/split.onnx" --external
check "weights lie beside the model" test -s "$tap_dir/split.onnx.data"
runs ridge verify "$tap_dir/split.onnx" --no-tune
rm "$tap_dir/split.onnx.data"
refuses 'external data.*split.onnx.data' ridge verify "$tap_dir/split.onnx" --no-tune

# A network that decides, in two parts: what the first one makes is what the second one takes.
runs ridge infer crnn --no-tune --output-dir "$tap_dir/whole"
set --
for part in before-decisions after-decisions; do
    runs ridge export crnn --part $part --output "$tap_dir/$part.onnx"
    runs ridge infer crnn --part $part "$@" --no-tune --output-dir "$tap_dir/$part"
    for file in "$tap_dir/$part"/*.npy; do
        name=$(basename "$file" .npy)
        set -- "$@" --input "$name=$file"
    done
done
for file in "$tap_dir"/after-decisions/*.npy; do
    check "same output $(basename "$file")" cmp "$file" "$tap_dir/whole/$(basename "$file")"
done
refuses 'wide_deep decides nothing' ridge infer wide_deep --part before-decisions --no-tune
refuses '"half" is not before-decisions or after-decisions' ridge export crnn --part half --output "$tap_dir/half.onnx"

# Outputs of which several would have had the same file, of which the last one was left.
mkdir "$tap_dir/semantics"
check "models are written" "$build/tests/unit/test_onnx_semantics" --write "$tap_dir/semantics"
same=$tap_dir/semantics/same_file.onnx
runs ridge infer "$same" --no-tune -o "$tap_dir/same"
prints '^a_b +f32.* mean [0-9.]+$'
prints '^a/b .*  in a_b_2\.npy$'
prints '^a:b .*  in a_b_3\.npy$'
prints '  in ______\.npy$'
prints '  in _______2\.npy$'
is "files of outputs" 5 "$(find "$tap_dir/same" -name '*.npy' | wc -l)"
runs ridge infer "$same" --no-tune -o "$tap_dir/same" --json
holds 'map(.file) | unique | length == 5'

# Roundings were taken for decisions, and the network cut before the first of them.
quantised=$tap_dir/semantics/quantised.onnx
refuses 'decides nothing, it is one part' ridge infer "$quantised" --part before-decisions --no-tune
runs ridge verify "$quantised" --no-tune
prints ' ok$'

# An output that is also an input was called x_3, and its file x_3.npy.
pass=$tap_dir/semantics/pass.onnx
runs ridge infer "$pass" --no-tune -o "$tap_dir/pass"
for name in x w y z; do
    prints "^$name +f32\\[2\\]  min "
    check "the file of $name" test -s "$tap_dir/pass/$name.npy"
done
runs ridge graph "$pass"
prints '^output x f32\[2\] \(x_[0-9]+\)$'
prints '^output w f32\[2\]'
runs ridge graph "$tap_dir/semantics/only_pass.onnx"
prints '^# 0 bytes compulsory, 0 bytes streamed; FLOP/byte - and -$'
runs ridge graph "$pass" --json
holds '.outputs | map(.name) == ["x", "w", "y", "z"]'

# What is wrong is said.
refuses '--output FILE is missing' ridge export ncf
refuses 'should be NAME=FILE' ridge infer "$model" --input nonsense
refuses 'no input "no_such_input"' \
    ridge infer "$model" --input "no_such_input=$(find "$tap_dir/in" -name '*.npy' | head -1)"
refuses 'missing.onnx: No such file' ridge infer "$tap_dir/missing.onnx"
head -c 1000 "$model" >"$tap_dir/cut.onnx"
refuses 'cut.onnx: .*past the end' ridge infer "$tap_dir/cut.onnx"
echo 'no model at all' >"$tap_dir/text.onnx"
refuses 'text.onnx: ' ridge infer "$tap_dir/text.onnx"
refuses 'fixes the batch' ridge infer "$model" --batch 9
run ridge infer "$tap_dir"
exits 2

# A file with an open length could only be inferred, not run, explained or verified.
open=$tap_dir/semantics/open_length.onnx
run "$RIDGE" verify "$open"
exits 5
complains 'dimension 1 \("sequence"\) is left open by the file; give its size: open_length.onnx:sequence=N'
for command in infer verify explain import; do
    runs ridge $command "$open:sequence=12"
done
# Such short times may be found to drift.
run "$RIDGE" run "$open:sequence=5" "$open:sequence=6" -b 1,2 --samples 3 --seconds 0 --quick-tune --no-ceilings \
    --no-report --db "$tap_dir/open.db"
rows=$(sqlite3 "$tap_dir/open.db" "select group_concat(params || ' ' || batch) from (select distinct params, batch from point order by 1, 2)")
check "points have the sizes" test "$rows" = "sequence=5 1,sequence=5 2,sequence=6 1,sequence=6 2"
printf '[[workload]]\npath = "semantics/open_length.onnx"\nsequence = [7, 8, 9]\n' >"$tap_dir/open.toml"
runs ridge plan "$tap_dir/open.toml" --json
holds '[.points[].params] == ["sequence=7", "sequence=8", "sequence=9"]'
refuses 'open_length.onnx leaves no size "sequenc" open, did you mean "sequence"' ridge run "$open:sequenc=5"
refuses '"batch" is the batch: give it with --batch' ridge run "$open:batch=5"

finish
