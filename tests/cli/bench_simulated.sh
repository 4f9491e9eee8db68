#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Simulated ranks: exact, the same figure each time, and the figure of the formula. RIDGE_SIMULATED
# makes it larger (tests/long/simulated_ring.sh).
. tests/lib/tap.sh
export TMPDIR="$tap_dir" # where simulations are written down
ranks=${RIDGE_SIMULATED_RANKS:-8} bytes=${RIDGE_SIMULATED_BYTES:-4000000}
if [ ! -e "${RIDGE_BUILD:-build/release}/plugins/collective/simulated/ranks.so" ]; then
    echo "skipped: this build has no SimGrid"
    exit 77
fi
printf 'link_gbit_s = 32\nlink_latency_us = 25\n' >"$tap_dir/network.toml"
runs ridge bench collectives --simulate "$ranks" --platform "$tap_dir/network.toml" -a ring \
    --lanes 1 --segment 1GiB --from "$bytes" --to "$bytes" --json
complains 'simulated, not measured'
cp "$output" "$tap_dir/first"
# 2 (N - 1) messages of two links each, and 2 (N - 1) / N of the bytes.
holds ".simulated and ([.results[] | .time_s] | length == 2) and all(.results[] | .time_s;
    (. / (2 * ($ranks - 1) * 50e-6 + 2 * ($ranks - 1) / $ranks * $bytes / 4e9) - 1 | fabs) < 0.01)"
for again in 2 3; do
    run ridge bench collectives --simulate "$ranks" --platform "$tap_dir/network.toml" -a ring \
        --lanes 1 --segment 1GiB --from "$bytes" --to "$bytes" --json
    check "the same figures, time $again" cmp "$output" "$tap_dir/first"
done
[ "$ranks" -le 16 ] || finish

# All algorithms, ragged nodes, an oversubscribed switch: sums are still exact.
printf 'link_gbit_s = 10\nlink_latency_us = 5\nranks_per_host = 3\noversubscription = 2\nmessage_us = 2\n' \
    >"$tap_dir/network.toml"
runs ridge bench collectives --simulate 7 --platform "$tap_dir/network.toml" --from 64KiB --to 64KiB --db "$tap_dir/bench.db" --json
holds '[.results[].algorithm] | unique | length > 8'
holds 'all(.results[]; .wrong == 0 and .time_s > 0)'
line=$(sqlite3 "$tap_dir/bench.db" "SELECT reproduce FROM result LIMIT 1") # FILE was no file
run sh -c "'$RIDGE' ${line#ridge} --db '$tap_dir/again.db'"
exits 0
check "never among what was measured" [ "$(sqlite3 "$tap_dir/bench.db" "SELECT group_concat(DISTINCT p.device || ': ' || r.verdict || ', ' || r.reason)
    FROM result AS r JOIN point AS p ON p.id = r.point")" = "simulated: invalid, simulated, not measured" ]
check "under the link's rate" [ "$(sqlite3 "$tap_dir/bench.db" "SELECT DISTINCT value || m.source FROM metric AS m WHERE name = 'roof_rate'")" = 1250000000.0platform ]

printf 'link_gbit_s = 10\nlink_latency = 5\n' >"$tap_dir/network.toml"
refuses 'link_latency_us is missing' ridge bench collectives --simulate 2 --platform "$tap_dir/network.toml"
printf 'link_gbit_s = 10\nlink_latency_us = 5\nlink_latency = 5\n' >"$tap_dir/network.toml"
refuses 'network.toml:3: key "link_latency" unknown, did you mean link_latency_us' \
    ridge bench collectives --simulate 2 --platform "$tap_dir/network.toml"
refuses 'go together' ridge bench collectives --simulate 2
check "nothing is left" sh -c '! ls -d "$TMPDIR"/ridge-simulation-* 2>/dev/null | grep -q .'
finish
