#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ranks that learn together: they learn what one rank would, say how they did, and end together.
# parts: same said kills mpi
. tests/lib/tap.sh
. tests/lib/processes.sh
. tests/lib/ranks.sh

if [ "$1" = same ]; then
    same_as_one ncf 4 16
    same_as_one ncf 5 7 --unit 2000
    same_as_one ncf:embedding=gather 3 16
    same_as_one wide_deep 2 16
    same_as_one wide_deep 3 16 --no-overlap
    same_as_one wide_deep 5 8 --algorithm tree
    same_as_one bert_base 2 4 # with dropout
    # In steps as large as the tiny form's, 2, any rounding is three times as large after each.
    both="--rate 0.2"
    same_as_one nmt 3 8
    same_as_one nmt:dropout=inputs 2 8 # of values whose first axis is time
    both=""

    # Each rank reads its own part of what lies in files; in small steps, for Adam magnifies roundings by its rate.
    mkdir "$tap_dir/ml"
    awk 'BEGIN { for (user = 1; user <= 24; user++) for (k = 0; k < 6; k++)
        print user "\t" (user + 3 * k) % 20 + 1 "\t5\t" 1000 * user + k }' >"$tap_dir/ml/u.data"
    runs ridge train ncf:users=24,items=20 $quick --batch 48 --steps 10 --rate 0.0001 --data "$tap_dir/ml" --save "$tap_dir/one"
    runs ridge scale ncf:users=24,items=20 $quick --batch 16 -n 3 --steps 10 --rate 0.0001 --data "$tap_dir/ml" \
        --reader-threads 2 --save "$tap_dir/many" --db "$tap_dir/data.db" --json
    holds '.data == "movielens" and .points[0].batch == 48 and (.points[0].losses | length) == 10'
    near "$tap_dir/one" "$tap_dir/many"
    run sqlite3 "$tap_dir/data.db" "SELECT canonical FROM point"
    prints 'data=movielens readers=2 limit=0 tuning=none$'
    refuses 'none' ridge scale ncf $quick -n 2 --data "$tap_dir/none"

    # Every sample is the whole graph: more ranks have more of the same.
    runs ridge train gcn $quick --tiny --steps 10 --seed 5 --save "$tap_dir/one"
    runs ridge scale gcn $quick --tiny --steps 10 --seed 5 -n 3 --save "$tap_dir/many"
    near "$tap_dir/one" "$tap_dir/many"

    # With batch normalisation they are part of a larger batch where they share its statistics;
    # otherwise their weights agree all the same.
    same_as_one din 2 16 --sync-batch-norm
    same_as_one din 4 8 --sync-batch-norm --unit 1000
    runs ridge scale din $quick --tiny --steps 5 -n 3 --batch 8 --algorithm ring

    # Activations that are computed again are the same.
    run ridge scale wide_deep $quick --tiny -n 2 --batch 32 --steps 4 --json
    exits 0
    jq '.points[0].losses' "$output" >"$tap_dir/kept"
    run ridge scale wide_deep $quick --tiny -n 2 --batch 32 --steps 4 --json --recompute
    exits 0
    holds '.recompute'
    jq '.points[0].losses' "$output" >"$tap_dir/again"
    check "recomputed on two ranks, the same losses" cmp "$tap_dir/kept" "$tap_dir/again"

    # A checkpoint of several ranks goes on on one, and the other way round.
    runs ridge scale ncf $quick --tiny -n 3 --batch 8 --steps 6 --save "$tap_dir/six" --json
    runs ridge train ncf $quick --tiny --batch 24 --steps 12 --resume "$tap_dir/six" \
        --save "$tap_dir/twelve"
    runs ridge scale ncf $quick --tiny -n 2 --batch 12 --steps 12 --resume "$tap_dir/six" \
        --save "$tap_dir/other"
    near "$tap_dir/twelve" "$tap_dir/other"
fi

