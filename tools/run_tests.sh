#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs test programs one after the other and sums up what they say. Those of tests/gpu/ come last and
# run side by side, the longest first: they compute much and time nothing.
# Usage: run_tests.sh BUILD_FOLDER PATTERN PROGRAM...
# A program says "N passed, N failed" in its last lines, or is a cmocka program, or prints TAP.
# Exit 77 is a skip. A crash, a time-out, or a program that ran no test counts as one failure.
# Logs stay in BUILD_FOLDER/test-logs. RIDGE_TEST_TIMEOUT: seconds per program.
set -u
build=$1 pattern=$2
shift 2
logs=$build/test-logs
limit=${RIDGE_TEST_TIMEOUT:-600}
# Tests find the plug-ins of this build, and leave the tuner cache of the user alone.
export RIDGE_BUILD="$build" RIDGE="$build/ridge"
export RIDGE_PLUGIN_PATH="$build/plugins" RIDGE_CACHE="$build/test-cache.txt"
# LeakSanitizer: without the thread-local storage of opened libraries, on which its tracer dies.
export LSAN_OPTIONS="use_tls=0:suppressions=$PWD/tools/lsan_suppressions.txt:print_suppressions=0"
mkdir -p "$logs"

# Prints "passed failed" for a log.
count() {
    awk '
        /^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3; said = 1 }
        /^\[  PASSED  \] [0-9]+ test/   { cp += $4 }
        /^\[  FAILED  \] .*[0-9]+ test\(s\), listed/ {
            for (i = 3; i < NF; i++) if ($(i + 1) ~ /^test\(s\)/) cf += $i }
        /^ok /     { tp++ }
        /^not ok / { tf++ }
        END { if (!said) { p = cp + tp; f = cf + tf }; print p + 0, f + 0 }' "$1"
}

log_of() {
    echo "$logs/$(echo "${1#"$build"/}" | tr '/' '_').log"
}

# Says how a program did, and leaves "passed failed program" in LOG.count.
run_one() {
    log=$(log_of "$1")
    began=$(date +%s)
    timeout -k 10 "$limit" "$1" >"$log" 2>&1 </dev/null
    code=$?
    took=$(($(date +%s) - began))
    if [ $code = 77 ]; then
        printf 'skip %-40s %s\n' "$1" "$(tail -1 "$log")"
        echo "0 0 $1" >"$log.count"
        return
    fi
    # shellcheck disable=SC2046
    set -- "$1" $(count "$log")
    p=$2 f=$3 note=
    [ $code = 124 ] && note=" (ran past $limit s)"
    [ $code -gt 128 ] && note=" (killed by signal $((code - 128)))"
    if [ $code != 0 ] && [ "$f" = 0 ]; then
        f=1
    elif [ "$p" = 0 ] && [ "$f" = 0 ]; then
        f=1 note=" (ran no test)"
    fi
    if [ "$f" = 0 ]; then
        printf 'ok   %-40s %5d passed  %4d s\n' "$1" "$p" "$took"
    else
        printf 'FAIL %-40s %5d passed, %d failed  %4d s%s\n%s\n%s\n     (whole log: %s)\n' \
            "$1" "$p" "$f" "$took" "$note" \
            "$(grep -nE '^not ok|FAILED|ERROR|FAIL|runtime error|Sanitizer' "$log" | head -20)" \
            "$(tail -5 "$log")" "$log"
    fi
    echo "$p $f $1" >"$log.count"
}

if [ "$pattern" = --one ]; then
    run_one "$1"
    exit 0
fi
alone="" together=""
for program in "$@"; do
    case $program in *"$pattern"*) ;; *) continue ;; esac
    # A program that is not heard of again has failed.
    echo "0 1 $program" >"$(log_of "$program").count"
    case $program in
    tests/gpu/races.sh) together="$program $together" ;;
    tests/gpu/*) together="$together $program" ;;
    *) alone="$alone $program" ;;
    esac
done
# shellcheck disable=SC2086
run_list() { # how many at a time, programs
    at_a_time=$1
    shift
    [ $# = 0 ] || printf '%s\n' "$@" | xargs -P "$at_a_time" -n 1 "$0" "$build" --one
}
# shellcheck disable=SC2086
{
    run_list 1 $alone
    run_list "$(nproc)" $together
}
# shellcheck disable=SC2086
for program in $alone $together; do
    cat "$(log_of "$program").count"
done | awk '
    { p += $1; f += $2; if ($2) bad = bad " " $3 }
    END {
        if (bad) print "Failed:" bad
        print p + 0 " passed, " f + 0 " failed"
        exit f || !p
    }'
