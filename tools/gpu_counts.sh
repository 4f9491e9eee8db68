#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What CUPTI counts of work whose counts are known: 2 M N K operations of products in four precisions
# within 1 %, and the bytes that a product of one row reads, 4 N K, within 2 %, by ranges and by
# sampling. Needs a GPU and the permission to count; tools/test_gpu.sh runs it.
# Usage: gpu_counts.sh RIDGE DEVICE [SIDE] [LONG_SIDE]
set -u
ridge=$1 device=$2 side=${3:-4096} long=${4:-32768}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

# count SPEC PRECISION: one run, whose counts go into the database of that precision.
count() {
    "$ridge" run "$1" --device "$device" --precision "$2" --profilers cupti,cupti_pm --no-ceilings \
        --no-verify --no-layers --seconds 0.1 --samples 6 --db "$folder/$2.db" >"$folder/log" 2>&1
    code=$?
    [ $code = 0 ] || [ $code = 4 ] || cat "$folder/log" # 4: times are not to be trusted, counts are
}

# judge PRECISION SOURCE METRIC KNOWN SHARE: the last run's count against what is known.
judge() {
    sqlite3 "$folder/$1.db" "SELECT coalesce(value, 'not counted'), reason FROM metric
        WHERE op IS NULL AND source = '$2' AND name = '$3' ORDER BY id DESC LIMIT 1" >"$folder/row"
    if awk -F '|' -v what="$1 $2 $3" -v known="$4" -v share="$5" '
        { ratio = $1 / known; good = ratio > 1 - share && ratio < 1 + share }
        END { printf "%s %-28s %s of %s, ratio %.4f %s\n", good ? "ok  " : "FAIL", what, $1, known, ratio, $2
              exit !good }' "$folder/row"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
}

operations=$((2 * side * side * side))
for precision in f32 tf32 bf16 f16; do
    count "gemm:m=$side,n=$side,k=$side" $precision
    judge $precision cupti flops $operations 0.01
done
count "gemm:m=1,n=$long,k=$long" f32
judge f32 cupti dram_read_bytes $((4 * long * long)) 0.02
judge f32 cupti_pm dram_read_bytes $((4 * long * long)) 0.02
echo "$passed passed, $failed failed"
[ $failed = 0 ]
