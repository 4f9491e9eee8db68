#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 2,000 damaged databases against every command that reads results, each under 8 GB of address space and 20 s:
# pages changed, swapped and cut off, text where numbers belong, another schema, a log of another database.
# RIDGE_DAMAGED (2000): how many; RIDGE_SEED (1).
. tests/lib/tap.sh
program=${RIDGE_BUILD:-build/release}/tests/damage/run
RUNS=3 SAMPLES=20 tests/lib/sample_db.sh "$tap_dir/sound-1.db"
RUNS=2 SAMPLES=5 HOSTILE=1 WORKLOADS=9 tests/lib/sample_db.sh "$tap_dir/sound-2.db"
RUNS=2 SAMPLES=8 CEILINGS=0 STEPS=0 tests/lib/sample_db.sh "$tap_dir/sound-3.db"
for round in 1 2; do
    : $round
    "$RIDGE" run ncf gemm:m=64,n=64,k=64 -b 1,2,4 --device null --no-ceilings --no-report --samples 8 --seconds 0.001 \
        --db "$tap_dir/sound-4.db" >/dev/null 2>&1
done
check "four sound ones" test "$(cat "$tap_dir"/sound-*.db | wc -c)" -gt 400000
"$program" databases "${RIDGE_DAMAGED:-2000}" "${RIDGE_SEED:-1}" "$tap_dir"/sound-*.db >"$tap_dir/log"
code=$?
grep -E '^(# .* exit codes|not ok)' "$tap_dir/log" | sed 's/^not ok/# not ok/'
[ $code = 0 ]
tap_result $? "$(tail -1 "$tap_dir/log")"
finish
