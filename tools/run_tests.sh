#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs test programs one after the other and sums up what they say.
# Usage: run_tests.sh BUILD_FOLDER PATTERN PROGRAM...
# A program says "N passed, N failed" in its last lines, or is a cmocka program, or prints TAP.
# Exit 77 is a skip. A crash, a time-out, or a program that ran no test counts as one failure.
# Logs stay in BUILD_FOLDER/test-logs. RIDGE_TEST_TIMEOUT: seconds per program.
set -u
build=$1 pattern=$2
shift 2
logs=$build/test-logs
limit=${RIDGE_TEST_TIMEOUT:-600}
passed=0 failed=0 bad=""
# Tests find the plug-ins of this build, and leave the tuner cache of the user alone.
export RIDGE_BUILD="$build" RIDGE="$build/ridge"
export RIDGE_PLUGIN_PATH="$build/plugins" RIDGE_CACHE="$build/test-cache.txt"
# LeakSanitizer: without the thread-local storage of opened libraries, on which its tracer dies.
export LSAN_OPTIONS="use_tls=0:suppressions=$PWD/tools/lsan_suppressions.txt:print_suppressions=0"
mkdir -p "$logs"

# Prints "passed failed" for a log.
count() {
    awk '
        /^[0-9]+ passed, [0-9]+ failed/ { p = $1; f = $3; said = 1 }
        /^\[  PASSED  \] [0-9]+ test/   { cp += $4 }
        /^\[  FAILED  \] .*[0-9]+ test\(s\), listed/ {
            for (i = 3; i < NF; i++) if ($(i + 1) ~ /^test\(s\)/) cf += $i }
        /^ok /     { tp++ }
        /^not ok / { tf++ }
        END { if (!said) { p = cp + tp; f = cf + tf }; print p + 0, f + 0 }' "$1"
}

run_one() {
    log=$logs/$(echo "${1#"$build"/}" | tr '/' '_').log
    began=$(date +%s)
    timeout -k 10 "$limit" "$1" >"$log" 2>&1 </dev/null
    code=$?
    took=$(($(date +%s) - began))
    if [ $code = 77 ]; then
        printf 'skip %-40s %s\n' "$1" "$(tail -1 "$log")"
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
    passed=$((passed + p)) failed=$((failed + f))
    if [ "$f" = 0 ]; then
        printf 'ok   %-40s %5d passed  %4d s\n' "$1" "$p" "$took"
    else
        printf 'FAIL %-40s %5d passed, %d failed  %4d s%s\n' "$1" "$p" "$f" "$took" "$note"
        grep -nE '^not ok|FAILED|ERROR|FAIL|runtime error|Sanitizer' "$log" | head -20
        tail -5 "$log"
        echo "     (whole log: $log)"
        bad="$bad $1"
    fi
}

for program in "$@"; do
    case $program in *"$pattern"*) run_one "$program" ;; esac
done
[ "$bad" ] && echo "Failed:$bad"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
