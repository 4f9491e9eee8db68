#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Vision Transformers: sizes as published, verified in both precisions and on all instruction sets, attention found,
# training, as files, and refusals.
. tests/lib/tap.sh

# Parameters as torchvision and timm count them. Products: a patch is one of 3 P^2 by D; a layer has 12 D^2 a token, and
# each pair of tokens 2 D; the head sees one token.
published() { # size, side of a patch, layers, width, parameters
    tokens=$(((224 / $2) * (224 / $2)))
    all=$((tokens + 1))
    macs=$((tokens * 3 * $2 * $2 * $4 + $3 * (all * 12 * $4 * $4 + all * all * 2 * $4) + 1000 * $4))
    runs ridge graph "vit:size=$1" --json
    holds ".params == $5 and .macs == $macs and .buffers == 0"
}
published ti16 16 12 192 5717416
published s16 16 12 384 22050664
published b16 16 12 768 86567656
published l16 16 24 1024 304326632
published h14 14 32 1280 632045800
runs ridge graph vit --json
holds '.params == 86567656 and (.macs - 17.5638e9 | fabs) < 1e5'
# The 197 tokens are not padded to a round number.
holds '[.nodes[] | select(.name | test("scores$|context$"))] | length == 24 and all(.[]; .macs == 12 * 197 * 197 * 64)'

verifies() { # network and options
    run ridge verify "$@" --no-tune
    cat "$output"
    exits 0
    prints ' ok$'
}
for precision in f32 bf16; do
    verifies vit:size=ti16 --precision $precision
    verifies vit:size=s16,depth=2 --batch 3 --precision $precision
    verifies vit:size=h14,depth=1,image=42 --batch 2 --precision $precision
done
verifies vit:size=ti16,depth=2 --isa scalar
verifies vit:size=ti16,depth=2 --isa avx2 --precision bf16
# One patch, and more tokens than attention takes at a time.
verifies vit:size=ti16,depth=1,image=16
verifies vit:size=ti16,depth=1,image=384

# Each layer is two norms, four products of which the first has queries, keys and values, and one attention; nothing is
# copied but the tokens' concatenation and the class's token at the end.
runs ridge explain vit:size=s16,depth=3 --batch 2 --no-tune --json
holds '[.[] | select(.op == "Attention")] | length == 3'
holds '[.[] | select(.op == "LayerNormalization")] | length == 3 * 2 + 1'
holds '[.[] | select(.op == "MatMul")] | length == 3 * 4 + 1'
holds '[.[] | select(.op | test("^(Conv|Attention|LayerNormalization|MatMul)$") | not) | .op] == ["Concat", "Add", "Slice"]'

# Its step, with what is dropped and without.
for dropout in products none; do
    run ridge verify "vit:size=ti16,depth=2,image=64,classes=10,dropout=$dropout" --batch 3 --mode training --no-tune
    exits 0
    prints ' ok$'
done

# As a file, which other programs read.
runs ridge export vit:size=ti16,depth=2 --batch 2 -o "$tap_dir/vit.onnx"
verifies "$tap_dir/vit.onnx"
runs ridge explain "$tap_dir/vit.onnx" --no-tune --json
holds '[.[] | select(.op == "Attention")] | length == 2'

refuses 'image is 230; it must be a multiple of 16' ridge graph vit:image=230
refuses 'image is 240; it must be a multiple of 14' ridge graph vit:size=h14,image=240
refuses 'depth is 13; it can be at most 12' ridge graph vit:depth=13
refuses 'size="b32" is none of ti16, s16, b16, l16, h14' ridge graph vit:size=b32
finish
