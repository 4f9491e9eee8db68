#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ridge predict: times of a GPU that is not there follow from counts and data sheets.
. tests/lib/tap.sh

# 2 x 4096^3 operations at 66.9 TFLOP/s, 201 MB at 3.35 TB/s; 80 % of the peak and 2 us more.
run ridge predict gemm:m=4096,n=4096,k=4096 --json
exits 0
check "one product" jq -e 'length == 1 and .[0].op == "Gemm" or .[0].op == "MatMul"' "$output"
holds '.[0] | .limit == "arithmetic" and (.roof_us - 2054.4 | fabs) < 1 and (.predicted_us - (2054.4 / 0.8 + 2) | fabs) < 1'
# In 16 bits half the bytes; on tensor cores of an A100 312 TFLOP/s.
run ridge predict gemm:m=4096,n=4096,k=4096 --json --precision bf16 --on a100
exits 0
holds '[.[] | select(.op == "Gemm" or .op == "MatMul")] | .[0] | (.roof_us - 440.5 | fabs) < 1'
# A single row is read at the memory's rate, and small nodes cost what a node costs.
run ridge predict gemm:m=1,n=4096,k=4096 --json
exits 0
holds '.[0] | .limit == "memory" and (.roof_us - 20.0 | fabs) < 0.3'
run ridge predict ncf resnet50 --summary --precision tf32 --on h200
exits 0
prints '^ncf, H200 SXM, tf32: [0-9]+ nodes, .*; roof [0-9.]+ ms, predicted [0-9.]+ ms; limited by arithmetic'
prints '^resnet50, H200 SXM, tf32: '
run ridge predict ncf
exits 0
prints '^node +operator +result +GFLOP +MB +roof us +predicted us +limit'
# The four narrow products of one-hot rows are two on a device, too, whose results are cut up.
run ridge predict ncf --json
exits 0
holds 'map(.op) | .[2:6] == ["MatMul", "Split", "MatMul", "Split"]'
# Tables that end in one concatenation are one node on a device, too.
run ridge predict wide_deep --json
exits 0
holds 'map(.op) | index("Embeddings") != null and index("Gather") == null'
# A first convolution reads what a Cast made of the image as it lies there: nothing is reordered.
run ridge predict resnet50 --precision bf16 --on h200 --json
exits 0
holds 'map(.op) | .[:3] == ["Cast", "Conv", "MaxPool"] and index("Reorder") == null'
run ridge predict ncf --on h300
exits 2
complains 'not a100, h100, h200 or b200'
run ridge predict ncf --precision i8
exits 2
complains 'is not f32, tf32, bf16 or f16'
run ridge predict ncf gcn --json
exits 2
complains 'is for one model'
finish
