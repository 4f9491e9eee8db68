#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Issue 15.2: a result that was measured beside busy neighbours is invalid and says why.
. tests/lib/tap.sh
. tests/lib/busy.sh
db=$tap_dir/disturbed.db

# 64 x 64 x 64 alone would spin through its CPU time in peace; loops take half of it.
measure() {
    run ridge run gemm:m=256,n=256,k=256 --samples 20 --seconds 0.5 --seconds-max 2 --no-verify \
        --no-layers --no-tune --no-ceilings --no-report --profilers model --db "$db" --quiet
}
share() {
    sqlite3 "$db" "SELECT round(100 * value) FROM metric WHERE name = 'wait_share' ORDER BY id DESC LIMIT 1"
}

measure
known=$(sqlite3 "$db" "SELECT value IS NOT NULL OR reason <> '' FROM metric WHERE name = 'wait_share'")
check "the time without a CPU is a metric, or has a reason" [ "$known" = 1 ]
if [ -z "$(share)" ]; then
    echo "ok 2 - # SKIP this kernel does not count"
    tap_count=2
    finish
fi

for nice in '' 'nice -n 19'; do
    busy_begin $nice
    measure
    busy_end
    exits 4
    prints 'invalid: (visit [1-6] of [3-6]: )?disturbed: (up to )?[0-9.]+ % of the CPU time went to other programs on this machine'
    prints 'busiest: [^ ]+, [0-9.]+ CPUs'
    visits=$(sqlite3 "$db" "SELECT count(*) FROM visit WHERE result = (SELECT max(id) FROM result)")
    check "visits that do not count are made up for: $visits" [ "$visits" -gt 3 ]
    check "waiting is not nothing: $(share) %" [ "$(share | cut -d. -f1)" -gt 2 ]
done

# Issue 15.3: a pause while sampling is named and its sample set apart. One visit, so that the pause
# falls into its samples; it may still fall between two, where nothing is to be set apart.
paused=$tap_dir/paused.db
for try in 1 2 3 4; do
    rm -f "$paused"
    "$RIDGE" run gemm:m=256,n=256,k=256 --rounds 1 --samples 20 --seconds 3 --seconds-max 3 --no-verify \
        --no-layers --no-tune --no-ceilings --no-report --profilers model --db "$paused" --quiet \
        >"$output" 2>"$errors" &
    pid=$!
    sleep 1.5
    kill -STOP $pid
    sleep 1.2
    kill -CONT $pid
    wait $pid
    code=$?
    grep -q 'set apart' "$output" && break
    echo "# try $try: the pause fell between two samples"
done
tap_what="a run that was stopped for 1.2 s"
prints 'note: 1 sample of 1\.[0-9] s is set apart: the process was stopped$'
apart=$(sqlite3 "$paused" "SELECT count(*), max(time_ns) > 1e9 FROM sample WHERE phase = 'discarded'")
check "its sample is kept as discarded: $apart" [ "$apart" = "1|1" ]
left=$(sqlite3 "$paused" "SELECT max(time_ns) < 1e9 FROM sample WHERE phase = 'time'")
check "no other sample is as long" [ "$left" = 1 ]
most=$(sqlite3 "$paused" "SELECT max < 1 FROM metric WHERE op IS NULL AND name = 'time_s'")
check "it is in no number" [ "$most" = 1 ]
run ridge report --db "$paused" -o "$tap_dir/page"
grep -q '1 sample of 1\.[0-9] s is set apart: the process was stopped' "$tap_dir/page/index.html"
tap_result $? "the page says so"

finish
