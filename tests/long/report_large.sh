#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run of a million samples: its report takes less than five seconds.
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
finish
