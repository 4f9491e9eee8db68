#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run needs the memory that the compiler planned, and the program: within 10 % for a large net.
. tests/lib/tap.sh
db=$tap_dir/ridge.db

run ridge run resnet50 --batch 1 --no-tune --no-verify --no-layers --no-ceilings --no-report \
    --profilers model --samples 3 --seconds 0 --seconds-max 2 --db "$db"
[ "$code" = 0 ] || [ "$code" = 4 ] # too few samples for a busy machine
tap_result $? "a short run"
share=$(sqlite3 "$db" "SELECT max(CASE name WHEN 'peak_rss_bytes' THEN value END) /
    (max(CASE name WHEN 'arena_bytes' THEN value END) + max(CASE name WHEN 'weight_bytes' THEN value END))
    FROM metric WHERE op IS NULL")
most=1.1
case $RIDGE in
*asan* | *tsan*) most=20 ;; # shadows and red zones
esac
check "peak memory is $share of the plan" awk "BEGIN { exit !($share > 0.5 && $share < $most) }"
finish
