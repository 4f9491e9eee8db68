#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 50 trials: a rank of a training, with everything whole or in parts, is killed or stopped at some
# moment, of opening, compiling, the first steps or later. All ranks end within the deadline, the
# right one is named, nothing is left.
. tests/lib/tap.sh
. tests/lib/processes.sh

# The command with the ranks $victims fails in time, says so, and leaves none of them.
ends_with() { # what it says
    began=$(date +%s)
    wait $pid
    code=$?
    took=$(($(date +%s) - began))
    check "$tap_what: fails" [ $code != 0 ]
    complains "$1"
    check "$tap_what: within the deadline" [ "$took" -le 10 ]
    left=0
    for process in $victims; do kill -0 "$process" 2>/dev/null && left=$((left + 1)); done
    check "$tap_what: no process is left" [ $left = 0 ]
}

trial() { # number
    ranks=$((2 + $1 % 4))
    victim=$(($1 * 7 % ranks))
    signal=$(case $(($1 % 3)) in 0) echo KILL ;; 1) echo STOP ;; 2) echo SEGV ;; esac)
    moment=$(awk "BEGIN { print ($1 * 37 % 50) / 25 }")
    how=$([ $(($1 / 12 % 2)) = 0 ] || echo "--tables split --moments split")
    "$RIDGE" scale ncf:embedding=gather -t 1 --no-tune --tiny --ranks $ranks --batch 16 \
        --steps 10000000 --deadline 2 --unit 4000 $how >"$output" 2>"$errors" </dev/null &
    pid=$!
    wait_for_children $pid $ranks
    sleep "$moment"
    victims=$(children_of $pid)
    kill -$signal "$(echo "$victims" | sed -n "$((victim + 1))p")"
    tap_what="trial $1: rank $victim of $ranks gets $signal after $moment s $how"
    ends_with "rank $victim "
}

k=0
while [ $k -lt 50 ]; do
    trial $k
    k=$((k + 1))
done

# A rank that gets no more memory while it compiles.
no_memory() { # ranks, victim
    "$RIDGE" scale resnet50:image=64 -t 1 --no-tune --ranks "$1" --batch 2 --steps 1000 \
        --deadline 2 >"$output" 2>"$errors" </dev/null &
    pid=$!
    wait_for_children $pid "$1"
    victims=$(children_of $pid)
    prlimit --pid "$(echo "$victims" | sed -n "$(($2 + 1))p")" --as=1:1
    tap_what="rank $2 of $1 gets no more memory"
    ends_with "rank $2: .*(out of memory|cannot be started)"
}
for ranks in 2 3 5; do
    no_memory $ranks 0
    no_memory $ranks $((ranks - 1))
done
check "nothing is left in shared memory" sh -c '! ls /dev/shm | grep -i ridge'
finish
