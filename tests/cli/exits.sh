#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The process always ends: with little memory, on signals, with a gnuplot, a cache or a plug-in that
# would make it wait for ever.
. tests/lib/tap.sh
. tests/lib/processes.sh
db=$tap_dir/r.db
export XDG_CACHE_HOME="$tap_dir/cache"
limited() { # limit of ulimit, arguments of ridge
    limit=$1
    shift
    # shellcheck disable=SC3045
    run sh -c "ulimit $limit && exec timeout -s KILL 120 $RIDGE $*"
}
ended() { # with a code of its own, by no signal
    [ "$code" -lt 124 ]
    tap_result $? "$tap_what: ended by itself"
}

# OpenBLAS's threads want 128 MiB each and wait for ever where there is no room.
in_little_memory() {
    for kilobytes in 300000 204800 150000; do
        limited "-v $kilobytes" run gemm:m=64,n=64,k=64 -s 0.1 --interval 0 --retune --db "$db" --report "$tap_dir/page"
        ended
        limited "-v $kilobytes" list
        exits 0
    done
    limited '-v 204800' doctor
    exits 0
    if [ -e "$(dirname "$RIDGE")/plugins/openblas.so" ]; then
        prints 'openblas is not used: OpenBLAS needs about [0-9]+ MiB of address space'
    fi
}
case $RIDGE in
*asan* | *tsan*) ;; # a sanitizer reserves terabytes of address space
*) in_little_memory ;;
esac

# Libraries want a larger stack than this.
for kilobytes in 64 128; do
    limited "-s $kilobytes" run gemm:m=64,n=64,k=64 -s 0.1 --interval 0 --retune --no-ceilings --db "$db" --no-report
    ended
    limited "-s $kilobytes" run --device null ncf -s 0.01 --no-ceilings --db "$db" --report "$tap_dir/page"
    exits 0
done

# Each of these signals ends a run cleanly: what is measured is stored, the run is unfinished.
for signal in INT TERM HUP QUIT; do
    rm -f "$db" "$db"-wal "$db"-shm
    "$RIDGE" run gemm:m=64,n=64,k=64 ncf -s 30 --seconds-max 30 --interval 1e-9 --no-tune --no-report \
        --no-layers --no-ceilings -t 1 --db "$db" >"$output" 2>"$errors" &
    victim=$!
    waited=0
    until [ "$(sqlite3 -readonly "$db" 'SELECT count(*) FROM run' 2>&1)" = 1 ] || [ $waited = 600 ]; do
        sleep 0.1 # until the run has begun
        waited=$((waited + 1))
    done
    sleep 0.5
    kill -s $signal $victim
    wait $victim
    code=$?
    tap_what="a run that gets SIG$signal"
    exits 4
    check "SIG$signal: the run is kept as interrupted" test "$(sqlite3 "$db" 'SELECT state FROM run')" = interrupted
    complains 'interrupted; the same command with --resume goes on'
done

# A second signal, of another kind, ends it at once.
sh -c "exec $RIDGE run resnet50 --no-report --db $db -s 60 --seconds-max 60 --interval 1e-9" >"$output" 2>"$errors" &
victim=$!
sleep 1
kill -s HUP $victim
kill -s TERM $victim
wait $victim
code=$?
[ $code = 143 ] || [ $code = 129 ]
tap_result $? "two signals end a run at once (code $code)"

# A gnuplot that hangs is ended, and the page goes without its pictures, after one limit, not many.
mkdir "$tap_dir/bin"
printf '#!/bin/sh\nsleep 1000 & echo $! >>%s\nwait\n' "$tap_dir/sleeping" >"$tap_dir/bin/gnuplot"
chmod +x "$tap_dir/bin/gnuplot"
check "a database" tests/lib/sample_db.sh "$tap_dir/sample.db"
runs env PATH="$tap_dir/bin:$PATH" RIDGE_GNUPLOT_LIMIT_S=1 timeout -s KILL 60 \
    "$RIDGE" report --db "$tap_dir/sample.db" --output "$tap_dir/hanging"
complains 'plots are missing: gnuplot did not finish .* within 1 s'
check "the page says so" grep -q 'gnuplot did not finish' "$tap_dir/hanging/index.html"
check "it was started for one plot, wide and narrow" test "$(wc -l <"$tap_dir/sleeping")" = 2
while read -r pid; do
    check "what it started is ended" test "$(state_of "$pid")" != S
done <"$tap_dir/sleeping"
check "no half picture is left" sh -c '! ls -A "$0" | grep -E "svg|ridge-part"' "$tap_dir/hanging/plots"

# A pipe among the plug-ins is not waited for.
mkdir -p "$tap_dir/plugins/profilers"
mkfifo "$tap_dir/plugins/waits.so" "$tap_dir/plugins/profilers/papi.so"
for command in "doctor" "list" "run gemm:m=64,n=64,k=64 -s 0.05 --interval 0 --no-ceilings --no-report --db $db --profilers papi"; do
    run env RIDGE_PLUGIN_PATH="$tap_dir/plugins" timeout -s KILL 60 "$RIDGE" $command
    ended
done
run env RIDGE_PLUGIN_PATH="$tap_dir/plugins" timeout -s KILL 60 "$RIDGE" doctor
prints 'waits is not used: it is no regular file'

finish
