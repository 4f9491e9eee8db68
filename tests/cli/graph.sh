#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Parameters, FLOPs and bytes of the workloads against published and independently derived figures.
. tests/lib/tap.sh

# near VALUE WANTED RELATIVE-TOLERANCE as a jq expression
near() {
    echo "($1 - $2 | fabs) <= $2 * $3"
}

# He et al. 2016; 2 x 3.858 GMAC per image for the version with the stride in the 1x1 convolution.
runs ridge graph resnet50 --batch 32 --json
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
# Batch norms after concatenations are their readers' work: 6.00e8 when all of them are.
holds "$(near .bytes_compulsory 6.00e8 1e-1)"

run ridge graph crnn --batch 256 --json
holds '.params == 8721152 and .buffers == 4480'
holds "$(near .macs 256*0.7007e9 1e-4)"
holds "$(near .flops_model 3.594e11 1e-3)"
run ridge graph crnn:width=280 --batch 256 --json
holds '.params == 8721152'
holds "$(near .flops_model 1.0064e12 1e-3)"

run ridge graph seglink --batch 8 --json
holds '.params == 23980280 and .buffers == 0'
holds "$(near .macs 8*328.118e9 1e-4)"
holds "$(near .flops_model 5.2545e12 1e-3)"
holds "$(near .bytes_compulsory 1.03e10 5e-3)"
run ridge graph seglink:height=512,width=512 --json
holds "$(near .macs 87.498e9 1e-4)"
# Sides that are no multiple of 128: every halving rounds up, of either side for itself (SAME).
sides() { # MODEL NODE SHAPE
    run ridge graph "$1" --json
    holds ".nodes[] | select(.name == \"$2\") | .shape == $3"
}
sides seglink:height=384,width=388 conv3_1 '[1, 256, 96, 97]'
sides seglink:height=384,width=388 conv4_1 '[1, 512, 48, 49]'
sides seglink:height=302,width=302 conv3_1 '[1, 256, 76, 76]'
sides seglink:height=302,width=302 conv11 '[1, 256, 2, 2]'
sides seglink:height=97,width=96 conv2_1 '[1, 128, 49, 48]'
sides faster_rcnn:height=601,width=802 conv3_1 '[1, 256, 151, 201]'

run ridge graph bert_large --batch 2 --json
holds '.params == 335143938'
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

# MLPerf's recommendation_v2: 13 numbers -> 512 -> 256 -> 128; 27 x 128 crossed by rank 512; 3456 -> 1024 -> 1024 ->
# 512 -> 256 -> 1; 26 tables of width 128, of which a sample reads 214 rows.
run ridge graph dlrm_dcnv2 --json
holds '.batch == 128 and .macs == 128 * (170496 + 10616832 + 5243136)'
holds '[.nodes[] | select(.op == "EmbeddingBag")] | length == 26'
dlrm() { # ROWS TABLE-ROWS
    run ridge graph "dlrm_dcnv2:rows=$1" --batch 3 --json
    holds ".params == 171392 + 10627200 + 5245953 + 128 * $2 and .macs == 3 * 16030464"
}
dlrm 40000000 204184588
dlrm 1000000 7116632
dlrm 400000 '(8 * 400000 + 39060 + 17295 + 7424 + 20265 + 3 + 7122 + 1543 + 63 + 10 + 2209 + 11938 + 155 + 4 + 976 + 14 + 12973 + 108 + 36)'
# Those rows are read, and their sums written, not the tables.
holds '[.nodes[] | select(.op == "EmbeddingBag") | .bytes] | add == 3 * (214 * (128 * 4 + 8) + 26 * 128 * 4)'
run ridge graph dlrm_dcnv2:thin=16,rows=20 --json
holds '[.nodes[] | select(.op == "Concat") | .shape] == [[128, 216]]'

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
run ridge graph din --batch 512 --json
holds '.params == 4231771 and .macs == 1972383744'
holds "$(near .flops_model 3.984e9 1e-3)"

# All items with their categories: a table of 48 MB read and written, without a product more.
bytes=$("$RIDGE" graph din --batch 512 --json | jq .bytes_streamed)
run ridge graph din:table=whole --batch 512 --json
holds '.params == 4231771 and .macs == 1972383744'
holds ".bytes_streamed - $bytes | . > 63001 * 128 * 4 * 2.4 and . < 63001 * 128 * 4 * 2.6"

# The auxiliary net runs over one step less than the recurrences.
run ridge graph dien --batch 512 --json
holds '.params == 16521651 and .macs == 512 * (30312 * 100 + 24600 * 99 + 49856)'
holds "$(near .flops_model 5.877e9 1e-3)"
run ridge graph dien:history=1936 --batch 512 --json
holds "$(near .flops_model 1.1326e11 1e-3)"

# Kipf and Welling 2017: 49216 and 13264 entries times 16 columns, 2708 x 16 x 7, 13264 times 7.
run ridge graph gcn --json
holds '.params == 23040 and .macs == 1395824 and .batch == 1'
holds "$(near .flops_model 3.04e6 1e-2)"

