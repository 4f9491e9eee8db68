#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run needs the memory that the compiler planned, and the program: within 12 % for a large net (7 % on Debian 12, 11 % on 13).
. tests/lib/tap.sh
db=$tap_dir/ridge.db

# The small one comes after the large one, which waits compiled for its next visit.
run ridge run resnet50 gemm:m=64,n=64,k=64 --order-seed 1 --batch 1 --no-tune --no-verify --no-layers --no-ceilings --no-report \
    --profilers model --samples 3 --seconds 0 --seconds-max 2 --db "$db"
[ "$code" = 0 ] || [ "$code" = 4 ] # too few samples for a busy machine
tap_result $? "a short run"
share=$(sqlite3 "$db" "SELECT max(CASE name WHEN 'peak_rss_bytes' THEN value END) /
    (max(CASE name WHEN 'arena_bytes' THEN value END) + max(CASE name WHEN 'weight_bytes' THEN value END))
    FROM metric m JOIN result r ON r.id = m.result WHERE op IS NULL AND r.sequence = 0")
most=1.12
case $RIDGE in
*asan* | *tsan*) most=20 ;; # shadows and red zones
esac
check "peak memory is $share of the plan" awk "BEGIN { exit !($share > 0.5 && $share < $most) }"
is_after=$(sqlite3 "$db" "SELECT group_concat(sequence) FROM (SELECT sequence FROM visit v
    JOIN result r ON r.id = v.result WHERE round = 0 ORDER BY v.started_utc)")
check "the small one came second: $is_after" test "$is_after" = 0,1
small=$(sqlite3 "$db" "SELECT value FROM metric m JOIN result r ON r.id = m.result
    WHERE m.name = 'peak_rss_bytes' AND r.sequence = 1")
case $RIDGE in
*asan* | *tsan*) ;;
*) check "what waits is not counted: $small bytes" awk "BEGIN { exit !($small < 4e7) }" ;;
esac
finish
