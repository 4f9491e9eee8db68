#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs test programs and sums up what they say. Those that tests/alone.txt names have the machine to
# themselves. Then the others share it, two more at a time than there are cores, since half of their
# time is waiting: first those that were never run, then the longest by the times of the last run.
# A script with a line "# parts: A B ..." is as many programs, SCRIPT:A, SCRIPT:B ...; it gets the part
# as $1.
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

# Says how a program did, and leaves "passed failed program seconds" in LOG.count.
run_one() {
    log=$(log_of "$1")
    part=${1#"${1%%:*}"}
    began=$(date +%s)
    timeout -k 10 "$limit" "${1%%:*}" ${part:+"${part#:}"} >"$log" 2>&1 </dev/null
    code=$?
    took=$(($(date +%s) - began))
    times >"$log.count" # of this shell, and of its children
    cpu=$(awk 'NR == 2 { split($1, user, /[ms]/); split($2, kernel, /[ms]/)
        printf "%d", 60 * user[1] + user[2] + 60 * kernel[1] + kernel[2] }' "$log.count")
    if [ $code = 77 ]; then
        printf 'skip %-40s %s\n' "$1" "$(tail -1 "$log")"
        echo "0 0 $1 $took" >"$log.count"
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
        printf 'ok   %-40s %5d passed  %4d s, CPU %4d s\n' "$1" "$p" "$took" "$cpu"
    else
        printf 'FAIL %-40s %5d passed, %d failed  %4d s%s\n%s\n%s\n     (whole log: %s)\n' \
            "$1" "$p" "$f" "$took" "$note" \
            "$(grep -nE '^not ok|^# (exit code|stdout|stderr)|FAILED|ERROR|FAIL|runtime error|Sanitizer' "$log" | head -40)" \
            "$(tail -5 "$log")" "$log"
    fi
    echo "$p $f $1 $took" >"$log.count"
}

if [ "$pattern" = --one ]; then
    run_one "$1"
    exit 0
fi
alone="" together=""
for program in "$@"; do
    case $program in
    *.sh) parts=$(sed -n 's/^# parts: //p' "$program") ;;
    *) parts= ;;
    esac
    for name in ${parts:-""}; do
        name=$program${name:+:$name}
        case $name in *"$pattern"*) ;; *) continue ;; esac
        count=$(log_of "$name").count
        took=$(cut -d ' ' -f 4 "$count" 2>/dev/null)
        if grep -q "^${program#"$build"/} " tests/alone.txt; then
            alone="$alone $name"
        else # what is new comes first, and of that what goes through all operators or networks
            case $name in */run) new=99999 ;; *) new=9999 ;; esac
            together="$together${took:-$new} $name
"
        fi
        # A program that is not heard of again has failed.
        echo "0 1 $name ${took:-9999}" >"$count"
    done
done
together=$(printf '%s' "$together" | sort -rn | cut -d ' ' -f 2)
run_list() { # how many at a time, programs
    at_a_time=$1
    shift
    [ $# = 0 ] || printf '%s\n' "$@" | xargs -P "$at_a_time" -n 1 "$0" "$build" --one
}
# shellcheck disable=SC2086
{
    run_list 1 $alone
    run_list "$(($(nproc) + 2))" $together
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
