#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program in turns with itself: at most one false alarm ("regressed") in 1,000 points. Improvements that
# are none are shown beside them.
#
#   RIDGE_TRIALS  runs of the suite in turns (30, so 1,020 points of quick; nine minutes each at most)
#   RIDGE_SUITE   what is run (quick); options may follow: "ncf --threads 1"; tests/long/in_turns.toml has 52 short points
#   RIDGE_KEEP    a folder for the database, which stays; made where it is absent
. tests/lib/tap.sh
. tests/lib/verdicts.sh
trials=${RIDGE_TRIALS:-30}
dir=$(kept_folder)
db=$dir/against_itself.db
longest=0

for n in $(seq 1 "$trials"); do
    began=$(date +%s)
    "$RIDGE" run ${RIDGE_SUITE:-quick} --against "$RIDGE" --db "$db" --tag "itself.$n" --quiet >"$tap_dir/run" 2>"$errors"
    took=$(($(date +%s) - began))
    [ $took -le $longest ] || longest=$took
    count_verdicts "$db" "itself.$n.base" "itself.$n"
    echo "# trial $n, $took s: $verdicts"
done
sum_verdicts
echo "# $points points in $trials trials: $(shares); the longest trial took $longest s"
[ "$points" -gt 0 ] && [ $((100 * other)) -le $((20 * points)) ]
tap_result $? "the machine was quiet enough for a verdict at 80 % of the points: $other of $points were invalid or failed"
[ "$judged" -gt 0 ] && [ $((1000 * regressed)) -le "$judged" ]
tap_result $? "at most 1 in 1,000 regressed: $regressed of $judged"
if [ "${RIDGE_SUITE:-quick}" = quick ]; then
    [ "$longest" -le 540 ]
    tap_result $? "within three times the 180 s of quick: $longest s"
fi
finish
