#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Issue 15.2 in full: busy loops on all CPUs during `ridge run resnet50`, at usual and at the lowest
# priority, make the result invalid for that reason in every one of 20 runs; on a quiet machine none
# of 20 is invalid for that reason. RIDGE_BUSY_TRIES changes the 20. Takes twenty minutes; the second
# half needs a machine that is left alone, and is left out (with a note) where it is not.
# parts: loops quiet
. tests/lib/tap.sh
. tests/lib/busy.sh
tries=${RIDGE_BUSY_TRIES:-20}
reason='disturbed: .*went to other programs on this machine'

measure() {
    run ridge run resnet50 --no-db --no-report --no-verify --no-layers --quiet
}

part=${1:-all}
measure # finds kernels, so that every try does the same
for nice in '' 'nice -n 19'; do
    [ "$part" != quiet ] || break
    found=0
    for _ in $(seq "$tries"); do
        busy_begin $nice
        measure
        busy_end
        grep -qE "invalid: .*$reason" "$output" && found=$((found + 1))
    done
    check "loops $nice: $found of $tries runs are invalid for that reason" [ "$found" = "$tries" ]
done

[ "$part" != loops ] || finish

# What others use now, in hundredths of all CPU time; a quiet machine uses less than one.
others() {
    awk '/^cpu / { busy = $2 + $3 + $4 + $7 + $8; print busy, busy + $5 + $6 }' /proc/stat >"$tap_dir/a"
    sleep 5
    awk '/^cpu / { busy = $2 + $3 + $4 + $7 + $8; print busy, busy + $5 + $6 }' /proc/stat |
        paste -d' ' "$tap_dir/a" - | awk '{ printf "%d", 100 * ($3 - $1) / ($4 - $2) }'
}
now=$(others)
if [ "$now" -ge 2 ]; then
    check "# SKIP not a quiet machine: others use $now % of it" true
    finish
fi
wrongly=0
for _ in $(seq "$tries"); do
    measure
    grep -E "$reason" "$output" | sed 's/^ */# /' | grep . && wrongly=$((wrongly + 1))
done
check "a quiet machine: $wrongly of $tries runs are invalid for that reason" [ "$wrongly" = 0 ]
finish
