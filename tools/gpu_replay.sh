#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What replaying a recorded graph costs:
# - Ridge's own part of an execution: the time of an executable of one small kernel, less what a launch
#   and a wait take by themselves (the ceiling "launch wait", by the same clock), is below 10 us;
# - the GPU works while recommendation networks run: the time of a graph on it is at least 95 % of the
#   time of an execution, in scenario offline.
# Needs a GPU; tools/test_gpu.sh runs it. Usage: gpu_replay.sh RIDGE DEVICE [SPEC...]
set -u
ridge=$1 device=$2
shift 2
for program in jq sqlite3; do
    command -v $program >/dev/null || {
        echo "gpu_replay.sh: $program is not installed: ./setup.sh test" >&2
        exit 2
    }
done
[ $# -gt 0 ] || set -- ncf wide_deep din dien gcn
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

verdict() { # 0 or not, text
    if [ "$1" = 0 ]; then
        echo "ok   $2"
        passed=$((passed + 1))
    else
        echo "FAIL $2"
        failed=$((failed + 1))
    fi
}

# take SPEC OPTION...: one run, alone in the database.
take() {
    rm -f "$folder/db"
    spec=$1
    shift
    "$ridge" run "$spec" --device "$device" --no-ceilings --no-verify --no-layers --no-report --seconds-max 3 --db "$folder/db" "$@" \
        >"$folder/log" 2>&1
    code=$?
    [ $code = 0 ] || [ $code = 4 ] || cat "$folder/log" # 4: the run was disturbed; the lines tell
}

ask() { # SQL; one value
    sqlite3 "$folder/db" "$1" 2>>"$folder/log"
}

metric() { # NAME: of the whole; with the reason where there is none
    ask "SELECT coalesce(value, 'not known: ' || reason) FROM metric WHERE op IS NULL AND name = '$1'"
}

below() { # LIMIT NUMBER, both numbers
    awk -v limit="$1" -v value="$2" 'BEGIN { exit !(value ~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/ && value + 0 < limit) }'
}

own_part() {
    "$ridge" peaks --device "$device" --only "launch wait" --quick --json >"$folder/peaks" 2>"$folder/log" ||
        cat "$folder/log"
    wait=$(jq -r 'map(select(.name == "launch wait"))[0].value // "not known"' "$folder/peaks")
    take active:elements=1 --scenario single_stream --seconds 0.5
    steps=$(ask "SELECT count(*) FROM op")
    time=$(metric time_s)
    own=$(awk -v a="$time" -v b="$wait" 'BEGIN {
        print (a + 0 > 0 && b + 0 > 0) ? sprintf("%.2f", (a - b) * 1e6) : "not known" }')
    [ "$steps" = 1 ] && below 10 "$own"
    verdict $? "own part of an execution: $own us of $time s; launch and wait: $wait s; steps: $steps"
}

share() { # SPEC
    take "$1" --scenario offline --profilers cupti_trace
    time=$(metric time_s) graph=$(metric graph_s) launches=$(metric graph_launches)
    kernels=$(metric kernel_s)
    line=$(awk -v time="$time" -v graph="$graph" -v launches="$launches" -v kernels="$kernels" 'BEGIN {
        known = time + 0 > 0 && graph + 0 > 0 && launches + 0 > 0
        of_graph = known ? graph / launches / time : 0
        printf "graph %.4f, kernels %.4f of %s s; launches: %s, graph_s: %s\n", of_graph,
               known ? kernels / time : 0, time, launches, graph
        exit !(launches == 1 && of_graph >= 0.95) }')
    verdict $? "$1: $line"
}

own_part
for network in "$@"; do
    share "$network"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
