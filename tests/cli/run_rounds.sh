#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run comes to its points in rounds: orders, shares, visits, and a visit that is set apart.
. tests/lib/tap.sh
db=$tap_dir/ridge.db
fast="--device null --no-ceilings --no-report --no-verify"
order() { # of a round: the batches as they were visited
    sql "SELECT group_concat(batch) FROM (SELECT p.batch FROM visit v JOIN result r ON r.id = v.result
        JOIN point p ON p.id = r.point WHERE v.round = $1 AND r.run = $2 ORDER BY v.started_utc, r.id)"
}

runs ridge run ncf --batch 1,2,3,4,5,6 $fast --samples 20 --seconds 0.001 --interval 0 --order-seed 5 --db "$db"
is "three rounds are planned" "3|5" "$(sql 'SELECT rounds, order_seed FROM run')"
is "and made" "18|3" "$(sql 'SELECT count(*), count(DISTINCT round) FROM visit')"
is "samples are shared out" "20 20 20 20 20 20" \
    "$(sql "SELECT group_concat(n, ' ') FROM (SELECT count(*) AS n FROM sample WHERE phase = 'time' GROUP BY result)")"
is "as the visits say" 1 "$(sql "SELECT min(samples = (SELECT count(*) FROM sample s WHERE s.result = v.result
    AND s.visit = v.round AND s.phase = 'time')) FROM visit v")"
is "a level each, or a reason" "72|72" "$(sql "SELECT count(*), sum(value IS NULL AND reason <> '') FROM level")"
is "rows come in the order of the plan" "1 2 3 4 5 6 " \
    "$(awk '/^ncf/ { printf "%s ", $2 }' "$output")"
is "one result for each point" "6|6" "$(sql 'SELECT count(*), count(DISTINCT sequence) FROM result')"
is "the spread of rounds is a metric" 6 "$(sql "SELECT count(*) FROM metric WHERE name = 'round_spread' AND n = 3")"

runs ridge export --format json --db "$db"
holds 'length == 6 and all(.[]; .rounds == 3 and .order_seed == 5 and [.visits[].round] == [0, 1, 2])'
holds '.[0].visits[1].levels | length == 4 and all(.[]; .value == null and .reason != "")'
holds '[.[0].metrics[] | select(.metric == "time_s") | .samples_visit] == [[range(3) as $v | range([6, 7, 7][$v]) | $v]]'
runs ridge run ncf --batch 1,2 --device null --no-ceilings --no-report --rounds 1 --db "$db" --json
holds 'length == 2 and all(.[]; .visits == 1 and .round_spread == null)'
is "one round is one visit" "2" "$(sql 'SELECT count(*) FROM visit v JOIN result r ON r.id = v.result WHERE r.run = 2')"
runs ridge run ncf --batch 1,2 --device null --no-ceilings --no-report --order-seed 0 --seconds 0 --db "$tap_dir/zero.db"
is "0 is a seed as any other" "0" "$(sql "SELECT order_seed FROM run" "$tap_dir/zero.db")"
refuses 'rounds' ridge run ncf --rounds 0 --no-db
runs ridge plan ncf --rounds 5 --json
holds '.rounds == 5 and .points[0].protocol.rounds == 5'
run ridge plan ncf --scenario server --latency-bound 1 --json
holds '.points[0].protocol.rounds == 1'

# The order of real visits is that of the seed, another one in each round.
run ridge run ncf --batch 1,2,3,4,5,6 --threads 1 --no-tune --no-layers --no-verify --no-ceilings --no-report \
    --profilers model --samples 6 --seconds 0.001 --seconds-max 0.03 --order-seed 5 --db "$db"
first=$(order 0 3)
second=$(order 1 3)
check "a round has its own order: $first, then $second" test "$first" != "$second"
run ridge run ncf --batch 1,2,3,4,5,6 --threads 1 --no-tune --no-layers --no-verify --no-ceilings --no-report \
    --profilers model --samples 6 --seconds 0.001 --seconds-max 0.03 --order-seed 5 --db "$db"
is "and the seed repeats it" "$first $second" "$(order 0 4) $(order 1 4)"
is "levels of a CPU are read" "$(sql "SELECT count(*) FROM visit v JOIN result r ON r.id = v.result WHERE r.run = 4")" \
    "$(sql "SELECT count(*) FROM level l JOIN result r ON r.id = l.result
        WHERE r.run = 4 AND l.name = 'multiply_add' AND l.value > 1e7")"

# Levels that flip between rounds: an interval that says so, and no word of drift or of unsteadiness.
# Warming up takes 200 ms, and 50 ms in the rounds after the first; then a visit takes 22 samples.
{ yes 1000000 | head -222; yes 1100000 | head -68; yes 1200000 | head -64; } >"$tap_dir/script"
runs env RIDGE_NULL_SCRIPT="$tap_dir/script" "$RIDGE" run ncf --batch 1 --device null --no-ceilings \
    --no-report --no-verify --samples 66 --seconds 0.001 --interval 0 --db "$tap_dir/flips.db" --json
holds '.[0].status == "ok" and .[0].round_spread > 0.03 and .[0].ci_high_ms - .[0].ci_low_ms > 0.1'
finish
