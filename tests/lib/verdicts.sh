# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# For the trials in tests/long: `. tests/lib/verdicts.sh` after tap.sh, then
#
#     dir=$(kept_folder)               RIDGE_KEEP, or the folder of this test
#     count_verdicts DB BASE HEAD      compares; $verdicts is "2 unchanged 1 regressed"
#     sum_verdicts                     of all comparisons so far: $points, $regressed, $improved, $unchanged,
#                                      $inconclusive, $machine, those together: $judged, and $other
#     shares                           the same as one line of per cent
verdict_all=$tap_dir/verdicts
: >"$verdict_all"
: >"$output" # of tap.sh, which shows it where a test fails

kept_folder() {
    mkdir -p "${RIDGE_KEEP:-$tap_dir}" && realpath "${RIDGE_KEEP:-$tap_dir}"
}

count_verdicts() {
    "$RIDGE" compare "$2" "$3" --db "$1" --json 2>"$tap_dir/compare" | jq -r '.[].verdict' >"$tap_dir/these"
    [ -s "$tap_dir/these" ] || echo "# $2, $3: $(tail -1 "$tap_dir/compare")"
    cat "$tap_dir/these" >>"$verdict_all"
    verdicts=$(sort "$tap_dir/these" | uniq -c | awk '{ printf "%s%d %s", (NR > 1 ? ", " : ""), $1, $2 }')
}

verdict_count() {
    grep -cx "$1" "$verdict_all"
}

# shellcheck disable=SC2034 # for those who read this file
sum_verdicts() {
    points=$(wc -l <"$verdict_all")
    regressed=$(verdict_count regressed)
    improved=$(verdict_count improved)
    unchanged=$(verdict_count unchanged)
    inconclusive=$(verdict_count inconclusive)
    machine=$(verdict_count machine)
    judged=$((regressed + improved + unchanged + inconclusive + machine))
    other=$((points - judged))
}

shares() {
    awk -v n="$points" -v r="$regressed" -v i="$improved" -v u="$unchanged" -v c="$inconclusive" -v m="$machine" -v o="$other" \
        'BEGIN { if (n) printf "%.2f %% regressed, %.2f %% improved, %.1f %% unchanged, %.1f %% inconclusive, %.1f %% machine, %.1f %% other",
                     100 * r / n, 100 * i / n, 100 * u / n, 100 * c / n, 100 * m / n, 100 * o / n }'
}
