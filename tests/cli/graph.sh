#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Parameters, FLOPs and bytes of the workloads against published and independently derived figures.
. tests/lib/tap.sh

# near VALUE WANTED RELATIVE-TOLERANCE as a jq expression
near() {
    echo "($1 - $2 | fabs) <= $2 * $3"
}

# He et al. 2016; 2 x 3.858 GMAC per image for the version with the stride in the 1x1 convolution.
run ridge graph resnet50 --batch 32 --json
exits 0
holds '.params == 25557032 and .buffers == 53120 and .batch == 32'
holds "$(near .macs 123455078400 1e-4)"
holds "$(near .flops_model 2.481e11 1e-3)"
holds "$(near .bytes_compulsory 1.50e9 5e-3)"
holds '.macs == ([.nodes[].macs] | add)'
holds "$(near .flops_model '([.nodes[].flops] | add)' 1e-9)"
holds "$(near .bytes_streamed '([.nodes[].bytes] | add)' 1e-9)"
holds '.bytes_compulsory < .bytes_streamed'
holds '[.nodes[] | select(.op == "Conv")] | length == 53'
holds '.workload == "resnet50" and (.nodes[0] | .name and .inputs and .outputs and .shape and .dtype)'

run ridge graph resnet50:version=1.5 --json
holds '.params == 25557032'
holds "$(near .macs 4.0892e9 1e-4)"

run ridge graph resnet101 --json
holds '.params == 44549160 and .buffers == 105344'
holds "$(near .macs 7.5702e9 1e-4)"
run ridge graph resnet101:version=1.5 --json
holds '.params == 44549160'
holds "$(near .macs 7.8014e9 1e-4)"
run ridge graph resnet152 --batch 32 --json
holds '.params == 60192808 and .buffers == 151424'
holds "$(near .flops_model 7.246e11 1e-3)"
run ridge graph resnet152:version=1.5 --json
holds '.params == 60192808'
holds "$(near .macs 11.5136e9 1e-4)"

run ridge graph vgg16 --batch 32 --json
holds '.params == 138357544 and .buffers == 0'
holds "$(near .macs 32*15.4703e9 1e-4)"
holds "$(near .flops_model 9.910e11 1e-3)"
holds "$(near .bytes_compulsory 2.50e9 5e-3)"

run ridge graph googlenet --batch 32 --json
holds '.params == 6998552'
holds "$(near .macs 32*1.5827e9 1e-4)"
holds "$(near .flops_model 1.0150e11 1e-3)"
run ridge graph googlenet:form=bvlc --batch 32 --json
holds '.params == 6998552'
holds "$(near .flops_model 1.019e11 1e-3)"
holds '[.nodes[] | select(.op == "LRN")] | length == 2'

run ridge graph densenet121 --batch 32 --json
holds '.params == 7978856 and .buffers == 83648'
holds "$(near .macs 32*2.8342e9 1e-4)"
holds "$(near .flops_model 1.829e11 1e-3)"
run ridge graph densenet121_aimatrix --batch 32 --json
holds '.params == 4898024 and .buffers == 75328'
holds "$(near .macs 32*1.3890e9 1e-4)"
holds "$(near .flops_model 9.048e10 1e-3)"

run ridge graph crnn --batch 256 --json
holds '.params == 8721152 and .buffers == 4480'
holds "$(near .macs 256*0.7007e9 1e-4)"
holds "$(near .flops_model 3.594e11 1e-3)"
run ridge graph crnn:width=280 --batch 256 --json
holds '.params == 8721152'
holds "$(near .flops_model 1.0064e12 1e-3)"

run ridge graph bert_large --batch 2 --json
holds '.params == 334094338'
holds "$(near .flops_model 4.951e11 1e-3)"
holds "$(near .bytes_compulsory 3.03e9 5e-3)"
holds '.transcendentals > 0'

run ridge graph wide_deep --json
holds '.batch == 2048'
holds "$(near .flops_model 7.32e7 2e-3)"
holds "$(near .bytes_compulsory 2.8e6 5e-3)"

run ridge graph ncf --json
holds "$(near .flops_model 1.606e8 1e-3)"
holds "$(near .bytes_compulsory 1.1e7 5e-2)"

