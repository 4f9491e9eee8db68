#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One product in each precision: verified, run, judged by the peak of its own precision, exported.
. tests/lib/tap.sh

size=m=70,n=50,k=131
runs ridge verify "gemm:$size" --json
holds '.[0].bound == 1e-5 and .[0].status == "ok"'
runs ridge verify "gemm:$size" --precision bf16 --json
holds '.[0].precision == "bf16" and .[0].bound > 0.011 and .[0].bound < 0.012 and .[0].status == "ok"'
holds '.[0].max_rel_error > 1e-4'
# The bound is 0.01105: one digit said "error 0.0108 (bound 0.01)  ok".
runs ridge verify gemm:m=64,n=64,k=64 --precision bf16
prints '\(bound 0\.011[0-9]*\)  ok$'
runs ridge verify "gemm:$size" --precision i8 --json
holds '.[0].precision == "i8" and .[0].bound == 0 and .[0].max_rel_error == 0'
runs ridge verify "gemm:$size" --precision f8 --json
holds '.[0].precision == "f8" and .[0].bound < 0.014 and .[0].status == "ok"'
runs ridge explain "gemm:$size" --precision f8 --json
holds 'map(.op) == ["Cast", "Cast", "Gemm"]'
run ridge list workloads --json
holds '.[] | select(.name == "gemm") | .precision == ["f32", "tf32", "bf16", "f16", "i8", "f8"]'
holds '.[] | select(.name == "gemm") | .precision_cpu == ["f32", "bf16", "i8", "f8"]'
holds '.[] | select(.name == "ncf") | .precision_cpu == ["f32", "bf16"] and (.precision | contains(["f16"]))'
refuses 'precision "f16": gemm:m=70,n=50,k=131 cannot run in it on the CPU' ridge verify "gemm:$size" --precision f16

# The transposition of i8 is no step of its own.
runs ridge explain "gemm:$size" --precision i8 --json
holds 'length == 1 and .[0].op == "MatMulInteger"'
runs ridge graph "gemm:$size" --precision i8
prints 'Transpose'

for isa in scalar avx2; do
    for precision in bf16 i8 f8; do
        runs ridge verify "gemm:$size" --precision "$precision" --isa "$isa" --providers native
    done
done

# Where the CPU has no dot products of bytes, oneDNN's sums saturate.
if [ -e "$(dirname "$RIDGE")/plugins/onednn.so" ]; then
    runs env DNNL_MAX_CPU_ISA=AVX2 "$RIDGE" explain "gemm:$size" --precision i8 --all --no-tune
    prints 'onednn_matmul_bytes .*saturate at 16 bits'
fi

cat >"$tap_dir/s.toml" <<EOF
name = "s"
[defaults]
precision = ["f32", "bf16", "i8", "f8"]
threads = 1
stop = { seconds_min = 0.01, seconds_max = 0.2, samples_min = 6 }
[[workload]]
name = "gemm"
m = 70
n = 50
k = 131
EOF
run ridge run "$tap_dir/s.toml" --no-report --no-ceilings --db "$tap_dir/s.db" --json
# 4: other programs disturbed the measurement
check "four precisions were run" test "$((code == 0 || code == 4))" = 1
holds 'map(.precision) == ["f32", "bf16", "i8", "f8"] and all(.[]; .max_rel_error <= 0.008 and .samples >= 6)'
ask() { # what, SQL: must print 1
    run sqlite3 "$tap_dir/s.db" "$2"
    tap_what=$1
    prints '^1$'
}
metric="metric JOIN result ON result.id = metric.result JOIN point ON point.id = result.point"
ask "operations do not depend on the precision" \
    "SELECT count(DISTINCT value) = 1 AND max(value) = 2 * 70 * 50 * 131 FROM $metric
     WHERE metric.name = 'flops' AND op IS NULL"
ask "a byte for an i8, four for a result" \
    "SELECT value = 131 * (70 + 50) + 4 * 70 * 50 FROM $metric
     WHERE metric.name = 'bytes_compulsory' AND precision = 'i8'"
ask "a byte for an f8, two for a result" \
    "SELECT value = 131 * (70 + 50) + 2 * 70 * 50 FROM $metric
     WHERE metric.name = 'bytes_compulsory' AND precision = 'f8'"
for precision in f32 bf16 i8 f8; do
    ask "the peak of $precision is its own, or there is a reason" \
        "SELECT (value > 0 AND formula LIKE '%$precision%') OR (value IS NULL AND metric.reason <> '')
         FROM $metric WHERE metric.name = 'fraction_of_peak' AND precision = '$precision'"
done

for precision in bf16 i8 f8; do
    runs ridge export "gemm:$size" --precision "$precision" -o "$tap_dir/$precision.onnx"
    runs ridge verify "$tap_dir/$precision.onnx"
done
finish
