#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One night: measures a suite three times, compares with the pinned baseline, and leaves compare.xml
# (JUnit), compare.json, compare.md and a page of both runs. The first night becomes the baseline.
# Run it in the root of a built tree. docs/nightly.md shows it under cron, GitHub and GitLab.
#
#   RIDGE_DB        where all nights are kept (nightly.db); outlives checkouts, stays on the machine
#   RIDGE_SUITE     what is measured (quick)
#   RIDGE_BASELINE  the name that is compared with (release)
#   RIDGE_NIGHT     what the runs of this night are called (nightly-2026-01-31)
#
# Exit code: 0 nothing became slower, 1 a regression, 2 it could not run, 3 a workload failed or
# computed wrong numbers, 4 inconclusive, invalid or missing points.
set -u
ridge=${RIDGE:-./ridge}
db=${RIDGE_DB:-nightly.db}
suite=${RIDGE_SUITE:-quick}
baseline=${RIDGE_BASELINE:-release}
night=${RIDGE_NIGHT:-nightly-$(date -u +%Y-%m-%d)}

# Three processes, not one: most noise is between processes, and three runs can show it.
runs=
for n in 1 2 3; do
    "$ridge" run "$suite" --db "$db" --tag "$night.$n" --no-report
    code=$?
    # 3 and 4 are points that failed or are invalid: the comparison names them.
    case $code in
    0 | 3 | 4) ;;
    *) exit "$code" ;;
    esac
    runs=$runs${runs:+,}$night.$n
done

if ! "$ridge" help --words baselines --db "$db" | grep -qxF "$baseline"; then
    "$ridge" compare --set-baseline "$baseline" "$night.2" --db "$db" --note "the first night"
    exit
fi

# One comparison in several forms: the verdicts are the same each time.
"$ridge" compare "$baseline" "$runs" --db "$db" --junit --output compare.xml
code=$?
[ "$code" != 2 ] || exit 2
"$ridge" compare "$baseline" "$runs" --db "$db" --json --output compare.json
"$ridge" compare "$baseline" "$runs" --db "$db" --markdown --output compare.md
if [ "${GITHUB_ACTIONS:-}" ]; then
    cat compare.md >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
    "$ridge" compare "$baseline" "$runs" --db "$db" --github
else
    "$ridge" compare "$baseline" "$runs" --db "$db"
fi
"$ridge" report "$baseline" "$night.3" --db "$db" --output out/nightly
exit "$code"