# Detectors: parameters without, and buffers with, the stored statistics of the batch norms.
ssd() { # NAME PARAMS MACS
    run ridge graph "$1" --json
    holds ".params == $2"
    holds "$(near .macs "$3" 1e-6)"
    holds '[.nodes[] | select(.op == "DetectionOutput")] | length == 1'
}
ssd ssd300_vgg16 26285486 31373537792
ssd ssd512_vgg16 27188676 90207908864
ssd ssd321_resnet18 15028192 4441138368
ssd ssd300_resnet50 22894902 20150906112
ssd ssd300_resnet50:depth=18 14048310 7781466880
ssd ssd300_resnet50:depth=34 19975222 15862078720
ssd ssd300_resnet50:depth=101 41887030 47500127488
ssd ssd321_resnet101 116526320 35925390528
ssd dssd321_resnet101 172380912 53879108800
holds '.buffers == 171904'
run ridge graph ssd300_vgg16 --batch 16 --json
holds "$(near .flops_model 1.0048e12 1e-3)"
holds "$(near .bytes_compulsory 2.00e9 2e-2)"
run ridge graph dssd321_resnet101 --batch 2 --json
holds "$(near .flops_model 2.160e11 1e-3)"
holds "$(near .bytes_compulsory 1.07e9 2e-2)"

# Chen et al. 2018: each crop of the batch and its mirror image.
run ridge graph cpn --batch 8 --json
holds '.params == 46001898'
holds "$(near .macs '(16 * 24.4509e9)' 1e-3)"
holds "$(near .flops_model 7.862e11 1e-3)"
holds "$(near .bytes_compulsory 4.06e9 5e-3)"
run ridge graph cpn:mirror=no,depth=50 --json
holds '.params == 27009770'
holds "$(near .macs 16.2689e9 1e-3)"
run ridge graph cpn:mirror=no,height=256 --json
holds "$(near .macs 10.8671e9 1e-3)"

# Ren et al. 2015 at 600x800 with 300 regions, and the body of Zeiler and Fergus.
run ridge graph faster_rcnn --json
holds '.params == 137078239'
holds "$(near .macs 187.5133e9 1e-4)"
holds "$(near .flops_model 3.753e11 1e-3)"
holds "$(near .bytes_compulsory 1.175e9 5e-3)"
run ridge graph faster_rcnn:body=zf --json
holds '.params == 59294751'
holds "$(near .macs 30.256e9 1e-4)"
holds "$(near .flops_model 6.07e10 1e-3)"
run ridge graph faster_rcnn:width=1000 --json
holds "$(near .macs 225.57e9 1e-4)"

# He et al. 2017, 1024x1024, 1000 proposals and 100 masks.
run ridge graph mask_rcnn --json
holds '.params == 64047096 and .buffers == 111488'
holds "$(near .macs 388.65e9 1e-4)"
holds "$(near .flops_model 7.792e11 1e-3)"

# The text is the same whenever it is printed, and a line per node.
run ridge graph ncf
exits 0
cp "$output" "$tap_dir/first"
prints '^# ncf: batch 256, [0-9]+ nodes'
run ridge graph ncf
check "the same text again" cmp "$output" "$tap_dir/first"
run ridge graph ncf -b 1
check "another batch gives another text" test "$(cksum <"$output")" != "$(cksum <"$tap_dir/first")"

run ridge graph ncf --dot
exits 0
prints '^digraph "ncf'
prints '^}$'
check "braces and quotes of the dot file are paired" awk '
    { quotes += gsub(/"/, "") ; opened += gsub(/{/, ""); closed += gsub(/}/, "") }
    END { exit !(quotes % 2 == 0 && opened == closed) }' "$output"

run ridge graph
exits 2
complains 'usage: ridge graph MODEL'
run ridge graph ncf resnet50
exits 2
run ridge graph resnt50
exits 2
complains 'did you mean "resnet50"'
run ridge graph resnet50:version=7
exits 2
complains 'version'
run ridge graph resnet50 --batch -1
exits 2
complains 'batch'
run ridge graph no_such_file.onnx
exits 2
complains 'no_such_file.onnx'

finish
