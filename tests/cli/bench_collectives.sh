#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Operations between ranks: exact, complete, and counted as the schedules say.
. tests/lib/tap.sh

runs ridge bench collectives --ranks 3 --from 8 --to 32KiB --factor 64 --block 1 --json
holds '.ranks == 3 and .dtype == "f32" and .reduction == "sum"'
holds '[.results[] | select(.operation == "copy") | .bytes] == [8, 512, 32768]'
holds '[.results[] | select(.operation != "copy")] | length == 54'
holds 'all(.results[]; .time_s > 0 and .fastest_s <= .time_s and .time_s <= .slowest_s)'
holds 'all(.results[] | select(.operation != "copy"); .wrong == 0 and .backend == "shm")'
holds '[.results[] | select(.algorithm and (.chosen | not)) | .algorithm] | unique ==
    ["double_tree", "hierarchical", "rabenseifner", "recursive_doubling", "ring", "server", "servers",
     "tree"]'
# Of 3 ranks, a ring sends 4 thirds of 8192 elements, each in as many messages.
holds '[.results[] | select(.algorithm == "ring" and .bytes == 32768 and (.chosen | not))] |
    length == 2 and all(.[]; .messages == 4 and (.bytes_sent - 43690 | fabs) < 8)'
holds 'all(.results[] | select(.operation == "all_reduce");
    ((.busbw_bytes_s / .algbw_bytes_s) - 4 / 3 | fabs) < 1e-9)'
holds 'all(.fits[]; .points == 3 and .message_s >= 0 and .byte_s >= 0 and .residual >= 0)'
holds '[.fits[].algorithm] == ["double_tree", "hierarchical", "rabenseifner",
    "recursive_doubling", "ring", "server", "servers", "tree"]'

# Every operation, on every backend, in a type that rounds.
for backend in shm loop; do
    runs ridge bench collectives --ranks 2 -o all -b "$backend" --dtype bf16 --reduction max \
        --from 4KiB --to 4KiB --block 1 --json
    holds "[.results[] | select(.operation != \"copy\") | .operation] | unique ==
        [\"all_gather\", \"all_reduce\", \"all_to_all\", \"broadcast\", \"reduce_scatter\"]"
    holds "all(.results[] | select(.operation != \"copy\"); .wrong == 0 and .backend == \"$backend\")"
done
complains 'times of loop mean nothing'

# A size that 64 bits do not hold is no further case: its list grew until memory ended.
case $RIDGE in
*asan* | *tsan*) ;; # a sanitizer reserves terabytes of address space
*)
    run sh -c 'ulimit -v 4000000; exec timeout 60 "$0" "$@"' "$RIDGE" bench collectives -a ring --from 16GiB --to 16GiB --factor 1000000000
    complains 'rank [01]: out of memory'
    ;;
esac

# Whoever starts it may ignore the ends of children, which are inherited: then no rank's end was seen.
runs sh -c 'trap "" CHLD; exec timeout 60 "$0" "$@"' "$RIDGE" bench collectives --ranks 2 -a ring --from 8 --to 8 --blocks 1

runs ridge bench collectives -a ring --from 1KiB --to 4KiB --block 1 --lanes 2 --segment 2KiB
prints '^ *4 KiB +shm +all_reduce +ring +in +[0-9.]+ .* 0$'
prints '^shm +all_reduce +ring +[0-9.]+ +[0-9.-]+ +[0-9]+ %$'

# Two backends take turns, and their times are joined.
runs ridge bench collectives -b shm,loop -a ring --turns 2 --blocks 2 --from 1KiB --to 1KiB --block 1 --json
holds '[.results[] | select(.algorithm) | .backend] == ["shm", "shm", "loop", "loop"]'
holds 'all(.results[]; .samples_s | length == 4)'

# Half the bytes on their way, sums of small integers still exact.
runs ridge bench collectives -a ring --wire f16 --ranks 2 --from 4KiB --to 4KiB --block 1 --json
holds '.wire == "f16" and all(.results[] | select(.algorithm); .bytes_sent == 2048 and .wrong == 0)'
refuses 'only f32' ridge bench collectives --wire f16 --dtype f64

# In the database, each case is a point; the page and two plots show them; workloads do not have them.
db=$tap_dir/bench.db
for _ in 1 2; do
    runs ridge bench collectives -a ring --from 4KiB --to 16KiB --block 1 --loggp --db "$db" --json
