#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run of a million samples: its report takes less than five seconds. And a run of 500 points: the
# page says everything of each, pictures of their own have those that pay most.
. tests/lib/tap.sh

env SAMPLES=200000 RUNS=1 tests/lib/sample_db.sh "$tap_dir/large.db"
check "a million samples" test \
    "$(sqlite3 "$tap_dir/large.db" "SELECT count(*) FROM sample WHERE phase = 'time'")" -ge 1000000
begin=$(date +%s%N)
run ridge report --db "$tap_dir/large.db" --output "$tap_dir/large"
end=$(date +%s%N)
exits 0
echo "# $(((end - begin) / 1000000)) ms"
check "less than 5 s" test $((end - begin)) -lt 5000000000
check "the page stays small" test "$(wc -c <"$tap_dir/large/index.html")" -lt 3000000
if command -v gnuplot >/dev/null; then
    check "curves of some hundred points" test \
        "$(wc -l <"$tap_dir/large/plots/latency_1001.dat")" -lt 500
fi

tests/lib/sample_db.sh "$tap_dir/points.db"
sqlite3 "$tap_dir/points.db" "
    CREATE TEMP TABLE copy AS SELECT value AS k FROM generate_series(1, 124);
    CREATE TEMP TABLE old AS SELECT id FROM result WHERE run = 3 AND point <= 4;
    INSERT INTO point SELECT id + 1000 * k, key || k, canonical || ' k=' || k, workload, 'case=' || k, domain, mode,
        device, precision, batch, threads, scenario, cache, providers FROM point, copy WHERE id <= 4;
    INSERT INTO result SELECT id + 10000 * k, run, sequence + 1000 * k, point + 1000 * k, status, verdict, reason,
        verify_error, verify_bound, verify_how, stop_reason, started_utc, wall_s, reproduce
        FROM result, copy WHERE id IN (SELECT id FROM old);
    INSERT INTO op SELECT result + 10000 * k, idx, name, kind, shape, kernel, provider FROM op, copy
        WHERE result IN (SELECT id FROM old);
    INSERT INTO metric (result, op, name, unit, source, better, value, reason, formula, n)
        SELECT result + 10000 * k, op, name, unit, source, better,
            iif(name IN ('time_s', 'flops'), value * (1 + k / 20.0), value), reason, formula, n FROM metric, copy
        WHERE result IN (SELECT id FROM old)"
run ridge report --db "$tap_dir/points.db" --output "$tap_dir/points"
exits 0
html=$tap_dir/points/index.html
check "503 rows" test "$(grep -c '<tr id="p[0-9]*">' "$html")" -eq 503
echo "# $(wc -c <"$html") bytes"
check "less than 30 KB a point" test "$(wc -c <"$html")" -lt $((503 * 30000))
if command -v gnuplot >/dev/null; then
    check "40 points have pictures" test "$(grep -c 'viewBox.*roofline_ops_[0-9]*-t' "$html")" -eq 40
    check "the others say why not" test "$(grep -c 'No pictures of this point' "$html")" -eq 461
fi
finish
