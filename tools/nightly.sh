#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One night: measures a suite in turns with the kept program of a baseline, says what became slower, and
# leaves compare.xml (JUnit), compare.json, compare.md and a page of both. The first night becomes the
# baseline. Run it in the root of a built tree. docs/nightly.md shows it under cron, GitHub and GitLab.
#
#   RIDGE_DB        where all nights are kept (nightly.db); outlives checkouts, stays on the machine
#   RIDGE_SUITE     what is measured (quick)
#   RIDGE_BASELINE  the name that is compared with (release)
#   RIDGE_NIGHT     what the run of this night is called (nightly-2026-01-31)
#   RIDGE_MODE      turns: against the baseline's program, sample by sample (the default)
#                   nights: three runs against the baseline's times, which shows what driver, kernel
#                   and hardware did as well, and a restless machine's moods
#
# Exit code: 0 nothing became slower, 1 a regression, 2 it could not run, 3 a workload failed or
# computed wrong numbers, 4 inconclusive, invalid or missing points.
set -u
ridge=${RIDGE:-./ridge}
db=${RIDGE_DB:-nightly.db}
suite=${RIDGE_SUITE:-quick}
baseline=${RIDGE_BASELINE:-release}
night=${RIDGE_NIGHT:-nightly-$(date -u +%Y-%m-%d)}
mode=${RIDGE_MODE:-turns}

# 3 and 4 are points that failed or are invalid: the comparison names them.
measure() { # options of ridge run
    "$ridge" run "$suite" --db "$db" --no-report "$@"
    code=$?
    case $code in
    0 | 1 | 3 | 4) ;;
    *) exit "$code" ;;
    esac
}

first_night() { # run
    "$ridge" compare --set-baseline "$baseline" "$1" --keep-program --db "$db" --note "the first night"
    exit
}

# One comparison in several forms: the verdicts are the same each time.
compare() { # base, head, run for the page
    "$ridge" compare "$1" "$2" --db "$db" --junit --output compare.xml
    code=$?
    [ "$code" != 2 ] || exit 2
    "$ridge" compare "$1" "$2" --db "$db" --json --output compare.json
    "$ridge" compare "$1" "$2" --db "$db" --markdown --output compare.md
    if [ "${GITHUB_ACTIONS:-}" ]; then
        cat compare.md >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
        "$ridge" compare "$1" "$2" --db "$db" --github
    else
        "$ridge" compare "$1" "$2" --db "$db"
    fi
    "$ridge" report "$1" "$3" --db "$db" --output out/nightly
}

# The latest run so far of a baseline's program in turns: its uuid.
latest_base() {
    "$ridge" list runs --db "$db" --json |
        awk -F'"' '$2 == "uuid" { uuid = $4 } $2 == "tag" && $4 ~ /\.base$/ { print uuid; exit }'
}

has_baseline() {
    "$ridge" help --words baselines --db "$db" 2>/dev/null | grep -qxF "$baseline"
}

case $mode in
turns)
    if ! has_baseline; then
        measure --tag "$night"
        first_night "$night"
    fi
    before=$(latest_base)
    measure --against "baseline:$baseline" --tag "$night" >/dev/null
    compare "$night.base" "$night" "$night"
    if [ "$before" ]; then
        echo
        echo "The program of the baseline alone, the night before and this night: what changed here is the machine."
        echo "This does not count in the exit code."
        "$ridge" compare "$before" "$night.base" --db "$db"
    fi
    ;;
nights)
    # Three processes, not one: most noise is between processes, and three runs can show it.
    runs=
    for n in 1 2 3; do
        measure --tag "$night.$n"
        runs=$runs${runs:+,}$night.$n
    done
    has_baseline || first_night "$night.2"
    compare "$baseline" "$runs" "$night.3"
    ;;
*)
    echo "nightly.sh: RIDGE_MODE is turns or nights, not \"$mode\"" >&2
    exit 2
    ;;
esac
exit "$code"
