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
tests/lib/more_points.sh "$tap_dir/points.db" 124
runs ridge report --db "$tap_dir/points.db" --output "$tap_dir/points"
html=$tap_dir/points/index.html
check "503 rows" test "$(grep -c '<tr id="p[0-9]*">' "$html")" -eq 503
echo "# $(wc -c <"$html") bytes"
check "less than 30 KB a point" test "$(wc -c <"$html")" -lt $((503 * 30000))
if command -v gnuplot >/dev/null; then
    check "40 points have pictures" test "$(grep -c 'viewBox.*roofline_ops_[0-9]*-t' "$html")" -eq 40
    check "the others say why not" test "$(grep -c 'No pictures of this point' "$html")" -eq 461
fi
finish
