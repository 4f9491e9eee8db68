#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Steps of a training on simulated ranks: what a formula says, what was measured, and marked as
# simulated wherever they are kept and shown.
. tests/lib/tap.sh
export TMPDIR="$tap_dir" # where simulations are written down
if [ ! -e "${RIDGE_BUILD:-build/release}/plugins/collective/simulated/ranks.so" ]; then
    echo "skipped: this build has no SimGrid"
    exit 77
fi
db=$tap_dir/scale.db net=$tap_dir/network.toml
printf 'link_gbit_s = 0.01\nlink_latency_us = 25\n' >"$net"
simulate() { # options
    runs ridge scale ncf --tiny -t 1 --no-tune --batch 32 --platform "$net" "$@" --json
    complains 'simulated, not measured'
}

# One unit, on a ring of 4 that nobody shares: 6 messages of a quarter over two links.
simulate --simulate 4 --step-time 0.01 --unit 100000000 -a ring --no-overlap
holds '.points | map(.ranks) == [1, 4] and all(.[]; .simulated)'
holds '.points[0] | .step_s == 0.01 and .efficiency == 1 and .exposed_s == 0'
holds '.points[1] | .by_rank[0].units as $u | ($u | length) == 1 and
    ((6 * (50e-6 + $u[0].bytes / 4 / 1.25e6)) as $formula | (.exposed_s / $formula - 1 | fabs) < 0.01)'
holds '.points[1] | ((.step_s - 0.01) / .exposed_s - 1 | fabs) < 0.01 and .efficiency < 1'
# What was not measured is absent, not 0.
holds 'all(.points[]; .state_bytes == null and .input_wait_s == null and (.by_rank | all(.work_bytes == null)))'
cp "$output" "$tap_dir/first"
simulate --simulate 4 --step-time 0.01 --unit 100000000 -a ring --no-overlap
check "the same figures again" cmp "$output" "$tap_dir/first"

# Half the bytes half the time, since latency is nothing here; hidden while there is enough to compute.
simulate --simulate 4 --step-time 0.01 --unit 100000000 -a ring --no-overlap --wire f16
holds ".points[1].exposed_s as \$half | ($(jq '.points[1].exposed_s' "$tap_dir/first") / \$half / 2 - 1 | fabs) < 0.02"
holds ".points[1].bytes_sent * 2 == $(jq '.points[1].bytes_sent' "$tap_dir/first")"
simulate --simulate 2,3 --step-time 10 --unit 4000
holds 'all(.points[1:][]; .hidden_s > .exposed_s * 4 and (.by_rank[0].units | length) > 2)'
holds 'all(.points[1:][].by_rank[].units[]; .ready_s <= .started_s + 1e-9 and .started_s < .ended_s)'

# From what was measured: one rank takes as long as it did beside its neighbour, less the waiting.
runs ridge scale ncf --tiny -t 1 --no-tune --batch 32 --ranks 2 --steps 12 --unit 4000 --db "$db" --json
holds '.points[0] | .computing_s > 0 and all(.by_rank[]; .step_s > 0)'
cp "$output" "$tap_dir/measured"
simulate --simulate 5 --db "$db"
alone=$(jq ".points[0].computing_s" "$tap_dir/measured")
holds ".points[0].step_s as \$s | $alone as \$m |
    (\$s / \$m - 1 | fabs) < 1e-6"
holds "(.points[1].by_rank[0].units | map(.bytes)) == $(jq -c '.points[0].by_rank[0].units | map(.bytes)' "$tap_dir/measured")"

check "no wait for samples is kept" [ "$(sqlite3 "$db" "SELECT count(*) FROM metric AS m
    JOIN result AS r ON r.id = m.result JOIN point AS p ON p.id = r.point
    WHERE p.device = 'simulated' AND m.name IN ('input_wait_s', 'state_bytes')")" = 0 ]
runs ridge scale ncf --tiny -t 1 --no-tune --batch 32 --platform "$net" --simulate 2 --step-time 0.01
prints ' +- +- +simulated$'

# Never among what was measured.
check "marked in the database" [ "$(sqlite3 "$db" "SELECT group_concat(DISTINCT r.verdict || ' ' || r.reason)
    FROM result AS r JOIN point AS p ON p.id = r.point WHERE p.device = 'simulated'")" = "invalid simulated, not measured" ]
check "not from the clock" [ "$(sqlite3 "$db" "SELECT count(*) FROM metric AS m JOIN result AS r ON r.id = m.result
    JOIN point AS p ON p.id = r.point WHERE p.device = 'simulated' AND m.source = 'clock'")" = 0 ]
run ridge compare latest~1 latest --db "$db"
check "no point of one is a point of the other" sh -c "! grep -qE '(same|faster|slower|inconclusive) +ncf' '$output'"
runs ridge report --db "$db" -o "$tap_dir/report"
check "the page says so" grep -q 'simulated, not measured' "$tap_dir/report/index.html"
runs ridge plot scaling --db "$db" -o "$tap_dir/plots"
check "a curve of its own" [ "$(grep -c 'ncf b32 t1 simulated$' "$tap_dir/plots/scaling.dat")" -ge 2 ]

# The command under a result simulates it again; "--threads 0" was refused, and FILE no file.
simulate --simulate 2 --step-time 0.01 --wire f16 --lanes 2 --no-overlap --unit 8000 --db "$tap_dir/again.db"
holds '.wire == "f16" and .lanes == 2 and .unit_bytes == 8000'
simulate --simulate 2 --db "$db"
for from in "$tap_dir/again.db" "$db"; do
    points=$(sql "SELECT count(*) FROM point" "$from")
    sql "SELECT DISTINCT reproduce FROM result AS r JOIN point AS p ON p.id = r.point WHERE device = 'simulated'" "$from" >"$tap_dir/lines"
    while read -r line; do
        run sh -c "'$RIDGE' ${line#ridge} --db '$from'" </dev/null
        exits 0
    done <"$tap_dir/lines"
    is "the same points" "$points" "$(sql "SELECT count(*) FROM point" "$from")"
done

refuses 'go together' ridge scale ncf --tiny --simulate 4
refuses 'from --db FILE' ridge scale ncf --tiny --simulate 4 --platform "$net"
refuses 'measure two first' ridge scale ncf --tiny --batch 48 --simulate 4 --platform "$net" --db "$db"
refuses 'take f16 or bf16' ridge scale ncf --tiny --simulate 4 --platform "$net" --step-time 1 --wire f32
refuses 'belongs to --simulate' ridge scale ncf --tiny --ranks 2 --step-time 1
check "nothing is left" sh -c '! ls -d "$TMPDIR"/ridge-simulation-* 2>/dev/null | grep -q .'
finish
