#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ranks that Slurm's srun starts: a Slurm of one node in a folder of its own, MPICH by PMI-2 and Open
# MPI by PMIx. They learn what one rank does, one that is killed ends all, and tasks without an MPI
# are refused. Needs slurmctld, slurmd and srun (apt-get install slurm-wlm).
. tests/lib/tap.sh
. tests/lib/processes.sh
. tests/lib/ranks.sh
skip() {
    echo "skipped: $1"
    exit 77
}
PATH=$PATH:/usr/sbin
program_of() { # Debian's name, too
    command -v "$1" || command -v "$1-wlm"
}
for program in slurmctld slurmd slurmstepd; do
    program_of $program >/dev/null || skip "no $program"
done
command -v srun >/dev/null || skip "no srun"
here=$(hostname) user=$(id -un) folder=$tap_dir/slurm
mkdir "$folder" "$folder/state" "$folder/spool"
cat >"$folder/slurm.conf" <<END
ClusterName=ridge
SlurmctldHost=$here(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/none
CredType=cred/none
PluginDir=$(dirname "$(command -v srun)")/../lib/$(uname -m)-linux-gnu/slurm-wlm
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldPort=$((20000 + $$ % 10000 * 2))
SlurmdPort=$((20001 + $$ % 10000 * 2))
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
NodeName=$here NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$here Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF="$folder/slurm.conf"
"$(program_of slurmctld)" -D >"$folder/slurmctld.log" 2>&1 &
controller=$!
"$(program_of slurmd)" -D -d "$(program_of slurmstepd)" >"$folder/slurmd.log" 2>&1 &
node=$!
clean() {
    kill $node $controller 2>/dev/null
    wait $node $controller 2>/dev/null
    rm -rf "$tap_dir"
}
trap clean EXIT
trap "exit 1" INT TERM
tries=0
until sinfo -h -o %T 2>/dev/null | grep -q idle; do
    tries=$((tries + 1))
    [ $tries -lt 60 ] || skip "Slurm does not start here: $(tail -n 1 "$folder/slurmd.log")"
    sleep 0.5
done

on_tasks() { # way of srun, words
    way=$1
    shift
    run srun --mpi="$way" -n 2 -O "$RIDGE" "$@"
    tap_what="srun --mpi=$way: $*"
}
met=0
runs ridge train ncf $quick --tiny --batch 32 --steps 10 --seed 5 --save "$tap_dir/one"
for pair in mpich:pmi2 openmpi:pmix; do
    backend=${pair%:*} way=${pair#*:}
    [ -e "${RIDGE_BUILD:-build/release}/plugins/collective/$backend.so" ] || continue
    met=1
    on_tasks $way scale ncf $quick --tiny --batch 16 --steps 10 --seed 5 --save "$tap_dir/$backend" --json
    exits 0
    holds ".backend == \"$backend\" and (.points | length) == 1 and .points[0].ranks == 2"
    near "$tap_dir/one" "$tap_dir/$backend"
    on_tasks $way bench collectives --from 1024 --to 1024 --block 1 --blocks 2 --json
    exits 0
    holds '.ranks == 2 and all(.results[] | select(.algorithm); .wrong == 0)'

    # One of two is killed: the other ends, and so does srun, with an error.
    mark=$tap_dir/saved-$backend
    timeout 60 srun --mpi=$way -n 2 -O "$RIDGE" scale ncf $quick --tiny --batch 16 --steps 10000000 --deadline 3 \
        --save "$mark" >"$output" 2>"$errors" </dev/null &
    step=$!
    victim="" tries=0
    until [ -n "$victim" ] || [ $tries = 60 ]; do
        sleep 0.5
        tries=$((tries + 1))
        victim=$(for file in /proc/[0-9]*/environ; do
            tr '\0' '\n' 2>/dev/null <"$file" | grep -qx 'SLURM_PROCID=1' &&
                tr '\0' ' ' <"$(dirname "$file")/cmdline" | grep -q "^[^ ]*ridge[^ ]* scale .*$mark" &&
                basename "$(dirname "$file")"
        done | head -n 1)
    done
    sleep 2
    kill -KILL "$victim"
    wait $step
    code=$?
    tap_what="$backend: a task is killed"
    check "$tap_what: srun fails, and in time" [ $code != 0 -a $code != 124 ]
    sleep 2
    check "$tap_what: nobody is left" [ -z "$(processes_of "$mark")" ]
done
[ $met = 1 ] || skip "neither Open MPI nor MPICH in this build"
on_tasks none scale ncf $quick --tiny
complains 'srun has started 2 tasks that know nothing of each other'
check "$tap_what: fails" [ "$code" != 0 ]
finish
