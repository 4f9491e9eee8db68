#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What CUPTI counts of work whose counts are known: 2 M N K operations of products in four precisions
# within 1 %; the bytes that a product of one row reads, 4 N K, and those that a copy of 4 GiB reads
# and writes, within 2 %, by ranges and by sampling. Executions follow each other over the same bytes,
# of which the second cache may have kept as many as it holds: so much less may be counted. Needs a
# GPU and the permission to count; tools/test_gpu.sh runs it.
# Usage: gpu_counts.sh RIDGE DEVICE [SIDE] [LONG_SIDE] [COPIED]   (COPIED: floats)
set -u
ridge=$1 device=$2 side=${3:-4096} long=${4:-32768} copied=${5:-1073741824}
for program in jq sqlite3; do
    command -v $program >/dev/null || {
        echo "gpu_counts.sh: $program is not installed: ./setup.sh test" >&2
        exit 2
    }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

# count DATABASE SPEC PRECISION OPTION...: one run.
count() {
    db=$folder/$1.db spec=$2 precision=$3
    shift 3
    "$ridge" run "$spec" --device "$device" --precision "$precision" --profilers cupti,cupti_pm \
        --no-ceilings --no-verify --no-layers --no-report --rounds 1 --seconds 0.1 --samples 6 --interval 0 --db "$db" "$@" \
        >"$folder/log" 2>&1
    code=$?
    [ $code = 0 ] || [ $code = 4 ] || cat "$folder/log" # 4: times are not to be trusted, counts are
}

# judge DATABASE SOURCE METRIC KNOWN LOWEST HIGHEST: what was counted against what is known.
judge() {
    sqlite3 "$folder/$1.db" "SELECT coalesce(value, 'not counted'), reason FROM metric
        WHERE op IS NULL AND source = '$2' AND name IN ('$3', 'counters') LIMIT 1" >"$folder/row"
    if awk -F '|' -v what="$1 $2 $3" -v known="$4" -v low="$5" -v high="$6" '
        { counted = $1; why = $2; good = $1 + 0 >= low + 0 && $1 + 0 <= high + 0 }
        END { printf "%s %-30s %s of %.0f, ratio %.4f (%.4f to %.4f) %s\n", good ? "ok  " : "FAIL", what,
                     counted, known, counted / known, low / known, high / known, why
              exit !good }' "$folder/row"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
}

judge_bytes() { # DATABASE METRIC KNOWN
    for source in cupti cupti_pm; do
        judge "$1" $source "$2" "$3" $(($3 - cache)) $(($3 * 102 / 100))
    done
}

"$ridge" peaks --device "$device" --only "size L2" --quick --json >"$folder/peaks" 2>"$folder/log" || cat "$folder/log"
cache=$(jq -r 'map(select(.name == "size L2"))[0].value // empty' "$folder/peaks")
if [ -z "$cache" ]; then
    echo "FAIL the size of the second cache is not known"
    cache=0 failed=1
fi
echo "second cache: $cache B"

operations=$((2 * side * side * side))
for precision in f32 tf32 bf16 f16; do
    count "$precision" "gemm:m=$side,n=$side,k=$side" "$precision"
    judge "$precision" cupti flops $operations $((operations * 99 / 100)) $((operations * 101 / 100))
done
count row "gemm:m=1,n=$long,k=$long" f32
judge_bytes row dram_read_bytes $((4 * long * long))
# Untuned: no kernel is compared with a reference of 8 bytes per float.
count copy "active:elements=$copied" f32 --no-tune
judge_bytes copy dram_read_bytes $((4 * copied))
judge_bytes copy dram_write_bytes $((4 * copied))
echo "$passed passed, $failed failed"
[ $failed = 0 ]
