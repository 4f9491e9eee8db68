#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Points of a suite whose ranks learn together are those of `ridge scale --db`: the same ids, the same results, the same curve.
. tests/lib/tap.sh
db=$tap_dir/ridge.db
cat >"$tap_dir/suite.toml" <<'END'
[defaults]
threads = 1
verify = false
stop = { interval = 0, samples_min = 3, seconds_min = 0.01, seconds_max = 0.1 }
[[workload]]
name = "ncf"
users = 40
items = 30
batch = 16
scaling = { ranks = [1, 2], strong = [false, true], steps = 8 }
[[workload]]
name = "gemm"
m = 16
n = 16
k = 16
END

runs ridge plan "$tap_dir/suite.toml"
prints 'ncf:items=30,users=40 .* training, 2 ranks .* 8 steps'
runs ridge plan "$tap_dir/suite.toml" --only ncf --json
holds '.points | map([.ranks, .strong, .batch]) == [[1, false, 16], [1, true, 16], [2, false, 32], [2, true, 16]]'
holds 'all(.points[]; .mode == "training" and .threads == 1 and .backend == "shm" and .steps == 8)'
jq -r '.points[] | select(.ranks == 2) | .canonical + " tuning=none"' "$output" | LC_ALL=C sort >"$tap_dir/planned"

measure() { # options; a busy machine may disturb the product, and a machine of one CPU has no second rank
    run ridge run "$tap_dir/suite.toml" --no-tune --no-ceilings --db "$db" "$@"
    check "$tap_what: measured" [ "$code" = 0 -o "$code" = 4 ]
}
if [ "$(nproc)" -lt 2 ]; then
    runs ridge plan "$tap_dir/suite.toml" --only ncf --json
    holds 'all(.points[] | select(.ranks == 2); .skip | test("2 ranks of 1 thread"))'
    finish
    exit
fi

measure --report "$tap_dir/report" --rounds 2 --json
holds 'map(.ranks) == [1, 1, 2, 2, null]'
holds 'all(.[] | select(.ranks); .status == "ok" and .throughput > 0 and .samples > 2)'
check "the page shows the curve" grep -q 'id="scaling"' "$tap_dir/report/index.html"
check "ranks are whole, not 2.00" grep -qE 'data-label="Ranks"[^>]*>2</td>' "$tap_dir/report/index.html"

# Bugs: the section of a point with ranks said that this run had no ceilings for its 2 kernels, which are exchanges, and the run
# ended with "2 plots are missing".
page=$tap_dir/report/index.html
is "sections of points with ranks" 4 "$(grep -cE 'Each of 2 ranks computes for|A single rank, whose steps take' "$page")"
is "when they exchanged what" 2 "$(find "$tap_dir/report/plots" -name 'timeline_[0-9].svg' | wc -l)"
is "kernels and their roofs are of the product alone" 1 "$(grep -cE 'from their roofs is not known|No steps were timed' "$page")"
check "a plot of nothing is not missed" sh -c "! grep -q 'plots are missing' '$output' '$errors'"

# What was measured is found again under the same name, and judged with it.
runs ridge scale ncf:items=30,users=40 --no-tune -t 1 --batch 16 --steps 8 -n 2 --db "$db" --json
holds '.points[0].losses | length == 8'
runs ridge scale ncf:items=30,users=40 --no-tune -t 1 --batch 16 --steps 8 -n 2 --strong --db "$db"
check "the same points" [ "$(sql "SELECT canonical FROM point WHERE canonical LIKE '% scaling=%' AND params LIKE '%ranks=2'
    ORDER BY canonical")" = "$(cat "$tap_dir/planned")" ]
# Typed in another order, or with a default, the same training had another id.
typed=$tap_dir/typed.db
for spec in ncf:users=40,items=30 ncf:embedding=onehot,users=40,items=30; do
    runs ridge scale $spec --no-tune -t 1 --batch 16 --steps 2 -n 2 --strong --db "$typed"
done
is "one point, and the planned one" "$(grep 'scaling=strong' "$tap_dir/planned")" "$(sql "SELECT canonical FROM point" "$typed")"
run ridge compare latest~2 latest --db "$db"
prints '(unchanged|inconclusive|machine|improved|regressed|invalid) +ncf:.*ranks=2 batch=16 threads=1 training'
check "with two results each" [ "$(sql "SELECT group_concat(n) FROM (SELECT count(*) AS n FROM result AS r
    JOIN point AS p ON p.id = r.point WHERE p.params LIKE '%ranks=2' GROUP BY p.id)")" = 2,2 ]
check "of the same metrics" [ "$(sql "SELECT count(DISTINCT names) FROM (SELECT group_concat(name) AS names FROM
    (SELECT m.result, m.name FROM metric AS m JOIN result AS r ON r.id = m.result JOIN point AS p ON p.id = r.point
     WHERE p.params LIKE '%ranks=2' ORDER BY m.result, m.name, m.op) GROUP BY result)")" = 1 ]
# Units kept the addresses of their names' texts, which were gone when the record was written.
check "units are named" [ "$(sql "SELECT group_concat(DISTINCT kind || ' ' || (kernel <> '')) FROM op
    WHERE name LIKE 'unit % of rank %'")" = "AllReduce 1" ]
check "their command says how it is done again" [ "$(sql "SELECT count(*) FROM result
    WHERE reproduce LIKE 'ridge scale ncf:items=30,users=40 --ranks 2 --batch 16 --threads 1 --steps 8%'")" = 4 ]
check "both curves are drawn" [ "$(sql "SELECT count(DISTINCT canonical) FROM point WHERE canonical LIKE '% scaling=%'")" = 4 ]

# A run that ended early goes on with what it lacks.
sql "PRAGMA foreign_keys = ON; UPDATE run SET state = 'interrupted' WHERE id = 1;
     DELETE FROM result WHERE run = 1 AND sequence IN (2, 4)"
kept="SELECT group_concat(wall_s) FROM (SELECT wall_s FROM result WHERE run = 1 AND sequence IN (0, 1, 3) ORDER BY sequence)"
before=$(sql "$kept")
measure --no-report --rounds 2 --resume
complains '3 of 5 points were there already'
check "what was there stays" [ "$(sql "$kept")" = "$before" ]
check "and all are there" [ "$(sql "SELECT count(DISTINCT sequence) FROM result WHERE run = 1")" = 5 ]

# One that a rank cannot do is one that failed, and the others are measured all the same.
cat >"$tap_dir/bad.toml" <<'END'
[[workload]]
name = "ncf"
batch = 16
users = 40
items = 30
scaling = { ranks = [1, 2], steps = 4, bakcend = "shm" }
END
refuses 'scaling.bakcend: is no key here; did you mean "backend"?' ridge plan "$tap_dir/bad.toml"
sed -i 's/bakcend = "shm"/backend = "openmpi"/' "$tap_dir/bad.toml"
run ridge run "$tap_dir/bad.toml" --no-db --json
exits 5
holds 'all(.[]; .status == "skipped" and (.reason | test("`ridge scale --backend openmpi`")))'

finish
