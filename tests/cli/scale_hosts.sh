#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One command has ranks started on other hosts, says how they did, and leaves nothing behind, also
# after Ctrl-C. The hosts are this machine under other names, which a stand-in for ssh reaches.
. tests/lib/tap.sh
. tests/lib/processes.sh
export ASAN_OPTIONS=detect_leaks=0 # MPI's libraries leak
quick="-t 1 --no-tune --tiny --batch 16 --seed 5"
cat >"$tap_dir/ssh" <<'EOS'
#!/bin/sh
# HOST COMMAND...: here
while [ "${1#-}" != "$1" ]; do shift; done
here=$(dirname "$0")
echo "$1" >>"$here/reached"
# A host has its own temporary folder: daemons in one would remove each other's files.
mkdir -p "$here/of-$1"
TMPDIR=$here/of-$1
export TMPDIR
shift
exec sh -c "$*"
EOS
chmod +x "$tap_dir/ssh"
db=$tap_dir/scale.db
met=0

on_hosts() { # backend
    [ -e "${RIDGE_BUILD:-build/release}/plugins/collective/$1.so" ] || return
    command -v "mpirun.$1" >/dev/null || return
    met=1
    runs ridge scale ncf $quick --steps 10 --ranks 1,2,3 --backend "$1" --hosts "$tap_dir/hosts" --db "$db" --json
    holds ".backend == \"$1\" and (.points | map(.ranks) == [1, 2, 3]) and .points[0].efficiency == 1"
    holds 'all(.points[]; (.losses | length) == 10 and (.by_rank | length) == .ranks and .step_s > 0)'
    holds 'all(.points[1:][].by_rank[]; .communication_s > 0 and (.units | length) > 0)'
    check "kept once, every rank" [ "$(sqlite3 "$db" "SELECT group_concat(value) FROM (SELECT value FROM metric
        WHERE name = 'ranks' AND result IN (SELECT r.id FROM result AS r JOIN point AS p ON p.id = r.point
        WHERE p.canonical LIKE '%backend=$1%') ORDER BY id)")" = "1.0,2.0,3.0" ]
    holds ".points[2].losses == $(cat "$tap_dir/losses")"
}

# Waits until as many processes of it run, and leaves their number in running.
comes_to() { # comparison, number
    tries=0
    until running=$(grep -lsaFf "$tap_dir/mark" /proc/[0-9]*/cmdline | wc -l) && test "$running" "$1" "$2" || test $tries = 600; do
        tries=$((tries + 1))
        sleep 0.1
    done
}

interrupted() { # backend
    [ -e "${RIDGE_BUILD:-build/release}/plugins/collective/$1.so" ] || return
    command -v "mpirun.$1" >/dev/null || return
    echo "$tap_dir/saved-$1" >"$tap_dir/mark" # in a file: grep is a process, too
    mkdir "$tap_dir/memory-$1"
    # Open MPI 4 has it for "vader", 5 for "sm".
    setsid env --default-signal=INT OMPI_MCA_btl_vader_backing_directory="$tap_dir/memory-$1" \
        OMPI_MCA_btl_sm_backing_directory="$tap_dir/memory-$1" "$RIDGE" scale ncf $quick --steps 10000000 --ranks 2 --backend "$1" \
        --hosts "$tap_dir/hosts" --save "$tap_dir/saved-$1" >"$output" 2>"$errors" </dev/null &
    pid=$!
    comes_to -ge 4 # with who starts them
    sleep 1
    check "$1: ranks are at work" [ "$running" -ge 3 ]
    [ "$1" != openmpi ] || check "$1: ranks share memory" [ -n "$(ls "$tap_dir/memory-$1")" ]
    kill -INT $pid
    wait $pid
    code=$?
    tap_what="$1: Ctrl-C"
    exits 4
    complains 'interrupted'
    comes_to -eq 0
    check "$tap_what: nobody is left" [ "$running" = 0 ]
    check "$tap_what: no shared memory is left" [ -z "$(ls "$tap_dir/memory-$1")" ]
}

runs ridge scale ncf $quick --steps 10 --ranks 3 --json
jq -c '.points[0].losses' "$output" >"$tap_dir/losses"
printf '# here\nlocalhost slots=2\n127.0.0.1:2\n' >"$tap_dir/hosts"
on_hosts openmpi
on_hosts mpich
[ $met = 0 ] || for name in openmpi mpich; do interrupted $name; done

# Hosts that are none of this machine's names are reached by what stands in for ssh.
if [ -e "${RIDGE_BUILD:-build/release}/plugins/collective/openmpi.so" ] && command -v mpirun.openmpi >/dev/null; then
    printf 'alpha\nbeta\n' >"$tap_dir/hosts"
    OMPI_MCA_plm_rsh_agent=$tap_dir/ssh PRTE_MCA_plm_ssh_agent=$tap_dir/ssh run ridge scale ncf $quick --steps 10 --ranks 2 --backend openmpi \
        --hosts "$tap_dir/hosts" --json
    exits 0
    holds '.points | length == 1 and .[0].ranks == 2'
    check "both hosts were reached" [ "$(sort "$tap_dir/reached" | tr '\n' ' ')" = "alpha beta " ]
fi

printf 'alpha slots=x\n' >"$tap_dir/hosts"
run ridge scale ncf --tiny --hosts "$tap_dir/hosts"
exits 2
[ $met = 0 ] || complains 'hosts:1: "HOST"'
refuses 'needs a backend with a launcher, not shm' ridge scale ncf --tiny --hosts "$tap_dir/none" --backend shm
refuses 'for ranks that --hosts has started' ridge scale ncf --tiny --points
finish
