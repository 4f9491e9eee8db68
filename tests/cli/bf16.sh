#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Networks in bf16 on the CPU: verified, measured beside f32, explained, and files of others.
. tests/lib/tap.sh
build=${RIDGE_BUILD:-build/release}

verifies() { # network and options
    run ridge verify "$@" --precision bf16 --no-tune
    cat "$output"
    exits 0
    prints "^$1 +cpu bf16 +max relative error 0\\.0.* ok$"
}
verifies ncf --batch 16
verifies wide_deep --batch 16
verifies gcn
verifies resnet50:image=64
verifies densenet121:image=64
verifies bert_base:tokens=32,depth=2
verifies dien --batch 4
verifies crnn:width=32

# On every instruction set, the widened products of CPUs without one for bf16 among them.
for isa in scalar avx2; do
    verifies bert_base:tokens=16,depth=1 --isa $isa
    verifies resnet50:image=32 --isa $isa
done

runs ridge explain resnet50:image=64 --precision bf16 --no-tune
prints '^stage2.block1.conv2 +Conv .* conv_bf16'
prints '^peak of |; peak of (bf16 dot products|f32 multiply-adds, for want of one of bf16)'

# f32 is exact where bf16 is not, and both are points of their own.
cat >"$tap_dir/both.toml" <<END
[[workload]]
name = "ncf"
precision = ["f32", "bf16"]
END
db=$tap_dir/both.db
run ridge run "$tap_dir/both.toml" --quick-tune -s 0.05 --rounds 1 --no-ceilings --no-layers --db "$db" \
    --no-report # invalid where other programs run
is "bf16 rounds, f32 does not" "bf16 1
f32 0" "$(sql "SELECT precision || ' ' || (verify_error > 1e-4) FROM result r JOIN point p ON r.point = p.id
    ORDER BY precision" | tr '|' ' ')"

check "the models are written" "$build/tests/unit/test_onnx_semantics" --write "$tap_dir"
runs ridge infer "$tap_dir/gather_of_sum.onnx" --precision bf16
finish