# A folder of files gives all sizes: three papers, four words, two subjects, two links.
mkdir "$tap_dir/cora"
printf '31336\t0\t1\t0\t1\tTheory\n35\t1\t0\t0\t0\tCase_Based\n40\t0\t0\t1\t1\tTheory\n' \
    >"$tap_dir/cora/cora.content"
printf '31336\t35\n35\t31336\n35\t40\n' >"$tap_dir/cora/cora.cites"
runs ridge graph "gcn:data=$tap_dir/cora" --json
holds '.params == 4 * 16 + 16 * 2 and .macs == (5 + 7) * 16 + 3 * 16 * 2 + 7 * 2'
runs ridge verify "gcn:data=$tap_dir/cora" --no-tune
prints ' ok'
echo 35 >>"$tap_dir/cora/cora.cites"
refuses 'cora.cites:4: a line must name two papers' ridge graph "gcn:data=$tap_dir/cora"
refuses 'pubmed.content: No such file' ridge graph "gcn:data=$tap_dir/cora,dataset=pubmed"
refuses 'data has no value' ridge graph gcn:data=

# 10074.57 MMAC per sentence of 74 words in and out.
run ridge graph nmt --batch 128 --json
holds '.params == 210880513'
holds "$(near .macs 1.28955e12 1e-4)"
holds "$(near .flops_model 2.587e12 1e-3)"

# Ren et al. 2015 at 600x800 with 300 regions, and the body of Zeiler and Fergus.
run ridge graph faster_rcnn --json
holds '.params == 137078239'
holds "$(near .macs 187.5133e9 1e-4)"
holds "$(near .flops_model 3.753e11 1e-3)"
holds "$(near .bytes_compulsory 1.175e9 5e-3)"
refuses 'batch is 65; it can be at most 64' ridge graph faster_rcnn --batch 65
refuses 'proposals is 2049; it can be at most 2048' ridge graph mask_rcnn:proposals=2049
runs ridge graph mask_rcnn:image=64,proposals=10,detections=5 --batch 3 --json
holds '.batch == 3'
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
# One layer each: sizes of the lists, at both ends.
run ridge graph gemm:list=performance,case=30 --json
holds '.macs == 21504 * 21504 * 17408'
refuses 'cases 1 to 30' ridge graph gemm:list=performance,case=31
run ridge graph gemm:list=performance,case=31 --precision i8 --json
holds '.macs == 25600 * 25600 * 1024'
run ridge graph gemm:list=performance,case=35 --precision i8 --json
holds '.macs == 25600 * 25600 * 17408'
run ridge graph gemm:list=performance,case=30 --precision i8 --json
holds '.macs == 21504 * 21504 * 17408'
refuses 'cases 1 to 35' ridge graph gemm:list=performance,case=36 --precision i8
refuses '1 to 4' ridge graph gemm:list=pressure,case=5
run ridge graph gemm:m=3,n=5,k=7 --json
holds '.flops_model == 210'
run ridge graph gemm --batch 2
exits 2
run ridge graph conv:case=1 --json
holds '.macs == 64 * 55 * 55 * 96 * 363'
run ridge graph conv:case=109 --json
holds '.macs == 225 * 1024 * 512'
run ridge graph fc:case=1 --json
holds '.macs == 64 * 9216 * 4096 and .params == 9216 * 4096'
run ridge graph pool:case=23 --json
holds '.nodes[1].shape == [1, 512, 7, 14] and .inputs[0].shape == [1, 15, 15, 512]'
run ridge graph norm:case=77 --json
holds '.nodes[1].shape == [1, 1024, 8, 8] and .nodes[2].shape == [1, 8, 8, 1024]'
run ridge graph active:case=96,kind=Softmax --json
holds '.nodes[0].shape == [1, 8, 8, 1024]'
run ridge graph active:elements=1073741824 --json
holds '.nodes[0].shape == [1073741824]'
run ridge graph active:elements=-1
complains 'elements=.-1. must be an integer from 1 to 1073741824'
refuses 'elements="1073741825" must be an integer from 1 to 1073741824' ridge graph active:elements=1073741825
# The default was refused where it was written out.
runs ridge graph active:elements=0,case=2 --json
printf '[[workload]]\nname = "active"\nelements = [0, 100]\n' >"$tap_dir/elements.toml"
runs ridge plan "$tap_dir/elements.toml" --json
holds '[.points[].params] == ["", "elements=100"]'
run ridge graph active:elements=5,case=2
complains 'case=2 has no effect with elements=5'
run ridge graph rnn:units=2560,sequence=64 --batch 32 --json
holds '.macs == 4 * 2624 * 2560 * 64 * 32'

# AI Matrix's synthetic network, and made ones: the counts must agree with what the search believed.
run ridge graph synnet:form=published --json
holds '.params == 21619109'
holds "$(near .macs 19.1087e9 1e-5)"
run ridge graph synnet:form=published3c --json
holds '.params == 25686645 and .macs == 17509948414'
for wish in 60,64,20,60,20 10,200,20,60,20 200,40,70,20,10; do
    IFS=, read -r intensity footprint k5 k3 k1 <<EOF