if [ "$1" = said ]; then
    # A number that comes twice was measured and kept twice.
    runs ridge scale ncf $quick --tiny --ranks 1,1,2,1 --batch 32 --steps 2 --json
    holds '.points | map(.ranks) == [1, 2]'
    runs ridge scale ncf $quick --tiny --ranks 1,2,3 --batch 32 --steps 12 --unit 4000 --json
    holds '.workload | startswith("ncf:")'
    holds '.scaling == "weak" and .backend == "shm" and (.points | map(.ranks) == [1, 2, 3])'
    holds '.points | map(.batch) == [32, 64, 96]'
    holds '.points[0] | .efficiency == 1 and .communication_s == 0 and .bytes_sent == 0'
    holds 'all(.points[]; .step_s > 0 and .warm_up == 2 and .steps == 12 and
        ((.samples_per_s * .step_s / .batch - 1) | fabs) < 1e-9)'
    holds 'all(.points[]; (.by_rank | length) == .ranks and .threads == 1)'
    holds 'all(.points[].by_rank[]; .exposed_s <= .step_s)'
    holds '.points[2] as $p | (($p.hidden_s + $p.exposed_s) >= $p.communication_s * 0.999999)'
    holds 'all(.points[1:][].by_rank[].units; length > 2)'
    holds 'all(.points[1:][].by_rank[].units[]; .ready_s > 0 and .ready_s <= .started_s and
        .started_s <= .ended_s and .waited_s >= 0 and .bytes > 0)'
    # All bytes but one part in N, in each direction; a unit has one part for each rank.
    holds '.points[1] | (.by_rank[0].units | map(.bytes) | add) as $all |
        .bytes_sent >= $all * 0.9 and .bytes_sent <= $all * 1.5'
    # Half the bytes, but for the loss, which crosses as it is; and what is learnt is nearly the same.
    jq -c ".points[1].losses" "$output" >"$tap_dir/losses"
    run ridge scale ncf $quick --tiny -n 2 --batch 32 --steps 12 --unit 4000 --wire f16 --lanes 2 --db "$tap_dir/wire.db" --json
    exits 0
    holds '.wire == "f16" and .lanes == 2 and .unit_bytes == 4000'
    holds '.points[0].by_rank[0].units | map(select(.bytes > 4)) | length > 2 and all(.[]; .bytes_sent * 2 == .bytes)'
    holds ".points[0].losses as \$narrow | $(cat "$tap_dir/losses") as \$wide | \$narrow[0] == \$wide[0] and \$narrow != \$wide and
        ([\$narrow, \$wide] | transpose | all(.[]; ((.[0] - .[1]) | fabs) < 1e-3))"
    run sqlite3 "$tap_dir/wire.db" "SELECT canonical FROM point"
    prints ' wire=f16 lanes=2 unit=4000'
    run ridge scale ncf $quick --tiny --ranks 2,1 --strong --batch 32 --steps 4
    exits 0
    prints '^ *ranks +batch +step ms +samples/s'
    prints '^ *2 +32 '
    prints '^ *1 +32 .* 100\.0 %'

    # In the database: a run like others, whose points can be compared, exported and drawn.
    db=$tap_dir/scale.db
    for _ in 1 2; do
        runs ridge scale ncf $quick --tiny --ranks 1,2 --batch 32 --steps 12 --unit 4000 --db "$db"
    done
    runs ridge export --db "$db" --format json
    check "a result of each number of ranks, all steps kept" [ \
        "$(sqlite3 "$db" "SELECT group_concat(value) || ' ' || (SELECT count(*) FROM sample)
            FROM (SELECT value FROM metric WHERE name = 'ranks' ORDER BY id)")" = "1.0,2.0,1.0,2.0 48" ]
    runs ridge list runs --db "$db" --json
    holds 'length == 2 and all(.[]; .command | test("scale ncf"))'
    runs ridge history "$(sqlite3 "$db" "SELECT key FROM point WHERE batch = 64")" --db "$db" --json
    run ridge compare latest~1 latest --db "$db"
    prints '(unchanged|inconclusive|machine|improved|regressed|invalid) +ncf:.*ranks=2 batch=64 threads=1 training'
    runs ridge report --db "$db" -o "$tap_dir/report"
    check "the page shows the curve" grep -q 'id="scaling"' "$tap_dir/report/index.html"
    for plot in scaling timeline; do
        run ridge plot $plot --db "$db" -o "$tap_dir/plots" --result 2
        check "plot $plot has its data" [ -s "$tap_dir/plots/$plot.dat" ]
    done
    check "the curve has the latest point of each" [ \
        "$(grep -c 'ncf b32 t1$' "$tap_dir/plots/scaling.dat")" = 3 ]
    check "the timeline has the units of both ranks" [ \
        "$(grep -c 'rank [01]$' "$tap_dir/plots/timeline.dat")" -ge 6 ]

    # Networks of other sizes, and activations computed again, were points of one curve: a rank alone
    # had 0.05 of the rate of a rank alone. Curves that differ in a setting had the same name.
    db=$tap_dir/curves.db
    for how in ncf:items=30,users=40 ncf:items=300,users=400 "ncf:items=30,users=40 --recompute" \
        "ncf:items=30,users=40 --algorithm tree"; do
        runs ridge scale $how $quick --ranks 1,2 --batch 16 --steps 2 --db "$db"
    done
    runs ridge plot scaling --db "$db" -o "$tap_dir/plots"
    awk -F '\t' '/^# /{ block = $1 } block == "# points" && $1 ~ /^[12]$/' "$tap_dir/plots/scaling.dat" >"$tap_dir/points"
    is "two points of each curve" "2 2 2 2" "$(cut -f 5 "$tap_dir/points" | uniq -c | awk '{ print $1 }' | xargs)"
    is "one rank is worth one" "1 1 1 1" "$(awk '$1 == 1 { print $2 }' "$tap_dir/points" | xargs)"
    is "curves have names of their own" 4 "$(cut -f 5 "$tap_dir/points" | sort -u | wc -l)"

    # What makes other steps makes another point: all of these were one.
    db=$tap_dir/ways.db
    for how in "" --sync-batch-norm --no-overlap "--providers native"; do
        runs ridge scale din $quick --tiny -n 2 --batch 4 --steps 2 $how --db "$db"
    done
    is "points of their own" 4 "$(sql 'SELECT count(*) FROM point')"
    # The command under a result measures its point again; it had no algorithm, data or providers.
    printf '1\t1\t5\t1\n1\t2\t5\t2\n2\t1\t5\t3\n2\t3\t5\t4\n' >"$tap_dir/u.data"
    again() { # workload, options
        rm -f "$db"
        runs ridge scale "$@" $quick -n 2 --batch 4 --steps 2 --db "$db"
        line=$(sql 'SELECT reproduce FROM result')
        run sh -c "'$RIDGE' ${line#ridge} --db '$db'"
        is "\"$line\" measures it again" "2 1" "$(sql 'SELECT count(*) || " " || count(DISTINCT point) FROM result')"
    }
    again din --tiny --algorithm tree --sync-batch-norm --no-overlap --providers openblas,native
    again wide_deep --tiny --strong --wire f16 --lanes 2 --unit 1000000000 --tables split --moments split --isa avx2
    mkdir "$tap_dir/a b's"
    mv "$tap_dir/u.data" "$tap_dir/a b's"
    again ncf:users=2,items=3 --data "$tap_dir/a b's" --reader-threads 2 --read-limit 2.5 --recompute

    refuses 'a batch of 32 cannot be shared by 3' ridge scale ncf --tiny --ranks 3 --strong --batch 32 --steps 4
    refuses 'take numbers from 1' ridge scale ncf --ranks 1,x
    run ridge scale ncf --ranks 0
    exits 2
    refuses 'one number of ranks' ridge scale ncf --ranks 1,2 --save "$tap_dir/none"
    run ridge scale gemm
    exits 5
    run ridge scale nfc
    exits 2
    run ridge scale ncf --wire f64
    exits 2
    complains 'take f16 or bf16'
    run ridge scale ncf --lanes 9
    exits 2
    run ridge scale ncf --backend loop
    exits 5
    refuses 'no schedule for all_reduce' ridge scale ncf --algorithm pairwise

    # Tasks of srun without an MPI would each make the whole curve; one task makes it as anybody does.
    export SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2
    refuses 'srun has started 2 tasks that know nothing of each other' ridge scale ncf
    refuses 'srun --mpi=pmi2 is for MPICH' ridge bench collectives
    export SLURM_STEP_NUM_TASKS=1
    runs ridge scale ncf $quick --tiny --ranks 2 --batch 16 --steps 2
    unset SLURM_PROCID SLURM_STEP_NUM_TASKS