done
# A busy machine may leave nothing for bytes to explain: no cost is negative, not each is above 0.
holds '.loggp | length == 1 and (.[0] | .points == 12 and .latency_s >= 0 and .overhead_s >= 0 and
    .gap_s >= 0 and .byte_s >= 0 and .residual >= 0 and (.trips | length) == 13 and
    all(.trips[]; .time_s > 0))'
holds '[.results[] | select(.operation != "copy")] | length == 4'
check "a point of each case, and all samples" [ "$(sqlite3 "$db" "SELECT (SELECT count(*) FROM point WHERE mode = 'collective') ||
    ' ' || (SELECT count(*) FROM result WHERE status = 'ok') || ' ' || (SELECT count(*) FROM sample)")" = "17 34 306" ]
check "rates, roofs and models" [ "$(sqlite3 "$db" "SELECT count(*) FROM metric AS m JOIN metric AS r USING (result)
    JOIN metric AS t USING (result) WHERE m.name = 'model_s' AND m.formula LIKE 'messages x%' AND r.name = 'roof_rate'
    AND r.value > 0 AND t.name = 'bus_rate' AND t.value > 0")" = 8 ]
run ridge compare latest~1 latest --db "$db"
prints '(unchanged|inconclusive|machine|improved|regressed|invalid) +all_reduce:.*algorithm=ring'
runs ridge history "$(sqlite3 "$db" "SELECT key FROM point WHERE params LIKE 'bytes=4096,%place=in'")" --db "$db" --json
runs ridge report --db "$db" -o "$tap_dir/report"
check "the page shows them" grep -q 'id="collectives"' "$tap_dir/report/index.html"
check "ranks are whole, not 2.00" grep -qE 'data-label="Ranks"[^>]*>2</td>' "$tap_dir/report/index.html"
check "with LogGP" grep -q 'LogGP: L ' "$tap_dir/report/index.html"
for plot in collective_rates collective_times; do
    runs ridge plot $plot --db "$db" -o "$tap_dir/plots"
    check "plot $plot has its data" [ "$(grep -c 'shm ring.* n2$' "$tap_dir/plots/$plot.dat")" -ge 3 ]
done
# The command under a result measures its point again; it had no reduction, wire, lanes or segments, no
# memory of the ranks, and of what is chosen by size the algorithm that was.
again=$tap_dir/again.db
for how in "-a ring --wire f16 --lanes 2" "-o broadcast --dtype i64" \
    "-a hierarchical --ranks 3 --per-node 3 --reduction max --segment 1KiB --touch --own-memory"; do
    runs ridge bench collectives $how --from 4KiB --to 4KiB --block 1 --blocks 3 --db "$again"
done
points=$(sql 'SELECT count(*) FROM point' "$again")
sql 'SELECT DISTINCT reproduce FROM result' "$again" >"$tap_dir/lines"
while read -r line; do
    run sh -c "'$RIDGE' ${line#ridge} --block 1 --blocks 3 --db '$again'" </dev/null
    exits 0
done <"$tap_dir/lines"
is "the same points, each measured again" "$points $points" "$(sql "SELECT count(*) || ' ' || sum(n > 1) FROM
    (SELECT count(*) AS n FROM result GROUP BY point)" "$again")"

# Curves of another wire or reduction had the names of those without.
for how in "" "--wire f16 --lanes 2"; do
    runs ridge bench collectives -a ring $how --from 4KiB --to 16KiB --block 1 --blocks 3 --db "$again"
done
runs ridge plot collective_rates --db "$again" -o "$tap_dir/plots"
check "the wire is in the name" grep -q 'shm ring n2 wire=f16 lanes=2$' "$tap_dir/plots/collective_rates.dat"
check "what is as usual is not" grep -q 'shm ring n2$' "$tap_dir/plots/collective_rates.dat"

refuses '--loggp needs two ranks' ridge bench collectives --loggp --ranks 1
refuses 'did you mean ring' ridge bench collectives --algorithm rings
refuses 'pairwise has no schedule for all_reduce' ridge bench collectives -a pairwise
refuses 'f16, bf16, i32, i64' ridge bench collectives --dtype i8
refuses 'size "4KiBs"' ridge bench collectives --from 4KiBs
refuses '--from is larger than --to' ridge bench collectives --from 8KiB --to 4KiB
run ridge bench
exits 2
refuses 'collectives' ridge bench collective
check "nothing is left in shared memory" sh -c '! ls /dev/shm | grep -i ridge'

finish
