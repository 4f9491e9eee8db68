#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --resume without an unfinished run stored a run without a name; the next one was taken for it and
# never measured, and two such databases became one run when they were merged.
. tests/lib/tap.sh
db=$tap_dir/ridge.db
fast="--device null --no-ceilings --no-report --no-verify"

# The two commands of the report.
run ridge run ncf:embedding=gather -b 1 --resume --db "$db" --tag first --no-ceilings --no-report \
    --samples 6 --seconds 0.01 --seconds-max 0.5
[ "$code" = 0 ] || [ "$code" = 4 ] # 4: a busy machine
tap_result $? "the first is measured"
complains 'there is no unfinished run of this plan: run [0-9a-f]{8} is a new one'
run ridge run gemm:m=64,n=64,k=64 --resume --db "$db" --tag second --no-ceilings --no-report \
    --samples 6 --seconds 0.01 --seconds-max 0.5
[ "$code" = 0 ] || [ "$code" = 4 ]
tap_result $? "the second is measured"
complains 'there is no unfinished run'
prints '^gemm'
is "two runs, two tags" "first,second" "$(sql "SELECT group_concat(tag) FROM (SELECT tag FROM run ORDER BY id)")"
is "with a name each" 2 "$(sql "SELECT count(DISTINCT uuid) FROM run WHERE length(uuid) = 36")"
is "and a result each" "ncf,gemm" \
    "$(sql "SELECT group_concat(workload) FROM (SELECT workload FROM result r JOIN point p ON p.id = r.point ORDER BY r.run)")"

# A run without a name cannot be stored.
check "no empty name" sh -c "! sqlite3 '$db' \"UPDATE run SET uuid = '' WHERE id = 1\" 2>/dev/null"

# An unfinished one is named and gone on with.
run ridge run ncf --batch 1,2 $fast --rounds 2 --db "$db" --tag third
uuid=$(sql "SELECT substr(uuid, 1, 8) FROM run WHERE tag = 'third'")
seed=$(sql "SELECT order_seed FROM run WHERE tag = 'third'")
sql "PRAGMA foreign_keys = ON; UPDATE run SET state = 'running', ended_utc = NULL WHERE tag = 'third';
     DELETE FROM result WHERE sequence = 1 AND run = (SELECT id FROM run WHERE tag = 'third')"
refuses "unfinished run $uuid has 2 rounds, and now there would be 3" \
    ridge run ncf --batch 1,2 $fast --db "$db" --resume
runs ridge run ncf --batch 1,2 $fast --rounds 2 --db "$db" --resume
complains "going on with run $uuid"
is "in the order of its seed" "$seed" "$(sql "SELECT order_seed FROM run WHERE tag = 'third'")"
is "nothing twice" "2,2" "$(sql "SELECT count(*) || ',' || count(DISTINCT sequence) FROM result r JOIN run u ON u.id = r.run WHERE u.tag = 'third'")"

# A visit that is missing is taken, and what was there before stays what it was.
cp "$db" "$tap_dir/visits.db"
sql "PRAGMA foreign_keys = ON; UPDATE run SET state = 'interrupted' WHERE tag = 'third';
     DELETE FROM visit WHERE round = 1; DELETE FROM sample WHERE visit = 1" "$tap_dir/visits.db"