fi

# A rank that is killed or stopped: all end within the deadline, with its name, and nothing is left.
# Ranks that train until they are ended take no more than one CPU from the tests beside them.
first_cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
break_rank() { # signal, what is said
    taskset -c $first_cpu "$RIDGE" scale ncf -t 1 --no-tune --tiny --ranks 3 --batch 16 --steps 10000000 --deadline 2 \
        >"$output" 2>"$errors" </dev/null &
    pid=$!
    wait_for_children $pid 3
    sleep 0.5
    victims=$(children_of $pid)
    set -- "$1" "$2" $victims
    kill "-$1" "$4"
    began=$(date +%s)
    wait $pid
    code=$?
    took=$(($(date +%s) - began))
    tap_what="rank 1 gets $1"
    check "$tap_what: fails" [ $code != 0 ]
    complains "$2"
    check "$tap_what: within the deadline" [ "$took" -le 30 ]
    for victim in $victims; do
        check "$tap_what: process $victim is gone" sh -c "! kill -0 $victim"
    done
    check "$tap_what: nothing is left in shared memory" sh -c '! ls /dev/shm | grep -i ridge'
}

if [ "$1" = kills ]; then
    break_rank KILL 'rank 1 was killed by signal 9'
    break_rank STOP 'rank 1 has shown no life'
    break_rank TERM 'rank 1 was killed by signal 15'

    # A job that is suspended for longer than the deadline goes on afterwards: ranks took each other for dead.
    setsid taskset -c $first_cpu "$RIDGE" scale ncf -t 1 --no-tune --tiny --ranks 3 --batch 16 --steps 10000000 --deadline 1 \
        >"$output" 2>"$errors" </dev/null &
    pid=$!
    wait_for_children $pid 3
    victims=$(children_of $pid)
    for _ in 1 2 3; do
        sleep 0.5
        kill -STOP $victims
        sleep 1.5
        kill -CONT $victims
    done
    sleep 0.5
    tap_what="all ranks are suspended for a while"
    check "$tap_what: and go on" kill -0 $pid
    is "$tap_what: nobody is blamed" "" "$(cat "$errors")"
    kill $victims
    wait $pid

    # Ctrl-C reaches the whole process group; a shell has its background jobs ignore it.
    setsid taskset -c $first_cpu env --default-signal=INT "$RIDGE" scale ncf -t 1 --no-tune --tiny --ranks 2 --batch 16 --steps 10000000 \
        >"$output" 2>"$errors" </dev/null &
    pid=$!
    wait_for_children $pid 2
    victims=$(children_of $pid)
    kill -INT "-$pid"
    wait $pid
    code=$?
    tap_what="Ctrl-C"
    exits 4 # as of run and train; it was 2, as of wrong usage
    complains 'interrupted'
    for victim in $victims; do
        check "$tap_what: process $victim is gone" sh -c "! kill -0 $victim"
    done
