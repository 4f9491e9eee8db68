#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --budget was read and never kept to.
. tests/lib/tap.sh
db=$tap_dir/ridge.db

# Nothing is known of these points but what their rules demand: 0.3 s of warming up in all, and 1 s.
words="ncf --batch 1,2,3,4,5 --device null --no-ceilings --no-report --no-verify"
runs ridge run $words --budget 2.8 --db "$db"
prints '^ncf +1 .*  ok$'
prints '^ncf +2 .*  ok$'
prints '^ncf +3 .*  skipped: budget of 2.8 s: '
complains 'the budget of 2.8 s was too small for 3 of 5 points'
is "two fit" "ok,ok,skipped,skipped,skipped" \
    "$(sql 'SELECT group_concat(status) FROM (SELECT status FROM result ORDER BY sequence)')"
is "the run is whole" finished "$(sql 'SELECT state FROM run')"
runs ridge plan $words --budget 2.8 --db "$tap_dir/none.db"
prints 'skipped: budget'
prints '^3 points do not fit into the budget of 2.8 s, by the least'
run ridge plan $words --budget 2.8 --db "$tap_dir/none.db" --json
holds '.over_budget == 3 and [.points[].over_budget] == [false, false, true, true, true]'

# What earlier runs took goes before the rules: on the null device nothing.
run ridge run $words --db "$db"
run ridge plan $words --budget 2.8 --db "$db" --json
holds '.over_budget == 0 and .known == 5'
sql "UPDATE result SET wall_s = 20 WHERE sequence > 0"
run ridge plan $words --budget 50 --db "$db" --json
holds '[.points[].over_budget] == [false, false, false, true, true]'
runs ridge run $words --budget 50 --db "$db" --json
holds '[.[].status] == ["ok", "ok", "ok", "skipped", "skipped"]'
holds 'all(.[3:][]; .reason | test("^budget"))'

# Nothing fits: still no failure.
runs ridge run $words --budget 0.001 --db "$tap_dir/tiny.db"
is "all are skipped" 5 "$(sql "SELECT count(*) FROM result WHERE status = 'skipped'" "$tap_dir/tiny.db")"
# Before the first point there are none that "need what is left".
is "each alone is too long" 5 "$(sql "SELECT count(*) FROM result
    WHERE reason GLOB 'budget of 0.001 s: this point alone takes about *'" "$tap_dir/tiny.db")"
runs ridge plan ncf --batch 1 --device null --budget 0.001 --db "$tap_dir/none.db"
prints '^1 point does not fit into the budget of 0.001 s'

# Real work: three points of half a second each and more, and a second.
begin=$(date +%s)
run ridge run ncf --batch 1,2,3,4,5,6,7,8 --threads 1 --no-tune --no-layers --no-verify --no-ceilings --no-report \
    --profilers model --samples 6 --seconds 1 --seconds-max 1.5 --interval 0 --budget 4 --db "$tap_dir/real.db"
took=$(($(date +%s) - begin))
[ "$code" = 0 ] || [ "$code" = 4 ]
tap_result $? "real work within a budget"
check "took $took s with a budget of 4 s" test $took -le 12 # without it more than 10, and the machine is shared
measured=$(sql "SELECT count(*) FROM result WHERE status = 'ok'" "$tap_dir/real.db")
skipped=$(sql "SELECT count(*) FROM result WHERE status = 'skipped' AND reason LIKE 'budget%'" "$tap_dir/real.db")
check "$measured measured, $skipped skipped" test "$measured" -ge 1 -a "$skipped" -ge 5 -a $((measured + skipped)) = 8

# budget_s of a suite.
printf 'budget_s = 1.5\n[[workload]]\nname = "ncf"\nbatch = [1, 2]\ndevice = "null"\nverify = false\n' >"$tap_dir/s.toml"
runs ridge run "$tap_dir/s.toml" --no-ceilings --no-report --db "$tap_dir/suite.db"
prints 'skipped: budget of 1.5 s'
finish
