#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ranks between which NCCL carries: over stand-ins for it (tests/nccl_fake/) and for the CUDA runtime
# (tests/gpu/host/), so that what they exchange is real and no GPU is needed.
. tests/lib/tap.sh
. tests/lib/processes.sh
. tests/lib/ranks.sh

build=${RIDGE_BUILD:-build/release}
for part in plugins/collective/nccl.so tests/gpu/host/plugins/cuda.so tests/nccl_fake/libnccl.so.2; do
    if [ ! -f "$build/$part" ]; then
        echo "skipped: $part is not built (no NCCL, or under a sanitizer)"
        exit 77
    fi
done
LD_LIBRARY_PATH=$build/tests/nccl_fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
RIDGE_PLUGIN_PATH=$build/tests/gpu/host/plugins:$build/plugins
RIDGE_HOST_GPUS=4 RIDGE_HOST_WATCH=0
export LD_LIBRARY_PATH RIDGE_PLUGIN_PATH RIDGE_HOST_GPUS RIDGE_HOST_WATCH

# ---- what is there ----
run ridge doctor --require nccl
exits 0
prints '^  nccl +whole operations of NCCL between GPUs.* \(version 2\.[0-9]+\.[0-9]+\)$'
run env RIDGE_HOST_GPUS=0 "$RIDGE" doctor
prints '^  nccl +absent, see below \(version 2\.'
prints 'nccl is not used: cuda: '
run env RIDGE_FAKE_NCCL_VERSION=21203 "$RIDGE" doctor --require nccl
prints 'nccl is not here: libnccl.so.2 is version 2.12.3: 2.14.3 or newer is needed'
prints 'nccl is required and not there'

# ---- operations ----
sizes="--from 64 --to 262144 --factor 64 --block 1 --blocks 2"
run ridge bench collectives -b nccl -n 3 --operation all $sizes --json
exits 0
holds '[.. | objects | select(has("wrong")) | .wrong] | length > 20 and all(. == 0 or . == null)'
holds '[.. | objects | .algorithm? // empty] | unique - ["copy"] == ["library"]'
holds '.backends == [{name: "nccl", library: .backends[0].library}] and (.backends[0].library | startswith("2."))'
run ridge bench collectives -b shm,nccl -n 2 $sizes --turns 1
exits 0
run ridge bench collectives -b nccl -n 1 $sizes
exits 0
run env RIDGE_HOST_GPUS=1 "$RIDGE" bench collectives -b nccl -n 2 --to 64
exits 5
complains 'rank 1 takes a GPU of its own: cuda:1: there is 1 cuda device'
run env RIDGE_HOST_GPUS=1 RIDGE_NCCL_SHARE=1 "$RIDGE" bench collectives -b nccl -n 2 --operation all $sizes
exits 0

# ---- by the launchers of MPI: ranks find each other by its messages ----
for launcher in mpirun.openmpi mpirun.mpich; do
    command -v "$launcher" >/dev/null || continue
    options=
    [ "$launcher" = mpirun.openmpi ] && options="--allow-run-as-root --oversubscribe"
    run "$launcher" $options -n 2 "$RIDGE" bench collectives -b nccl --operation all $sizes --json
    exits 0
    holds '[.. | objects | select(has("wrong")) | .wrong] | length > 20 and all(. == 0 or . == null)'
    run env RIDGE_FAKE_NCCL=ncclAllReduce:9:2:1 "$launcher" $options -n 2 "$RIDGE" bench collectives -b nccl $sizes
    check "a failure ends all of them" test "$code" != 0
    check "and is named" grep -q 'rank 1: ncclAllReduce: unhandled system error' "$output" "$errors"
done

# ---- training ----
same_as_one ncf 3 16 --backend nccl
same_as_one ncf:embedding=gather 2 16 --backend nccl --tables split --moments split
same_as_one wide_deep 2 16 --backend nccl --no-overlap
run ridge scale ncf $quick --tiny -n 2 --backend nccl --steps 3 --db "$tap_dir/one.db" --json
exits 0
holds '.backend == "nccl" and (.library | startswith("2."))'
run sqlite3 "$tap_dir/one.db" "SELECT DISTINCT key FROM run_fact WHERE category = 'library'"
prints 'libnccl.so.2'
run ridge scale ncf $quick --tiny -n 2 --backend nccl --algorithm ring
exits 5
complains 'nccl has whole operations alone and no messages for ring'

# On hosts, started by the mpirun that is there.
if command -v mpirun.openmpi >/dev/null || command -v mpirun.mpich >/dev/null; then
    echo "localhost:2" >"$tap_dir/hosts"
    # shellcheck disable=SC2086
    run ridge scale ncf $quick --tiny -n 2 --backend nccl --steps 5 --hosts "$tap_dir/hosts" --json
    exits 0
    holds '.backend == "nccl" and .points[0].ranks == 2 and (.points[0].losses | length) == 5'
fi

# ---- failures ----
run env RIDGE_FAKE_NCCL=ncclAllReduce:30:2:1 "$RIDGE" scale ncf $quick --tiny -n 3 --backend nccl --steps 1000
exits 2
complains 'rank 1: ncclAllReduce: unhandled system error'
trouble() { # SIGNAL MESSAGE
    "$RIDGE" scale ncf $quick --tiny -n 3 --backend nccl --steps 100000000 --deadline 1 --db "$tap_dir/trouble.db" \
        >"$output" 2>"$errors" </dev/null &
    leader=$!
    tries=0
    while [ "$(children_of $leader | wc -l)" -lt 3 ] && [ $tries -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    sleep 1
    victim=$(children_of $leader | sed -n 2p)
    ranks=$(children_of $leader)
    kill "-$1" "$victim"
    wait $leader
    code=$?
    tap_what="a rank gets SIG$1"
    exits 2
    complains "$2"
    left=
    for process in $ranks; do
        [ -z "$(state_of "$process")" ] || left="$left $process"
    done
    check "no rank is left" test -z "$left"
}
trouble KILL 'rank 1 was killed by signal 9'
trouble STOP 'rank 1 has shown no life'
finish