fi

# Ranks that mpirun has started: the same training, said once.
under_mpi() { # name, words that start three ranks
    name=$1
    shift
    [ -e "${RIDGE_BUILD:-build/release}/plugins/collective/$name.so" ] || return
    command -v "$1" >/dev/null || return
    met=1
    runs "$@" "$RIDGE" scale ncf $quick --tiny --batch 16 --steps 10 --seed 5 \
        --save "$tap_dir/$name" --db "$tap_dir/$name.db" --json
    holds ".backend == \"$name\" and (.points | length) == 1 and .points[0].ranks == 3"
    holds '.points[0] | (.by_rank | length) == 3 and all(.by_rank[]; .communication_s > 0)'
    near "$tap_dir/one" "$tap_dir/$name"
    is "the command starts the ranks, too" 1 "$(sql "SELECT count(*) FROM result
        WHERE reproduce LIKE 'mpirun.$name -n 3 ridge scale ncf:% --batch 16 --threads 1 %'" "$tap_dir/$name.db")"
    # Where all ranks end at once MPICH's mpirun may itself die of SIGPIPE, and what they said is lost.
    for attempt in 1 2 3; do
        run "$@" "$RIDGE" scale ncf $quick --tiny --ranks 2
        [ "$code" = 141 ] || break
        echo "# attempt $attempt: mpirun died of SIGPIPE"
    done
    complains '3 were started'
}

if [ "$1" = mpi ]; then
    met=0
    export ASAN_OPTIONS=detect_leaks=0 # MPI's libraries leak
    runs ridge train ncf $quick --tiny --batch 48 --steps 10 --seed 5 --save "$tap_dir/one"
    under_mpi openmpi mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none \
        --mca mpi_yield_when_idle 1 -n 3
    under_mpi mpich mpirun.mpich -n 3
    if [ $met = 0 ]; then
        echo "neither Open MPI nor MPICH is here, or was when this was built"
        exit 77
    fi
fi

finish
