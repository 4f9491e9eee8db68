#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ranks that have parts of embedding tables or of an optimiser's state learn what one rank would,
# and need less memory for it.
# parts: tables rows moments said mpi
. tests/lib/tap.sh
. tests/lib/ranks.sh

if [ "$1" = tables ]; then
    same_as_one ncf:embedding=gather 4 16 --tables split
    same_as_one ncf:embedding=gather 5 8 --tables split --no-overlap # 16 columns, 4 of each: one has none
    same_as_one wide_deep 3 16 --tables split
    same_as_one wide_deep 5 8 --tables split --moments split
    same_as_one din 2 16 --tables split --sync-batch-norm # with a clipped norm

    # Dice takes means of a batch as well. The attention's gradients are near 0, and Adam makes steps
    # of what is left of their roundings: those tensors are left out.
    run ridge train dien $quick --tiny --batch 12 --steps 10 --seed 5 --save "$tap_dir/one" --json
    exits 0
    jq .losses "$output" >"$tap_dir/losses"
    for how in whole split; do
        run ridge scale dien $quick --tiny -n 3 --batch 4 --steps 10 --seed 5 --tables $how --sync-batch-norm \
            --save "$tap_dir/$how" --json
        exits 0
        holds ".points[0].losses as \$many | $(cat "$tap_dir/losses") as \$one |
            [\$many, \$one] | transpose | length == 10 and all(.[]; ((.[0] - .[1]) | fabs) <= 1e-5)"
        run ridge checkpoint diff "$tap_dir/one" "$tap_dir/$how" --json
        holds '[.tensors[] | select(.name | test("_att") | not)] |
            length > 90 and all(.[]; .of_kind <= 1e-6)'
    done
fi

# Whole tables on each rank, whose gradients travel as rows.
if [ "$1" = rows ]; then
    same_as_one ncf:embedding=gather,users=4000,items=3000 2 16 --tables rows
    same_as_one wide_deep 5 8 --tables rows
    same_as_one din:items=5000,history=8 2 16 --tables rows --sync-batch-norm
    # What need not be sent: two tables of 16 columns and 4,000 rows, two of 3,000 rows.
    runs ridge scale ncf:embedding=gather,users=4000,items=3000 $quick -n 2 --batch 16 --steps 2 \
        --tables rows --json
    holds '.tables == "rows" and .points[0].bytes_sent < 40000'
    holds '[.points[0].by_rank[0].units[].operation] | unique == ["AllGather", "AllReduce"]'
fi

if [ "$1" = moments ]; then
    same_as_one ncf 4 16 --moments split
    same_as_one ncf 5 7 --moments split --unit 2000
    same_as_one wide_deep 2 16 --moments split --algorithm tree
    same_as_one bert_base 2 4 --moments split # with a clipped norm, decay and dropout
    same_as_one din 3 8 --moments split --sync-batch-norm --no-overlap
fi

kept() { # the memory of all that outlives a step, with these options
    runs ridge scale ncf:embedding=gather $quick --tiny --ranks 4 --batch 16 --steps 2 "$@" --json
    kept=$(jq '.points[0].state_bytes' "$output")
}

if [ "$1" = said ]; then
    # Four tables of 16 columns, and two moments of each weight by Adam: tables of a quarter of
    # the columns take a quarter of the memory with their moments, split moments a quarter by
    # themselves. A part is rounded up to whole elements.
    kept
    whole=$kept
    kept --moments split
    check "weights stay, two moments of three are a quarter" [ $((kept * 2)) -ge "$whole" ]
    check "and no more than that" [ $((kept * 100)) -le $((whole * 52)) ]
    holds '.moments == "split" and .tables == "whole"'
    holds '[.points[0].by_rank[0].units[].operation] | unique == ["AllGather", "AllReduce", "ReduceScatter"]'
    holds 'all(.points[0].by_rank[]; .state_bytes > 0 and .work_bytes > 0)'
    parts=$kept
    kept --tables split
    holds '[.points[0].by_rank[0].units[].operation] | unique == ["AllGather", "AllReduce", "AllToAll"]'
    tables=$kept
    kept --tables split --moments split
    check "both take less than either" [ "$kept" -lt "$tables" ]
    check "both take less than split moments" [ "$kept" -lt "$parts" ]

    # A checkpoint is that of one rank, whoever had which part.
    runs ridge scale ncf:embedding=gather $quick --tiny -n 3 --batch 8 --steps 6 --tables split \
        --moments split --save "$tap_dir/six"
    for how in "-n 2 --batch 12 --tables split" "-n 4 --batch 6 --moments split" \
        "-n 1 --batch 24 --tables split --moments split"; do
        runs ridge scale ncf:embedding=gather $quick --tiny $how --steps 12 \
            --resume "$tap_dir/six" --save "$tap_dir/parts"
        runs ridge train ncf:embedding=gather $quick --tiny --batch 24 --steps 12 \
            --resume "$tap_dir/six" --save "$tap_dir/twelve"
        near "$tap_dir/twelve" "$tap_dir/parts"
    done

    # In the database points of different strategies are different ones.
    db=$tap_dir/parts.db
    for how in "" "--tables split" "--moments split"; do
        runs ridge scale wide_deep $quick --tiny -n 2 --batch 16 --steps 4 $how --db "$db"
    done
    prints 'MB kept'
    check "three points" [ "$(sqlite3 "$db" 'SELECT count(*) FROM point')" = 3 ]
    check "their exchanges have names" [ "$(sqlite3 "$db" \
        'SELECT group_concat(kind) FROM (SELECT DISTINCT kind FROM op ORDER BY kind)')" = \
        AllGather,AllReduce,AllToAll,ReduceScatter ]
    runs ridge report --db "$db" -o "$tap_dir/report"
    check "the page names the strategy" grep -q 'wide_deep b16 t1, tables split' \
        "$tap_dir/report/index.html"

    run ridge scale ncf --tiny -n 2 --no-tune --tables split
    exits 5
    complains 'no embedding table of at least 2 columns'
    run ridge scale mask_rcnn --tiny -n 2 --no-tune --moments split
    exits 5
    complains 'clips each gradient'
    refuses 'take whole, rows or split' ridge scale ncf --tables columns
fi

under_mpi() { # name, words that start three ranks
    name=$1
    shift
    [ -e "${RIDGE_BUILD:-build/release}/plugins/collective/$name.so" ] || return
    command -v "$1" >/dev/null || return
    met=1
    runs "$@" "$RIDGE" scale wide_deep $quick --tiny --batch 16 --steps 10 --seed 5 --tables split \
        --moments split --save "$tap_dir/$name"
    near "$tap_dir/one" "$tap_dir/$name"
}

if [ "$1" = mpi ]; then
    met=0
    export ASAN_OPTIONS=detect_leaks=0 # MPI's libraries leak
    runs ridge train wide_deep $quick --tiny --batch 48 --steps 10 --seed 5 --save "$tap_dir/one"
    under_mpi openmpi mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none \
        --mca mpi_yield_when_idle 1 -n 3
    under_mpi mpich mpirun.mpich -n 3
    if [ $met = 0 ]; then
        echo "neither Open MPI nor MPICH is here, or was when this was built"
        exit 77
    fi
fi

finish