$wish
EOF
    run ridge graph "synnet:intensity=$intensity,footprint=$footprint,k5=$k5,k3=$k3,k1=$k1" --json
    holds "$(near .bytes_compulsory "($footprint * 1048576)" 1e-2)"
    holds "$(near '(.flops_model / .bytes_compulsory)' "$intensity" 1e-2)"
    holds '.note | test("^wanted .* made ")'
done
refuses 'image is 31' ridge graph synnet:image=31

# What a parameter must be is said in its name, not in that of the node that fails first.
refuses 'heads is 7; it must divide the width, which is 768' ridge graph bert_base:heads=7
refuses 'image is 1000; it must be a multiple of 64' ridge graph mask_rcnn:image=1000
refuses 'proposals is 2000, but an image of this size has 1023 candidates' ridge graph mask_rcnn:image=64,proposals=2000
refuses 'detections is 100; it can be at most 81' ridge graph mask_rcnn:image=64,proposals=1
refuses 'proposals is 300, but an image of this size has 9 candidates' ridge graph faster_rcnn:height=10,width=10
refuses 'proposals is 4; it must be at least 5' ridge graph faster_rcnn:proposals=4
refuses 'tokens is 513; it can be at most 512' ridge graph bert_large:tokens=513
refuses 'tokens is 1024; it can be at most 512' ridge graph bert_base:tokens=1024
refuses 'history is 1; it must be at least 2' ridge graph dien:history=1
refuses 'width is 101; it must be a multiple of 4' ridge graph crnn:width=101
refuses 'height is 1; it must be at least 2' ridge graph cpn:height=1
refuses 'image is 2; it must be at least 3' ridge graph resnet50:image=2
refuses 'depth is 1000000; it can be at most 1000' timeout 10 "$RIDGE" graph bert_base:depth=1000000
refuses 'depth is 1001; it can be at most 1000' ridge train bert_base:depth=1001
refuses 'beam is 33; it can be at most 32' ridge graph nmt:beam=33
refuses 'beam is 12; it can be at most 11' ridge graph nmt:beam=12,vocabulary=12
for fits in bert_base:tokens=512 dien:history=2 cpn:height=2 resnet50:image=3 crnn:width=4 \
    mask_rcnn:image=64 faster_rcnn:height=10,width=10,proposals=9; do
    runs ridge graph "$fits"
done
# What has no effect is refused.
refuses 'm=7 has no effect with list=performance' ridge graph gemm:list=performance,m=7
refuses 'k=7 has no effect with list=pressure' ridge graph gemm:list=pressure,case=2,k=7
refuses 'case=2 has no effect with list=own' ridge graph gemm:case=2
refuses 'intensity=9 has no effect with form=published' ridge graph synnet:form=published,intensity=9
refuses 'image=224 has no effect with form=published3c' ridge graph synnet:form=published3c,image=224
refuses 'radius=3 has no effect with kind=batch' ridge graph norm:radius=3
runs ridge graph norm:kind=lrn,radius=3
refuses 'precision "i8": the graph of resnet50 is not built in it$' ridge graph resnet50 --precision i8
refuses 'precision "bf16": .* but in f32; compilation for a device narrows it' ridge graph resnet50 --precision bf16
runs ridge graph resnet50 --precision f32
refuses 'the graph of resnet50 is not built in it' ridge export resnet50 --precision i8 --output "$tap_dir/i8.onnx"
refuses 'the graph of no_such_file.onnx is not built in it$' ridge graph no_such_file.onnx --precision f16
# An unknown name is an unknown name first.
refuses 'did you mean "resnet50"' ridge graph resnt50 --precision bf16
# All choices are named.
refuses 'depth="7" is none of 18, 34, 50, 101, 152$' ridge graph ssd300_resnet50:depth=7
refuses 'version="2" is none of 1, 1.5$' ridge graph resnet50:version=2

# The text is the same whenever it is printed, and a line per node.
runs ridge graph ncf
cp "$output" "$tap_dir/first"
prints '^# ncf: batch 256, [0-9]+ nodes'
run ridge graph ncf
check "the same text again" cmp "$output" "$tap_dir/first"
run ridge graph ncf -b 1
check "another batch gives another text" test "$(cksum <"$output")" != "$(cksum <"$tap_dir/first")"

runs ridge graph ncf --dot
prints '^digraph "ncf'
prints '^}$'
check "braces and quotes of the dot file are paired" awk '
    { quotes += gsub(/"/, "") ; opened += gsub(/{/, ""); closed += gsub(/}/, "") }
    END { exit !(quotes % 2 == 0 && opened == closed) }' "$output"

refuses 'usage: ridge graph MODEL' ridge graph
run ridge graph ncf resnet50
exits 2
refuses 'did you mean "resnet50"' ridge graph resnt50
refuses 'version' ridge graph resnet50:version=7
refuses 'batch' ridge graph resnet50 --batch -1
refuses 'no_such_file.onnx' ridge graph no_such_file.onnx

finish
