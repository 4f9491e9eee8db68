#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One program over time: how often does comparing two of its runs claim a change? N + 1 runs of a suite, and
# each is compared with the one before. Passes with at most 1 % of the points regressed and at most 20 %
# inconclusive or for the machine's sake ("machine"), over all pairs.
#
#   RIDGE_TRIALS  pairs (20); each is a run of the suite, three minutes for quick
#   RIDGE_SUITE   what is run (quick); options may follow: "ncf --threads 1"
#   RIDGE_KEEP    a folder for the database, which stays; made where it is absent
. tests/lib/tap.sh
. tests/lib/verdicts.sh
pairs=${RIDGE_TRIALS:-20}
dir=$(kept_folder)
db=$dir/same_program.db

for n in $(seq 0 "$pairs"); do
    "$RIDGE" run ${RIDGE_SUITE:-quick} --db "$db" --tag "same.$n" --no-report --quiet >"$tap_dir/run" 2>"$errors"
    case $? in
    0 | 4) ;;
    *) echo "# run $n: $(tail -1 "$errors")" ;;
    esac
    [ "$n" -gt 0 ] || continue
    count_verdicts "$db" "same.$((n - 1))" "same.$n"
    echo "# pair $n: $verdicts"
done
sum_verdicts
echo "# $points points in $pairs pairs: $(shares)"
[ "$points" -gt 0 ] && [ $((100 * other)) -le $((20 * points)) ]
tap_result $? "the machine was quiet enough for a verdict at 80 % of the points: $other of $points were invalid or failed"
[ "$judged" -gt 0 ] && [ $((100 * regressed)) -le "$judged" ]
tap_result $? "at most 1 % regressed: $regressed of $judged"
[ "$judged" -gt 0 ] && [ $((100 * (inconclusive + machine))) -le $((20 * judged)) ]
tap_result $? "at most 20 % inconclusive or machine: $((inconclusive + machine)) of $judged"
finish