before=$(sql "SELECT r.id, count(*), sum(time_ns), max(r.verify_how), (SELECT count(*) FROM metric WHERE result = r.id)
    FROM result r JOIN sample s ON s.result = r.id JOIN run u ON u.id = r.run
    WHERE u.tag = 'third' AND s.visit = 0 GROUP BY r.id" "$tap_dir/visits.db")
runs ridge run ncf --batch 1,2 $fast --rounds 2 --db "$tap_dir/visits.db" --resume
prints '^ncf +1 '
prints '^ncf +2 '
is "what was measured before" "$before" "$(sql "SELECT r.id, count(*), sum(time_ns), max(r.verify_how), (SELECT count(*) FROM metric WHERE result = r.id)
    FROM result r JOIN sample s ON s.result = r.id JOIN run u ON u.id = r.run
    WHERE u.tag = 'third' AND s.visit = 0 GROUP BY r.id" "$tap_dir/visits.db")"
is "and two visits of each point" "2 2" "$(sql "SELECT group_concat(n, ' ') FROM (SELECT count(*) AS n FROM visit v JOIN result r ON r.id = v.result JOIN run u ON u.id = r.run WHERE u.tag = 'third' GROUP BY r.id)" "$tap_dir/visits.db")"

# A file may hold more visits of a point than any plan has: they fit.
sql "PRAGMA foreign_keys = ON; UPDATE run SET state = 'interrupted' WHERE tag = 'third';
     DELETE FROM result WHERE sequence = 1 AND run = (SELECT id FROM run WHERE tag = 'third');
     WITH RECURSIVE n(k) AS (SELECT 2 UNION ALL SELECT k + 1 FROM n WHERE k < 200)
     INSERT INTO visit SELECT v.result, k, v.started_utc, v.samples, v.median_s, v.ci_low_s, v.ci_high_s,
         v.steal_share, v.wait_share, v.clock_hz, v.reason FROM n, visit v JOIN result r ON r.id = v.result JOIN run u ON u.id = r.run
         WHERE u.tag = 'third' AND v.round = 0" "$tap_dir/visits.db"
is "the visits of one point" 201 "$(sql "SELECT count(*) FROM visit v JOIN result r ON r.id = v.result JOIN run u ON u.id = r.run WHERE u.tag = 'third'" "$tap_dir/visits.db")"
runs ridge run ncf --batch 1,2 $fast --rounds 2 --db "$tap_dir/visits.db" --resume

# ---- what the run was started with ----

# Another stopping rule was mixed into the same point, --tag and --order-seed were dropped.
interrupt() { sql "UPDATE run SET state = 'interrupted', ended_utc = NULL WHERE tag = 'set'" "$tap_dir/set.db"; }
set="ncf --batch 1,2 $fast --rounds 2 --db $tap_dir/set.db"
run ridge run $set --samples 20 --tag set --order-seed 7
interrupt
uuid=$(sql "SELECT substr(uuid, 1, 8) FROM run" "$tap_dir/set.db")
refuses "run $uuid was started with samples_min \(--samples\) 20, and now it would be 15" ridge run $set --resume
refuses "run $uuid was started with --tag set, and now it would be other" ridge run $set --samples 20 --resume --tag other
refuses "run $uuid was started with --order-seed 7, and now it would be 8" \
    ridge run $set --samples 20 --resume --order-seed 8
refuses "seconds_max \(--seconds-max\) 15, and now it would be 3" ridge run $set --samples 20 --seconds-max 3 --resume
refuses "profilers \(--profilers\) model,papi,powercap, and now it would be null" \
    ridge run $set --samples 20 --profilers null --resume
is "nothing was measured" 1 "$(sql "SELECT count(*) FROM run" "$tap_dir/set.db")"
runs ridge run $set --samples 20 --tag set --order-seed 7 --resume
complains "going on with run $uuid"

# Options that make other code make other points, and so another run.
interrupt
runs ridge run $set --samples 20 --no-fuse --resume --tag unfused
complains 'there is no unfinished run of this plan: run [0-9a-f]{8} is a new one'
is "a run of its own" "set,unfused" "$(sql "SELECT group_concat(tag) FROM (SELECT tag FROM run ORDER BY id)" "$tap_dir/set.db")"

# RIDGE_ISA does not, but other kernels cannot go on where it has changed.
scalar=$(RIDGE_ISA=scalar "$RIDGE" doctor --json | jq -r '[.. | .isa? // empty][0]')
if [ "$scalar" != "$("$RIDGE" doctor --json | jq -r '[.. | .isa? // empty][0]')" ]; then
    RIDGE_ISA=scalar
    export RIDGE_ISA
    refuses 'isa \(--isa, RIDGE_ISA\) avx[0-9]+, and now it would be scalar' ridge run $set --samples 20 --resume
    unset RIDGE_ISA
fi

# Runs that are older than these settings are gone on with as before.
sql "DELETE FROM run_fact WHERE category = 'run'" "$tap_dir/set.db"
runs ridge run $set --samples 30 --resume
complains "going on with run $uuid"

# ---- databases of the program that stored runs without a name ----

# Version 2 with a nameless run of so many results, as the old program left it.
nameless() { # file, results, start
    cat results/schema/001*.sql results/schema/002*.sql >"$tap_dir/old.sql"
    {
        cat "$tap_dir/old.sql"
        echo "PRAGMA user_version = 2; PRAGMA application_id = 1380533319;
            INSERT INTO host VALUES (1, 'aabbccddeeff0011', 'box');
            INSERT INTO env_set VALUES (1, 'e'); INSERT INTO build VALUES (1, 'b', '', '', '', '', '', '');
            INSERT INTO run VALUES (1, '', 1, 1, 1, 'ridge run', 'command line', '', 'feedfacefeedface', $2,
                '$3', NULL, 0, '', '', 'finished', 'valid', '');"
        for k in $(seq 0 $(($2 - 1))); do
            echo "INSERT INTO point VALUES ($k + 1, 'key$k', 'canonical $k', 'ncf', '', 'r', 'inference', 'cpu',
                    'f32', $k, 1, 'single_stream', 'warm', '');
                INSERT INTO result VALUES ($k + 1, 1, $k, $k + 1, 'ok', 'valid', '', NULL, NULL, '', '', '$3', 1, '');
                INSERT INTO sample (result, idx, phase, time_ns) VALUES ($k + 1, 0, 'time', 1000000);"
        done
    } | sqlite3 "$1"
}
nameless "$tap_dir/a.db" 7 2026-01-01T00:00:00.123Z
nameless "$tap_dir/b.db" 5 2026-01-01T00:00:07.456Z
cp "$tap_dir/a.db" "$tap_dir/copy.db"
runs ridge ingest --db "$tap_dir/merged.db" "$tap_dir/a.db" "$tap_dir/b.db"
is "12 results, 12 taken in" 12 "$(sql 'SELECT count(*) FROM result' "$tap_dir/merged.db")"
is "two runs" 2 "$(sql "SELECT count(DISTINCT uuid) FROM run WHERE length(uuid) = 36" "$tap_dir/merged.db")"
runs ridge ingest --db "$tap_dir/merged.db" "$tap_dir/copy.db"
is "a copy of one is known" 12 "$(sql 'SELECT count(*) FROM result' "$tap_dir/merged.db")"
runs ridge list runs --db "$tap_dir/a.db"
is "opening repairs it" 1 "$(sql "SELECT count(*) FROM run WHERE length(uuid) = 36" "$tap_dir/a.db")"
is "to the same name as ingesting did" 1 "$(sqlite3 "$tap_dir/a.db" \
    "ATTACH '$tap_dir/merged.db' AS m; SELECT count(*) FROM run JOIN m.run AS r USING (uuid)")"
is "samples so far are visit 0" "7|0" "$(sql 'SELECT count(*), max(round) FROM visit' "$tap_dir/a.db")"
# A run that another process still measures is left to it: both would store visits of one point, and
# the slower one could not store its own.
live=$tap_dir/live.db
usual="--no-ceilings --no-report --no-verify --samples 6 --seconds 0.3 --seconds-max 0.5 --db $live"
# shellcheck disable=SC2086 # several words
"$RIDGE" run ncf --batch 1,2 -t 1 $usual >/dev/null 2>&1 &
other=$!
tries=0
until [ "$(sqlite3 "$live" "SELECT count(*) FROM attempt" 2>/dev/null)" = 1 ] || [ $tries = 1200 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
kill -STOP $other
# shellcheck disable=SC2086
refuses 'is being measured by another process' ridge run ncf --batch 1,2 -t 1 $usual --resume
kill -9 $other
wait $other 2>/dev/null
# shellcheck disable=SC2086
run ridge run ncf --batch 1,2 -t 1 $usual --resume
complains 'going on with run'
is "and is finished when that one is gone" "finished 1" \
    "$(sql "SELECT state || ' ' || (SELECT count(*) FROM run) FROM run" "$live")"
finish
